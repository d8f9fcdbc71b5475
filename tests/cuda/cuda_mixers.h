/* cuda_mixers.h - the mixers whose case files a device verifies. */
#ifndef LRNN_TESTS_CUDA_CUDA_MIXERS_H
#define LRNN_TESTS_CUDA_CUDA_MIXERS_H

static const char *const mixers[] = {"bdlru",   "hlru",        "lru",          "lstm",           "attention", "conv",
                                     "mamba2",  "deltanet",    "deltaproduct", "mlstm",          "slice",     "plstm",
                                     "plstm2d", "plstm-graph", "myosotis",     "gated-deltanet", "kda",       "gdn2",
                                     "rwkv7",   "gla",         "hgrn2",        "slstm",          "mamba3",    "pdssm",
                                     "s5",      "linoss",      "mingru",       "rglru",          "aussm"};
#define N_MIXERS (int)(sizeof mixers / sizeof *mixers)

#endif
