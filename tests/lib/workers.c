/* workers.c - see workers.h. */
#include "tests/lib/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int workers_wanted(void) {
    const char *asked = getenv("CHECK_JOBS");
    long n = asked && *asked ? atol(asked) : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 8 ? 8 : (int)n;
}

int workers_run(int n, void (*work)(int i, void *context), void *context) {
    int lost = 0;
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child < 0) printf("no process could be started, %d times\n", ++lost);
        if (child != 0) continue;
        work(i, context);
        fflush(NULL);
        _exit(0);
    }
    for (int status; wait(&status) > 0;) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        printf("a process of the tests ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        lost++;
    }
    return lost;
}

void *workers_share(unsigned long bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fputs("no memory that processes can share\n", stderr);
        exit(1);
    }
    return p;
}
