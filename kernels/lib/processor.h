/* processor.h - whether the processor has the instructions that the compiler was allowed to use.
 *
 * A program that was built for another machine would end at the first of them by SIGILL, which says nothing. So it
 * looks by itself before main begins, and ends with exit 2 and one sentence where something is missing. Sets of
 * instructions are bits of a word, in the order of the table in processor.c. */
#ifndef LRNN_KERNELS_LIB_PROCESSOR_H
#define LRNN_KERNELS_LIB_PROCESSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instructions that the compiler was allowed to use; 0 for any x86-64, and on other processors, where nothing is looked
 * at. */
uint64_t processor_used(void);

/* Instructions that this processor has and its operating system lets programs use. */
uint64_t processor_has(void);

#define PROCESSOR_TEXT 512 /* bytes that hold the names of all sets */

/* Their names, "AVX2, FMA"; "" of none. */
void processor_names(uint64_t sets, char text[PROCESSOR_TEXT]);

/* Comes back where `has` holds all that the compiler was allowed to use; else it ends the process as said above. */
void processor_require(uint64_t has);

#ifdef __cplusplus
}
#endif
#endif
