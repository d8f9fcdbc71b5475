/* processor.c - which instructions the compiler was allowed to use, and which ones CPUID reports. See processor.h.
 *
 * The functions here must run on processors that lack instructions of the rest of the program. So each is compiled for
 * any x86-64 (BASELINE), whatever the flags say. It calls only such functions and libc, which adapts itself to the
 * processor. */
#include "kernels/lib/processor.h"

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "core/status.h"

#if defined(__x86_64__)

#include <cpuid.h>

/* Without SSE3 the compiler uses no later vector instructions. (arch=x86-64 would not do: clang takes it for a lower
 * bound.) */
#define BASELINE __attribute__((target("no-sse3,no-bmi,no-bmi2,no-lzcnt,no-popcnt,no-movbe,no-tbm")))

/* TEXT_OF gives "1" for a macro that the compiler has defined, and the macro's name for any other. */
#define TEXT_OF(text) #text
#define USED(macro)   (sizeof TEXT_OF(macro) == sizeof "1")

/* CPUID gives four registers for each leaf. */
enum leaf { LEAF_1, LEAF_7, LEAF_7_1, LEAF_EXTENDED, N_LEAVES };
enum { EAX, EBX, ECX, EDX };
#define SAVES_STATE 27 /* bit of LEAF_1, ECX: the operating system saves the registers that XGETBV names */

/* Registers that the operating system must save; XGETBV says which it saves. */
#define YMM 0x06u
#define ZMM 0xe6u

/* Instructions that gcc and clang generate from plain C, and SHA, because core/file/sha256.c has intrinsics for it. The
 * program has no other intrinsics (such as AES or AMX). */
static const struct {
    const char *name;
    bool used;
    unsigned char leaf, in, bit; /* in: the register */
    unsigned char state;
} sets[] = {
    {"SSE3", USED(__SSE3__), LEAF_1, ECX, 0, 0},
    {"SSSE3", USED(__SSSE3__), LEAF_1, ECX, 9, 0},
    {"SSE4.1", USED(__SSE4_1__), LEAF_1, ECX, 19, 0},
    {"SSE4.2", USED(__SSE4_2__), LEAF_1, ECX, 20, 0},
    {"SSE4a", USED(__SSE4A__), LEAF_EXTENDED, ECX, 6, 0},
    {"POPCNT", USED(__POPCNT__), LEAF_1, ECX, 23, 0},
    {"MOVBE", USED(__MOVBE__), LEAF_1, ECX, 22, 0},
    {"LZCNT", USED(__LZCNT__), LEAF_EXTENDED, ECX, 5, 0},
    {"BMI1", USED(__BMI__), LEAF_7, EBX, 3, 0},
    {"BMI2", USED(__BMI2__), LEAF_7, EBX, 8, 0},
    {"TBM", USED(__TBM__), LEAF_EXTENDED, ECX, 21, 0},
    {"SHA", USED(__SHA__), LEAF_7, EBX, 29, 0},
    {"GFNI", USED(__GFNI__), LEAF_7, ECX, 8, 0},
    {"AVX", USED(__AVX__), LEAF_1, ECX, 28, YMM},
    {"F16C", USED(__F16C__), LEAF_1, ECX, 29, YMM},
    {"FMA", USED(__FMA__), LEAF_1, ECX, 12, YMM},
    {"FMA4", USED(__FMA4__), LEAF_EXTENDED, ECX, 16, YMM},
    {"XOP", USED(__XOP__), LEAF_EXTENDED, ECX, 11, YMM},
    {"AVX2", USED(__AVX2__), LEAF_7, EBX, 5, YMM},
    {"AVX-VNNI", USED(__AVXVNNI__), LEAF_7_1, EAX, 4, YMM},
    {"AVX512F", USED(__AVX512F__), LEAF_7, EBX, 16, ZMM},
    {"AVX512CD", USED(__AVX512CD__), LEAF_7, EBX, 28, ZMM},
    {"AVX512BW", USED(__AVX512BW__), LEAF_7, EBX, 30, ZMM},
    {"AVX512DQ", USED(__AVX512DQ__), LEAF_7, EBX, 17, ZMM},
    {"AVX512VL", USED(__AVX512VL__), LEAF_7, EBX, 31, ZMM},
    {"AVX512IFMA", USED(__AVX512IFMA__), LEAF_7, EBX, 21, ZMM},
    {"AVX512VBMI", USED(__AVX512VBMI__), LEAF_7, ECX, 1, ZMM},
    {"AVX512VBMI2", USED(__AVX512VBMI2__), LEAF_7, ECX, 6, ZMM},
    {"AVX512VNNI", USED(__AVX512VNNI__), LEAF_7, ECX, 11, ZMM},
    {"AVX512BITALG", USED(__AVX512BITALG__), LEAF_7, ECX, 12, ZMM},
    {"AVX512VPOPCNTDQ", USED(__AVX512VPOPCNTDQ__), LEAF_7, ECX, 14, ZMM},
    {"AVX512BF16", USED(__AVX512BF16__), LEAF_7_1, EAX, 5, ZMM},
    {"AVX512FP16", USED(__AVX512FP16__), LEAF_7, EDX, 23, ZMM},
};
#define N_SETS ((int)(sizeof sets / sizeof *sets))

BASELINE static void read_leaves(uint32_t leaves[N_LEAVES][4]) {
    static const uint32_t numbers[N_LEAVES][2] = {{1, 0}, {7, 0}, {7, 1}, {0x80000001u, 0}};
    for (int i = 0; i < N_LEAVES; i++) {
        uint32_t *to = leaves[i], last;
        __cpuid(numbers[i][0] & 0x80000000u, last, to[EBX], to[ECX], to[EDX]);
        to[EAX] = to[EBX] = to[ECX] = to[EDX] = 0;
        if (numbers[i][0] <= last) __cpuid_count(numbers[i][0], numbers[i][1], to[EAX], to[EBX], to[ECX], to[EDX]);
    }
}

BASELINE uint64_t processor_used(void) {
    uint64_t used = 0;
    for (int i = 0; i < N_SETS; i++) used |= (uint64_t)sets[i].used << i;
    return used;
}

BASELINE uint64_t processor_has(void) {
    uint32_t leaves[N_LEAVES][4], state = 0, high;
    uint64_t has = 0;
    read_leaves(leaves);
    if (leaves[LEAF_1][ECX] >> SAVES_STATE & 1) __asm__ volatile("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    for (int i = 0; i < N_SETS; i++) {
        uint64_t there = leaves[sets[i].leaf][sets[i].in] >> sets[i].bit & 1;
        if ((state & sets[i].state) == sets[i].state) has |= there << i;
    }
    return has;
}

#else

#define BASELINE
#define N_SETS 0
static const struct { const char *name; } sets[1];

uint64_t processor_used(void) {
    return 0;
}

uint64_t processor_has(void) {
    return 0;
}

#endif

BASELINE static char *join_text(char *end, const char *text) {
    while (*text) *end++ = *text++;
    *end = 0;
    return end;
}

BASELINE void processor_names(uint64_t which, char text[PROCESSOR_TEXT]) {
    char *end = join_text(text, "");
    for (int i = 0; i < N_SETS; i++)
        if (which >> i & 1) end = join_text(join_text(end, end > text ? ", " : ""), sets[i].name);
}

BASELINE void processor_require(uint64_t has) {
    char names[PROCESSOR_TEXT], says[PROCESSOR_TEXT + 160];
    uint64_t missing = processor_used() & ~has;
    if (!missing) return;
    processor_names(missing, names);
    char *end = join_text(join_text(says, "lrnn: this processor lacks "), names);
    end = join_text(end, ", which the program was built to use; build it on this machine, or with make PORTABLE=1\n");
    ssize_t written = write(STDERR_FILENO, says, (size_t)(end - says));
    (void)written; /* a failure to write cannot be reported anywhere */
    _exit(ST_USAGE);
}

/* Runs before all other functions of the program, also before its own constructors. Constructors of libraries adapt
 * themselves to the processor. */
BASELINE __attribute__((constructor(101))) static void look_before_main(void) {
    processor_require(processor_has());
}
