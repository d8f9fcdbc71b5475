# lrnn-bench. `make help` lists the targets. A new source file needs no change here: folders are read by wildcard.
#
#   REAL=float|double   working precision: ./lrnn or ./lrnn-f64, each with its own objects
#   CC=gcc|clang        WERROR=1 makes warnings errors
#   PORTABLE=1          x86-64-v2 instead of this machine's own instruction set
#   SANITIZE=1          AddressSanitizer and UndefinedBehaviorSanitizer
#   BUILD=folder        build there, programs included, and leave ./lrnn alone
#   CUDA=0              without CUDA; default: with it where nvcc 12.0 or newer is found (PATH, CUDA_HOME,
#                       /usr/local/cuda). CUDA=host compiles the kernels for the CPU instead, which tests do
#                       (docs/cuda.md)
#   CUDA_ARCHS='90'     compute capabilities x 10 to compile for, or all; default: those of this machine's GPUs, where
#                       there are none the oldest supported, whose PTX every newer device's driver compiles at the
#                       first start
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
OBJ   := $(BUILD)/$(REAL)
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
ifeq ($(CUDA),auto)
NVCC := $(firstword $(shell command -v nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
nvcc_release := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
nvcc_new := $(shell [ "$(firstword $(subst ., ,$(nvcc_release)))" -ge 12 ] 2>/dev/null && echo yes)
cuda_mode := $(if $(nvcc_new),nvcc)
cuda_says := $(if $(nvcc_new),with $(NVCC) (CUDA $(nvcc_release)),none: $(if $(NVCC),$(NVCC) is CUDA $(nvcc_release); \
             12.0 or newer is needed,no nvcc in PATH; CUDA_HOME or /usr/local/cuda))
else ifeq ($(CUDA),host)
cuda_mode := host
cuda_says := on the host (tests only)
else ifeq ($(CUDA),0)
cuda_says := none (CUDA=0)
else
$(error CUDA=$(CUDA) is not known; expected auto, host or 0)
endif
cuda_root := $(if $(NVCC),$(patsubst %/bin/,%,$(dir $(realpath $(NVCC)))))

# --- flags ------------------------------------------------------------------------------------------------------------
compiler := $(shell $(CC) --version 2>/dev/null | sed -n 1p)
clang    := $(findstring clang,$(compiler))
x86      := $(findstring x86_64,$(shell $(CC) -dumpmachine 2>/dev/null))
native   := -march=native $(if $(clang),,$(if $(x86),-mprefer-vector-width=512))
portable := $(if $(x86),-march=x86-64-v2)

# Sanitized kernels are cut into the vectors of this machine, as the plain build's are.
ifdef SANITIZE
OPT ?= -O1 -g1 $(native) -fno-omit-frame-pointer -fsanitize=$(SANITIZE:1=address,undefined) -fno-sanitize-recover=all
else
OPT ?= -O3 $(if $(PORTABLE),$(portable),$(native))
endif
# clang warns of each `omp simd` loop that it leaves scalar: those around libm in the double build.
WARN  := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(clang),-Wno-pass-failed) \
         $(if $(filter 1,$(WERROR)),-Werror)
# Against a bug that becomes an attack: checked copies, canaries, and no table of functions that can be written to. The
# sanitizers have checks of their own.
HARDEN := $(if $(SANITIZE)$(findstring -O0,$(OPT)),,-D_FORTIFY_SOURCE=3 -fstack-protector-strong)
HARDEN_LINK := -Wl,-z,relro,-z,now
FLAGS  = -std=gnu11 $(strip $(OPT)) $(HARDEN) -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp \
         $(if $(f64),-DLRNN_DOUBLE) $(CFLAGS)
# To the sources that ask for CUDA alone, so that all others are the same objects with and without it.
cuda_defines := $(if $(cuda_mode),-DLRNN_CUDA) $(if $(filter host,$(cuda_mode)),-DLRNN_CUDA_HOST)
COMPILE = $(CC) -I. $(CPPFLAGS) $(FLAGS) $(WARN) -MMD -MP
LINK    = $(CC) $(FLAGS) $(HARDEN_LINK) $(LDFLAGS)
LIBS   := $(if $(f64),-lopenblas,-ldnnl) -ljansson -lxxhash -lpng -lz -lm

# Each .cu is compiled by nvcc, or as C++ by the host's compiler with tests/cuda/cuda_host.h in front. -fmad=false as
# -ffp-contract=off above.
CXX_HOST := $(if $(clang),clang++,g++)
WARN_CXX := -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers $(if $(filter 1,$(WERROR)),-Werror)
# Kernels of many template instances: what AddressSanitizer finds as well is not looked for twice, inlining is not
# forced (cuda_host.h), and -Og compiles in two thirds of -O1's time what then runs as fast.
sanitized_cu := -Og -fno-sanitize=null,object-size,vptr,pointer-overflow
CXXFLAGS_HOST = -std=c++20 $(filter-out -std=gnu11,$(FLAGS)) $(cuda_defines) \
                $(if $(SANITIZE),$(sanitized_cu))
# A kernel that spills registers is a warning of the assembler's, which costs no time.
NVCC_WARN = $(if $(filter 1,$(WERROR)),-Werror all-warnings -Xptxas -warn-spills -Xptxas -Werror) \
            -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers,-Wno-unknown-pragmas
NVCC_ARCH = $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
            -gencode arch=compute_$(lastword $(cuda_archs)),code=compute_$(lastword $(cuda_archs))
# The level is that of the host's side, which launches; kernels are always optimised.
COMPILE_NVCC = $(NVCC) -std=c++20 -O1 -fmad=false $(NVCC_ARCH) -I. -DLRNN_CUDA $(if $(f64),-DLRNN_DOUBLE) \
               $(NVCC_WARN) $(NVCCFLAGS)
COMPILE_CU = $(if $(filter host,$(cuda_mode)),$(CXX_HOST) -I. $(CXXFLAGS_HOST) $(WARN_CXX) -MMD -MP \
             -include tests/cuda/cuda_host.h -x c++,$(COMPILE_NVCC) -MMD -MP -MF $(@:.o=.d))
ifeq ($(cuda_mode),nvcc)
# cuBLAS is loaded when a device is opened, from there (core/cuda/cublas_cuda.cu).
LIBS += -L$(cuda_root)/lib64 -L$(cuda_root)/lib -Wl,-rpath,$(cuda_root)/lib64:$(cuda_root)/lib -lcudart_static -ldl \
        -lrt -lpthread -lstdc++
else ifeq ($(cuda_mode),host)
LIBS += -lstdc++
endif

# Folders and their rooms. tests/shapes/, tests/twins/ and tests/torture/ are programs of their own.
rooms = $(sort $(foreach f,$(1),$(foreach e,$(2),$(wildcard $(f)/*.$(e) $(f)/*/*.$(e) $(f)/*/*/*.$(e)))))

# Where the program comes from, for `lrnn --version` and run records. Outside a git checkout of its own: unknown.
commit := $(if $(wildcard .git),$(shell git rev-parse HEAD 2>/dev/null))
dirty  := $(if $(commit),$(shell git diff --quiet HEAD 2>/dev/null || echo 1))
# The sources themselves, so that a build of edited files is told from one of the commit.
sources := $(shell cat $(sort $(call rooms,core kernels models tasks harness,c h cu cuh def)) Makefile | sha256sum | \
             cut -c1-16)
quoted  = '"$(subst ',,$(subst ",,$(subst \,,$(strip $(1)))))"'
about   = -DBUILD_VERSION=$(call quoted,$(VERSION)) -DBUILD_COMMIT=$(call quoted,$(or $(commit),unknown)) \
          -DBUILD_DIRTY=$(or $(dirty),0) -DBUILD_SOURCES=$(call quoted,$(sources)) \
          -DBUILD_COMPILER=$(call quoted,$(compiler)) -DBUILD_FLAGS=$(call quoted,$(FLAGS) $(cuda_defines))

# --- files ------------------------------------------------------------------------------------------------------------
SRC   := $(call rooms,core kernels models tasks harness,c)
TESTS := $(filter-out tests/shapes/% tests/twins/% tests/torture/% tests/faults/faults.c,$(call rooms,tests,c))
CU    := $(if $(cuda_mode),$(call rooms,core kernels,cu))
FUZZ  := $(patsubst tests/fuzz/%.c,%,$(filter-out %/check_fuzz.c,$(wildcard tests/fuzz/*.c)))
main  := $(OBJ)/harness/main.o
objs  := $(SRC:%.c=$(OBJ)/%.o) $(CU:%.cu=$(OBJ)/%.cu.o) \
         $(if $(filter host,$(cuda_mode)),$(patsubst %,$(OBJ)/tests/cuda/%.o,cuda_host cuda_blas cuda_runtime))
own_objs = $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/$(1)/*.c tests/lib/*.c))
SHAPES := $(BUILD)/test-shapes$(f64)
TWINS := $(BUILD)/fuzz-kernels$(f64)
TORTURE := $(BUILD)/torture$(f64)
FAULTS := $(BUILD)/faults.so
# Of the shim itself.
HOST_TESTS := $(if $(filter host,$(cuda_mode)),$(wildcard tests/cuda/host/check_*.cc))
tobjs := $(TESTS:%.c=$(OBJ)/%.o) $(HOST_TESTS:%.cc=$(OBJ)/%.o)
CODE  := $(call rooms,core kernels models tasks harness tests,c h cu cuh cc)
SH    := bootstrap.sh $(wildcard .ci/*  tools/*.sh tests/*.sh tests/*/*.sh)

.PHONY: all programs test test-shapes golden golden-rows other-real test-double test-cuda-host test-cuda cuda-suites \
        cuda-resources device-micro test-slurm test-html test-latex sanitize bench paper results results-check gate \
        layers format format-check lint fuzz fuzz-kernels fuzz-kernels-here $(FUZZ:%=fuzz-%) install clean help FORCE
.PHONY: syntax objects nightly test-hardened test-offline valgrind test-memory test-solved tsan torture example
.DELETE_ON_ERROR:

all: $(LRNN)

programs: $(LRNN) $(CHECK) $(FAULTS)

# What the compiler has to say of every source, which is not compiled any further.
syntax:
	@$(MAKE) --no-print-directory OPT='-O0 -fsyntax-only' objects

objects: $(objs) $(tobjs)

$(LRNN): $(objs) $(OBJ)/link.stamp
	@echo "  LINK $@ (CUDA: $(cuda_says))"
	@$(LINK) -o $@ $(objs) $(LIBS)

$(CHECK): $(filter-out $(main),$(objs)) $(tobjs) $(OBJ)/link.stamp
	@echo "  LINK $@"
	@$(LINK) -o $@ $(filter-out $(main),$(objs)) $(tobjs) $(LIBS) $(shell pkg-config --libs check)

# To be preloaded into the program: makes calls fail (tests/faults/faults.c). Without the sanitizers, which replace the
# same functions.
$(FAULTS): tests/faults/faults.c tests/faults/file_log.h
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) -std=gnu11 -O2 $(WARN) -I. -fPIC -shared -o $@ $< -ldl

$(SHAPES): $(call own_objs,shapes)
$(TWINS): $(call own_objs,twins)
$(TORTURE): $(call own_objs,torture) $(OBJ)/tests/faults/exercise.o $(OBJ)/tests/faults/power.o
$(SHAPES) $(TWINS) $(TORTURE): $(filter-out $(main),$(objs)) $(OBJ)/link.stamp
	@echo "  LINK $@"
	@$(LINK) -o $@ $(filter %.o,$^) $(LIBS) $(shell pkg-config --libs check)

$(OBJ)/%.o: %.c $(OBJ)/flags.stamp
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(COMPILE) $(ABOUT) -c -o $@ $<

$(OBJ)/%.cu.o: %.cu $(OBJ)/cuda.stamp
	@mkdir -p $(@D)
	@echo "  $(if $(filter host,$(cuda_mode)),C++,NVCC)  $<"
	@$(COMPILE_CU) -c -o $@ $<

$(OBJ)/%.o: %.cc $(OBJ)/cuda.stamp
	@mkdir -p $(@D)
	@echo "  C++  $<"
	@$(CXX_HOST) -I. $(CXXFLAGS_HOST) $(WARN_CXX) -MMD -MP -c -o $@ $<

ifdef SANITIZE
# Tests compute little themselves, and compile in a third of the time without optimisation.
$(OBJ)/tests/%.o: ABOUT = -O0
endif
$(OBJ)/harness/store/version.o: $(OBJ)/about.stamp
$(OBJ)/harness/store/version.o $(OBJ)/harness/store/version.tidy: ABOUT = $(about)

asks_cuda := $(patsubst %.c,$(OBJ)/%.o,core/place.c kernels/registry.c $(wildcard tests/cuda/*.c))
$(asks_cuda): $(OBJ)/cuda.stamp
$(asks_cuda) $(asks_cuda:.o=.tidy): ABOUT = $(cuda_defines)

# Stamps change only when their text does: other flags rebuild everything, another commit one file, another list of
# files the programs.
stamp = @mkdir -p $(@D); printf '%s\n' $(1) | cmp -s - $@ || printf '%s\n' $(1) > $@
$(OBJ)/flags.stamp: FORCE
	$(call stamp,$(call quoted,$(compiler) $(COMPILE)))
$(OBJ)/cuda.stamp: FORCE
	$(call stamp,$(call quoted,$(compiler) $(cuda_defines) $(if $(cuda_mode),$(COMPILE_CU))))
$(OBJ)/about.stamp: FORCE
	$(call stamp,$(call quoted,$(about)))
$(OBJ)/link.stamp: FORCE
	$(call stamp,$(call quoted,$(LINK) $(LIBS) $(SRC) $(CU) $(TESTS) $(HOST_TESTS)))

# The suites are the functions `Suite *check_NAME(void)` of the test files; those under tests/cuda/ need a device.
suite_names = $(if $(1),$(shell sed -n 's/^Suite \*check_\([a-z0-9_]*\)(void) {.*/\1/p' $(1)))
suites := $(foreach s,$(call suite_names,$(filter-out tests/cuda/%,$(TESTS))),CHECK($(s))) \
          $(foreach s,$(call suite_names,$(filter tests/cuda/%,$(TESTS)) $(HOST_TESTS)),CHECK_CUDA($(s)))
$(OBJ)/suites.def: FORCE
	$(call stamp,'$(suites)')
$(OBJ)/tests/main.o $(OBJ)/tests/main.tidy: $(OBJ)/suites.def
$(OBJ)/tests/main.o $(OBJ)/tests/main.tidy: ABOUT = -DSUITE_LIST='"$(OBJ)/suites.def"'
$(OBJ)/fuzz.def: FORCE
	$(call stamp,'$(foreach f,$(FUZZ),FUZZ_TARGET($(f)))')
$(OBJ)/tests/fuzz/check_fuzz.o $(OBJ)/tests/fuzz/check_fuzz.tidy: $(OBJ)/fuzz.def
$(OBJ)/tests/fuzz/check_fuzz.o $(OBJ)/tests/fuzz/check_fuzz.tidy: ABOUT = -DFUZZ_LIST='"$(OBJ)/fuzz.def"'

-include $(objs:.o=.d) $(tobjs:.o=.d) $(patsubst %.o,%.d,$(call own_objs,shapes) $(call own_objs,twins) \
         $(call own_objs,torture))

# --- tests ------------------------------------------------------------------------------------------------------------
# SUITES='a b' runs those suites alone. The tests find the programs through LRNN and LRNN_F64. With all suites those of
# CUDA are run too, on the host, in float; `make REAL=double test-cuda-host` takes some minutes more. F64=PROGRAM is the
# one of the other precision, and none is built.
test: $(CHECK) $(LRNN) $(FAULTS) $(if $(F64),,other-real) \
      $(if $(filter host,$(cuda_mode))$(SUITES)$(f64),,test-cuda-host)
	@LRNN=$(dir $(LRNN))lrnn LRNN_F64=$(or $(F64),$(dir $(LRNN))lrnn-f64) LRNN_FAULTS=$(FAULTS) \
	  $(CHECK) $(SUITES)

other-real:
	@$(MAKE) --no-print-directory REAL=$(if $(f64),float,double) \
	  CUDA=$(if $(f64),$(CUDA),0) all

# Golden traces (harness/gate/trace.h), after a change of bits that is meant and a raised numerics version: in both
# precisions, with this machine's instructions and without fused multiply-adds. golden-rows writes those of one build.
golden:
	@for real in float double; do \
	   $(MAKE) --no-print-directory REAL=$$real golden-rows && \
	   $(MAKE) --no-print-directory REAL=$$real PORTABLE=1 BUILD=$(BUILD)/portable golden-rows || exit 1; done

golden-rows: $(CHECK)
	@LRNN_GOLDEN_WRITE=1 CK_DEFAULT_TIMEOUT=600 $(CHECK) golden

# Every kernel at the shapes that the quick and paper profiles of bench and the plans of papers train; PROFILES='paper'
# walks that alone, 'plans' those. Takes an hour or more: images and Path-X are long, and the reference is slow.
test-shapes: $(SHAPES)
	@$(SHAPES) $(PROFILES)

test-double:
	@$(MAKE) --no-print-directory REAL=double test

# Leaks are looked for as well. A time-out that is generous for the plain build is ten times that here. The suites of
# CUDA are test-cuda-host's, of the same build. A + in front of a command that make does not see to be make: it compiles
# with as many compilers at once as the rest.
sanitized = ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 CK_TIMEOUT_MULTIPLIER=10 \
            $(MAKE) --no-print-directory SANITIZE=1 CUDA=host WERROR=0 BUILD=$(BUILD)/sanitize
# faults takes the allocator's place in the program, as AddressSanitizer does. SUITES='a b' runs those alone.
sanitize:
	+@$(sanitized) programs
	+@$(sanitized) test SUITES="$(or $(SUITES),$$($(BUILD)/sanitize/check --list | \
	  grep -vx -e 'cuda.*' -e faults | tr '\n' ' '))"

# The whole suite without a network, not even to oneself.
test-offline:
	@unshare --map-root-user --net $(MAKE) --no-print-directory test

# One command of each kind under memcheck, in a build without AVX-512, which valgrind does not know.
valgrind:
	@$(MAKE) --no-print-directory PORTABLE=1 CUDA=0 BUILD=$(BUILD)/portable all
	@tools/valgrind.sh $(BUILD)/portable/lrnn$(f64)

# A step of every mixer at 16 384 tokens, in at most 4 GB of memory in use.
test-memory: $(LRNN)
	@tools/memory.sh $(LRNN) $(MODELS)

# S3 by three models of its quick profile (MODELS='a b': those), each until solved, as in the committed table.
test-solved: $(LRNN)
	@rm -rf $(BUILD)/solved
	@tools/solved.sh $(LRNN) $(BUILD)/solved s3 $(or $(MODELS),bdlru:m=3 bdlru:m=5 lstm)

# Trainings in several threads, and several at once, under ThreadSanitizer.
tsan:
	@$(MAKE) --no-print-directory CC=clang SANITIZE=thread CUDA=host WERROR=0 BUILD=$(BUILD)/tsan all
	@tools/tsan.sh $(BUILD)/tsan/lrnn$(f64)

# Every CUDA kernel against its reference, run on the CPU under the sanitizers; needs neither nvcc nor a device. Of the
# sizes that a walk has every EVERY-th, of tests/device/measure.sh the first part; EVERY=1 takes all, and many times as
# long.
EVERY ?= 31
test-cuda-host:
	+@LRNN_CUDA_EVERY=$(EVERY) $(sanitized) cuda-suites

# The same cases on this machine's device.
test-cuda: cuda-suites
	@tools/cuda_sanitizer.sh $(CHECK)

cuda-suites: $(CHECK) $(LRNN)
	@LRNN=$(LRNN) $(CHECK) $(CUDA_SUITES)
# cuda_short walks again what cuda walks, for compute-sanitizer, which takes too long over the whole.
CUDA_SUITES := cuda cuda_ways cuda_order cuda_run cuda_values cuda_population \
               $(if $(HOST_TESTS),cuda_measure $(call suite_names,$(HOST_TESTS)),cuda_short)

# `lrnn sweep --slurm` under a Slurm of one node that the test starts: needs root, slurm-wlm and munge; some minutes,
# most of which a requeued job waits.
test-slurm: all
	@tests/slurm/slurm.sh $(LRNN)

# What a device can do, apart from the program (tests/device/micro.cu, measure.sh).
MICRO := $(BUILD)/device-micro
device-micro: $(MICRO)
$(MICRO): tests/device/micro.cu $(OBJ)/about.stamp
	@$(if $(filter nvcc,$(cuda_mode)),,echo "make device-micro needs nvcc: $(cuda_says)" >&2; exit 2)
	@mkdir -p $(@D)
	@echo "  NVCC $@"
	@$(NVCC) -std=c++20 -O3 $(NVCC_ARCH) $(NVCC_WARN) -DBUILD_COMMIT=$(call quoted,$(or $(commit),unknown)) \
	  -DBUILD_DIRTY=$(or $(dirty),0) -o $@ $< -L$(cuda_root)/lib64 -L$(cuda_root)/lib \
	  -Xlinker -rpath,$(cuda_root)/lib64 -lcublas -lcublasLt -lcudart_static -ldl -lrt -lpthread

# The pages of `lrnn report --html` in headless Chromium; KEEP=folder keeps them and their screenshots.
test-html: all
	@tests/html/pages.sh $(LRNN) $(KEEP)

# What P17 says of the linked program.
test-hardened: $(LRNN)
	@tools/hardened.sh $(LRNN)

# What `lrnn report --format latex` writes, compiled by pdflatex; KEEP=folder keeps the document.
test-latex: all
	@tests/latex/compile.sh $(LRNN) $(KEEP)

# Registers, stack, shared memory and spills of every kernel on the oldest architecture and on the newest, as CSV into
# RESOURCES=; fails if one spills. It needs nvcc and no device.
cuda-resources: cuda_archs := $(firstword $(known_archs)) $(lastword $(known_archs))
cuda-resources: NVCC_ARCH = $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a))
cuda-resources:
	@$(if $(filter nvcc,$(cuda_mode)),,echo "make cuda-resources needs nvcc: $(cuda_says)" >&2; exit 2)
	@tools/cuda_resources.sh '$(COMPILE_NVCC)' $(CU) $(if $(RESOURCES),>'$(RESOURCES)')

# Every kernel against its reference at random sizes, for SECONDS=60, from SEED= or the clock; what it finds it prints
# as a command that repeats it. SANITIZE=1 takes the build of `make sanitize`.
fuzz-kernels:
	@$(if $(SANITIZE),$(sanitized),$(MAKE) --no-print-directory) fuzz-kernels-here

fuzz-kernels-here: $(TWINS)
	@$(TWINS) $(call flag,SECONDS,--seconds) $(call flag,CASES,--cases) $(call flag,SEED,--seed)

FUZZ_SECONDS ?= 60
fuzz:
	@$(MAKE) --no-print-directory CC=clang SANITIZE=fuzzer-no-link,address,undefined BUILD=$(BUILD)/fuzz \
	  CPPFLAGS=-DLRNN_FUZZER $(FUZZ:%=fuzz-%)

# The corpus in the tree is read only; what the fuzzer adds stays in the build folder.
$(FUZZ:%=fuzz-%): fuzz-%: $(OBJ)/tests/fuzz/%.o $(filter-out $(main),$(objs))
	@$(LINK) -fsanitize=fuzzer -o $(BUILD)/$* $^ $(LIBS)
	@mkdir -p $(BUILD)/corpus/$*
	@echo "  FUZZ $* ($(FUZZ_SECONDS) s)"
	@$(BUILD)/$* -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
	  -print_final_stats=1 -artifact_prefix=$(BUILD)/$*- $(BUILD)/corpus/$* tests/fuzz/corpus/$*

# The heavy forms of the suites faults and fuzz, a quarter of the time for fuzzers, and beside them fuzz-kernels all the
# time, in one process: within MINUTES=60, the counts into TO=results/torture.csv. A fuzzer has a second more, as it
# takes 0 for no limit. What fuzz-kernels prints comes by a pipe that is not standard input, which the programs that are
# exercised would read empty.
MINUTES ?= 60
TO ?= results/torture.csv
torture: $(LRNN) $(FAULTS) $(TORTURE) $(TWINS)
	@CHECK_JOBS=1 $(TWINS) --seconds $$(($(MINUTES) * 60))s 2>&1 | { failed=0; \
	  $(MAKE) --no-print-directory -O fuzz FUZZ_SECONDS=$$(($(MINUTES) * 15 / $(words $(FUZZ)) + 1)) \
	    >$(BUILD)/fuzz.log 2>&1 </dev/null || { cat $(BUILD)/fuzz.log; failed=1; }; \
	  LRNN=$(LRNN) LRNN_FAULTS=$(FAULTS) $(TORTURE) --time $$(($(MINUTES) * 40))s --fuzz $(BUILD)/fuzz.log \
	    --kernels /dev/fd/3 --to $(TO) 3<&0 </dev/null || failed=1; exit $$failed; }

# .ci/run is for every change; this is for every night.
nightly:
	@.ci/nightly

# Includes go one way, and each header is complete: it compiles alone.
layers:
	@tools/layers.sh
	@status=0; for h in $(call rooms,core kernels models tasks harness,h); do \
	  $(CC) -I. $(CPPFLAGS) $(FLAGS) $(filter-out -Wpedantic,$(WARN)) -fsyntax-only -x c $$h || status=1; done; \
	  exit $$status

format:
	clang-format -i $(CODE)

# clang-format leaves comments as they are, so that lines in them are looked at one by one.
format-check:
	@tools/columns.sh $(CODE) $(call rooms,core kernels models tasks harness,def) $(SH) Makefile .clang-tidy \
	  $(wildcard *.md docs/*.md papers/*.plan plots/*.gp tests/*/*.py tests/*/*/*.py tools/*.py) \
	  $(wildcard tools/*.awk tests/*/*.awk)
	@printf '%s\n' $(CODE) | xargs -P $$(nproc) -n 40 clang-format --dry-run --Werror || \
	  { echo "make format would format them" >&2; exit 1; }

# Whole files, and no check is off for all of them but those of .clang-tidy, with their reasons: where a checker is
# wrong, the line says so. clang-tidy and cppcheck see one file at a time, on all cores, and look again only at files
# that have changed. What was found comes at the end, a line each.
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

$(OBJ)/%.tidy: %.c .clang-tidy tools/lint.h
	@mkdir -p $(@D)
	@echo "  TIDY $<"
	@$(CC) -I. $(FLAGS) $(ABOUT) -MM -MP -MT $@ -MF $@.d $<
	@clang-tidy --quiet $< -- -std=gnu11 -I. $(LINT_FIRST) -fopenmp $(ABOUT) >$@ 2>$@.log || [ -s $@ ] || \
	  { cat $@.log >&2; exit 1; }

LINT_FIRST = -include tools/lint.h
$(OBJ)/core/status.tidy: LINT_FIRST =
-include $(TIDY:=.d)

# --- use --------------------------------------------------------------------------------------------------------------
# Only what is set is passed on; the defaults are the program's.
flag = $(if $($(1)),$(2) '$($(1))')
# Nothing is built before it is said what is missing.
bench: $(if $(TASK),all)
	@$(if $(TASK),,echo "make bench: say which task, for example TASK=s5; ./lrnn list tasks names them" >&2; exit 2)
	@$(LRNN) bench '$(TASK)' $(call flag,MODELS,--models) $(call flag,PROFILE,--profile) $(call flag,SEEDS,--seeds) \
	  $(call flag,JOBS,--jobs) $(call flag,POPULATION,--population) $(call flag,DEVICE,--device) $(call flag,OUT,--out)

# The runs of a paper's table or figure (./lrnn list papers), and the table: make paper PAPER=hlru-table2 PROFILE=quick
paper: $(if $(PAPER),all)
	@$(if $(PAPER),,echo "make paper: say which, for example PAPER=hlru-table2; ./lrnn list papers names them" >&2; exit 2)
	@$(LRNN) sweep '$(PAPER)' $(call flag,PROFILE,--profile) $(call flag,MODELS,--models) $(call flag,SEEDS,--seeds) \
	  $(call flag,JOBS,--jobs) $(call flag,POPULATION,--population) $(call flag,DEVICE,--device) $(call flag,OUT,--out)

# docs/example/: the quick form of a paper's table, from its runs on. On two cores it takes up to half an hour; stop it
# any time, the same command goes on.
EXAMPLE := $(BUILD)/example
example: all
	@$(LRNN) sweep hlru-table2 --profile quick --quiet --out $(EXAMPLE) $(call flag,JOBS,--jobs) >/dev/null
	@tools/example.sh $(LRNN) hlru-table2 quick $(EXAMPLE)

# The CSV files of the committed records (curves.csv, as large as they are, is not committed), and the tables of the
# pages, which name their commands.
PAGES := README.md docs/results.md docs/findings.md docs/performance.md
results: all
	@$(LRNN) report --out results/baseline --to results/baseline >/dev/null
	@printf '%s\n' $(PAGES) | LRNN=$(LRNN) xargs -n 1 -P "$$(nproc)" tools/tables.sh

# Fails where a page's table is not what its command writes, a committed record is damaged or its machine is not told.
results-check: all
	@told=$$($(LRNN) store check $(patsubst %/runs,%,$(wildcard results/*/runs))) && \
	  ! printf '%s\n' "$$told" | grep 'not in machines.csv'
	@printf '%s\n' $(PAGES) | LRNN=$(LRNN) xargs -n 1 -P "$$(nproc)" tools/tables.sh --check

# Whether this build is as accurate and as fast as that of a commit: BASE=main. GATE='--force --junit gate.xml' are
# flags of `lrnn gate`; ALLOW_INCONCLUSIVE=1 ends with 0 where it cannot decide (docs/ci.md).
gate: $(if $(BASE),all)
	@$(if $(BASE),,echo "make gate: say which commit to compare with, for example BASE=main" >&2; exit 2)
	@MAKE='$(MAKE)' tools/gate.sh $(LRNN) $(OBJ) '$(BASE)' $(GATE)
export ALLOW_INCONCLUSIVE

install: all
	install -D -m 755 $(LRNN) $(DESTDIR)$(PREFIX)/bin/lrnn$(f64)
	install -d $(DESTDIR)$(PREFIX)/share/lrnn/plots $(DESTDIR)$(PREFIX)/share/lrnn/results
	install -m 644 $(wildcard plots/*.gp) $(DESTDIR)$(PREFIX)/share/lrnn/plots
	install -m 644 results/published.csv $(DESTDIR)$(PREFIX)/share/lrnn/results
	install -d $(DESTDIR)$(PREFIX)/share/lrnn/papers
	install -m 644 $(wildcard papers/*.plan) $(DESTDIR)$(PREFIX)/share/lrnn/papers
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(LRNN) man >$(DESTDIR)$(PREFIX)/share/man/man1/lrnn$(f64).1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(LRNN) completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/lrnn$(f64)

clean:
	rm -rf $(BUILD) ./lrnn ./lrnn-f64

help:
	@echo "make                  builds ./lrnn (REAL=double: ./lrnn-f64)"
	@echo "make test             builds and runs all tests (SUITES='philox arena' runs some)"
	@echo "make test-shapes      every CPU kernel at the shapes of profiles and plans (an hour; PROFILES=)"
	@echo "make test-double      the same tests in double precision"
	@echo "make golden           writes tests/golden/traces.tsv, after a change of bits that is meant"
	@echo "make sanitize         the same tests under AddressSanitizer and UndefinedBehaviorSanitizer (SUITES=)"
	@echo "make test-offline     make test where there is no network (unshare)"
	@echo "make tsan             trainings in four threads, and four at once, under ThreadSanitizer"
	@echo "make test-memory      a step of every mixer at 16 384 tokens, in at most 4 GB (MODELS=)"
	@echo "make test-solved      S3 by three models of its quick profile: each has to solve it (a minute or two; MODELS=)"
	@echo "make test-hardened    whether the program is linked as docs/promises.md says (P17)"
	@echo "make nightly          what is too long for every change: all suites in double and sanitized, fuzzers, leaks"
	@echo "make valgrind         one command of each kind under memcheck"
	@echo "make test-cuda-host   every CUDA kernel on the CPU, under sanitizers (part of make test)"
	@echo "make test-cuda        the same cases on this machine's device"
	@echo "make test-slurm       sweeps under a real Slurm of one node (root; apt-get install slurm-wlm munge)"
	@echo "make test-html        the pages of lrnn report --html in headless Chromium (apt-get install chromium; KEEP=)"
	@echo "make test-latex       the LaTeX of lrnn report, compiled (apt-get install texlive-latex-recommended; KEEP=)"
	@echo "make cuda-resources   registers, stack, shared memory, spills of every CUDA kernel as CSV (RESOURCES=file)"
	@echo "make device-micro     copies, launches and products of this machine's device (tests/device/measure.sh)"
	@echo "make fuzz-kernels     every kernel against its reference at random sizes (SECONDS=60 CASES= SEED= SANITIZE=1)"
	@echo "make fuzz             each fuzz target for FUZZ_SECONDS=60"
	@echo "make torture          failing calls, power loss, kills, flips, writers, fuzzers (MINUTES=60 TO=)"
	@echo "make bench TASK=s5    trains and tabulates (MODELS= PROFILE=smoke|quick|paper SEEDS= JOBS= DEVICE= OUT=)"
	@echo "make paper PAPER=...  the runs and the table of a paper's table or figure (PROFILE= MODELS= SEEDS= JOBS= OUT=)"
	@echo "make example          docs/example/: the runs of hlru-table2 in the quick profile, and all that is made of them"
	@echo "make results          the tables of docs/ from the committed run records and speeds"
	@echo "make gate BASE=main   as accurate and as fast as that commit? (GATE='flags of lrnn gate'; docs/ci.md)"
	@echo "make layers           no forbidden include, no long source or room, and every header compiles alone"
	@echo "make format           formats the code; format-check only looks, at 120 columns of comments and docs too"
	@echo "make lint             runs the static checkers"
	@echo "make install          PREFIX=/usr/local DESTDIR="
	@echo "make clean            removes what was built"
