/* libraries.h - settings that the libraries under the kernels read from the environment while they are being loaded. */
#ifndef LRNN_KERNELS_LIB_LIBRARIES_H
#define LRNN_KERNELS_LIB_LIBRARIES_H

/* To be called first thing in main (and in test programs), before any thread runs or file is open; calls gemm_init.
 * Sets, where the user has set nothing, and then starts the process again with the same arguments, since the libraries
 * have read their environment when main begins:
 *  - GOMP_SPINCOUNT=1000: a thread that waits for the others looks a few microseconds, then sleeps. By default libgomp
 *    looks for milliseconds, on a core that other work may need: beside two busy processes on two cores a step of
 *    BD-LRU took 2.4 times as long, on a quiet machine as long (`lrnn perf step bdlru:m=5 --dim 64 --precision bf16`).
 *    A user's OMP_WAIT_POLICY is respected.
 *  - OPENBLAS_CORETYPE in the double build: gemm_core says why. */
void libraries_init(void);

#endif
