/* signals.c - see signals.h. */
#include "harness/run/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static atomic_int received; /* lock-free: a handler writes it, all threads look */
static bool patient;

static void on_signal(int signal_number) {
    if (received && !(patient && signal_number == SIGTERM)) _exit(128 + signal_number);
    received = signal_number;
}

void signals_install(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void signals_be_patient(void) {
    patient = true;
}

void signals_raise_stop(void) {
    received = SIGTERM;
}

int signal_received(void) {
    return received;
}
