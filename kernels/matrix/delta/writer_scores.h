/* writer_scores.h - scores of a chunk for scan_delta_vector_cpu.c, whose notation it uses: X[j][i] is the sum over
 * channels c of reader_i[c] writer_j[c] P(j,i)[c]. A writer's row is carried through the rows after it. */
#ifndef LRNN_KERNELS_MATRIX_DELTA_WRITER_SCORES_H
#define LRNN_KERNELS_MATRIX_DELTA_WRITER_SCORES_H

#include "kernels/matrix/chunk.h"

/* Computes the part of row j of X that comes from `vectors` vectors of channels, from channel c on. Sums over lanes are
 * still to be taken: the sum for reader row i is in element i - shift of of_d and of_q. Stores the writer's channels,
 * times all decays up to the chunk's end, in `to_end`. more: the sums already have a part. vectors, reads and more are
 * constants. */
FORCE_INLINE void writer_scores(int vectors, bool reads, bool more, const real *F, const real *readers, int64_t KW,
                                int64_t c, int64_t j, int64_t shift, const real *writer, real *to_end, lanes *of_d,
                                lanes *of_q) {
    const real *d = readers + c, *q = d + STATE_CHUNK * KW;
    F += c;
    lanes y[2];
    for (int v = 0; v < vectors; v++) y[v] = lanes_at(writer + j * KW + c + v * LANES);
    for (int64_t i = j + 1; i < STATE_CHUNK; i++) {
        lanes sum_d = more && reads ? of_d[i - shift] : (lanes){0}, sum_q = more ? of_q[i - shift] : (lanes){0};
        for (int v = 0; v < vectors; v++) {
            y[v] *= lanes_at(F + i * KW + v * LANES);
            if (reads) sum_d = lanes_fma(y[v], lanes_at(d + i * KW + v * LANES), sum_d);
            sum_q = lanes_fma(y[v], lanes_at(q + i * KW + v * LANES), sum_q);
        }
        if (reads) of_d[i - shift] = sum_d;
        of_q[i - shift] = sum_q;
    }
    for (int v = 0; v < vectors; v++) lanes_to(to_end + j * KW + c + v * LANES, y[v]);
}

/* Takes the sums over lanes of writers a and b = STATE_CHUNK - 1 - a, and stores them in rows a and b of X. Those of a
 * are in the order of the columns, from a + 1 on. Those of b come before, and belong to the columns from b + 1 on. */
FORCE_INLINE void put_scores(int64_t a, lanes *sums, real *X) {
    real both[2 * STATE_CHUNK];
    for (int i = 0; i < STATE_CHUNK; i += LANES) {
        lanes_to(both + i, (lanes){0});
        lanes_to(both + STATE_CHUNK + i, sums_of_lanes(sums + i));
    }
    for (int i = 0; i < STATE_CHUNK; i += LANES) {
        lanes_to(X + a * (2 * STATE_CHUNK) + i, lanes_from(lanes_at(both + STATE_CHUNK + i), (int)a + 1 - i));
        lanes_to(X + (STATE_CHUNK - 1 - a) * (2 * STATE_CHUNK) + i, lanes_at(both + a + i));
    }
}

/* Calls writer_scores for writers a and STATE_CHUNK - 1 - a. After the second come as many rows as before the first, so
 * the sums of both fit into STATE_CHUNK vectors. */
FORCE_INLINE void pair_scores(int vectors, bool reads, bool more, const real *F, const real *readers, int64_t KW,
                              int64_t c, int64_t a, const real *writer, real *to_end, lanes *of_d, lanes *of_q) {
    writer_scores(vectors, reads, more, F, readers, KW, c, a, 0, writer, to_end, of_d, of_q);
    writer_scores(vectors, reads, more, F, readers, KW, c, STATE_CHUNK - 1 - a, STATE_CHUNK - a, writer, to_end, of_d,
                  of_q);
}

/* Computes X and to_end of STATE_CHUNK writers. */
FORCE_INLINE void scores_of(bool reads, const real *F, const real *readers, int64_t KW, const real *writers,
                            real *to_end, real *X) {
    real same[STATE_CHUNK]; /* scores of a row's own query */
    for (int64_t a = 0; a < STATE_CHUNK / 2; a++) {
        lanes of_d[STATE_CHUNK], of_q[STATE_CHUNK];
        of_d[a] = of_q[a] = (lanes){0};
        if (KW == LANES)
            pair_scores(1, reads, false, F, readers, KW, 0, a, writers, to_end, of_d, of_q);
        else
            pair_scores(2, reads, false, F, readers, KW, 0, a, writers, to_end, of_d, of_q);
        for (int64_t c = 2 * LANES; c < KW; c += 2 * LANES)
            if (c + LANES == KW)
                pair_scores(1, reads, true, F, readers, KW, c, a, writers, to_end, of_d, of_q);
            else
                pair_scores(2, reads, true, F, readers, KW, c, a, writers, to_end, of_d, of_q);
        if (reads) put_scores(a, of_d, X);
        put_scores(a, of_q, X + STATE_CHUNK);
    }
    row_dots(KW, writers, KW, readers + STATE_CHUNK * KW, KW, same);
    for (int64_t j = 0; j < STATE_CHUNK; j++) X[j * (2 * STATE_CHUNK) + STATE_CHUNK + j] = same[j];
}

#endif
