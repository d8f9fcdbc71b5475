# make            builds ./lrnn            make REAL=double   builds ./lrnn-f64
# make test       builds and runs all tests
CC     ?= gcc
REAL   ?= float
SUFFIX := $(if $(filter double,$(REAL)),-f64)
BUILD  ?= build/$(REAL)-$(notdir $(CC))
OPT    ?= -O3 -march=native $(if $(findstring clang,$(CC)),,-mprefer-vector-width=512)
WARN   := -Wall -Wextra -Wpedantic -Wshadow $(WERROR)
CFLAGS_ALL := -std=gnu11 -I. $(OPT) -ffp-contract=off -fopenmp $(WARN) $(if $(filter double,$(REAL)),-DLRNN_DOUBLE) -MMD -MP
LIBS := -lopenblas -ljansson -lxxhash -lz -lm
SRC  := $(wildcard core/*.c kernels/*.c models/*.c tasks/*.c harness/*.c)
OBJ  := $(SRC:%.c=$(BUILD)/%.o)
lrnn$(SUFFIX): $(OBJ)
	$(CC) $(CFLAGS_ALL) $(CFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CFLAGS) -c -o $@ $<
-include $(OBJ:.o=.d)
