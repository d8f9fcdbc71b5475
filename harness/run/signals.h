/* signals.h - how a run is asked to stop. */
#ifndef LRNN_HARNESS_RUN_SIGNALS_H
#define LRNN_HARNESS_RUN_SIGNALS_H

/* Installs the handlers. The first SIGINT, SIGTERM or SIGHUP asks to save and stop; a second signal ends the process at
 * once. A second signal within a second of the first is taken as the same request: timeout(1) signals its child and
 * then their group, and a closing terminal also signals more than once. Under nohup SIGHUP stays ignored. */
void signals_install(void);

/* For a child process, which a batch system signals directly and through its parent. Only a second SIGINT then ends it
 * before it has saved. */
void signals_be_patient(void);
void signals_raise_stop(void); /* acts as if SIGTERM had come */
int signal_received(void);     /* the first signal that came; 0: none */

#endif
