/* cuda_cases.h - how many cases the CUDA suites have in this build. */
#ifndef LRNN_TESTS_CUDA_CUDA_CASES_H
#define LRNN_TESTS_CUDA_CUDA_CASES_H

int cuda_cases(void);            /* of all suites; check_cuda.c */
int cuda_run_cases(void);        /* check_cuda_run.c */
int cuda_population_cases(void); /* check_cuda_population.c */

#ifdef LRNN_CUDA_HOST
long cuda_host_launches(void); /* kernels run so far (cuda_host.h) */
#endif

#endif
