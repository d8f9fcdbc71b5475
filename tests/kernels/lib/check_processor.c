/* check_processor.c - a processor that lacks instructions of the program ends it with one sentence and exit 2. Which
 * processor that is, is a word of bits, so that each may be missing here; what this one has must be what the kernel
 * says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "kernels/lib/processor.h"
#include "tests/lib/cpuinfo.h"
#include "tests/testing.h"

static const char *name_of(int bit) {
    static char text[PROCESSOR_TEXT];
    processor_names((uint64_t)1 << bit, text);
    return text;
}

/* Returns what processor_require(has) writes to stderr in a process of its own; *status: how that ends, 0 if it comes
 * back. */
static const char *require_elsewhere(uint64_t has, int *status) {
    static char says[1024];
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        processor_require(has);
        _exit(0);
    }
    close(ends[1]);
    ssize_t size = 0, got;
    while ((got = read(ends[0], says + size, sizeof says - 1 - (size_t)size)) > 0) size += got;
    says[size] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, status, 0), child);
    ck_assert_msg(WIFEXITED(*status), "ended by a signal");
    *status = WEXITSTATUS(*status);
    return says;
}

START_TEST(each_that_is_missing_is_named) {
    for (int bit = 0; bit < 64; bit++) {
        uint64_t without = ~((uint64_t)1 << bit);
        char sentence[PROCESSOR_TEXT + 160];
        int status;
        const char *says = require_elsewhere(without, &status);
        bool used = processor_used() >> bit & 1;
        snprintf(sentence, sizeof sentence,
                 "lrnn: this processor lacks %s, which the program was built to use; build it on this machine, or with "
                 "make PORTABLE=1\n",
                 name_of(bit));
        ck_assert_int_eq(status, used ? ST_USAGE : ST_OK);
        ck_assert_str_eq(says, used ? sentence : "");
    }
}
END_TEST

START_TEST(all_that_are_missing_are_named_in_one_sentence) {
    char names[PROCESSOR_TEXT];
    int status;
    const char *says = require_elsewhere(0, &status);
    processor_names(processor_used(), names);
    ck_assert_int_eq(status, processor_used() ? ST_USAGE : ST_OK);
    ck_assert_ptr_nonnull(strstr(says, names));
    require_elsewhere(processor_used(), &status);
    ck_assert_int_eq(status, ST_OK);
    require_elsewhere(processor_has(), &status); /* or there would be no test */
    ck_assert_int_eq(status, ST_OK);
    processor_names(~(uint64_t)0, names);
    ck_assert_uint_lt(strlen(names), sizeof names);
}
END_TEST

#if defined(__x86_64__)

static const struct {
    const char *name, *flag; /* our name, and the flag of /proc/cpuinfo */
} flags[] = {
    {"SSE3", "pni"},
    {"SSSE3", "ssse3"},
    {"SSE4.1", "sse4_1"},
    {"SSE4.2", "sse4_2"},
    {"SSE4a", "sse4a"},
    {"POPCNT", "popcnt"},
    {"MOVBE", "movbe"},
    {"LZCNT", "abm"},
    {"BMI1", "bmi1"},
    {"BMI2", "bmi2"},
    {"TBM", "tbm"},
    {"SHA", "sha_ni"},
    {"GFNI", "gfni"},
    {"AVX", "avx"},
    {"F16C", "f16c"},
    {"FMA", "fma"},
    {"FMA4", "fma4"},
    {"XOP", "xop"},
    {"AVX2", "avx2"},
    {"AVX-VNNI", "avx_vnni"},
    {"AVX512F", "avx512f"},
    {"AVX512CD", "avx512cd"},
    {"AVX512BW", "avx512bw"},
    {"AVX512DQ", "avx512dq"},
    {"AVX512VL", "avx512vl"},
    {"AVX512IFMA", "avx512ifma"},
    {"AVX512VBMI", "avx512vbmi"},
    {"AVX512VBMI2", "avx512_vbmi2"},
    {"AVX512VNNI", "avx512_vnni"},
    {"AVX512BITALG", "avx512_bitalg"},
    {"AVX512VPOPCNTDQ", "avx512_vpopcntdq"},
    {"AVX512BF16", "avx512_bf16"},
    {"AVX512FP16", "avx512_fp16"},
};
#define N_FLAGS ((int)(sizeof flags / sizeof *flags))

START_TEST(the_kernel_says_the_same) {
    for (int bit = 0; bit < 64; bit++) {
        if (!*name_of(bit)) continue;
        int i = 0;
        while (i < N_FLAGS && strcmp(flags[i].name, name_of(bit)) != 0) i++;
        ck_assert_msg(i < N_FLAGS, "no flag is known of %s", name_of(bit));
        bool has = processor_has() >> bit & 1;
        ck_assert_msg(has == cpuinfo_has(flags[i].flag), "%s is %s, /proc/cpuinfo says otherwise", flags[i].name,
                      has ? "there" : "missing");
    }
}
END_TEST

/* Also what no compiler makes of plain C, but intrinsics ask for: core/file/sha256.c. */
START_TEST(what_intrinsics_ask_for_is_looked_at) {
    char names[PROCESSOR_TEXT];
    bool used = false;
#ifdef __SHA__
    used = true;
#endif
    processor_names(processor_used(), names);
    ck_assert_msg(!strstr(names, "SHA") != used, "of SHA: %s", names);
}
END_TEST

#endif

Suite *check_processor(void);
Suite *check_processor(void) {
    Suite *suite = suite_create("processor");
    TCase *c = tcase_create("processor");
    tcase_add_test(c, each_that_is_missing_is_named);
    tcase_add_test(c, all_that_are_missing_are_named_in_one_sentence);
#if defined(__x86_64__)
    tcase_add_test(c, the_kernel_says_the_same);
    tcase_add_test(c, what_intrinsics_ask_for_is_looked_at);
#endif
    suite_add_tcase(suite, c);
    return suite;
}
