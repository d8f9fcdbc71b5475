/* signals.h - how a run is asked to stop. */
#ifndef LRNN_HARNESS_RUN_SIGNALS_H
#define LRNN_HARNESS_RUN_SIGNALS_H

/* The first SIGINT, SIGTERM or SIGHUP asks to save and stop; another one ends the process at once, unless it comes
 * within a second of the first, which then has come twice: timeout(1) signals its child and then the group that both
 * are of, and a terminal that goes away its foreground group beside what the shell tells its jobs. SIGHUP stays ignored
 * where it was (nohup). */
void signals_install(void);
/* Of a process that is told to stop by several: a batch system signals it and its parent, who passes that on. SIGINT
 * alone then ends it before it has saved. */
void signals_be_patient(void);
void signals_raise_stop(void); /* as if SIGTERM had come */
int signal_received(void);     /* 0, or the first that came */

#endif
