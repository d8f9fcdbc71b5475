/* surroundings.c - exercises on what is around the program: other benches that stop and wake, records with values that
 * no run has, odd folders, streams, variables and limits. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "tests/faults/exercise.h"
#include "tests/faults/spawn.h"
#include "tests/lib/process.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* --- pauses ------------------------------------------------------------------------------------------------------- */

/* Makes the claims of that machine older than any that is still believed. */
static void age_claims(const char *store, const char *host) {
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char folder[PATH_BYTES], path[PATH_BYTES];
    struct folder_names names;
    snprintf(folder, sizeof folder, "%s/claims", store);
    if (access(folder, F_OK) != 0 || folder_names(&names, folder, NULL) != ST_OK) return;
    for (int i = 0; i < names.n; i++) {
        char *text;
        size_t size;
        if (path_format(path, sizeof path, NULL, "%s/%s", folder, names.list[i]->d_name) != ST_OK ||
            file_read(path, 4096, &text, &size, NULL) != ST_OK)
            continue;
        if (strncmp(text, host, strlen(host)) == 0) utimensat(AT_FDCWD, path, long_ago, 0);
        free(text);
    }
    folder_names_free(&names);
}

void pause_exercise(int writers, int runs, int pauses, uint64_t seed, struct tally *t) {
    char folder[SCRATCH_BYTES], alone[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024], name[32];
    char library[4096], host[64];
    const char *variables[] = {preload(library), host, NULL};
    struct rng r = rng_at(seed, STREAM_TEST, 0);
    pid_t pids[64];
    int left = writers;
    ck_assert_int_le(writers, 64);
    scratch_make(alone);
    scratch_make(folder);
    snprintf(arguments, sizeof arguments, BENCH, runs, alone);
    ck_assert_int_eq(run_words(alone, NULL, arguments), 0);
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(arguments, sizeof arguments, BENCH, runs, folder);
    for (int w = 0; w < writers; w++) {
        snprintf(host, sizeof host, "LRNN_HOST=machine%d", w);
        snprintf(name, sizeof name, "writer-%d", w);
        pids[w] = start(folder, name, variables, arguments);
    }
    for (int k = 0; left > 0; k++) {
        int w = (int)rng_below(&r, (uint64_t)writers), status;
        usleep((useconds_t)(5000 + rng_below(&r, 20000)));
        if (pids[w] && k < pauses) {
            snprintf(host, sizeof host, "machine%d ", w);
            kill(-pids[w], SIGSTOP);
            t->tried++;
            age_claims(store, host);
            usleep((useconds_t)rng_below(&r, 200000));
            kill(-pids[w], SIGCONT);
        }
        for (w = 0; w < writers; w++) {
            if (!pids[w] || waitpid(pids[w], &status, WNOHANG) != pids[w]) continue;
            if (status != 0) bad(t, "writer %d ends with status %d", w, status);
            pids[w] = 0;
            left--;
        }
    }
    char alone_store[SCRATCH_BYTES + 16];
    snprintf(alone_store, sizeof alone_store, "%s/store", alone);
    compare_stores(store, alone_store, runs, t);
    if (scratch_count(folder, ".corrupt")) bad(t, "a record is damaged");
    scratch_remove(folder);
    scratch_remove(alone);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static const char *const odd_values[] = {"null",
                                         "-1",
                                         "0",
                                         "1e308",
                                         "-1e308",
                                         "1e-320",
                                         "\"inf\"",
                                         "\"-inf\"",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "\"\"",
                                         "\"\\u001b[31m<b>&\\\"=cmd|x\\u202e\"",
                                         "[]",
                                         "true"};
enum { ODD_VALUES = sizeof odd_values / sizeof *odd_values };

/* %s: the folder. */
static const char *const readers[] = {"report --out %s",
                                      "report --out %s --format csv",
                                      "report --out %s --what each --format html",
                                      "report --out %s --what lengths --format latex",
                                      "status --out %s",
                                      "store check %s",
                                      "report --out %1$s --html %1$s/site"};
enum { READERS = sizeof readers / sizeof *readers };

/* Writes the record with the field's line changed and a checksum that holds. */
static void write_odd(const char *path, const char *record, const char *field, const char *value) {
    char key[80], sum[RUN_ID_HEX], *text;
    size_t size;
    snprintf(key, sizeof key, "\n \"%s\": ", field);
    const char *body = strchr(record, '\n') + 1, *line = strstr(record, key);
    ck_assert_msg(line != NULL, "no field %s", field);
    const char *from = line + strlen(key), *to = from + strcspn(from, "\n");
    FILE *f = open_memstream(&text, &size);
    fprintf(f, "%.*s%s%s%s", (int)(from - body), body, value, to[-1] == ',' ? "," : "", to);
    fclose(f);
    record_hash(text, sum);
    f = fopen(path, "w");
    fprintf(f, "{\"checksum\": \"%s\",\n%s", sum, text);
    fclose(f);
    free(text);
}

void value_exercise(int cases, double seconds, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024], path[PATH_BYTES];
    struct record_set set;
    struct error e = {0};
    size_t size;
    double begin = time_now_s();
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    for (long seed = 1; seed <= 2; seed++) {
        snprintf(arguments, sizeof arguments, TRAIN, store, seed);
        ck_assert_int_eq(run_words(folder, NULL, arguments), 0);
    }
    ck_assert_msg(records_load(&set, store, &e) == ST_OK, "%s", e.text);
    record_path(store, set.list[0].run.run_id, path, sizeof path);
    records_free(&set);
    char *record = slurp(path, &size);
    long fields = 0;
    while (runs_table.fields[fields].name) fields++;
    long all = fields * ODD_VALUES * READERS, step = spread_step(all);
    t->all = all;
    for (long i = 0; i < all && i < cases && (seconds <= 0 || time_now_s() - begin < seconds); i++) {
        long n = i * step % all;
        const char *field = runs_table.fields[n % fields].name, *value = odd_values[n / fields % ODD_VALUES];
        write_odd(path, record, field, value);
        snprintf(arguments, sizeof arguments, readers[n / fields / ODD_VALUES], store); /* NOLINT: of the table above */
        int status = run_words(folder, NULL, arguments);
        char *out_text = said(folder, "out"), *err_text = said(folder, "err");
        t->tried++;
        t->failed += status != 0;
        if (status > 5) bad(t, "%s=%s, lrnn %s: status %d: %.300s", field, value, arguments, status, err_text);
        if (strchr(out_text, 27) || strchr(err_text, 27)) bad(t, "%s=%s, lrnn %s: ESC", field, value, arguments);
        free(out_text);
        free(err_text);
    }
    free(record);
    scratch_remove(folder);
}

/* --- surroundings ------------------------------------------------------------------------------------------------- */

#define SHORT "s3:length=3,n_train=40,n_val=8,n_test=8 lstm --dim 8 --steps 2 --quiet"

/* Shell lines in a folder of their own, each of whose commands must succeed; $L is the program, $T a short training.
 * `refused`: the program says no with a documented status; `ends`: with one, or with 0. No crash is either. */
static const char *const surroundings[] = {
    "env -u HOME $L $T --out a",
    "env -u TERM COLUMNS=0 $L report --out a",
    "COLUMNS=1 $L report --out a",
    "COLUMNS=99999999999 $L report --out a",
    "COLUMNS=-5 $L report --out a",
    "TMPDIR=/nonexistent $L $T --out b",
    "LC_ALL=none.UTF-8 $L $T --out c",
    "PATH= $L report --out a",
    "ends env PATH= $L plot --out a --to p.svg",
    "$L $T --out 'a b'; $L report --out 'a b'; $L report --out 'a b' --html 'h b'",
    "$L $T --out \"q'q\"; $L report --out \"q'q\" --html \"h'h\"",
    "$L $T --out 'q\"q'; $L plot --out 'q\"q' --to 'q\"q/p.svg'",
    "$L $T --out \"$(printf 'n\\nl')\"; $L report --out \"$(printf 'n\\nl')\"",
    "$L $T --out '$(touch INJECTED)'; $L plot --out '$(touch INJECTED)' --to '`touch INJECTED`.svg'",
    "$L $T --out ./-x; $L report --out ./-x",
    "$L $T --out '%s%n'; $L plot --out '%s%n' --to '%s%n/p.svg'",
    "$L $T --out '<b>'; $L report --out '<b>' --html h; ! grep -q '<b>' h/*.html",
    "ends $L $T --out $(printf '%255s' | tr ' ' x)",
    "refused $L $T --out $(printf '%256s' | tr ' ' x)",
    "refused $L $T --out $(printf '%9000s' | sed 's: :x/:g')",
    "touch file; refused $L $T --out file; refused $L $T --out file/x",
    "ln -s nowhere dangling; refused $L $T --out dangling 2>said; grep 'it is a link to nowhere: No such file' said",
    "ln -s loop loop; refused $L $T --out loop/x 2>said; grep 'it is a link to loop: Too many levels' said",
    "mkdir -p f/runs/ab; mkfifo f/runs/ab/$(printf 'ab%.0s' $(seq 16)).json; refused $L report --out f",
    "refused $L status --out f",
    "ends $L report --out a >&-",
    "$L report --out a 2>&-",
    "ends $L report --out a <&- >&- 2>&-",
    "refused $L report --out a >/dev/full",
    "$L report --out a 2>/dev/full",
    "{ s=0; $L info lstm || s=$?; echo $s >s; } | true; [ $(cat s) -le 6 ] || [ $(cat s) = 141 ]",
    "refused $L info lstm >/dev/full",
    "$L $T --out d 2>/dev/full",
    "ends $L $T --out e >&-",
    "ulimit -n 5; ends $L $T --out g",
    "ulimit -n 8; ends $L $T --out g",
    "ulimit -n 12; ends $L $T --out g",
    "ulimit -f 0; ends $L $T --out i",
    "ulimit -f 1; ends $L $T --out i",
    "ulimit -f 16; ends $L $T --out i",
    "$L $T --out i; $L store check i",
    "mkdir -p i/sweeps; head -c 100 $L >i/sweeps/s3-00000000.tsv; refused $L store check i",
    "refused env PATH= $L bench s3 --models lstm --dim 8 --steps 2 --out j; ! [ -d j/runs ]",
};
enum { SURROUNDINGS = sizeof surroundings / sizeof *surroundings };

/* Trains into FOLDER/kN with an address space of N KB; the wait status. */
static int train_within(const char *folder, const char *where, long kb) {
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && ulimit -v %ld && exec %s train " SHORT " --out k%ld >last.out 2>last.err", folder, kb, where,
             kb);
    return system(command); /* NOLINT(cert-env33-c): the limit is the shell's */
}

/* Trains with `kb` KB, where `enough` suffice: the result with enough, or a status with a sentence. */
static void expect_within(const char *folder, const char *where, long kb, long enough, struct tally *t) {
    char path[512], store[512], alone[512];
    size_t size;
    int status = train_within(folder, where, kb);
    snprintf(path, sizeof path, "%s/last.err", folder);
    char *text = slurp(path, &size);
    snprintf(store, sizeof store, "%s/k%ld", folder, kb);
    snprintf(alone, sizeof alone, "%s/k%ld", folder, enough);
    t->tried++;
    t->failed += status != 0;
    if (status == 0)
        compare_stores(store, alone, 1, t);
    else if (!WIFEXITED(status) || (WEXITSTATUS(status) > 6 && WEXITSTATUS(status) != 127)) /* 127: the loader's */
        bad(t, "ulimit -v %ld: status %d: %.300s", kb, status, text);
    else if (size == 0 || size > 4000)
        bad(t, "ulimit -v %ld: exit %d with %zu bytes on stderr", kb, WEXITSTATUS(status), size);
    free(text);
}

void space_exercise(int steps, struct tally *t) {
    char folder[SCRATCH_BYTES];
    char *where = realpath(program(), NULL);
    long low = 16 << 10, enough = 8 << 20;
    ck_assert_ptr_nonnull(where);
    scratch_make(folder);
    ck_assert_int_eq(train_within(folder, where, enough), 0);
    while (enough - low > 1024) { /* the least that suffices, to a MB */
        long kb = (low + enough) / 2;
        if (train_within(folder, where, kb) == 0)
            enough = kb;
        else
            low = kb;
    }
    for (int i = 1; i <= steps; i++) { /* half of them over all sizes, half just below the least */
        long span = i % 2 ? enough - (16 << 10) : 128 << 10;
        expect_within(folder, where, enough + 4096 - span / steps * i, enough, t);
    }
    free(where);
    scratch_remove(folder);
}

void surroundings_exercise(struct tally *t) {
    char folder[SCRATCH_BYTES], path[512];
    char *where = realpath(program(), NULL);
    ck_assert_ptr_nonnull(where);
    scratch_make(folder);
    for (int i = 0; i < SURROUNDINGS; i++) {
        char *command, *said_text;
        size_t size;
        FILE *f = open_memstream(&command, &size);
        fprintf(f, /* without the descriptors that this process has open: they would count against `ulimit -n` */
                "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; cd %s && L=%s && T='train " SHORT "' && "
                "ends() { s=0; \"$@\" || s=$?; [ $s -le 6 ]; } && refused() { ends \"$@\" && [ $s -ge 1 ]; } && "
                "( set -e; %s ) >last.out 2>last.err </dev/null",
                folder, where, surroundings[i]);
        fclose(f);
        int status = system(command); /* NOLINT(cert-env33-c): surroundings are the shell's */
        snprintf(path, sizeof path, "%s/last.err", folder);
        said_text = slurp(path, &size);
        t->tried++;
        if (status != 0) bad(t, "%s: status %d: %.300s", surroundings[i], status, said_text);
        if (size > 4000) bad(t, "%s: says %zu bytes: %.300s", surroundings[i], size, said_text);
        snprintf(path, sizeof path, "%s/INJECTED", folder);
        if (access(path, F_OK) == 0) bad(t, "%s: a name was a command", surroundings[i]);
        free(said_text);
        free(command);
    }
    free(where);
    scratch_remove(folder);
}
