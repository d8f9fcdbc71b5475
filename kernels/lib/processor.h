/* processor.h - checks that the processor has the instructions that the compiler was allowed to use.
 *
 * Otherwise a program that was built for another machine would end with SIGILL and without a message. The check is made
 * before main begins; if an instruction is missing, the program ends with exit code 2 and one sentence. Sets of
 * instructions are bits of a word, in the order of the table in processor.c. */
#ifndef LRNN_KERNELS_LIB_PROCESSOR_H
#define LRNN_KERNELS_LIB_PROCESSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the instructions that the compiler was allowed to use. It is 0 if the program was built for any x86-64, and
 * on other processors, which are not checked. */
uint64_t processor_used(void);

/* Returns the instructions that this processor has and its operating system lets programs use. */
uint64_t processor_has(void);

#define PROCESSOR_TEXT 512 /* bytes; enough for the names of all sets */

/* Writes the names of the sets, such as "AVX2, FMA"; "" if there are none. */
void processor_names(uint64_t sets, char text[PROCESSOR_TEXT]);

/* Returns if `has` contains all sets that the compiler was allowed to use. Otherwise it ends the process with a
 * message. */
void processor_require(uint64_t has);

#ifdef __cplusplus
}
#endif
#endif
