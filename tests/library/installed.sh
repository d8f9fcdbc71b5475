#!/bin/sh
# installed.sh - installs the library into a folder of its own and uses it as others would.
#
#   tests/library/installed.sh      run in the root of a built tree; CC and CXX name the compilers (gcc, g++)
#
# It checks that
#   - the exported symbols are those of library/symbols.txt, of version LRNN_0, and the library's name is liblrnn.so.0
#   - examples/scan_block.c compiles against the installed header by both compilers, and its gradients are right
#   - a client that was compiled with the header of version 0.1 works with today's library, and each field and constant
#     of that header has the same place and value in today's
#   - lrnn.arrays, lrnn.torch, lrnn.load and lrnn.jax pass the check_*.py here, where $PYTHON (python3) has NumPy,
#     PyTorch and JAX; else it says which were not checked
#   - each wheel in dist/ installs in a new environment without network and other packages, computes there and trains
#     s3 by its program
#   - libraries of the wheel for the CPU compute under qemu as processors of the levels 2, 3 and 4, where there is one
#   - make uninstall removes every file
set -eu

CC=${CC:-gcc} CXX=${CXX:-g++}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "installed.sh: $1" >&2
    exit 1
}

make --no-print-directory CUDA=0 library
nm -D --defined-only liblrnn.so | awk '{ sub(/@@LRNN_0$/, "", $3) } $3 ~ /^lrnn_/ { print $3 }' | LC_ALL=C sort |
    diff library/symbols.txt - || fail "liblrnn.so exports other symbols than library/symbols.txt lists"
readelf -d liblrnn.so | grep -q 'SONAME.*\[liblrnn\.so\.0\]$' || fail "the SONAME of liblrnn.so is not liblrnn.so.0"
nm -D --defined-only liblrnn.so | awk '$3 !~ /^(lrnn_|LRNN_)/' | grep . && fail "liblrnn.so exports names of its inside"

make --no-print-directory CUDA=0 PREFIX="$folder" install >/dev/null
export PKG_CONFIG_PATH="$folder/lib/pkgconfig" LD_LIBRARY_PATH="$folder/lib"
flags=$(pkg-config --cflags --libs lrnn)
warnings='-Wall -Wextra -Werror'
# shellcheck disable=SC2086 # flags and warnings are lists of words
client() {
    compiler=$1 source=$2
    shift 2
    "$compiler" $warnings "$@" "$source" $flags -lm -o "$folder/client" || fail "$compiler does not compile $source"
    "$folder/client" || fail "$source fails, compiled by $compiler"
}
client "$CC" examples/scan_block.c -std=c11
mkdir "$folder/old"
cp tests/library/lrnn-0.1.h.txt "$folder/old/lrnn.h"
client "$CC" examples/scan_block.c -std=c11 "-I$folder/old"
awk -f tests/library/layout.awk "$folder/old/lrnn.h" >"$folder/layout.c"
client "$CC" "$folder/layout.c" -std=c11 "-I$folder/old" >"$folder/old/layout"
[ "$(grep -c . "$folder/old/layout")" -gt 100 ] || fail "layout.awk finds no fields in the header of version 0.1"
client "$CC" "$folder/layout.c" -std=c11 >"$folder/layout"
diff "$folder/old/layout" "$folder/layout" || fail "fields of version 0.1 have moved: old programs would break"
rm "$folder/layout" "$folder/layout.c"
cp examples/scan_block.c "$folder/client.cc"
client "$CXX" "$folder/client.cc" -std=c++17
python=${PYTHON:-python3}
export PYTHONPATH=python LRNN_LIBRARY="$PWD/liblrnn.so" LRNN_LIBRARY_F64="$PWD/liblrnn-f64.so"
has() { "$python" -c "import $1" 2>/dev/null; }
if has torch || has jax || has numpy; then make --no-print-directory CUDA=0 REAL=double library; fi
if has numpy; then
    "$python" tests/library/check_arrays.py || fail "lrnn.arrays does not hold what check_arrays.py asks"
else
    echo "lrnn.arrays was not checked: $python has no NumPy"
fi
if has torch; then
    "$python" tests/library/check_torch.py || fail "lrnn.torch does not hold what check_torch.py asks"
else
    echo "lrnn.torch was not checked: $python has no PyTorch"
fi
if has torch && has numpy && has safetensors && [ -x lrnn-f64 ]; then
    "$python" tests/library/check_net.py ./lrnn-f64 || fail "lrnn.load does not hold what check_net.py asks"
else
    echo "lrnn.load was not checked: that takes ./lrnn-f64, and $python with PyTorch, NumPy and safetensors"
fi
if has jax; then
    make --no-print-directory CUDA=0 PYTHON="$python" jax
    "$python" tests/library/check_jax.py || fail "lrnn.jax does not hold what check_jax.py asks"
else
    echo "lrnn.jax was not checked: $python has no JAX"
fi
mkdir -p dist
wheels=$(find dist -name 'lrnn-*.whl')
for wheel in $wheels; do
    "$python" -m venv "$folder/venv" || fail "$python cannot make an environment"
    installed="env -u LD_LIBRARY_PATH -u PYTHONPATH -u LRNN_LIBRARY -u LRNN_LIBRARY_F64 $folder/venv/bin/python"
    $installed -m pip install --quiet --no-index "$wheel" || fail "pip does not install $wheel"
    $installed tests/library/check_wheel.py || fail "$wheel does not hold what check_wheel.py asks"
    $installed -m lrnn bench s3 --profile smoke --out "$folder/runs" >"$folder/told" 2>&1 ||
        fail "the program of $wheel does not train s3: $(cat "$folder/told")"
    grep -q 'bdlru:blocks=8,m=3' "$folder/told" || fail "the program of $wheel prints no table of s3"
    grep -e 'cannot find results' -e 'cannot find plots' "$folder/told" && fail "$wheel lacks data of the program"
    rm -rf "$folder/venv" "$folder/runs" "$folder/told"
done
[ -n "$wheels" ] || echo "no wheel was installed: make wheel puts one into dist/"
wheel=$(find dist -name 'lrnn-*.whl' ! -name '*+cu*' | tail -n 1)
if command -v qemu-x86_64 >/dev/null && [ -n "$wheel" ]; then
    "$python" -m zipfile -e "$wheel" "$folder/wheel"
    file=$("$python" -c 'import sys; print(sys.executable)')
    # OpenBLAS would take the kernels that OPENBLAS_CORETYPE names, whatever the processor has.
    for cpu in Nehalem Haswell max; do
        env -u LRNN_LIBRARY -u LRNN_LIBRARY_F64 -u OPENBLAS_CORETYPE PYTHONPATH="$folder/wheel" \
            qemu-x86_64 -cpu "$cpu" "$file" tests/library/check_levels.py ||
            fail "the library of $wheel for $cpu does not hold what check_levels.py asks"
    done
    rm -rf "$folder/wheel"
else
    echo "levels of x86-64 were not checked: that takes qemu-x86_64 and a wheel, which make wheel puts into dist/"
fi
rm -rf "$folder/old" "$folder/client" "$folder/client.cc"
make --no-print-directory CUDA=0 PREFIX="$folder" uninstall >/dev/null
left=$(find "$folder" -type f)
[ -z "$left" ] || fail "make uninstall leaves $left"
echo "the installed library works from C and from C++"
