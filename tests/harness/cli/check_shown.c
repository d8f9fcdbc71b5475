/* check_shown.c - a record's texts are text wherever a command prints them: no terminal obeys them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/sheet/sheet.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

#define TRAIN "s3:length=3,n_train=40,n_val=8,n_test=8 lstm --dim 8 --steps 2 --quiet"

/* Gives every text of the folder's one record control characters and bidi marks, except texts that name files. The
 * record's checksum is right. */
static void make_hostile(const char *folder, char id[RUN_ID_HEX]) {
    static const char hostile[] = "\033[31mx\u202ey\u2066z\xc2\x9b!";
    static const char *const kept[] = {"run_id", "cell_id", "ckpt", "ckpt_xxh3", "machine_id"};
    struct record_set set;
    struct error e = {0};
    char path[PATH_BYTES];
    ck_assert_msg(records_load(&set, folder, &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(set.n, 1);
    struct run_record *r = &set.list[0];
    memcpy(id, r->run.run_id, RUN_ID_HEX);
    for (const struct field *f = runs_table.fields; f->name; f++) {
        bool names_a_file = false;
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) names_a_file |= !strcmp(f->name, kept[i]);
        if (f->type == FIELD_TEXT && !names_a_file && f->size >= sizeof hostile)
            memcpy((char *)&r->run + f->offset, hostile, sizeof hostile);
    }
    record_path(folder, id, path, sizeof path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_msg(record_write(folder, r, NULL, &e) == ST_OK, "%s", e.text);
    records_free(&set);
}

static void expect_text_only(const char *text, const char *command) {
    static const char *const codes[] = {"\033", "\u202e", "\u2066", "\xc2\x9b"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        ck_assert_msg(!strstr(text, codes[i]), "lrnn %s: code %zu in %s", command, i, text);
}

/* The command prints the record's texts, which have "!", to `out`, and no code to either stream. */
static void expect_shown(const char *format, const char *what) {
    char arguments[1024];
    snprintf(arguments, sizeof arguments, format, program_folder, what); /* NOLINT: of the lists below */
    expect_status(run(arguments), 0, arguments);
    expect_text(out, "!", arguments);
    expect_text_only(out, arguments);
    expect_text_only(err, arguments);
}

START_TEST(no_text_of_a_record_is_a_code) {
    static const char *const commands[] = {
        "show --out %s/r %s",
        "train --out %s/r " TRAIN,
        "train --json --out %s/r " TRAIN,
        "eval --out %s/r %s",
        "export --out %1$s/r %2$s %1$s/net.safetensors",
    };
    static const char *const tables[] = {
        "report --out %s/r --format %s",
        "report --out %s/r --what each --format %s",
        "compare %1$s/r %1$s/r --format %2$s",
    };
    char id[RUN_ID_HEX], folder[128], arguments[256];
    snprintf(folder, sizeof folder, "%s/r", program_folder);
    snprintf(arguments, sizeof arguments, "train --out %s " TRAIN, folder);
    expect_status(run(arguments), 0, arguments);
    make_hostile(folder, id);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) expect_shown(commands[i], id);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (int k = 0; sheet_formats()[k]; k++) expect_shown(tables[i], sheet_formats()[k]->name);
}
END_TEST

Suite *check_shown(void);
Suite *check_shown(void) {
    Suite *suite = suite_create("shown");
    TCase *c = tcase_create("shown");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, program_begin, program_end);
    tcase_add_test(c, no_text_of_a_record_is_a_code);
    suite_add_tcase(suite, c);
    return suite;
}
