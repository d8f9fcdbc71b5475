/* algorithms.h - which algorithm of cublasLt computes a product: chosen once for each product and kind of device, and
 * remembered (cuda_epilogue.cu). The table belongs to the process; its functions may be called by any thread.
 *
 * As text, for a file that later processes read: a first line, a line for each timed product, and a last line with the
 * SHA-256 of all lines before it. A product's line has four fields between tabs: its name, its key, its time in
 * microseconds, and the algorithm's bytes in hex. */
#ifndef LRNN_KERNELS_LIB_ALGORITHMS_H
#define LRNN_KERNELS_LIB_ALGORITHMS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ALGORITHM_BYTES 64  /* a cublasLtMatmulAlgo_t has no more */
#define ALGORITHM_KEY   400 /* of text: device, versions, sizes, types; without tabs or ends of lines */

struct algorithm {
    unsigned char code[ALGORITHM_BYTES]; /* zeros after the library's own bytes */
    double us;                           /* the product's time; 0: it was not timed, and is not in the text */
};

/* Gives the algorithm of that product. False: none was chosen. `user`, any address, counts as its user from then on. */
bool algorithms_find(const char *key, const void *user, struct algorithm *a);

/* Stores a choice. If another thread made one before, *a becomes that one, so that a process has one choice. `user`
 * counts as its user. Without memory for it, nothing is stored. */
void algorithms_keep(const char *key, const void *user, struct algorithm *a);

/* Forgets a product whose algorithm the library refused, if that is still its algorithm. */
void algorithms_forget(const char *key, const struct algorithm *refused);

/* Begins with a user of that address, which has used nothing. */
void algorithms_begin_user(const void *user);

/* Names the algorithms that it has used, eight hex digits each, which begin the lines of the text. Those that do not
 * fit into `size` are counted: "1f00a2b3 99e00c4d and 3 more"; "": none. */
void algorithms_names(const void *user, char *text, size_t size);

/* Returns whether a product has the algorithm of that name, of eight hex digits. */
bool algorithms_have(const char *name);

/* Adds the choices of a text for products without one. `name` is the file's. ST_DATA: it is damaged, or is no such
 * text, and nothing is added. ST_MEMORY. */
enum status algorithms_parse(const char *text, size_t size, const char *name, struct error *e);

/* Returns the text of all timed choices, and sets *size; the caller frees it. NULL: no memory. */
char *algorithms_text(size_t *size);

/* Returns the number of timed choices since the process began, without those of texts. */
long algorithms_timed(void);

#ifdef __cplusplus
}
#endif
#endif
