/* exercise.h - what the machine can do to a store, done to the program: calls that fail, power that goes, kills. Short
 * forms are tests, long ones `make torture`. The programs are those that LRNN and LRNN_FAULTS name. */
#ifndef LRNN_TESTS_FAULTS_EXERCISE_H
#define LRNN_TESTS_FAULTS_EXERCISE_H

#include <stdint.h>

#include "tests/faults/spawn.h"

/* Kinds of calls, as faults.c names them; NULL-terminated. */
extern const char *const fault_kinds[];

/* The commands that are exercised: number of them. */
int fault_commands(void);

enum fault { FAULT_ONCE, FAULT_FOR_EVER, FAULT_KILL }; /* the call fails; it and all after it; it is the last */

/* Does that to the Nth call of the kind in command number `command`, one N after the other, in an order that spreads
 * over all of them: at most `most` of them, or until `seconds` are over (0: no limit), but the first in any case. After
 * each the program must not have crashed; where it says that all is well its output must be that without a fault; the
 * results that were there before are whole, nothing half-written is visible, and the same command works again. */
void fault_exercise(int command, const char *kind, enum fault fault, long most, double seconds, struct tally *t);

/* Runs the program three times into a folder and writes down what it does to files; then the power goes after every
 * single call, with every choice (up to `choices` each) of which names have reached the disk that no fsync has made
 * durable, and of how much of the bytes. Runs whose program had ended are there, whatever is visible is whole.
 * `forgetful`: as if fsync did nothing, for which there must be bad cases. */
void power_exercise(int choices, int forgetful, struct tally *t);

/* The same with a bench of so many runs by two processes: its runs are there once it has ended. In each `every`-th
 * state the bench is started again: it comes to its end, with the same results. `failed` counts these. */
void power_bench_exercise(int runs, int choices, int every, int forgetful, struct tally *t);

/* Kills a bench of so many runs with all its processes `kills` times at random moments and starts it again, into a new
 * folder where it has come to its end; until `seconds` are over (0: no limit). Every second kill falls after a further
 * record. `failed` counts the kills between the first record and the last. No finished run is lost, none is damaged. */
void kill_exercise(int kills, int runs, uint64_t seed, double seconds, struct tally *t);

/* Changes a byte of a file that we write, or cuts it off, `cases` times, and reads it in this process, so that a
 * sanitizer sees it: a record, a checkpoint, a baseline, a line of a history, a plan in turn. The reader refuses it, or
 * leaves it out, with one sentence. A plan alone has no checksum, and may be accepted. `failed` counts the refusals. */
void flip_exercise(int cases, uint64_t seed, struct tally *t);

/* Changes a byte of a file that we write, or cuts it off, `cases` times or until `seconds` are over (0: no limit).
 * It takes a record, weights, a checkpoint, a plan, an exported net, a case, a list of runs and two tables in turn. A
 * command that reads the file ends with a documented status and a sentence, or gives what it gives for the whole file.
 * A plan, a case and a table are for people and have no checksum: what they say then may be another number. `failed`
 * counts the cases that were told. */
void damage_exercise(int cases, uint64_t seed, double seconds, struct tally *t);

/* `writers` processes train the same `runs` runs into one folder, weights included, all at once. Every record and every
 * weights file is whole. */
void writers_exercise(int writers, int runs, struct tally *t);

/* `writers` benches, each of another machine by its name, do the same `runs` runs in one folder. Again and again one of
 * them is stopped (SIGSTOP), its claims become older than a claim may be, and it is woken: at most `pauses` times, or
 * until all have ended. Every run has one record, with the result of a bench that had the folder alone. */
void pause_exercise(int writers, int runs, int pauses, uint64_t seed, struct tally *t);

/* Gives a field of a record another value, one that no run has: null, none, infinite, huge, empty, one of escape codes
 * and markup; its checksum is right. `cases` pairs of a field and a value, spread over all of them (`all`). A command
 * reads it: none crashes or hangs, and no escape code comes through. */
void value_exercise(int cases, double seconds, struct tally *t);

/* Runs the program in odd surroundings: no home, no terminal, folders with quotes, blanks, line feeds and 255 bytes in
 * their names, a standard stream that is closed or full, limits of memory, files, descriptors and threads. It ends with
 * a documented status, and what it says fits on a few lines. */
void surroundings_exercise(struct tally *t);

/* Trains with `steps` limits of the address space (ulimit -v), from one that is too low for the loader to one that
 * suffices, many of them just below it: each time the result is the one without a limit, or there is one sentence. */
void space_exercise(int steps, struct tally *t);

/* Reads a folder of `records` records, before that of a tenth of them, with each of the commands that read all: each
 * works, and takes at most about ten times the CPU time. `worst` is the CPU time of the slowest. */
void scale_exercise(int records, struct tally *t);

/* Interrupts (Ctrl-C) a run at random moments, most of its time being validation, up to `interrupts` times, and goes on
 * with the same command. Each interrupt ends within 5 s, and weights and curve equal an uninterrupted run's. */
void interrupt_exercise(int interrupts, uint64_t seed, struct tally *t);

/* Refuses every `every`-th call of the device's API in a short run on an emulated device, one call a run, until
 * `seconds` are over (0: no limit): memory is lacking, a capture is refused, or the device is lost. The program says
 * so, no record is lost or damaged, and the same command then comes to its end. `failed` counts those runs. */
void refuse_exercise(long every, double seconds, struct tally *t);

/* Runs every command where a socket ends the process: each works, and writes into its folder alone. */
void audit_exercise(struct tally *t);

#endif
