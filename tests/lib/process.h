/* process.h - processes that a test starts, waits for and signals. */
#ifndef LRNN_TESTS_LIB_PROCESS_H
#define LRNN_TESTS_LIB_PROCESS_H

#include <sys/types.h>

void sleep_ms(long ms);

/* The time that a test waits for what a busy machine makes late: a minute, times CK_TIMEOUT_MULTIPLIER, which
 * libcheck's own limits have too. */
long patience_ms(void);

/* Exit status of the child once it has ended, or 128 and the number of the signal that ended it. */
int wait_for(pid_t pid);

/* Waits for the first child of a process to be there; ends the test if there is none in that time. */
pid_t first_child(pid_t parent);

/* Waits until `folder` holds that many files whose name has the part (scratch_count); ends the test likewise. */
void wait_for_files(const char *folder, const char *part, int n);

#endif
