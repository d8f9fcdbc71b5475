/* signals.c - see signals.h. */
#include "harness/run/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define SAME_MS 1000 /* a signal that comes so soon after the first is taken for the same request */

static atomic_int received; /* lock-free: a signal handler writes it, all threads read it */
static atomic_llong came;   /* when the first signal came */
static bool patient;

static long long now_ms(void) {
    struct timespec t; /* clock_gettime is safe in a signal handler; harness/store/clock.h does not promise this */
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void on_signal(int signal_number) {
    if (received && !(patient && signal_number != SIGINT) && now_ms() - came > SAME_MS) _exit(128 + signal_number);
    if (received) return;
    came = now_ms();
    received = signal_number;
}

void signals_install(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 3; i++) {
        bool kept = signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!kept) sigaction(signals[i], &action, NULL); /* nohup has set it to be ignored */
    }
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
