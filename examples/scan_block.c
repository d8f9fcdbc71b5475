/* scan_block.c - one BD-LRU scan by the library: forward, gradient, and a look at the gradient by finite differences.
 *
 *   cc examples/scan_block.c $(pkg-config --cflags --libs lrnn) -lm -o scan_block */
#include <lrnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 2, T = 16, N = 3, M = 2, GATES = M * (M + 1) * N, STATES = M * N };

static float z[B * T * GATES], v[B * T * STATES], h[B * T * STATES];
static float dz[B * T * GATES], dv[B * T * STATES], dh[B * T * STATES];

static void must(lrnn_status status) {
    if (status == LRNN_OK) return;
    fprintf(stderr, "%s\n", lrnn_last_error());
    exit(1);
}

/* sum of h * dh, whose gradient is what backward writes */
static double loss(const lrnn_scan_block *scan) {
    double sum = 0;
    must(lrnn_scan_block_forward(scan));
    for (int i = 0; i < B * T * STATES; i++) sum += (double)h[i] * (double)dh[i];
    return sum;
}

int main(void) {
    lrnn_scan_block scan;
    size_t forward, backward;
    LRNN_INIT(scan);
    scan.call.batch = B;
    scan.call.length = T;
    scan.blocks = N;
    scan.m = M;
    scan.gate = LRNN_SOFTMAX;
    scan.z.data = z, scan.v.data = v, scan.h.data = h;
    scan.z.grad = dz, scan.v.grad = dv, scan.h.grad = dh;
    for (int i = 0; i < B * T * GATES; i++) z[i] = sinf(1.3f * (float)i);
    for (int i = 0; i < B * T * STATES; i++) v[i] = sinf(0.7f * (float)i), dh[i] = cosf(0.9f * (float)i);

    must(lrnn_scan_block_workspace(&scan, LRNN_FORWARD, &forward));
    must(lrnn_scan_block_workspace(&scan, LRNN_BACKWARD, &backward));
    scan.call.workspace_bytes = ((forward > backward ? forward : backward) + 63) / 64 * 64;
    scan.call.workspace = aligned_alloc(64, scan.call.workspace_bytes + 64);
    must(lrnn_scan_block_forward(&scan));
    must(lrnn_scan_block_backward(&scan));

    double worst = 0;
    for (int i = 0; i < B * T * GATES; i += 7) {
        const float step = 0.01f, middle = z[i];
        z[i] = middle + step;
        double up = loss(&scan);
        z[i] = middle - step;
        double down = loss(&scan);
        z[i] = middle;
        worst = fmax(worst, fabs((up - down) / (2 * (double)step) - (double)dz[i]));
    }
    free(scan.call.workspace);
    printf("liblrnn %s: h[last] = %.6f, gradients differ from differences by at most %.1e\n", lrnn_version(),
           (double)h[B * T * STATES - 1], worst);
    return worst < 1e-3 ? 0 : 1;
}
