/* processor.h - checks that the processor has the instructions that the compiler was allowed to use.
 *
 * A program that was built for another machine would end with SIGILL, without a message. So the program checks before
 * main begins, and ends with exit code 2 and one sentence if an instruction is missing. Sets of instructions are bits
 * of a word, in the order of the table in processor.c. */
#ifndef LRNN_KERNELS_LIB_PROCESSOR_H
#define LRNN_KERNELS_LIB_PROCESSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instructions that the compiler was allowed to use. 0 for a build for any x86-64, and on other processors, which are
 * not checked. */
uint64_t processor_used(void);

/* Instructions that this processor has and its operating system lets programs use. */
uint64_t processor_has(void);

#define PROCESSOR_TEXT 512 /* bytes; enough for the names of all sets */

/* Writes the names of the sets, "AVX2, FMA"; "" if there are none. */
void processor_names(uint64_t sets, char text[PROCESSOR_TEXT]);

/* Returns if `has` contains all sets that the compiler was allowed to use; else ends the process as said above. */
void processor_require(uint64_t has);

#ifdef __cplusplus
}
#endif
#endif
