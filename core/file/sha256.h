/* sha256.h - SHA-256 (FIPS 180-4), the checksum that data sites publish for their files. */
#ifndef LRNN_CORE_FILE_SHA256_H
#define LRNN_CORE_FILE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHA256_HEX 65 /* hex digits, terminator included */

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void sha256_start(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t size);

/* Writes the digest in hex. `s` cannot be used after it. */
void sha256_end(struct sha256 *s, char hex[SHA256_HEX]);

#ifdef __cplusplus
}
#endif
#endif
