#!/bin/sh
# bootstrap.sh - installs what building, testing and plotting need, by apt-get, on Debian 12 or 13 or similar systems.
#
#   ./bootstrap.sh            the base: compiler, make, libraries, test framework, gnuplot, curl, locales (for a test)
#   ./bootstrap.sh --dev      also the tools for contributing: clang, sanitizers, formatter, static checkers, LaTeX, and
#                             python3 and zsh, which some tests run
#   ./bootstrap.sh --nightly  also Chromium, Slurm and what runs ci/'s files, for `make nightly`
#
# It installs only what is missing, and needs root (directly or by sudo) only then.
set -eu

# oneDNN (version 2 or 3) multiplies in float, OpenBLAS in double. The default, pthread variant of OpenBLAS locks its
# shared buffers, so OpenMP threads may call it at once when it uses one thread itself. A serial variant may lack the
# locks.
base='make gcc g++ libc6-dev pkg-config libdnnl-dev libopenblas-dev libjansson-dev libxxhash-dev'
base="$base zlib1g-dev libpng-dev check gnuplot-nox locales curl"
dev='git clang clang-format clang-tidy cppcheck shellcheck valgrind libomp-dev libclang-rt-dev'
dev="$dev texlive-latex-recommended python3 zsh"
nightly='chromium slurm-wlm munge python3-yaml debootstrap ccache'

say() {
    printf 'bootstrap: %s\n' "$*"
}

packages=$base
for option; do
    case $option in
    --dev) [ "$packages" != "$base" ] || packages="$base $dev" ;;
    --nightly) packages="$base $dev $nightly" ;;
    -h | --help)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        say "unknown option \"$option\"; expected --dev or --nightly" >&2
        exit 2
        ;;
    esac
done

if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    if command -v "${CC:-gcc}" >/dev/null 2>&1 && command -v make >/dev/null 2>&1; then
        status=0
        ending='If they are there already, just run make.'
    else
        status=1
        ending='Install them by your own package manager, then run make.'
    fi
    say "this system has no apt-get. Needed: GNU make, gcc, pkg-config, gnuplot, and the development files of" \
        "oneDNN (version 2 or 3), OpenBLAS (cblas), jansson, xxhash, zlib, libpng and Check. $ending" >&2
    exit $status
fi

# True also if another package provides it (pkgconf for pkg-config).
installed() {
    dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null |
        awk -v want="$1" '$1 == "installed" {
                              for (i = 2; i <= NF; i++) { sub(/,$/, "", $i); if ($i == want) found = 1 }
                          }
                          END { exit !found }'
}

missing=
for package in $packages; do
    installed "$package" || missing="$missing $package"
done
if [ -z "$missing" ]; then
    say "all there: $packages"
    exit 0
fi

say "to install:$missing"
if [ "$(id -u)" -eq 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
    say 'this needs root; asking sudo'
else
    say "this needs root and there is no sudo; run as root: apt-get install$missing" >&2
    exit 1
fi

# $root and $missing hold several words.
# shellcheck disable=SC2086
{
    $root apt-get update -q || say 'apt-get update failed; trying with the package lists that are there'
    if ! $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; then
        say "apt-get could not install:$missing. Its own message above says why; is the network there?" >&2
        exit 1
    fi
}
say "installed:$missing"
