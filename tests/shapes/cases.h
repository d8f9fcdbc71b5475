/* cases.h - the shapes that the profiles of `bench` and the plans of papers train: every call of the training and
 * evaluation graph of every run, each distinct (op, attributes, shapes of the inputs) once. */
#ifndef LRNN_TESTS_SHAPES_CASES_H
#define LRNN_TESTS_SHAPES_CASES_H

#include "core/graph.h"

struct shape_case {
    const struct call *call;   /* of a graph that lives as long as the program */
    char net[1024];            /* the first that has it: "paper s5 bdlru:m=5", "hlru-fig3 hlru-copy lstm" */
    int64_t batch, full_batch; /* sequences that the net was built for, and that the profile asks for */
    double work;
};

struct shape_cases {
    struct shape_case *list;
    int n, nets;         /* nets: runs that differ in more than rate and seed */
    int walked, refused; /* pairs of a task and a profile or plan: a task of released data is refused without them */
};

/* Walks the profiles of that name of all tasks and aliases; adds to *cases. A call that is more work than one case may
 * be is taken from the same net with fewer sequences. Ends the program with a message on an error. */
void cases_collect(struct shape_cases *cases, const char *profile);

/* Collects the cases of all plans that ship with the program (papers/), each under its own profile. */
void cases_collect_plans(struct shape_cases *cases);

#endif
