/* check_devices.c - every op runs on a CUDA device: in any build, for the lists of ops say so; and what is said of code
 * for an older one, and of a machine that has no process left to look for a device. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/place.h"
#include "kernels/twins.h"
#include "tests/lib/not_run.h"
#include "tests/testing.h"

START_TEST(every_op_has_a_cuda_twin) {
    for (const struct op *const *op = op_list(); *op; op++)
        ck_assert_msg((*op)->hidden || op_has_cuda_twin(*op),
                      "op %s has no CUDA twin: docs/gpu.md says how one is written and listed", (*op)->name);
}
END_TEST

/* Otherwise the test above would see nothing. */
START_TEST(an_op_without_a_cuda_twin_is_seen) {
    const struct op *op = op_find("template");
    ck_assert(op && op->hidden && !op_has_cuda_twin(op));
}
END_TEST

START_TEST(code_for_an_older_device_is_told) {
    static const struct {
        int major, minor, code;
        const char *says;
    } builds[] = {{9, 0, 90, NULL},
                  {7, 5, 75, NULL},
                  {8, 6, 86, NULL},
                  {10, 0, 90, NULL}, /* kernels have nothing newer to use */
                  {0, 0, 0, NULL},   /* the CPU */
                  {9, 0, 75, "compute capability 7.5 and leave unused what X of 9.0 has beyond it"},
                  {10, 0, 75, "`make CUDA_ARCHS=90`"},
                  {8, 6, 80, "`make CUDA_ARCHS=86`"}};
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        const struct place_info info = {
            .name = "X", .major = builds[i].major, .minor = builds[i].minor, .code = builds[i].code};
        char text[PLACE_NOTE] = "";
        ck_assert_int_eq(place_code_note(&info, text), builds[i].says != NULL);
        ck_assert_msg(!builds[i].says || strstr(text, builds[i].says), "build %zu: \"%s\"", i, text);
    }
}
END_TEST

enum looked { TOLD, TOLD_OTHERWISE, NO_LIMIT };

/* In a process that may start none. The system's administrator is under no such limit, anybody else is. */
static enum looked look_without_processes(void) {
    struct rlimit none = {0, 0};
    struct error e = {0};
    char reason[sizeof e.text];
    if (geteuid() == 0 && setuid(65534) != 0) return NO_LIMIT;
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return NO_LIMIT;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) return NO_LIMIT;
    snprintf(reason, sizeof reason, "cannot look for device cuda: %s", strerror(errno));
    return place_probe("cuda", &e) == ST_FAIL && strcmp(e.text, reason) == 0 ? TOLD : TOLD_OTHERWISE;
}

START_TEST(a_process_that_cannot_be_started_is_told_with_its_reason) {
    int state;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit((int)look_without_processes());
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state));
    if (WEXITSTATUS(state) == NO_LIMIT)
        not_run("devices", "a_process_that_cannot_be_started_is_told_with_its_reason", "processes cannot be limited");
    else
        ck_assert_int_eq(WEXITSTATUS(state), TOLD);
}
END_TEST

Suite *check_devices(void);
Suite *check_devices(void) {
    Suite *suite = suite_create("devices");
    TCase *tests = tcase_create("devices");
    tcase_add_test(tests, every_op_has_a_cuda_twin);
    tcase_add_test(tests, an_op_without_a_cuda_twin_is_seen);
    tcase_add_test(tests, code_for_an_older_device_is_told);
    tcase_add_test(tests, a_process_that_cannot_be_started_is_told_with_its_reason);
    suite_add_tcase(suite, tests);
    return suite;
}
