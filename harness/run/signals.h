/* signals.h - how a run is asked to stop. */
#ifndef LRNN_HARNESS_RUN_SIGNALS_H
#define LRNN_HARNESS_RUN_SIGNALS_H

/* Installs the handlers. The first SIGINT, SIGTERM or SIGHUP asks the program to save and stop; a second signal ends
 * the process at once. But a second signal within a second of the first counts as the same request, because timeout(1)
 * signals its child and then their group, and a closing terminal also signals more than once. Under nohup, SIGHUP stays
 * ignored. */
void signals_install(void);

/* Lets only a second SIGINT end the process before it has saved. A child process needs this, because a batch system
 * signals it both directly and through its parent. */
void signals_be_patient(void);
void signals_raise_stop(void); /* acts as if SIGTERM had come */
int signal_received(void);     /* the first signal that came; 0: none */

#endif
