# lrnn-bench. `make help` lists the targets. Sources are found by wildcard: a new file needs no change here.
#
#   REAL=float|double   working precision: ./lrnn or ./lrnn-f64
#   CC=gcc|clang        WERROR=1 makes warnings errors
#   PORTABLE=1          x86-64-v2 instead of this machine's own instruction set
#   SANITIZE=1          AddressSanitizer and UndefinedBehaviorSanitizer
#   BUILD=folder        builds there, programs included, and leaves ./lrnn alone
#   CUDA=0              without CUDA. Default: with CUDA if nvcc 12.0 or newer is found in PATH, CUDA_HOME or
#                       /usr/local/cuda. CUDA=host compiles the kernels for the CPU, for tests (docs/gpu.md)
#   CUDA_ARCHS='90'     compute capabilities x 10 to compile for, or all. Default: those of this machine's GPUs;
#                       without a GPU the oldest supported one, whose PTX the driver of any newer device compiles
#                       at the first start
#
# Folders: build/float/ has the objects that every CUDA mode shares; build/float-cpu/, build/float-cuda/ and
# build/float-host/ have those that differ, and the programs; ./lrnn and build/check are those of the last `make`.
VERSION := 0.1.0
ifeq ($(origin CC),default)
CC := gcc
endif
REAL  ?= float
BUILD ?= build
PREFIX ?= /usr/local

# As many compilers at once as there are cores; a -j on the command line wins.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN)
endif

ifeq ($(filter $(REAL),float double),)
$(error REAL=$(REAL) is not known; expected float or double)
endif
f64   := $(if $(filter double,$(REAL)),-f64)
LRNN  := $(if $(filter build,$(BUILD)),.,$(BUILD))/lrnn$(f64)
CHECK := $(BUILD)/check$(f64)

# --- CUDA: which compiler, if any -------------------------------------------------------------------------------------
CUDA ?= auto
CUDA_ARCHS ?= auto
known_archs := 75 80 86 89 90
ifeq ($(CUDA_ARCHS),all)
cuda_archs := $(known_archs)
else ifeq ($(CUDA_ARCHS),auto)
cuda_found := $(sort $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | \
              grep -x '[0-9.]*')))
cuda_archs := $(or $(cuda_found),$(firstword $(known_archs)))
else
cuda_archs := $(CUDA_ARCHS)
endif
ifneq ($(filter auto 1,$(CUDA)),)
NVCC := $(firstword $(shell command -v nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
nvcc_release := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
nvcc_new := $(shell [ "$(firstword $(subst ., ,$(nvcc_release)))" -ge 12 ] 2>/dev/null && echo yes)
cuda_mode := $(if $(nvcc_new),cuda)
cuda_says := $(if $(nvcc_new),with $(NVCC) (CUDA $(nvcc_release)),none: $(if $(NVCC),$(NVCC) is CUDA $(nvcc_release); \
             12.0 or newer is needed,no nvcc in PATH; CUDA_HOME or /usr/local/cuda))
ifeq ($(CUDA)$(cuda_mode),1)
$(error CUDA=1: $(cuda_says))
endif
else ifeq ($(CUDA),host)
cuda_mode := host
cuda_says := on the host (tests only)
else ifeq ($(CUDA),0)
cuda_says := none (CUDA=0)
else
$(error CUDA=$(CUDA) is not known; expected auto, 1, host or 0)
endif
cuda_root := $(if $(NVCC),$(patsubst %/bin/,%,$(dir $(realpath $(NVCC)))))
OBJ := $(BUILD)/$(REAL)
OWN := $(OBJ)-$(or $(cuda_mode),cpu)

# --- flags ------------------------------------------------------------------------------------------------------------
compiler := $(shell $(CC) --version 2>/dev/null | sed -n 1p)
clang    := $(findstring clang,$(compiler))
x86      := $(findstring x86_64,$(shell $(CC) -dumpmachine 2>/dev/null))
native   := -march=native $(if $(clang),,$(if $(x86),-mprefer-vector-width=512))
portable := $(if $(x86),-march=x86-64-v2)

# Sanitized kernels use the vectors of this machine, as the plain build does.
ifdef SANITIZE
OPT ?= -O1 -g1 $(native) -fno-omit-frame-pointer -fsanitize=$(SANITIZE:1=address,undefined) -fno-sanitize-recover=all
else
OPT ?= -O3 $(if $(PORTABLE),$(portable),$(native))
endif
# clang warns of each `omp simd` loop that it leaves scalar: those around libm in the double build.
WARN  := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(clang),-Wno-pass-failed) \
         $(if $(filter 1,$(WERROR)),-Werror)
# Hardening, so that a bug does not become an attack: checked copies, canaries, and no writable table of functions. The
# sanitizers have checks of their own.
HARDEN := $(if $(SANITIZE)$(findstring -O0,$(OPT)),,-D_FORTIFY_SOURCE=3 -fstack-protector-strong)
HARDEN_LINK := -Wl,-z,relro,-z,now
# The objects go into the program and into the library: code at any address, and no function of another library's name.
FLAGS  = -std=gnu11 $(strip $(OPT)) $(HARDEN) -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno \
         -fno-trapping-math -fopenmp \
         $(if $(f64),-DLRNN_DOUBLE) $(CFLAGS)
# For the sources in OWN only, so that all others are the same objects with and without CUDA.
cuda_defines := $(if $(cuda_mode),-DLRNN_WITH_CUDA) $(if $(filter host,$(cuda_mode)),-DLRNN_CUDA_HOST)
COMPILE = $(CC) -I. $(CPPFLAGS) $(FLAGS) $(WARN) -MMD -MP
LINK    = $(CC) $(FLAGS) $(HARDEN_LINK) $(LDFLAGS)
LIBS   := $(if $(f64),-lopenblas,-ldnnl) -ljansson -lxxhash -lpng -lz -lm

# nvcc compiles each .cu; CUDA=host compiles it as C++, with tests/cuda/host/cuda_host.h included first. -fmad=false
# does what -ffp-contract=off does above.
CXX_HOST := $(if $(clang),clang++,g++)
WARN_CXX := -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers $(if $(filter 1,$(WERROR)),-Werror)
# The kernels have many template instances. So checks that AddressSanitizer makes as well are off, cuda_host.h forces no
# inlining, and -Og is used: it compiles in two thirds of the time of -O1, and the code runs as fast. cuda_host.cc,
# which runs the kernels' threads, takes half of a test's time, so it is compiled with -O2.
sanitized_cu = $(if $(findstring tests/cuda/host/cuda_host.cc,$<),-O2,-Og) \
               -fno-sanitize=null,object-size,vptr,pointer-overflow
CXXFLAGS_HOST = -std=c++20 $(filter-out -std=gnu11,$(FLAGS)) $(cuda_defines) \
                $(if $(SANITIZE),$(sanitized_cu))
# The assembler warns of a kernel that spills registers, which costs no time.
NVCC_WARN = $(if $(filter 1,$(WERROR)),-Werror all-warnings -Xptxas -warn-spills -Xptxas -Werror) \
            -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers,-Wno-unknown-pragmas
NVCC_ARCH = $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
            -gencode arch=compute_$(lastword $(cuda_archs)),code=compute_$(lastword $(cuda_archs))
# -O1 is for the code on the CPU, which launches kernels; the kernels themselves are always optimised.
COMPILE_NVCC = $(NVCC) -std=c++20 -O1 -fmad=false $(NVCC_ARCH) -I. -DLRNN_WITH_CUDA $(if $(f64),-DLRNN_DOUBLE) \
               -Xcompiler -fPIC $(NVCC_WARN) $(NVCCFLAGS)
COMPILE_CU = $(if $(filter host,$(cuda_mode)),$(CXX_HOST) -I. $(CXXFLAGS_HOST) $(WARN_CXX) -MMD -MP \
             -include tests/cuda/host/cuda_host.h -x c++,$(COMPILE_NVCC) -MMD -MP -MF $(@:.o=.d))
ifeq ($(cuda_mode),cuda)
# The program loads cuBLAS from there when it opens a device (core/cuda/cublas_cuda.cu).
LIBS += -L$(cuda_root)/lib64 -L$(cuda_root)/lib -Wl,-rpath,$(cuda_root)/lib64:$(cuda_root)/lib -lcudart_static -ldl \
        -lrt -lpthread -lstdc++
else ifeq ($(cuda_mode),host)
LIBS += -lstdc++
endif

# rooms FOLDERS,EXTENSIONS: the files of folders and their subfolders.
rooms = $(sort $(foreach f,$(1),$(foreach e,$(2), \
          $(wildcard $(f)/*.$(e) $(f)/*/*.$(e) $(f)/*/*/*.$(e) $(f)/*/*/*/*.$(e)))))

# Where the program comes from, for `lrnn --version` and run records. Outside a git checkout: unknown.
commit := $(if $(wildcard .git),$(shell git rev-parse HEAD 2>/dev/null))
dirty  := $(if $(commit),$(shell git diff --quiet HEAD 2>/dev/null || echo 1))
# A hash of the sources tells a build of edited files from one of the commit.
plans := $(sort $(wildcard papers/*.plan profiles/*.plan))
code := $(call rooms,core kernels library models tasks harness,c h cu cuh def)
sources := $(shell cat $(sort $(code)) $(plans) Makefile | \
             sha256sum | cut -c1-16)
quoted  = '"$(subst ',,$(subst ",,$(subst \,,$(strip $(1)))))"'
about   = -DBUILD_VERSION=$(call quoted,$(VERSION)) -DBUILD_COMMIT=$(call quoted,$(or $(commit),unknown)) \
          -DBUILD_DIRTY=$(or $(dirty),0) -DBUILD_SOURCES=$(call quoted,$(sources)) \
          -DBUILD_COMPILER=$(call quoted,$(compiler)) -DBUILD_FLAGS=$(call quoted,$(FLAGS) $(cuda_defines))

# --- files ------------------------------------------------------------------------------------------------------------
# tests/shapes/, tests/twins/, tests/torture/, tests/big/ and tests/golden/write.c are programs of their own.
SRC   := $(call rooms,core kernels library models tasks harness,c)
TESTS := $(filter-out tests/shapes/% tests/twins/% tests/torture/% tests/big/% tests/faults/faults.c \
           tests/golden/write.c, $(call rooms,tests,c))
CU    := $(if $(cuda_mode),$(call rooms,core kernels library,cu))
FUZZ  := $(patsubst tests/fuzz/%.c,%,$(filter-out %/check_fuzz.c,$(wildcard tests/fuzz/*.c)))
HOST_CC := $(if $(filter host,$(cuda_mode)),$(wildcard tests/cuda/host/*.cc))
HOST_TESTS := $(filter tests/cuda/host/check_%,$(HOST_CC))
# The sources that differ by CUDA mode: they use cuda_defines, a list of CUDA's suites or the flags of the build.
own_src := core/place.c core/place_stream.c kernels/registry.c library/device.c harness/store/version.c \
           tests/main.c tests/torture/main.c $(wildcard tests/cuda/*.c tests/cuda/host/*.c)
to_objs = $(patsubst %.c,$(OBJ)/%.o,$(filter-out $(own_src),$(1))) $(patsubst %.c,$(OWN)/%.o,$(filter $(own_src),$(1)))
main  := $(OBJ)/harness/main.o
objs  := $(call to_objs,$(SRC)) $(CU:%.cu=$(OWN)/%.cu.o) \
         $(patsubst %.cc,$(OWN)/%.o,$(filter-out $(HOST_TESTS),$(HOST_CC)))
tobjs := $(call to_objs,$(TESTS)) $(HOST_TESTS:%.cc=$(OWN)/%.o)
lib   := $(filter-out $(main),$(objs))
shapes_objs  := $(call to_objs,$(wildcard tests/shapes/*.c tests/lib/*.c))
twins_objs   := $(call to_objs,$(wildcard tests/twins/*.c tests/lib/*.c))
torture_objs := $(call to_objs,$(wildcard tests/torture/*.c tests/lib/*.c) \
                 $(patsubst %,tests/faults/%.c,exercise damage flips power refused scale spawn surroundings) \
                 tests/harness/run/small_run.c)
big_objs     := $(call to_objs,$(wildcard tests/big/*.c tests/lib/*.c))
golden_objs  := $(call to_objs,$(patsubst %,tests/golden/%.c,write trace_file defaults) tests/lib/workers.c)
SHAPES  := $(BUILD)/test-shapes$(f64)
TWINS   := $(BUILD)/fuzz-kernels$(f64)
TORTURE := $(BUILD)/torture$(f64)
BIG     := $(BUILD)/test-big$(f64)
FAULTS  := $(BUILD)/faults.so
CODE  := $(call rooms,core kernels include library models tasks harness tests,c h cu cuh cc)
SH    := bootstrap.sh $(wildcard .ci/*  tools/*.sh tests/*.sh tests/*/*.sh)

.PHONY: all programs test test-shapes golden golden-here defaults other-real test-double test-cuda-host test-cuda \
        cuda-suites \
        cuda-resources device-micro test-slurm test-html test-latex sanitize bench paper results results-check gate \
        layers format format-check lint fuzz fuzz-kernels fuzz-kernels-here $(FUZZ:%=fuzz-%) install uninstall \
        clean help FORCE
.PHONY: library wheel suites syntax objects nightly test-hardened test-offline valgrind test-memory test-solved
.PHONY: tsan test-big torture torture-sanitized fuzz-coverage example reproduce test-workflows test-containers \
        test-red test-released test-fused
.DELETE_ON_ERROR:

# --- build ------------------------------------------------------------------------------------------------------------
all: $(LRNN)

programs: $(LRNN) $(CHECK) $(FAULTS)

# The compiler's warnings of every source, without code.
syntax:
	@$(MAKE) --no-print-directory OPT='-O0 -fsyntax-only' objects

objects: $(objs) $(tobjs)

# A stamp changes only when its text does: other flags rebuild every object, another commit one, another list of files
# the programs. They are written while make reads this file, so that `make -n` knows what is out of date.
stamp = $(if $(COUNTING),,$(shell mkdir -p $(dir $(1)); printf '%s\n' $(2) | cmp -s - $(1) || printf '%s\n' $(2) >$(1)))

$(OWN)/lrnn: $(objs) $(OWN)/link.stamp
$(OWN)/check: $(lib) $(tobjs) $(OWN)/link.stamp
$(OWN)/test-shapes: $(lib) $(shapes_objs) $(OWN)/link.stamp
$(OWN)/fuzz-kernels: $(lib) $(twins_objs) $(OWN)/link.stamp
$(OWN)/torture: $(lib) $(torture_objs) $(OWN)/link.stamp
$(OWN)/test-big: $(lib) $(big_objs) $(OWN)/link.stamp
$(OWN)/golden: $(lib) $(golden_objs) $(OWN)/link.stamp
$(OWN)/lrnn $(OWN)/check $(OWN)/test-shapes $(OWN)/fuzz-kernels $(OWN)/torture $(OWN)/test-big \
$(OWN)/golden:
	@echo "  LINK $@ (CUDA: $(cuda_says))"
	@$(LINK) -o $@ $(filter %.o,$^) $(LIBS) $(if $(filter %/lrnn,$@),,$(shell pkg-config --libs check))

# The programs of the last make, by links.
last_made = @[ $@ -ef $< ] || ln -f $< $@
$(LRNN): $(OWN)/lrnn FORCE
	$(last_made)
$(CHECK) $(SHAPES) $(TWINS) $(TORTURE) $(BIG): $(BUILD)/%$(f64): $(OWN)/% FORCE
	$(last_made)

# The scans as a library (include/lrnn.h), for the CPU alone unless the command says CUDA=1 or CUDA=host.
LIBRARY := $(if $(filter build,$(BUILD)),.,$(BUILD))/liblrnn$(f64).so
library:
	@$(MAKE) --no-print-directory CUDA=$(if $(filter command,$(origin CUDA)),$(CUDA),0) $(LIBRARY)

soname := liblrnn$(f64).so.$(firstword $(subst ., ,$(VERSION)))
$(OWN)/liblrnn.so: $(OWN)/liblrnn.a $(call to_objs,$(wildcard library/*.c)) library/liblrnn.map $(OWN)/link.stamp
	@echo "  LINK $(LIBRARY) (CUDA: $(cuda_says))"
	@$(LINK) -shared -Wl,-soname,$(soname) -Wl,--version-script=library/liblrnn.map -Wl,--no-undefined -o $@ \
	  $(filter %.o,$^) $< -Wl,--as-needed $(LIBS)
$(LIBRARY): $(OWN)/liblrnn.so FORCE
	$(last_made)
$(OWN)/liblrnn.a: $(call to_objs,$(call rooms,core kernels,c)) $(filter-out $(call to_objs,$(SRC)),$(objs))
	@rm -f $@
	@ar rcs $@ $^

# The handler through which JAX calls the library (python/lrnn/jax.py), against the header that jaxlib comes with.
PYTHON ?= python3
jaxlib = $(shell $(PYTHON) -c 'import importlib.util as u; print(u.find_spec("jaxlib").submodule_search_locations[0])' \
           2>/dev/null)
HANDLER := $(dir $(LIBRARY))liblrnn-jax.so
.PHONY: jax
jax:
	@test -n "$(jaxlib)" || { echo "make jax: $(PYTHON) has no jaxlib; pip install jax, or PYTHON=..." >&2; exit 1; }
	@echo "  LINK $(HANDLER)"
	@$(LINK) $(WARN) -Wno-pedantic -shared -I. -isystem $(jaxlib)/include -o $(HANDLER) python/jax_handler.c -ldl

# The Python package as a wheel in dist/, with a library for each level of x86-64 and the program (docs/library.md). Its
# files find the libraries beside them by $ORIGIN. If the command says CUDA=1, the wheel also has a library for arrays
# on a device; it finds cuBLAS in NVIDIA's package of Python, whose folder is nvidia/cublas or nvidia/cu13.
LEVELS ?= v2 v3 v4
wheel_cuda = $(if $(filter command,$(origin CUDA)),$(filter 1,$(CUDA)))
cuda_major = $(firstword $(subst ., ,$(nvcc_release)))
nvidia := \$$\$$ORIGIN/../../../nvidia
wheel_make = $(MAKE) --no-print-directory REAL=$$real OPT="-O3 -march=x86-64-$$level" BUILD=$(BUILD)/wheel-$$level \
             LDFLAGS="'-Wl,--disable-new-dtags,-rpath,\$$\$$ORIGIN,-rpath,\$$\$$ORIGIN/..$(1)'"
wheel:
	+@for level in $(LEVELS); do for real in float double; do \
	   program=$$([ $$level$$real != v2float ] || echo all); \
	   $(call wheel_make) CUDA=0 $$program library || exit 1; \
	 done; done
	+@$(if $(wheel_cuda),for real in float double; do level=v2; \
	   $(call wheel_make,:$(nvidia)/cublas/lib:$(nvidia)/cu$(cuda_major)/lib) CUDA=1 \
	     $(BUILD)/wheel-v2/$$real-cuda/liblrnn.so || exit 1; \
	 done)
	@if [ -n "$(jaxlib)" ]; then $(MAKE) --no-print-directory CUDA=0 OPT=-O2 BUILD=$(BUILD)/wheel-v2 jax; \
	 else echo "wheel: without lrnn.jax, for $(PYTHON) has no jaxlib"; fi
	@tools/wheel.py $(VERSION)$(if $(wheel_cuda),+cu$(cuda_major)) dist $(foreach l,$(LEVELS),$(l)=$(BUILD)/wheel-$(l)) \
	  $(if $(wheel_cuda),cuda=$(BUILD)/wheel-v2)

# A library to preload, which makes calls fail (tests/faults/faults.c). It is built without the sanitizers, as they
# replace the same functions.
$(FAULTS): tests/faults/faults.c tests/faults/file_log.h
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) -std=gnu11 -O2 $(WARN) -I. -fPIC -shared -o $@ $< -ldl

# say TOOL prints "  TOOL [n/N] file": n counts the compilations of this make, N those that `make -n` finds. It asks
# once, before the first compilation. make expands the recipes one after the other, so that n needs no lock.
made :=
to_make = $(eval to_make := $$(shell MAKEFLAGS= $(MAKE) -n COUNTING=1 $(MAKEOVERRIDES) $(MAKECMDGOALS) 2>/dev/null | \
            grep -c '^echo compile$$$$'))$(to_make)
of_build := $(patsubst %,(%),$(filter-out build float,$(notdir $(BUILD)) $(REAL)))
ifdef COUNTING
say = @echo compile
else
say = $(eval made += x)@N=$(to_make); \
      printf '  %-4s [%*d/%d] %s\n' $(1) $${\#N} $(words $(made)) $$N '$(strip $< $(of_build))'
endif

compile_c = $(COMPILE) $(ABOUT) -c -o $@ $<
$(OBJ)/%.o: %.c $(OBJ)/flags.stamp
	$(call say,CC)
	@mkdir -p $(@D)
	@$(compile_c)

$(OWN)/%.o: %.c $(OBJ)/flags.stamp
	$(call say,CC)
	@mkdir -p $(@D)
	@$(compile_c)

$(OWN)/%.cu.o: %.cu $(OWN)/cuda.stamp
	$(call say,$(if $(filter host,$(cuda_mode)),C++,NVCC))
	@mkdir -p $(@D)
	@$(COMPILE_CU) -c -o $@ $<

$(OWN)/%.o: %.cc $(OWN)/cuda.stamp
	$(call say,C++)
	@mkdir -p $(@D)
	@$(CXX_HOST) -I. $(CXXFLAGS_HOST) $(WARN_CXX) -MMD -MP -c -o $@ $<

# Definitions that only some sources need. ABOUT is also given to the static checkers (%.tidy).
both = $(OWN)/$(1).o $(OBJ)/$(1).o $(OBJ)/$(1).tidy
ifdef SANITIZE
# Tests compute little themselves, and compile in a third of the time without optimisation.
$(OBJ)/tests/%.o $(OWN)/tests/%.o: ABOUT = -O0
endif
# Where gcc 12 vectorises straight-line code, it makes vfmaddsub of complex products on some processors, in spite of
# -ffp-contract=off. Bits must not depend on the processor; test-fused finds other files with such instructions.
$(foreach f,kernels/tree/tree_block kernels/tree/tree_solve tasks/image/arrow_scene,$(call both,$(f))): \
  ABOUT = -fno-tree-slp-vectorize
$(call both,harness/store/version): ABOUT = $(about)
$(call both,library/about): ABOUT = -DLRNN_LIBRARY_VERSION='"$(VERSION)"'
$(foreach f,$(basename $(filter-out harness/store/version.c tests/main.c,$(own_src))),$(call both,$(f))): \
  ABOUT = $(cuda_defines)
$(call both,harness/study/plan_file): ABOUT = -DPLAN_TEXTS='"$(OBJ)/plans.txt"'
$(call both,harness/site/site): ABOUT = -DWEB='"web"'
$(call both,tests/main): ABOUT = -DSUITE_LIST='"$(OWN)/suites.def"'
$(call both,tests/fuzz/check_fuzz): ABOUT = -DFUZZ_LIST='"$(OBJ)/fuzz.def"'
$(OWN)/harness/store/version.o: $(OWN)/about.stamp
$(OBJ)/harness/study/plan_file.o $(OBJ)/harness/study/plan_file.tidy: $(OBJ)/plans.txt
$(OBJ)/harness/site/site.o $(OBJ)/harness/site/site.tidy: $(wildcard web/*)
$(OWN)/tests/main.o $(OBJ)/tests/main.tidy: $(OWN)/suites.def
$(OBJ)/tests/fuzz/check_fuzz.o $(OBJ)/tests/fuzz/check_fuzz.tidy: $(OBJ)/fuzz.def

# The suites are the functions `Suite *check_NAME(void)` of the test files; those under tests/cuda/ need a device.
suite_names = $(if $(1),$(shell sed -n 's/^Suite \*check_\([a-z0-9_]*\)(void) {.*/\1/p' $(1)))
suites := $(foreach s,$(call suite_names,$(filter-out tests/cuda/%,$(TESTS))),CHECK($(s))) \
          $(foreach s,$(call suite_names,$(filter tests/cuda/%,$(TESTS)) $(HOST_TESTS)),CHECK_CUDA($(s)))

$(call stamp,$(OBJ)/flags.stamp,$(call quoted,$(compiler) $(COMPILE)))
# The plans of papers and the profiles, one after another: they are built into the program.
plan_texts := for f in $(plans); do echo "@$$f"; cat $$f; done
$(if $(COUNTING),,$(shell mkdir -p $(OBJ); { $(plan_texts); } | cmp -s - $(OBJ)/plans.txt || \
                          { $(plan_texts); } >$(OBJ)/plans.txt))
$(call stamp,$(OBJ)/fuzz.def,'$(foreach f,$(FUZZ),FUZZ_TARGET($(f)))')
$(call stamp,$(OWN)/cuda.stamp,$(call quoted,$(compiler) $(cuda_defines) $(if $(cuda_mode),$(COMPILE_CU))))
$(call stamp,$(OWN)/about.stamp,$(call quoted,$(about)))
$(call stamp,$(OWN)/link.stamp,$(call quoted,$(LINK) $(LIBS) $(SRC) $(CU) $(TESTS) $(HOST_CC)))
$(call stamp,$(OWN)/suites.def,'$(suites)')

-include $(patsubst %.o,%.d,$(sort $(objs) $(tobjs) $(shapes_objs) $(twins_objs) \
           $(torture_objs) $(big_objs) $(golden_objs)))

# --- tests ------------------------------------------------------------------------------------------------------------
# SUITES='a b' runs those suites alone. The tests find the programs through LRNN and LRNN_F64. F64=PROGRAM names the one
# of the other precision, and then none is built. Without SUITES the CUDA suites run too, on the CPU, in float: their
# build compiles while the other suites run. `make REAL=double test-cuda-host` runs them in double.
test: suites $(if $(filter host,$(cuda_mode))$(SUITES)$(f64),,test-cuda-host)

suites: $(CHECK) $(LRNN) $(FAULTS) $(if $(F64),,other-real)
	@LRNN=$(dir $(LRNN))lrnn LRNN_F64=$(or $(F64),$(dir $(LRNN))lrnn-f64) LRNN_FAULTS=$(FAULTS) \
	  $(CHECK) $(SUITES)

other-real:
	@$(MAKE) --no-print-directory REAL=$(if $(f64),float,double) \
	  CUDA=$(if $(f64),$(CUDA),0) all

# Writes the golden traces (harness/gate/trace.h), after a change of bits that is meant and a raised numerics version:
# in both precisions, with this machine's instructions and without fused multiply-adds. MODELS='bdlru hlru' writes the
# rows of these mixers and keeps all others. -O1 gives the same bits as -O3 and compiles faster.
golden:
	@for real in float double; do \
	   $(MAKE) --no-print-directory REAL=$$real CUDA=0 golden-here && \
	   $(MAKE) --no-print-directory REAL=$$real CUDA=0 OPT='-O1 $(portable)' BUILD=$(BUILD)/plain golden-here || exit 1; \
	 done

# The rows of this build.
golden-here: $(OWN)/golden
	@$< $(MODELS)

# Writes the list of defaults alone, after a new option, or a changed default and a raised version (docs/extend.md).
defaults: $(OWN)/golden
	@$< --defaults

# Runs every kernel at the shapes that the quick and paper profiles and the plans of papers train. PROFILES='paper' or
# 'plans' takes these alone. All take an hour or more: images and Path-X are long, and the reference kernels are slow.
test-shapes: $(SHAPES)
	@$(SHAPES) $(PROFILES)

test-double:
	@$(MAKE) --no-print-directory REAL=double test

# The sanitized build finds leaks too, and its time-outs are ten times those of the plain build. test-cuda-host runs the
# CUDA suites of this build. The + tells make that the command is a make, so that it shares the number of jobs.
sanitized = ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 CK_TIMEOUT_MULTIPLIER=10 \
            $(MAKE) --no-print-directory SANITIZE=1 CUDA=host WERROR=0 BUILD=$(BUILD)/sanitize
# The suite faults is left out: it replaces the allocator, as AddressSanitizer does. SUITES='a b' runs those alone.
sanitize:
	+@$(sanitized) programs
	+@$(sanitized) test SUITES="$(or $(SUITES),$$($(BUILD)/sanitize/check --list | \
	  grep -vx -e 'cuda.*' -e faults | tr '\n' ' '))"

# Runs all suites with no network but loopback.
test-offline:
	@unshare --map-root-user --net sh -c 'ip link set lo up && exec $(MAKE) --no-print-directory test'

# Runs one command of each kind under memcheck, in a build without AVX-512, which valgrind does not know.
valgrind:
	@$(MAKE) --no-print-directory PORTABLE=1 CUDA=0 BUILD=$(BUILD)/portable all
	@tools/valgrind.sh $(BUILD)/portable/lrnn$(f64)

# Trains one step of every mixer at 16 384 tokens, in at most 4 GB of memory.
test-memory: $(LRNN)
	@tools/memory.sh $(LRNN) $(MODELS)

# Runs ops at more than 2^31 elements, in 9 GB of memory (OPS='activate scan_block').
test-big: $(BIG)
	@$(BIG) $(OPS)

# Trains three models of S3's quick profile (MODELS='a b': those), each until it solves S3, as in the committed table.
test-solved: $(LRNN)
	@rm -rf $(BUILD)/solved
	@tools/solved.sh $(LRNN) $(BUILD)/solved s3 $(or $(MODELS),bdlru:m=3 bdlru:m=5 lstm)

# Trains on data of each released form from its files: at least 2 000 images, texts or series that the test writes.
test-released: $(LRNN)
	@rm -rf $(BUILD)/released
	@tests/released/learn.sh $(LRNN) $(BUILD)/released $(SETS)

# Runs trainings in several threads, and several trainings at once, under ThreadSanitizer.
tsan:
	@$(MAKE) --no-print-directory CC=clang SANITIZE=thread CUDA=host WERROR=0 BUILD=$(BUILD)/tsan all
	@tools/tsan.sh $(BUILD)/tsan/lrnn$(f64)

# Compares every CUDA kernel with its reference on the CPU, under the sanitizers, without nvcc or a device. It takes
# every EVERY-th size of a walk, and the first part of tests/device/measure.sh; EVERY=1 takes all, and many times as
# long.
EVERY ?= 31
test-cuda-host:
	+@LRNN_CUDA_EVERY=$(EVERY) $(sanitized) cuda-suites

# Runs the CUDA suites on this machine's device.
test-cuda: cuda-suites
	@tools/cuda_sanitizer.sh $(CHECK)

cuda-suites: $(CHECK) $(LRNN)
	@LRNN=$(LRNN) $(CHECK) $(CUDA_SUITES)
# cuda_short is a part of cuda, for compute-sanitizer, which takes too long for the whole.
CUDA_SUITES := cuda cuda_ways cuda_order cuda_run cuda_values cuda_library cuda_population \
               $(if $(HOST_TESTS),cuda_measure cuda_refused cuda_products $(call suite_names,$(HOST_TESTS)),cuda_short)

# Runs `lrnn sweep --slurm` under a Slurm of one node that the test starts. Needs root, slurm-wlm and munge, and some
# minutes, in which a requeued job mostly waits.
test-slurm: all
	@tests/slurm/slurm.sh $(LRNN)

# Measures a device without the program (tests/device/micro.cu, measure.sh).
MICRO := $(BUILD)/device-micro
device-micro: $(MICRO)
$(MICRO): tests/device/micro.cu $(OWN)/about.stamp
	@$(if $(filter cuda,$(cuda_mode)),,echo "make device-micro needs nvcc: $(cuda_says)" >&2; exit 2)
	@mkdir -p $(@D)
	@echo "  NVCC $@"
	@$(NVCC) -std=c++20 -O3 $(NVCC_ARCH) $(NVCC_WARN) -DBUILD_COMMIT=$(call quoted,$(or $(commit),unknown)) \
	  -DBUILD_DIRTY=$(or $(dirty),0) -o $@ $< -L$(cuda_root)/lib64 -L$(cuda_root)/lib \
	  -Xlinker -rpath,$(cuda_root)/lib64 -lcublas -lcublasLt -lcudart_static -ldl -lrt -lpthread

# Opens the pages of `lrnn report --html` in headless Chromium and uses them. KEEP=folder keeps them and their
# screenshots; AXE=axe.min.js (axe-core) checks them for readers who see or move little.
test-html: all
	@tests/html/pages.sh $(LRNN) $(KEEP)

# Runs the shell steps of ci/github.yml and ci/gitlab.yml in clones; and the steps of ci/Dockerfile and ci/lrnn.def in
# fresh Debian folders. They install packages and need root, and debootstrap and python3-yaml. MIRROR= and OPT= are
# arguments of the images.
test-workflows:
	@tests/ci/workflows.sh
test-containers:
	@tests/ci/containers.py

# Programs with one wrong line each, which the gate must find.
test-red: all
	@MAKE='$(MAKE)' tests/ci/red.sh $(LRNN) $(OBJ)

# Checks the linked program for P17 of docs/trust.md.
test-hardened: $(LRNN)
	@tools/hardened.sh $(LRNN)

# Compiles the LaTeX of `lrnn report --format latex` by pdflatex. KEEP=folder keeps the document.
test-latex: all
	@tests/latex/compile.sh $(LRNN) $(KEEP)

# Writes registers, stack, shared memory and spills of every kernel, on the oldest and the newest architecture, as CSV
# into RESOURCES=, and fails if a kernel spills. Needs nvcc and no device.
cuda-resources: cuda_archs := $(firstword $(known_archs)) $(lastword $(known_archs))
cuda-resources: NVCC_ARCH = $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a))
cuda-resources:
	@$(if $(filter cuda,$(cuda_mode)),,echo "make cuda-resources needs nvcc: $(cuda_says)" >&2; exit 2)
	@tools/cuda_resources.sh '$(COMPILE_NVCC)' $(CU) $(if $(RESOURCES),>'$(RESOURCES)')

# Compares every kernel with its reference at random sizes, for SECONDS=60, from SEED= or the clock. It prints each
# difference as a command that repeats it. SANITIZE=1 takes the build of `make sanitize`.
fuzz-kernels:
	@$(if $(SANITIZE),$(sanitized),$(MAKE) --no-print-directory) fuzz-kernels-here

fuzz-kernels-here: $(TWINS)
	@$(TWINS) $(call flag,SECONDS,--seconds) $(call flag,CASES,--cases) $(call flag,SEED,--seed)

FUZZ_SECONDS ?= 60
fuzz:
	@$(MAKE) --no-print-directory CC=clang SANITIZE=fuzzer-no-link,address,undefined BUILD=$(BUILD)/fuzz \
	  CPPFLAGS=-DLRNN_FUZZER $(FUZZ:%=fuzz-%)

# The fuzzer reads the corpus in the tree, and adds to one in the build folder.
$(FUZZ:%=fuzz-%): fuzz-%: $(OBJ)/tests/fuzz/%.o $(lib)
	@$(LINK) -fsanitize=fuzzer -o $(BUILD)/$* $^ $(LIBS)
	@mkdir -p $(BUILD)/corpus/$*
	@echo "  FUZZ $* ($(FUZZ_SECONDS) s)"
	@$(BUILD)/$* -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
	  -print_final_stats=1 -artifact_prefix=$(BUILD)/$*- $(BUILD)/corpus/$* tests/fuzz/corpus/$*

# Prints how many lines of each parser the suite fuzz runs: the corpora, their beginnings of every length, and 5 000
# changes of them per target. The parsers alone are compiled anew.
PARSERS := core/label core/option core/values core/file/png core/file/safetensors harness/gate/baseline \
           harness/run/checkpoint harness/store/csv harness/store/pack/record_pack harness/store/record_json \
           harness/study/config harness/study/plan_file tasks/data/characters tasks/data/entry_set \
           tasks/data/image_files tasks/data/image_set tasks/data/pathfinder_files tasks/data/text_files \
           tasks/data/ts_files tasks/data/tud_files tasks/language/listops_tsv tasks/own/own_jsonl tasks/own/own_npz
COVERED := $(OBJ)/coverage
$(PARSERS:%=$(COVERED)/%.o): $(COVERED)/%.o: %.c $(OBJ)/flags.stamp
	@mkdir -p $(@D)
	@$(COMPILE) -Og --coverage $(if $(filter %/plan_file.c,$<),-DPLAN_TEXTS='"$(OBJ)/plans.txt"') -c -o $@ $<
fuzz-coverage: $(PARSERS:%=$(COVERED)/%.o) $(lib) $(tobjs)
	@find $(COVERED) -name '*.gcda' -delete
	@$(LINK) --coverage -o $(COVERED)/check $(filter-out $(PARSERS:%=$(OBJ)/%.o),$^) $(LIBS) \
	  $(shell pkg-config --libs check)
	@CK_TIMEOUT_MULTIPLIER=10 $(COVERED)/check fuzz
	@for p in $(PARSERS); do gcov -n -o $(COVERED)/$$p.o $$p.c 2>/dev/null | \
	  sed -n "/^File '.*\.c'/{n;s|^Lines executed:|$$p.c  |p}"; done

# Runs the heavy forms of the suites flips and cuda_refused (sanitized), fuzz (a quarter of the time) and faults, and
# beside them fuzz-kernels in one process: MINUTES=5 in all but for flips, at most N= cases of an exercise, the
# counts into TO=. Each fuzzer gets a second more, as 0 would be no limit. The output of fuzz-kernels comes by
# descriptor 3, as the tested programs would read standard input.
MINUTES ?= 5
TO ?= $(BUILD)/torture.csv
torture: $(LRNN) $(FAULTS) $(TORTURE) $(TWINS)
	@CHECK_JOBS=1 $(TWINS) --seconds $$(($(MINUTES) * 60))s 2>&1 | { failed=0; \
	  $(sanitized) torture-sanitized </dev/null || failed=1; \
	  $(MAKE) --no-print-directory -O fuzz FUZZ_SECONDS=$$(($(MINUTES) * 15 / $(words $(FUZZ)) + 1)) \
	    >$(BUILD)/fuzz.log 2>&1 </dev/null || { cat $(BUILD)/fuzz.log; failed=1; }; \
	  LRNN=$(LRNN) LRNN_FAULTS=$(FAULTS) $(TORTURE) --time $$(($(MINUTES) * 40))s $(call flag,N,--cases) \
	    --sanitized $(BUILD)/sanitize/torture.csv --fuzz $(BUILD)/fuzz.log --kernels /dev/fd/3 --to $(TO) \
	    3<&0 </dev/null || failed=1; exit $$failed; }

torture-sanitized: $(TORTURE) $(LRNN)
	@LRNN=$(LRNN) $(TORTURE) --time $$(($(MINUTES) * 20))s $(call flag,N,--cases) --to $(BUILD)/torture.csv

# .ci/run is for every change, this for every night.
nightly:
	@.ci/nightly

# Checks that includes go one way and that each header compiles alone.
layers:
	@tools/layers.sh
	@status=0; for h in $(call rooms,core kernels models tasks harness,h); do \
	  $(CC) -I. $(CPPFLAGS) $(FLAGS) $(filter-out -Wpedantic,$(WARN)) -fsyntax-only -x c $$h || status=1; done; \
	  exit $$status

format:
	clang-format -i $(CODE)

# clang-format does not wrap comments, so columns.sh looks at their lines.
format-check:
	@tools/columns.sh $(CODE) $(call rooms,core kernels models tasks harness,def) $(SH) Makefile .clang-tidy \
	  $(wildcard *.md docs/*.md papers/*.plan profiles/*.plan plots/*.gp tests/*/*.py tests/*/*/*.py tools/*.py) \
	  $(wildcard python/*.c python/*/*.py python/*/*/*.py) \
	  $(wildcard tools/*.awk tests/*/*.awk)
	@printf '%s\n' $(CODE) | xargs -P $$(nproc) -n 40 clang-format --dry-run --Werror || \
	  { echo "make format would format them" >&2; exit 1; }

# Runs the static checkers on all files. Checks that are off for all files stand in .clang-tidy with their reasons; a
# line where a checker is wrong says so itself. clang-tidy and cppcheck run on all cores, and only on files that have
# changed. The findings come at the end, a line each.
LINTED := $(sort $(SRC) $(call rooms,tests,c))
TIDY := $(LINTED:%.c=$(OBJ)/%.tidy)
LINT := $(OBJ)/lint
lint: $(TIDY)
	@mkdir -p $(LINT)
	@echo "  CPPCHECK, SHELLCHECK"
	@cppcheck --quiet -j $$(nproc) --cppcheck-build-dir=$(LINT) --std=c11 --enable=warning,portability --inline-suppr \
	  -I. --suppress=missingIncludeSystem --template='{file}:{line}:{column}: {severity}: {message} [{id}]' $(LINTED) \
	  2>$(LINT).cppcheck || { cat $(LINT).cppcheck >&2; exit 1; }
	@shellcheck --format=gcc $(SH) >$(LINT).shellcheck || [ -s $(LINT).shellcheck ]
	@tools/lint.sh $(LINT).cppcheck $(LINT).shellcheck $(TIDY)

$(OBJ)/%.tidy: %.c .clang-tidy kernels/.clang-tidy tools/lint.h
	@mkdir -p $(@D)
	@echo "  TIDY $<"
	@$(CC) -I. $(FLAGS) $(ABOUT) -MM -MP -MT $@ -MF $@.d $<
	@clang-tidy --quiet $< -- -std=gnu11 -I. $(LINT_FIRST) -fopenmp $(ABOUT) >$@ 2>$@.log || [ -s $@ ] || \
	  { cat $@.log >&2; exit 1; }

LINT_FIRST = -include tools/lint.h
$(OBJ)/core/status.tidy: LINT_FIRST =
-include $(TIDY:=.d)

# --- use --------------------------------------------------------------------------------------------------------------
# flag VARIABLE,FLAG: the flag, if the variable is set; the program has the defaults.
flag = $(if $($(1)),$(2) '$($(1))')
# A missing TASK is an error before anything is built.
bench: $(if $(TASK),all)
	@$(if $(TASK),,echo "make bench: say which task, for example TASK=s5; ./lrnn list tasks names them" >&2; exit 2)
	@$(LRNN) bench '$(TASK)' $(call flag,MODELS,--models) $(call flag,PROFILE,--profile) $(call flag,SEEDS,--seeds) \
	  $(call flag,JOBS,--jobs) $(call flag,POPULATION,--population) $(call flag,DEVICE,--device) $(call flag,OUT,--out)

# Trains the runs of a paper's table or figure (./lrnn list papers), and prints the table:
# make paper PAPER=hlru-table2 PROFILE=quick
paper: $(if $(PAPER),all)
	@$(if $(PAPER),,echo "make paper: say which, for example PAPER=hlru-table2; ./lrnn list papers names them" >&2; exit 2)
	@$(LRNN) sweep '$(PAPER)' $(call flag,PROFILE,--profile) $(call flag,MODELS,--models) $(call flag,SEEDS,--seeds) \
	  $(call flag,JOBS,--jobs) $(call flag,POPULATION,--population) $(call flag,DEVICE,--device) $(call flag,OUT,--out)

# Makes examples/hlru-table2/: the quick form of a paper's table, with its runs. It takes up to half an hour on two
# cores. After a stop the same command goes on.
EXAMPLE := $(BUILD)/example
example: all
	@$(LRNN) sweep hlru-table2 --profile quick --quiet --out $(EXAMPLE) $(call flag,JOBS,--jobs) >/dev/null
	@tools/example.sh $(LRNN) hlru-table2 quick $(EXAMPLE)

# Writes the CSV files of the committed records (all but summary.csv are too large to commit), and the tables of the
# pages, which name their commands.
PAGES := README.md docs/results.md docs/tasks.md docs/trust.md $(wildcard results/tables/*.md)
results: all
	@$(LRNN) report --out results/baseline --to results/baseline >/dev/null
	@printf '%s\n' $(PAGES) | LRNN=$(LRNN) xargs -n 1 -P "$$(nproc)" tools/tables.sh

# Fails if a page's table differs from what its command writes, or if a committed record is damaged, has a machine that
# is not in machines.csv, or a run that cannot be repeated, or if results/faults.csv names a test that is not there.
results-check: all
	@sed -n '1!s/.*: \([a-z0-9_]*\),[0-9a-f]*$$/\1/p' results/faults.csv | while read -r name; do \
	   grep -rqF "START_TEST($$name)" tests || { echo "results/faults.csv: there is no test $$name"; exit 1; }; done
	@told=$$($(LRNN) store check $(patsubst %/runs,%,$(wildcard results/*/runs))) && \
	  ! printf '%s\n' "$$told" | grep -e 'not in machines.csv' -e 'cannot be repeated'
	@printf '%s\n' $(PAGES) | LRNN=$(LRNN) xargs -n 1 -P "$$(nproc)" tools/tables.sh --check

# Fails if the compiler has fused a product and a sum whose source is no fused multiply-add (real_fma, lanes_fma).
test-fused: $(objs)
	@objdump --version >/dev/null && found=$$(for o in $(objs); do \
	   objdump -d $$o | grep -q 'vfmaddsub\|vfmsubadd' && echo "$$o"; done); \
	 [ -z "$$found" ] || { echo "test-fused: bits depend on the processor in $$found"; exit 1; }

# Trains committed runs again and says whether they agree: all of a cell of a paper's table
# (make reproduce TABLE=hlru-table2 COLUMN=s3-250 ROW=bdlru:m=5), or SAMPLE= random runs that took at most MOST= s.
reproduce: TO := $(BUILD)/reproduced.csv
reproduce: all
	@OUT=$(BUILD)/reproduce TO='$(TO)' tools/reproduce.sh $(LRNN) $(if $(TABLE),cell '$(TABLE)' '$(COLUMN)' '$(ROW)' \
	  $(PROFILE),sample $(or $(SAMPLE),20) $(or $(SEED),1) $(or $(MOST),300))

# Tests whether this build is as accurate and as fast as that of a commit: BASE=main. GATE='--force --junit gate.xml'
# are flags of `lrnn gate`; with ALLOW_INCONCLUSIVE=1 an undecided gate ends with 0 (docs/ci.md).
gate: $(if $(BASE),all)
	@$(if $(BASE),,echo "make gate: say which commit to compare with, for example BASE=main" >&2; exit 2)
	@MAKE='$(MAKE)' tools/gate.sh $(LRNN) $(OBJ) '$(BASE)' $(GATE)
export ALLOW_INCONCLUSIVE

# The program with its man page, completion and data; the library with its header and pkg-config file. uninstall removes
# these files, and the folders that are then empty.
share := $(PREFIX)/share
install: all library
	install -D -m 755 $(LRNN) $(DESTDIR)$(PREFIX)/bin/lrnn$(f64)
	install -d $(DESTDIR)$(share)/lrnn/plots $(DESTDIR)$(share)/lrnn/results
	install -m 644 $(wildcard plots/*.gp) $(DESTDIR)$(share)/lrnn/plots
	install -m 644 results/published.csv $(DESTDIR)$(share)/lrnn/results
	install -d $(DESTDIR)$(share)/man/man1
	$(LRNN) man >$(DESTDIR)$(share)/man/man1/lrnn$(f64).1
	install -d $(DESTDIR)$(share)/bash-completion/completions
	$(LRNN) completion bash >$(DESTDIR)$(share)/bash-completion/completions/lrnn$(f64)
	install -D -m 644 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/liblrnn$(f64).so.$(VERSION)
	ln -sf liblrnn$(f64).so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(soname)
	ln -sf $(soname) $(DESTDIR)$(PREFIX)/lib/liblrnn$(f64).so
	install -D -m 644 include/lrnn.h $(DESTDIR)$(PREFIX)/include/lrnn.h
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@F64@|$(f64)|' library/lrnn.pc.in \
	  >$(DESTDIR)$(PREFIX)/lib/pkgconfig/lrnn$(f64).pc

uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/lrnn$(f64) share/man/man1/lrnn$(f64).1 include/lrnn.h \
	  share/bash-completion/completions/lrnn$(f64) share/lrnn/results/published.csv lib/pkgconfig/lrnn$(f64).pc \
	  lib/liblrnn$(f64).so.$(VERSION) lib/$(soname) lib/liblrnn$(f64).so $(addprefix share/lrnn/,$(wildcard plots/*.gp)))
	-rmdir $(addprefix $(DESTDIR)$(share)/lrnn/,plots results) $(DESTDIR)$(share)/lrnn

clean:
	rm -rf $(BUILD) ./lrnn ./lrnn-f64 ./liblrnn.so ./liblrnn-f64.so

help:
	@echo "make                  builds ./lrnn (REAL=double: ./lrnn-f64)"
	@echo "make test             builds and runs all tests (SUITES='philox arena' runs some)"
	@echo "make test-shapes      every CPU kernel at the shapes of profiles and plans (an hour; PROFILES=)"
	@echo "make test-double      the same tests in double precision"
	@echo "make defaults         writes tests/golden/defaults.txt, after a new option"
	@echo "make golden           writes tests/golden/traces.tsv, after a change of bits that is meant (MODELS= some rows)"
	@echo "make sanitize         the same tests under AddressSanitizer and UndefinedBehaviorSanitizer (SUITES=)"
	@echo "make test-offline     make test where there is no network (unshare)"
	@echo "make tsan             trainings in four threads, and four at once, under ThreadSanitizer"
	@echo "make test-memory      a step of every mixer at 16 384 tokens, in at most 4 GB (MODELS=)"
	@echo "make test-big         ops at more than 2^31 elements, in 9 GB of memory (OPS=)"
	@echo "make test-solved      S3 by three models of its quick profile: each has to solve it (a minute or two; MODELS=)"
	@echo "make test-released    each released form from its files to a net that beats a trivial answer (minutes; SETS=)"
	@echo "make test-hardened    whether the program is linked as docs/trust.md says (P17)"
	@echo "make nightly          what is too long for every change: all suites in double and sanitized, fuzzers, leaks"
	@echo "make valgrind         one command of each kind under memcheck"
	@echo "make test-cuda-host   every CUDA kernel on the CPU, under sanitizers (part of make test)"
	@echo "make test-cuda        the same cases on this machine's device"
	@echo "make test-slurm       sweeps under a real Slurm of one node (root; apt-get install slurm-wlm munge)"
	@echo "make test-html        the pages of lrnn report --html in headless Chromium (apt-get install chromium; KEEP=)"
	@echo "make test-workflows   the shell steps of ci/*.yml in clones (root; apt-get install python3-yaml)"
	@echo "make test-red         programs with one wrong line each, which the gate must find"
	@echo "make test-containers  the steps of ci/Dockerfile, ci/lrnn.def by chroot (root; apt-get install debootstrap)"
	@echo "make test-latex       the LaTeX of lrnn report, compiled (apt-get install texlive-latex-recommended; KEEP=)"
	@echo "make cuda-resources   registers, stack, shared memory, spills of every CUDA kernel as CSV (RESOURCES=file)"
	@echo "make device-micro     copies, launches and products of this machine's device (tests/device/measure.sh)"
	@echo "make fuzz-kernels     every kernel against its reference at random sizes (SECONDS=60 CASES= SEED= SANITIZE=1)"
	@echo "make fuzz             each fuzz target for FUZZ_SECONDS=60"
	@echo "make fuzz-coverage    lines of each parser that the suite fuzz runs (gcov)"
	@echo "make torture          failing calls, power loss, kills, flips, writers, fuzzers (MINUTES=5 N= TO=)"
	@echo "make bench TASK=s5    trains and tabulates (MODELS= PROFILE=smoke|quick|paper SEEDS= JOBS= DEVICE= OUT=)"
	@echo "make paper PAPER=...  the runs and the table of a paper's table or figure (PROFILE= MODELS= SEEDS= JOBS= OUT=)"
	@echo "make reproduce        trains committed runs again (TABLE= COLUMN= ROW= PROFILE=; or SAMPLE=20 MOST=300)"
	@echo "make example          examples/hlru-table2/: the quick runs of the plan, and all that is made of them"
	@echo "make results          the tables of docs/ from the committed run records and speeds"
	@echo "make gate BASE=main   as accurate and as fast as that commit? (GATE='flags of lrnn gate'; docs/ci.md)"
	@echo "make layers           no forbidden include, no long source or room, and every header compiles alone"
	@echo "make format           formats the code; format-check only looks, at 120 columns of comments and docs too"
	@echo "make lint             runs the static checkers"
	@echo "make library          builds ./liblrnn.so, the scans as a library (docs/library.md)"
	@echo "make jax              builds ./liblrnn-jax.so, by which JAX calls it; PYTHON names a python that has jaxlib"
	@echo "make wheel            the Python package in dist/, with libraries and program (LEVELS='v2 v3 v4' CUDA=1)"
	@echo "make install          the program and the library (PREFIX=/usr/local DESTDIR=); make uninstall removes them"
	@echo "make clean            removes what was built"

# The make that counts runs nothing, not even the recipes that call make, which -n runs.
ifdef COUNTING
SHELL := /bin/true
endif
