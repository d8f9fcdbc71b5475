/* signals.h - how a run is asked to stop. */
#ifndef LRNN_HARNESS_RUN_SIGNALS_H
#define LRNN_HARNESS_RUN_SIGNALS_H

/* Installs the handlers. The first SIGINT, SIGTERM or SIGHUP asks to save and stop; a second one ends the process at
 * once, unless it comes within a second of the first. It is then the same request: timeout(1) signals its child and
 * then their group, and a closing terminal signals its foreground group beside the shell. Under nohup SIGHUP stays
 * ignored. */
void signals_install(void);

/* For a process that several others tell to stop: a batch system signals it and its parent, which passes that on. Only
 * SIGINT then ends it before it has saved. */
void signals_be_patient(void);
void signals_raise_stop(void); /* as if SIGTERM had come */
int signal_received(void);     /* 0, or the first that came */

#endif
