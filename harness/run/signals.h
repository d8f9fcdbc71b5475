/* signals.h - how a run is asked to stop. */
#ifndef LRNN_HARNESS_SIGNALS_H
#define LRNN_HARNESS_SIGNALS_H

/* First SIGINT or SIGTERM asks to save and stop; the second ends the process at once. */
void signals_install(void);
/* Of a process that is told to stop by several: a batch system signals it and its parent, who passes that on. A second
 * SIGTERM then does not end it before it has saved. */
void signals_be_patient(void);
void signals_raise_stop(void); /* as if SIGTERM had come */
int signal_received(void);     /* 0, SIGINT or SIGTERM */

#endif
