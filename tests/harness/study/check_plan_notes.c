/* check_plan_notes.c - what the plans that ship say of themselves: notes of the profile that they are true of. */
#include <string.h>

#include "harness/study/plan_file.h"
#include "tests/testing.h"

/* The short profile of one plan equals the profile of the plan it names, except for the MLP. */
START_TEST(notes_and_short_profiles_of_shipped_plans_agree) {
    static const char *const own[][2] = {{"hlru-fig2", "hlru-paper"}, {"hlru-fig3", "hlru-paper"},
                                         {"hlru-fig5", "hlru-paper"}, {"hlru-table1", "hlru-paper"},
                                         {"hlru-table2", "paper"},    {"hlru-decoder", "paper"}};
    struct plan_file p, table;
    struct label settings, of_table;
    struct error e = {0};
    for (int i = 0; i < 6; i++) { /* of width 128, MAD's epochs and three rates: of no other profile */
        ck_assert_msg(plan_file_read(&p, own[i][0], &e) == ST_OK, "%s", e.text);
        ck_assert_ptr_nonnull(plan_file_get(&p, own[i][1], "note"));
        ck_assert_ptr_null(plan_file_get(&p, "smoke", "note"));
        const char *quick = plan_file_get(&p, "quick", "note");
        ck_assert(!quick || (!strstr(quick, "128") && !strstr(quick, "three runs")));
    }
    ck_assert_msg(plan_file_read(&table, "hlru-table2", &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(plan_file_settings(&p, "quick", &settings, &e), ST_OK);
    ck_assert_int_eq(plan_file_settings(&table, "quick", &of_table, &e), ST_OK);
    static const char *const keys[] = {"stop-after", "eval-every", "lr", "decay", "model.gate-init"};
    for (int i = 0; i < 5; i++) {
        const char *value = label_get(&settings, keys[i]);
        ck_assert_msg(value && !strcmp(value, label_get(&of_table, keys[i])), "%s", keys[i]);
    }
}
END_TEST

Suite *check_plan_notes(void);
Suite *check_plan_notes(void) {
    Suite *suite = suite_create("plan_notes");
    TCase *c = tcase_create("plan_notes");
    tcase_add_test(c, notes_and_short_profiles_of_shipped_plans_agree);
    suite_add_tcase(suite, c);
    return suite;
}
