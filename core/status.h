/* status.h - result codes and error text.
 *
 * The numbers up to 6 are exit codes of the process. Every function that can fail returns a status, and writes one
 * sentence into the caller's struct error: what is wrong, where, what was expected, what was found, what to try. */
#ifndef LRNN_CORE_STATUS_H
#define LRNN_CORE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum status {
    ST_OK = 0,
    ST_FAIL = 1,         /* the run or the machine failed: disk full, verification failed */
    ST_USAGE = 2,        /* unknown name, impossible size */
    ST_REGRESSED = 3,    /* the gate found a regression */
    ST_INCONCLUSIVE = 4, /* the gate could not decide */
    ST_DATA = 5,         /* data are missing or corrupt */
    ST_DEVICE = 6,       /* the device is missing or has failed */
    ST_MEMORY = 7,       /* the machine or a device has no memory left; the process ends with 6 */
    ST_HELP = 8 /* help was asked for and has been printed, so nothing is left to do; the process ends with 0 */
};

/* Returns the exit code of the process. It is 128 + the signal's number after a signal. */
int status_exit_code(enum status status);

struct error {
    enum status status;
    char text[1024]; /* one sentence, no newline */
};

/* Writes `status` and the formatted sentence into *e, which may be NULL. Control characters become question marks.
 * Returns `status`. */
enum status fail(struct error *e, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Returns from the calling function with the status of `call` unless it is ST_OK. No other macro returns. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        enum status try_status_ = (call);                                                                              \
        if (try_status_ != ST_OK) return try_status_;                                                                  \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
