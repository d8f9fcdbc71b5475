/* documents.h - shared by the Long Range Arena's tasks on released texts: options, the vocabulary, examples of one
 * document or two. A document is its first length - 1 characters and an end mark. */
#ifndef LRNN_TASKS_LANGUAGE_DOCUMENTS_H
#define LRNN_TASKS_LANGUAGE_DOCUMENTS_H

#include "tasks/data/characters.h"
#include "tasks/data/file_entries.h"
#include "tasks/task.h"

/* A document as it stands in an entry. */
struct document {
    const uint8_t *text;
    int64_t bytes;
};

/* Describes the entries of such a task. */
struct document_kind {
    const char *task, *dataset, *what; /* what: "pair of texts" */
    int count;                         /* documents of an entry: 1 or 2 */
    int64_t least;                     /* default of the option `least` */

    /* Finds the documents of an entry. Returns the number of bytes that they need: if it is more than the entry has,
     * the entry is malformed and text is unchanged. */
    int64_t (*find)(const struct entry *r, struct document text[2]);
};

/* An instance of such a task. */
struct documents {
    int64_t length, least; /* options */
    int level;
    struct file_entries from;
    struct characters characters;
};
_Static_assert(sizeof(struct documents) <= TASK_INST_BYTES, "the instance must fit its slot");

#define DOCUMENTS_ROW(NAME, KIND, FIELD, VALUE, MIN, MAX, CHOICES, HELP, FLAGS)                                        \
    { NAME, KIND, offsetof(struct documents, FIELD), VALUE, MIN, MAX, CHOICES, HELP, FLAGS }

/* All its option rows; LENGTH and LEAST are defaults, HELP describes `length`. */
#define DOCUMENTS_OPTIONS(LENGTH, LENGTH_HELP, LEAST)                                                                  \
    DOCUMENTS_ROW("length", OPT_INT, length, LENGTH, 2, 1 << 20, NULL, LENGTH_HELP, OPT_AXIS),                         \
        DOCUMENTS_ROW("level", OPT_CHOICE, level, "character", 0, 0, TEXT_LEVELS,                                      \
                      "what an id is: a character, or a byte as in the Long Range Arena's own code", 0),               \
        DOCUMENTS_ROW("least", OPT_INT, least, LEAST, 1, 1e9, NULL,                                                    \
                      "how often a character has to be in the training texts", 0),                                     \
        FILE_ENTRIES_OPTIONS(struct documents, from), {                                                                \
        0                                                                                                              \
    }

/* Opens the data set and makes the vocabulary of the training texts. ST_DATA: as file_entries_open, or a malformed
 * entry. */
enum status documents_open(struct documents *d, const struct document_kind *kind, struct arena *host, struct error *e);

void documents_shape(const struct documents *d, const struct document_kind *kind, struct task_shape *out);

void documents_fill(const struct documents *d, const struct document_kind *kind, enum split split, int64_t index,
                    struct example *x);

#endif
