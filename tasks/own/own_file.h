/* own_file.h - reads files with the user's own examples, in the form that `lrnn data dump` writes.
 *
 *   FILE.jsonl   a JSON object a line: "input", a list of token ids, of numbers, or of lists of numbers (channels);
 *                "target", a label, or a list with one per position, -100 where nothing is scored. Optional: "mask", a
 *                list of 0 and 1, where 1 is a scored position; "length", the number of positions in use; "split",
 *                "train", "val" or "test". "inputs", "targets", "label" and "labels" are also accepted.
 *   FILE.npz     arrays input (n,T) or (n,T,C), target (n), (n,1) or (n,T); optional: length (n), mask (n,T) and
 *                split (n): 0 train, 1 val, 2 test. np.savez and np.savez_compressed write such files.
 *
 * If all inputs of a file are whole numbers from 0, they are tokens, else values. Everything in a file is checked. */
#ifndef LRNN_TASKS_OWN_OWN_FILE_H
#define LRNN_TASKS_OWN_OWN_FILE_H

#include "tasks/data/cache_file.h"
#include "tasks/own/own_pack.h"

struct own_file {
    int64_t n, longest;
    int64_t channels;                  /* numbers per position of the input */
    int64_t vocab;                     /* the largest token + 1; 0: the inputs are values */
    int64_t labels;                    /* the largest target + 1 */
    bool per_sequence;                 /* one target per example; else one per position */
    const struct own_example *example; /* (n) */
    const float *input;                /* channels per position, of all examples; tokens too */
    const int32_t *target;
    char hash[CACHE_HASH]; /* XXH3-128 of the file */
};

/* Parses a file in memory, by the ending of its name, into a struct own_file; its type fits cache_open. Its allocations
 * live as long as the process. ST_DATA with name, line or array, the expected and the found value; ST_MEMORY. */
enum status own_file_parse(void *file, const void *bytes, size_t size, const char *name, struct error *e);

/* Frees the result of own_file_parse, for callers that parse many files. */
void own_file_free(struct own_file *file);

#endif
