/* check_png.c - pictures that others wrote or nobody should have: read, or refused in one sentence. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/file/png.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

/* A PNG of one grey row 10 200 30, written by hand: signature, IHDR, IDAT of a stored block, IEND. */
static const uint8_t tiny_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x8b, 0x4b, 0x68, 0x00, 0x00, 0x00,
    0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0x01, 0x01, 0x04, 0x00, 0xfb, 0xff, 0x00, 0x0a, 0xc8, 0x1e, 0x01, 0xd0,
    0x00, 0xf1, 0x6c, 0xd3, 0x21, 0x81, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

START_TEST(a_picture_is_read_and_cut_anywhere_refused) {
    uint8_t pixels[3] = {0};
    int64_t height, width;
    struct error e = {ST_OK, ""};
    ck_assert_msg(png_sides(tiny_png, sizeof tiny_png, "PNG", &height, &width, &e) == ST_OK, "%s", e.text);
    ck_assert(height == 1 && width == 3);
    ck_assert_msg(png_read_grey(tiny_png, sizeof tiny_png, "PNG", 1, 3, pixels, &e) == ST_OK, "%s", e.text);
    ck_assert(pixels[0] == 10 && pixels[1] == 200 && pixels[2] == 30);
    for (size_t n = 0; n < sizeof tiny_png - 12; n++) { /* up to the end of the pixels */
        uint8_t *bytes = malloc(n + 1);
        memcpy(bytes, tiny_png, n);
        ck_assert_int_eq(png_read_grey(bytes, n, "PNG", 1, 3, pixels, &e), ST_DATA);
        ck_assert(strncmp(e.text, "PNG: expected ", 14) == 0);
        free(bytes);
    }
    ck_assert_int_eq(png_read_grey(tiny_png, sizeof tiny_png, "PNG", 2, 3, pixels, &e), ST_DATA);
    ck_assert_msg(strstr(e.text, "expected an image of 2 x 3 pixels, found one of 1 x 3"), "%s", e.text);
}
END_TEST

/* The tiny picture with other sides in its header, whose checksum is right. */
static void with_sides(uint8_t *png, uint32_t width, uint32_t height) {
    memcpy(png, tiny_png, sizeof tiny_png);
    for (int i = 0; i < 4; i++) {
        png[16 + i] = (uint8_t)(width >> (24 - 8 * i));
        png[20 + i] = (uint8_t)(height >> (24 - 8 * i));
    }
    uint32_t sum = (uint32_t)crc32(0, png + 12, 17);
    for (int i = 0; i < 4; i++) png[29 + i] = (uint8_t)(sum >> (24 - 8 * i));
}

/* Nothing is made ready for what a header announces. */
START_TEST(huge_sides_are_refused_by_the_header) {
    static const struct {
        uint32_t width, height;
        const char *says;
    } huge[] = {
        {3, 1000000, "PNG: expected an image of 1 x 3 pixels, found one of 1000000 x 3"},
        {1000000, 1000000, "PNG: expected an image of 1 x 3 pixels, found one of 1000000 x 1000000"},
        {0x7fffffff, 0x7fffffff, "PNG: expected a PNG file, found 72 bytes of which libpng says: Invalid IHDR data"},
        {0xffffffff, 1,
         "PNG: expected a PNG file, found 72 bytes of which libpng says: PNG unsigned integer out of range"},
        {0, 1, "PNG: expected a PNG file, found 72 bytes of which libpng says: Invalid IHDR data"},
    };
    uint8_t png[sizeof tiny_png], pixels[3];
    struct error e = {ST_OK, ""};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        with_sides(png, huge[i].width, huge[i].height);
        ck_assert_int_eq(png_read_grey(png, sizeof png, "PNG", 1, 3, pixels, &e), ST_DATA);
        ck_assert_str_eq(e.text, huge[i].says);
    }
}
END_TEST

static uint8_t *put_chunk(uint8_t *to, const char *kind, const uint8_t *body, uint32_t n) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(n >> (24 - 8 * i));
    memcpy(to + 4, kind, 4);
    memcpy(to + 8, body, n);
    uint32_t sum = (uint32_t)crc32(0, to + 4, n + 4);
    for (int i = 0; i < 4; i++) to[8 + n + (uint32_t)i] = (uint8_t)(sum >> (24 - 8 * i));
    return to + 12 + n;
}

/* Samples are taken as they are stored: neither a gamma of 1.0 nor 16 bits a sample change what is read. */
START_TEST(samples_of_16_bits_and_with_a_gamma_stay_what_they_are) {
    static const uint8_t head[] = {0, 0, 0, 2, 0, 0, 0, 1, 16, 0, 0, 0, 0}, gamma[] = {0, 1, 0x86, 0xa0};
    static const uint8_t rows[] = {0, 0x15, 0x15, 0xc8, 0xff}; /* filter 0, then two samples */
    uint8_t packed[64], png[200], pixels[2], *end;
    uLongf n = sizeof packed;
    struct error e = {ST_OK, ""};
    ck_assert_int_eq(compress(packed, &n, rows, sizeof rows), Z_OK);
    for (int with_gamma = 0; with_gamma < 2; with_gamma++) {
        memcpy(png, tiny_png, 8);
        end = put_chunk(png + 8, "IHDR", head, sizeof head);
        if (with_gamma) end = put_chunk(end, "gAMA", gamma, sizeof gamma);
        end = put_chunk(end, "IDAT", packed, (uint32_t)n);
        end = put_chunk(end, "IEND", head, 0);
        enum status status = png_read_grey(png, (size_t)(end - png), "PNG", 1, 2, pixels, &e);
        ck_assert_msg(status == ST_OK, "%s", e.text);
        ck_assert(pixels[0] == 0x15 && pixels[1] == 0xc8);
    }
}
END_TEST

/* Its passes hold columns 0, 2 and 1: it is decoded as any other, and refused as any other. */
START_TEST(an_interlaced_picture_is_read_in_its_columns) {
    uint8_t pixels[3] = {0};
    size_t size;
    struct error e = {ST_OK, ""};
    char *png = slurp("tests/fuzz/corpus/png/interlaced", &size);
    ck_assert_int_eq(png[28], 1); /* what says that it is */
    ck_assert_msg(png_read_grey(png, size, "PNG", 1, 3, pixels, &e) == ST_OK, "%s", e.text);
    ck_assert(pixels[0] == 10 && pixels[1] == 30 && pixels[2] == 200);
    ck_assert_int_eq(png_read_grey(png, size, "PNG", 32, 32, pixels, &e), ST_DATA);
    ck_assert_str_eq(e.text, "PNG: expected an image of 32 x 32 pixels, found one of 1 x 3");
    free(png);
}
END_TEST

START_TEST(an_image_too_large_for_a_file_is_not_written) {
    static const uint8_t pixel;
    static const struct {
        int64_t height, width;
        const char *says;
    } huge[] = {{(1 << 20) + 1, 1, "PNG: an image of 1048577 x 1 pixels is too large for one file"},
                {1, (int64_t)1 << 40, "PNG: an image of 1 x 1099511627776 pixels is too large for one file"}};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        struct error e = {ST_OK, ""};
        char *bytes;
        size_t size;
        ck_assert_int_eq(png_encode(&pixel, huge[i].height, huge[i].width, 1, "PNG", &bytes, &size, &e), ST_USAGE);
        ck_assert_str_eq(e.text, huge[i].says);
        ck_assert_ptr_null(bytes);
    }
}
END_TEST

Suite *check_png(void);
Suite *check_png(void) {
    Suite *suite = suite_create("png");
    TCase *c = tcase_create("png");
    tcase_add_test(c, a_picture_is_read_and_cut_anywhere_refused);
    tcase_add_test(c, huge_sides_are_refused_by_the_header);
    tcase_add_test(c, samples_of_16_bits_and_with_a_gamma_stay_what_they_are);
    tcase_add_test(c, an_interlaced_picture_is_read_in_its_columns);
    tcase_add_test(c, an_image_too_large_for_a_file_is_not_written);
    suite_add_tcase(suite, c);
    return suite;
}
