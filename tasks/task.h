/* task.h - tasks make the examples. A task is one file and a line in list.def. An example is a pure function of the
 * task's options, the seed, the split and its index. */
#ifndef LRNN_TASKS_TASK_H
#define LRNN_TASKS_TASK_H

#include <stdio.h>

#include "core/arena.h"
#include "core/batch.h"
#include "core/links.h"
#include "core/option.h"

/* Metric of a task: accuracy over the scored tokens (micro), or MAD's mean recall over classes (macro). */
enum metric { METRIC_ACC, METRIC_MACRO_ACC, METRIC_COUNT };
extern const char *const metric_names[METRIC_COUNT + 1]; /* acc macro_acc; NULL-terminated */

/* Says how a net reads an example and where it answers. All zeros: one sequence an example, an image visited row by
 * row and pixel by pixel, and each position has its output. */
struct reading {
    int64_t documents;    /* sequences of T positions that an example has; 0 and 1: one */
    int64_t patch;        /* pixels a side of a patch, whose pixels are its channels; 0 and 1: one pixel */
    const int32_t *visit; /* (T) pixel or patch row * width + column at each position, -1: none; NULL: row by row */
    bool one_vector;      /* targets are decoded from one vector per sequence (MAD's compression) */
};

/* A second batch in each training step, with strings of another length: a tenth as many as in the first batch, at least
 * one. The losses of both are summed. */
struct second_batch {
    int64_t T;        /* positions; 0: there is no second batch */
    int64_t examples; /* number of examples */
    /* Fills one example; pure, thread-safe. index < examples. */
    void (*fill)(const void *inst, int64_t index, struct example *x);
};

/* Lengths to which a curriculum may bound training examples (most of struct example). */
struct length_range {
    int64_t least, most;
};

struct task_shape {
    int64_t T;                   /* positions of the model's input in training */
    int64_t T_eval;              /* in validation and test; 0: as in training */
    int64_t vocab_in, vocab_out; /* ids; vocab_in 0 = real-valued input of `channels` channels */
    int64_t channels;
    int64_t height, width;   /* of an image, in positions (pixels or patches); 0: no image */
    struct links_size links; /* room for the links of an example, a graph of T positions (core/links.h); 0: no graph */
    struct reading reading;  /* how an example is read; zeros: one sequence, position after position */
    struct second_batch second;     /* another batch in each training step; zeros: none */
    struct length_range curriculum; /* zeros: it takes none */
    bool unequal_test;              /* test examples differ in length, or in the number of their nodes */
    bool per_sequence;              /* one label per sequence instead of one target a position */
    bool needs_causal;              /* a target must not depend on later inputs */
    int64_t examples[SPLIT_COUNT];  /* in each split */
    double chance;                  /* primary metric of uniform guessing */
    double floor;                   /* primary metric of the best trivial answer (the task's file says which) */
    double solved;                  /* primary metric at or above which a run counts as solved */
    enum metric metric;             /* primary metric */
    int version;                    /* for examples with these options, if only they have changed; 0: the task's */
};

struct task_alias {
    const char *name, *options, *summary; /* "s5", "group=s5,n_train=100000", "..." */
};

struct task {
    const char *name, *summary; /* summary ends with the source's short citation */
    const char *suite;          /* "word-problem", "mad", ... */
    const char *about;          /* protocol of the source, chance, published numbers; NULL: docs/data.md has them */
    const char *data;           /* data set that it reads (tasks/data/datasets.h); NULL: examples are generated */
    bool divided_by_seed;       /* the seed decides which data is for validation and test */
    bool hidden;                /* the template: tested like the others, not shown by `lrnn list` */
    int version;                /* raised when its examples change; see task_version */
    const struct option *options;
    size_t inst_bytes;                /* parsed options and tables' pointers; at most TASK_INST_BYTES */
    const struct task_alias *aliases; /* ends with name == NULL; or NULL */

    /* Checks options against each other and makes tables on `host`. ST_USAGE names the numbers, ST_DATA the file. */
    enum status (*open)(void *inst, uint64_t seed, struct arena *host, struct error *e);
    void (*shape)(const void *inst, struct task_shape *out);
    /* Fills one example; pure, thread-safe. index < shape.examples[split]. Targets for SPLIT_TRAIN
     * are in the loss, for the other splits they are scored. */
    void (*fill)(const void *inst, enum split split, int64_t index, struct example *x);
    void (*notes)(const void *inst, FILE *f); /* more lines of `lrnn data stats`; NULL: none */
};

#define TASK_INST_BYTES 2048

/* Positions of the model's input in a split. */
static inline int64_t task_length(const struct task_shape *s, enum split split) {
    return split == SPLIT_TRAIN || s->T_eval == 0 ? s->T : s->T_eval;
}

/* Documents of an example. */
static inline int64_t task_documents(const struct task_shape *s) {
    return s->reading.documents > 1 ? s->reading.documents : 1;
}

/* Numbers of an example's input. */
static inline int64_t task_inputs(const struct task_shape *s, enum split split) {
    return task_documents(s) * task_length(s, split) * (s->vocab_in ? 1 : s->channels);
}

/* Number of targets of an example: one per position, or one per sequence. */
static inline int64_t task_targets(const struct task_shape *s, enum split split) {
    return s->per_sequence ? 1 : task_length(s, split);
}

const struct task *const *task_list(void);      /* NULL-terminated */
const struct task *task_find(const char *name); /* by name only */

struct label;

/* Whether `name` is an alias of the label's task, and the label's options do not contradict it: the alias s3 fits
 * "word-problem:group=s3,length=8". */
bool task_takes(const char *name, const struct label *options);

/* The i-th of all names that a user may type: for each task that is not hidden its own name, then its aliases. NULL
 * past the last. */
const char *task_name_at(int i);

/* --- several test lengths ----------------------------------------------------------------------------------------- */

/* A task with the row TEST_LENGTH_OPTION trains at one length and is tested at several: test_length=128,256,512. For
 * each of them the registry opens the task once more, with its options of the flag OPT_TESTED set to that length, and
 * takes the test examples from there. The training examples are the task's own. */
#define TASK_TEST_LENGTHS 16 /* at most */

#define TEST_LENGTH_OPTION(TYPE, MEMBER)                                                                               \
    {                                                                                                                  \
        "test_length", OPT_TEXT_FIELD, offsetof(TYPE, MEMBER), "", 0, 0, NULL,                                         \
            "lengths of the test examples, ascending: 128,256,512, n_test of each; empty: one set", OPT_AXIS           \
    }

/* Test examples of one length: the task opened for it. */
struct task_tested {
    int64_t length, T, examples; /* length: as the option says; T: positions of such an example */
    const void *inst;
};

/* A task with its parsed options, opened by task_open. */
struct task_choice {
    const struct task *task;
    const char *name; /* name in tables: the alias, or task:options; without paths of files */
    char label[512];  /* owns `name` */
    char asked[512];  /* the text as typed, with paths of files */
    struct task_shape shape;
    uint64_t seed;
    int64_t T_own;                    /* positions of a validation example */
    const struct task_tested *tested; /* (n_tested), in the arena of task_open, ascending */
    int n_tested;                     /* 0: the task has one set of test examples */
    _Alignas(16) unsigned char inst[TASK_INST_BYTES];
};

/* Parses "s5", "s5:length=8" or "word-problem:group=s5,length=16,n_train=100000". ST_USAGE as model_parse. */
enum status task_parse(struct task_choice *choice, const char *text, struct error *e);

/* Writes a task's label without the options that carry one of the flags (by OPT_FOLD "molecules" for
 * "molecules:fold=3"), without looking at a file. A label of a task that this program lacks stays the same. `text` has
 * room for the label. */
void task_label_without(const char *task_label, unsigned flags, char *text, size_t size);

/* Renames the task in a label (LABEL_TEXT bytes) by its name in another label: "word-problem:group=s3,n_train=9"
 * becomes "s3:n_train=9". The label stays the same if the two have different tasks or options, or none. ST_USAGE: the
 * new label would be too long. */
enum status task_rename(char *label, const char *named, struct error *e);

/* Returns the version of the task's examples, which is part of a run's identity. */
static inline int task_version(const struct task_choice *choice) {
    return choice->shape.version ? choice->shape.version : choice->task->version;
}

/* Address space that `host` needs for the tables of any task; committed as used. */
#define TASK_TABLE_BYTES ((size_t)256 << 20)

/* Opens a task for a data seed. */
enum status task_open(struct task_choice *choice, uint64_t seed, struct arena *host, struct error *e);

/* Fills one example of an opened task; positions past its length have inputs 0. Pure, thread-safe. index <
 * shape.examples[split]. Targets follow the rule of struct example. */
void task_fill(const struct task_choice *choice, enum split split, int64_t index, struct example *x);

#endif
