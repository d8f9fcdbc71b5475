/* machine.h - the machine that numbers were measured on. */
#ifndef LRNN_HARNESS_STORE_MACHINE_H
#define LRNN_HARNESS_STORE_MACHINE_H

#include <stdint.h>

struct machine {
    char id[17]; /* hash of the stable facts: CPU model, cores, RAM in GiB */
    char cpu[128];
    int64_t cores;
    double ram_gib;
    char kernel[128], os[128], governor[32], libc[64], blas[128];
    char env_epoch[17]; /* hash of the facts that may change: the line above */
};
void machine_read(struct machine *m);

#endif
