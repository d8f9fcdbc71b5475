/* csv.c - fuzz target: whatever the bytes, a CSV file is refused with one sentence or every cell of every row can be
 * read by its column's name. */
#include "harness/store/csv.h"
#include "tests/fuzz/fuzz.h"

FUZZ(csv) {
    struct csv_table t;
    struct error e = {ST_OK, ""};
    char path[32], text[16];
    volatile double sum = 0;
    int file = fuzz_file(data, size, path);
    enum status status = csv_read(&t, path, &e);
    fuzz_file_end(file);
    if (status != ST_OK) {
        if (status != ST_DATA || strncmp(e.text, path, strlen(path)) != 0) abort();
        fuzz_sentence(&e);
        return 0;
    }
    for (int c = 0; c < t.columns && c < 64; c++)
        for (int r = 0; r < t.rows; r++) {
            csv_cell_text(&t, r, t.header[c], text, sizeof text);
            sum = sum + csv_cell_real(&t, r, t.header[c]) + (double)csv_cell_int(&t, r, t.header[c]);
        }
    csv_free(&t);
    return 0;
}
