/* own_file.h - reads files of people's own examples, in the form that `lrnn data dump` writes.
 *
 *   FILE.jsonl   a JSON object a line: "input", a list of token ids, of numbers, or of lists of numbers (channels);
 *                "target", a label, or a list with one a position, -100 where nothing is scored. If wanted, "mask", a
 *                list of 0 and 1 that says which positions are scored, "length", how many positions are in use, and
 *                "split", "train", "val" or "test". "inputs", "targets", "label" and "labels" are taken as well.
 *   FILE.npz     arrays input (n,T) or (n,T,C), target (n), (n,1) or (n,T), and if wanted length (n), mask (n,T) and
 *                split (n): 0 train, 1 val, 2 test. As np.savez writes them, without compression.
 *
 * Whole numbers from 0 in every input of a file are tokens, anything else is values. No file is trusted. */
#ifndef LRNN_TASKS_OWN_OWN_FILE_H
#define LRNN_TASKS_OWN_OWN_FILE_H

#include "tasks/data/cache_file.h"
#include "tasks/own/own_pack.h"

struct own_file {
    int64_t n, longest;
    int64_t channels;                  /* numbers a position of the input */
    int64_t vocab;                     /* the largest token and 1; 0: the inputs are values */
    int64_t labels;                    /* the largest target and 1 */
    bool per_sequence;                 /* one target an example; else one a position */
    const struct own_example *example; /* (n) */
    const float *input;                /* channels a position, of all examples; tokens too */
    const int32_t *target;
    char hash[CACHE_HASH]; /* XXH3-128 of the file */
};

/* Parses a file in memory, by the ending of its name, into a struct own_file; it fits cache_open. What it allocates
 * lives as long as the process. ST_DATA with name, line or array, what was expected and found; ST_MEMORY. */
enum status own_file_parse(void *file, const void *bytes, size_t size, const char *name, struct error *e);

/* Gives back what own_file_parse has made, for who parses many files. */
void own_file_free(struct own_file *file);

#endif
