/* scan_turned.h - sizes that the kernels of scan_turned share. */
#ifndef LRNN_KERNELS_TOKEN_SCAN_TURNED_H
#define LRNN_KERNELS_TOKEN_SCAN_TURNED_H

#include "kernels/token/token.h"

enum { TURNED_X, TURNED_U, TURNED_W, TURNED_B, TURNED_K_RE, TURNED_K_IM, TURNED_INPUTS };
enum { TURNED_Y, TURNED_KEPT }; /* kept (B,chunks,2,N*D): h after each chunk's last token, the real parts first */

#define TURNED_CHUNK 64 /* tokens between two states that forward stores */

struct turned_size {
    int64_t B, T, D, I, N, channels, chunks; /* channels: N*D */
};

LRNN_INLINE struct turned_size turned_size_of(const struct call *c) {
    const struct tensor *x = c->in[TURNED_X];
    struct turned_size s = {x->dims[0], x->dims[1], x->dims[2], c->in[TURNED_U]->dims[2], c->in[TURNED_K_RE]->dims[0],
                            0,          0};
    s.channels = s.N * s.D;
    s.chunks = (s.T + TURNED_CHUNK - 1) / TURNED_CHUNK;
    return s;
}

/* Tokens whose angles are in scratch memory at the same time. They are neighbouring rows: n whole sequences, of which b
 * is the first, or tokens of sequence b from token t on. */
struct turned_block {
    int64_t b, n, t, length;
};

/* Returns block i of the sequences from `begin` to `end`. A block has up to `rows` tokens; `rows` is at least
 * TURNED_CHUNK. */
LRNN_INLINE struct turned_block turned_block_at(const struct turned_size *s, int64_t begin, int64_t end, int64_t rows,
                                                int64_t i) {
    int64_t several = rows / s->T, span = rows / TURNED_CHUNK * TURNED_CHUNK, spans = (s->T + span - 1) / span;
    struct turned_block k = {begin + i * several, several, 0, s->T};
    if (several < 1) {
        k.b = begin + i / spans;
        k.n = 1;
        k.t = i % spans * span;
        k.length = s->T - k.t < span ? s->T - k.t : span;
    }
    if (k.n > end - k.b) k.n = end - k.b;
    return k;
}

LRNN_INLINE int64_t turned_blocks(const struct turned_size *s, int64_t sequences, int64_t rows) {
    int64_t several = rows / s->T, span = rows / TURNED_CHUNK * TURNED_CHUNK;
    return several < 1 ? sequences * ((s->T + span - 1) / span) : (sequences + several - 1) / several;
}

/* Whether forward stores h after token t. */
LRNN_INLINE bool turned_keeps(const struct turned_size *s, int64_t t) {
    return (t + 1) % TURNED_CHUNK == 0 || t == s->T - 1;
}

/* Returns the index of the first stored state after token t of sequence b. */
LRNN_INLINE int64_t turned_kept_at(const struct turned_size *s, int64_t b, int64_t t) {
    return (b * s->chunks + t / TURNED_CHUNK) * 2 * s->channels;
}

#endif
