/* libraries.h - sets environment variables that the libraries below the kernels read while they are being loaded. */
#ifndef LRNN_KERNELS_LIB_LIBRARIES_H
#define LRNN_KERNELS_LIB_LIBRARIES_H

/* Call it first in main (and in test programs), before any thread runs or any file is open; it calls gemm_init. It sets
 * the variables below, unless the user has set them. When main begins, the libraries have already read their
 * environment. So if it sets a variable, it starts the process again with the same arguments:
 *  - GOMP_SPINCOUNT=1000: a thread that waits for others spins for a few microseconds, then sleeps. By default libgomp
 *    spins for milliseconds on a core that other work may need. With two busy processes on two cores, a step of BD-LRU
 *    took 2.4 times as long; on a quiet machine it took the same time (`lrnn perf step bdlru:m=5 --dim 64 --precision
 *    bf16`). If the user has set OMP_WAIT_POLICY, this variable is not set.
 *  - OPENBLAS_CORETYPE in the double build: gemm_core says why. */
void libraries_init(void);

#endif
