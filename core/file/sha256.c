/* sha256.c - see sha256.h. If the program is built for a processor with SHA instructions, these mix a block; else the
 * code follows FIPS 180-4. */
#include "core/file/sha256.h"

#include <stdio.h>
#include <string.h>
#ifdef __SHA__
#include <immintrin.h>
#endif

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#ifdef __SHA__
/* The instructions need the eight words of the state in two registers, (f, e, b, a) and (h, g, d, c) from the lowest
 * lane on. Each instruction does two rounds. `words` has the words of the schedule for the last sixteen rounds, four
 * per register. */
static void mix(uint32_t state[8], const uint8_t *block) {
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(state + 4)), 0x1b);
    const __m128i feba_before = _mm_alignr_epi8(badc, hgfe, 8), hgdc_before = _mm_blend_epi16(hgfe, badc, 0xf0);
    __m128i feba = feba_before, hgdc = hgdc_before, words[4] = {{0}};
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        __m128i *now = &words[i % 4], before = words[(i + 3) % 4];
        if (i < 4)
            *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), big_endian);
        else
            *now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*now, words[(i + 1) % 4]),
                                                      _mm_alignr_epi8(before, words[(i + 2) % 4], 4)),
                                        before);
        __m128i sum = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i)));
        hgdc = _mm_sha256rnds2_epu32(hgdc, feba, sum);
        feba = _mm_sha256rnds2_epu32(feba, hgdc, _mm_shuffle_epi32(sum, 0x0e));
    }
    __m128i abef = _mm_shuffle_epi32(_mm_add_epi32(feba, feba_before), 0x1b);
    __m128i ghcd = _mm_shuffle_epi32(_mm_add_epi32(hgdc, hgdc_before), 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(abef, ghcd, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(ghcd, abef, 8));
}
#else
static uint32_t turned(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void mix(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) w[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, state, sizeof v);
    /* Instead of moving the words, each round renames them: a is v[-i mod 8], b is the next element, and so on up to
     * h. */
#pragma GCC unroll 8
    for (unsigned i = 0; i < 64; i++) {
        uint32_t a = v[-i & 7], b = v[(1 - i) & 7], c = v[(2 - i) & 7];
        uint32_t e = v[(4 - i) & 7], f = v[(5 - i) & 7], g = v[(6 - i) & 7];
        uint32_t first = v[(7 - i) & 7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) +
                         constants[i] + w[i];
        v[(3 - i) & 7] += first;
        v[(7 - i) & 7] = first + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}
#endif

void sha256_start(struct sha256 *s) {
    static const uint32_t begin[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, begin, sizeof begin);
    s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    while (size > 0) {
        size_t used = s->bytes % 64, n = 64 - used < size ? 64 - used : size;
        if (used == 0 && n == 64)
            mix(s->state, at);
        else
            memcpy(s->block + used, at, n);
        s->bytes += n;
        if (used > 0 && used + n == 64) mix(s->state, s->block);
        at += n;
        size -= n;
    }
}

void sha256_end(struct sha256 *s, char hex[SHA256_HEX]) {
    uint64_t bits = 8 * s->bytes;
    const uint8_t one = 0x80, zero = 0;
    uint8_t length[8];
    sha256_add(s, &one, 1);
    while (s->bytes % 64 != 56) sha256_add(s, &zero, 1);
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, length, sizeof length);
    for (int i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", s->state[i]);
}
