/* gemm_float.c - the products of the float build: oneDNN's matmul primitives, made for one thread. See gemm.h.
 *
 * For the sizes, strides and sums of a product, oneDNN generates machine code (a primitive), which takes a fraction of
 * a millisecond. Each thread keeps its primitives in a table by shape. So after a warm-up step, a product is a look-up
 * and a call. All shapes share one scratchpad per thread, which is as large as the largest needs.
 *
 * oneDNN 2 and 3 have different calls for the same work; one section below contains the differences. Their sums differ
 * in rounding. */
#include "kernels/lib/gemm.h"

#if !REAL_IS_DOUBLE

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <inttypes.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/status.h"

#if DNNL_VERSION_MAJOR < 2 || DNNL_VERSION_MAJOR > 3
#error "oneDNN 2 or 3 is needed (libdnnl-dev of Debian 12 or 13)"
#endif

#define SLOTS 4096 /* slots of a thread's table; a power of two */
/* most shapes in a table; then the table is emptied. Attention has 6 shapes per 64 keys, 1536 at 16 384 */
#define MAX_KEPT  2048
#define PAGE      4096
#define MAX_PARTS 6                  /* arguments of a primitive */
#define ROOM      ((size_t)64 << 20) /* bytes: more than oneDNN needs to make a primitive */

/* The key of a primitive. Keys are compared by their bytes, so all bytes, also the padding, must be zeroed first. */
struct shape {
    int64_t M, N, K, lda, ldb, ldc;
    float alpha;
    bool transpose_a, transpose_b, add, bias;
    dnnl_data_type_t type; /* of both factors */
    int32_t rest;          /* fills the last eight bytes */
};

struct product {
    struct shape shape; /* M = 0 means an empty slot */
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t parts[MAX_PARTS]; /* source, weights, destination, scratchpad, bias, alpha */
    int n_parts;
};

struct products {
    dnnl_stream_t stream;
    void *scratch;
    size_t scratch_bytes;
    int n;
    struct product table[SLOTS];
};

static dnnl_engine_t engine;
static pthread_key_t at_thread_end;
static _Thread_local struct products *mine;

/* Ends the process after a failure, because a kernel cannot return an error. Lack of memory has its own exit code. */
static void check(dnnl_status_t status, const char *what) {
    if (status == dnnl_success) return;
    fprintf(stderr, "lrnn: oneDNN could not %s a matrix product (%s); is memory short?\n", what,
            status == dnnl_out_of_memory ? "out of memory" : dnnl_status2str(status));
    if (status == dnnl_out_of_memory) _exit(status_exit_code(ST_MEMORY));
    abort();
}

/* Ends the process with a sentence if there is no room for a primitive, because oneDNN crashes if it gets no memory
 * while it generates code. */
static void check_room(void) {
    void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(room == MAP_FAILED ? dnnl_out_of_memory : dnnl_success, "make");
    munmap(room, ROOM);
}

/* --- the library -------------------------------------------------------------------------------------------------- */

static const char *isa_name(void) {
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "SSE41";
    case dnnl_cpu_isa_avx:
        return "AVX";
    case dnnl_cpu_isa_avx2:
        return "AVX2";
    case dnnl_cpu_isa_avx2_vnni:
        return "AVX2_VNNI";
    case dnnl_cpu_isa_avx512_core:
        return "AVX512_CORE";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "AVX512_CORE_VNNI";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "AVX512_CORE_BF16";
    case dnnl_cpu_isa_avx512_core_amx:
        return "AVX512_CORE_AMX";
#if DNNL_VERSION_MAJOR >= 3
    case dnnl_cpu_isa_avx2_vnni_2:
        return "AVX2_VNNI_2";
    case dnnl_cpu_isa_avx512_core_fp16:
        return "AVX512_CORE_FP16";
    case dnnl_cpu_isa_avx512_core_amx_fp16:
        return "AVX512_CORE_AMX_FP16";
#endif
    default:
        return "generic";
    }
}

/* For oneDNN 2 the text has no version, because only 2.6, from Debian 12, is in use. */
const char *gemm_library(void) {
    static _Thread_local char text[64];
    const dnnl_version_t *v = dnnl_version();
    if (v->major == 2)
        snprintf(text, sizeof text, "oneDNN %s", isa_name());
    else
        snprintf(text, sizeof text, "oneDNN %d.%d %s", v->major, v->minor, isa_name());
    return text;
}

const char *gemm_about(void) {
    static char text[96];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d, %s", v->major, v->minor, v->patch, isa_name());
    return text;
}

static bool has_isa(int isa) {
    return ((int)dnnl_get_effective_cpu_isa() & isa) == isa;
}

/* On AMD's processors, a vector instruction for products of pairs of bf16 takes as long as one for fp32. On Intel's it
 * takes twice as long; but some of these have AMX for bf16. */
bool gemm_bf16_pays(void) {
    return has_isa(dnnl_cpu_isa_avx512_core_amx) || (has_isa(dnnl_cpu_isa_avx512_core_bf16) && __builtin_cpu_is("amd"));
}

/* --- a thread's table --------------------------------------------------------------------------------------------- */

static void forget(struct products *p) {
    for (int i = 0; i < SLOTS; i++) {
        struct product *q = &p->table[i];
        if (!q->shape.M) continue;
        for (int part = 0; part < q->n_parts; part++) dnnl_memory_destroy(q->parts[part].memory);
        dnnl_primitive_destroy(q->primitive);
        q->shape.M = 0;
    }
    p->n = 0;
}

static void thread_end(void *table) {
    struct products *p = table;
    forget(p);
    dnnl_stream_destroy(p->stream);
    free(p->scratch);
    free(p);
}

const char *gemm_core(void) {
    return NULL;
}

void gemm_init(void) {
    if (engine) return;
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "prepare");
    check(pthread_key_create(&at_thread_end, thread_end) ? dnnl_out_of_memory : dnnl_success, "prepare");
}

static struct products *table_of_thread(void) {
    if (mine) return mine;
    if (!engine) {
        fprintf(stderr,
                "lrnn: a matrix product before gemm_init; a program calls libraries_init first thing in main\n");
        abort();
    }
    mine = calloc(1, sizeof *mine);
    check(mine ? dnnl_success : dnnl_out_of_memory, "prepare");
    check(dnnl_stream_create(&mine->stream, engine, dnnl_stream_in_order), "prepare");
    pthread_setspecific(at_thread_end, mine);
    return mine;
}

static uint64_t hash_of(const struct shape *s) {
    uint64_t words[sizeof *s / 8], h = 0;
    memcpy(words, s, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) h = (h ^ words[i]) * 0x9e3779b97f4a7c15u ^ h >> 29;
    return h >> 40;
}

/* --- oneDNN 2 and 3 ----------------------------------------------------------------------------------------------- */

/* oneDNN 2 describes a matrix by a struct, oneDNN 3 by an object that must be destroyed. alpha is a part of the
 * primitive in oneDNN 2, and an argument of each call in oneDNN 3. */
#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t matrix_seen; /* the form in which oneDNN's functions take it */

static matrix_seen seen(const dnnl_memory_desc_t *m) {
    return *m;
}

static void release(dnnl_memory_desc_t *m) {
    dnnl_memory_desc_destroy(*m);
}

static dnnl_status_t describe(dnnl_memory_desc_t *m, dnnl_data_type_t type, dnnl_dims_t sizes, dnnl_dims_t strides) {
    return dnnl_memory_desc_create_with_strides(m, 2, sizes, type, strides);
}

static dnnl_status_t scale_by(dnnl_primitive_attr_t how, const float *alpha) {
    (void)alpha;
    return dnnl_primitive_attr_set_scales_mask(how, DNNL_ARG_SRC, 0);
}

static dnnl_status_t append_sum(dnnl_post_ops_t after) {
    return dnnl_post_ops_append_sum(after, 1, 0, dnnl_data_type_undef);
}

static dnnl_status_t choose(dnnl_primitive_desc_t *chosen, matrix_seen a, matrix_seen b, matrix_seen bias,
                            matrix_seen c, dnnl_primitive_attr_t how) {
    return dnnl_matmul_primitive_desc_create(chosen, engine, a, b, bias, c, how);
}

/* Adds the argument alpha. A call reads its value from the shape in the table. */
static void add_alpha(struct product *q) {
    dnnl_exec_arg_t *part = &q->parts[q->n_parts++];
    dnnl_memory_desc_t one;
    part->arg = DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC;
    check(dnnl_memory_desc_create_with_tag(&one, 1, (dnnl_dims_t){1}, dnnl_f32, dnnl_x), "describe");
    check(dnnl_memory_create(&part->memory, one, engine, &q->shape.alpha), "describe");
    release(&one);
}

/* Whether a factor is a vector. With AVX-512, oneDNN 3.7 ignores gaps inside a vector (a row of A^T, a column of C),
 * and reads and writes neighbouring numbers instead. So such products are not given to oneDNN. */
static bool is_of_vector(const struct shape *s) {
    return s->M == 1 || s->N == 1;
}

#else

typedef const dnnl_memory_desc_t *matrix_seen;

static matrix_seen seen(const dnnl_memory_desc_t *m) {
    return m;
}

static void release(dnnl_memory_desc_t *m) {
    (void)m;
}

static dnnl_status_t describe(dnnl_memory_desc_t *m, dnnl_data_type_t type, dnnl_dims_t sizes, dnnl_dims_t strides) {
    return dnnl_memory_desc_init_by_strides(m, 2, sizes, type, strides);
}

static dnnl_status_t scale_by(dnnl_primitive_attr_t how, const float *alpha) {
    return dnnl_primitive_attr_set_output_scales(how, 1, 0, alpha);
}

static dnnl_status_t append_sum(dnnl_post_ops_t after) {
    return dnnl_post_ops_append_sum(after, 1);
}

static dnnl_status_t choose(dnnl_primitive_desc_t *chosen, matrix_seen a, matrix_seen b, matrix_seen bias,
                            matrix_seen c, dnnl_primitive_attr_t how) {
    dnnl_matmul_desc_t d;
    dnnl_status_t status = dnnl_matmul_desc_init(&d, a, b, bias, c);
    return status == dnnl_success ? dnnl_primitive_desc_create(chosen, &d, how, engine, NULL) : status;
}

static void add_alpha(struct product *q) {
    (void)q;
}

static bool is_of_vector(const struct shape *s) {
    (void)s;
    return false;
}

#endif

/* --- making a primitive ------------------------------------------------------------------------------------------- */

static dnnl_memory_desc_t matrix(dnnl_data_type_t type, int64_t rows, int64_t columns, bool transposed, int64_t ld) {
    dnnl_memory_desc_t m;
    check(describe(&m, type, (dnnl_dims_t){rows, columns}, (dnnl_dims_t){transposed ? 1 : ld, transposed ? ld : 1}),
          "describe");
    return m;
}

static dnnl_primitive_attr_t attributes(const struct shape *s) {
    dnnl_primitive_attr_t a;
    dnnl_post_ops_t after;
    check(dnnl_primitive_attr_create(&a), "describe");
    check(dnnl_primitive_attr_set_scratchpad_mode(a, dnnl_scratchpad_mode_user), "describe");
    if (s->alpha != 1) check(scale_by(a, &s->alpha), "describe");
    if (!s->add) return a;
    check(dnnl_post_ops_create(&after), "describe");
    check(append_sum(after), "describe");
    check(dnnl_primitive_attr_set_post_ops(a, after), "describe");
    dnnl_post_ops_destroy(after);
    return a;
}

static void add_part(struct product *q, int what, matrix_seen m) {
    dnnl_exec_arg_t *part = &q->parts[q->n_parts++];
    part->arg = what;
    check(dnnl_memory_create(&part->memory, m, engine, NULL), "describe");
}

static void reserve_scratch(struct products *p, size_t bytes) {
    if (bytes <= p->scratch_bytes) return;
    free(p->scratch);
    p->scratch_bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    p->scratch = aligned_alloc(PAGE, p->scratch_bytes);
    check(p->scratch ? dnnl_success : dnnl_out_of_memory, "prepare");
}

static void make(struct products *p, struct product *q, const struct shape *s) {
    dnnl_memory_desc_t a = matrix(s->type, s->M, s->K, s->transpose_a, s->lda);
    dnnl_memory_desc_t b = matrix(s->type, s->K, s->N, s->transpose_b, s->ldb);
    dnnl_memory_desc_t c = matrix(dnnl_f32, s->M, s->N, false, s->ldc), bias = matrix(dnnl_f32, 1, s->N, false, s->N);
    dnnl_primitive_desc_t chosen;
    check_room();
    *q = (struct product){.n_parts = 0};
    dnnl_primitive_attr_t how = attributes(s);
    check(choose(&chosen, seen(&a), seen(&b), s->bias ? seen(&bias) : NULL, seen(&c), how), "choose kernels for");
    check(dnnl_primitive_create(&q->primitive, chosen), "make");
    matrix_seen scratch = dnnl_primitive_desc_query_md(chosen, dnnl_query_scratchpad_md, 0);
    reserve_scratch(p, dnnl_memory_desc_get_size(scratch));
    add_part(q, DNNL_ARG_SRC, seen(&a));
    add_part(q, DNNL_ARG_WEIGHTS, seen(&b));
    add_part(q, DNNL_ARG_DST, seen(&c));
    add_part(q, DNNL_ARG_SCRATCHPAD, scratch);
    if (s->bias) add_part(q, DNNL_ARG_BIAS, seen(&bias));
    if (s->alpha != 1) add_alpha(q);
    release(&a), release(&b), release(&c), release(&bias);
    dnnl_primitive_desc_destroy(chosen);
    dnnl_primitive_attr_destroy(how);
    q->shape = *s;
    p->n++;
}

static struct product *product_of(struct products *p, const struct shape *s) {
    if (p->n >= MAX_KEPT) forget(p);
    for (uint64_t i = hash_of(s);; i++) {
        struct product *q = &p->table[i % SLOTS];
        if (!q->shape.M) make(p, q, s);
        if (!memcmp(&q->shape, s, sizeof *s)) return q;
    }
}

/* --- running it --------------------------------------------------------------------------------------------------- */

static void attach(struct product *q, int part, const void *at) {
    void *data; /* oneDNN takes no pointers to const */
    memcpy(&data, &at, sizeof data);
    check(dnnl_memory_set_data_handle(q->parts[part].memory, data), "begin");
}

/* Computes a product without the library. If a factor is a vector, C has few numbers. */
static void sum_products(const struct shape *s, const float *A, const float *B, const float *bias, float *C) {
    int64_t next_a = s->transpose_a ? s->lda : 1, next_b = s->transpose_b ? 1 : s->ldb;
    for (int64_t i = 0; i < s->M; i++)
        for (int64_t j = 0; j < s->N; j++) {
            const float *a = A + i * (s->transpose_a ? 1 : s->lda), *b = B + j * (s->transpose_b ? s->ldb : 1);
            float *c = C + i * s->ldc + j, sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < s->K; k++) sum += a[k * next_a] * b[k * next_b];
            *c = s->alpha * sum + (bias ? bias[j] : 0) + (s->add ? *c : 0);
        }
}

/* oneDNN asks OpenMP for the number of threads when a primitive is made, and without AVX-512 also when it runs. */
static void run(const struct shape *s, const void *A, const void *B, const real *bias, real *C) {
    if (s->M <= 0 || s->N <= 0) return;
    if (is_of_vector(s)) {
        sum_products(s, A, B, bias, C);
        return;
    }
    struct products *p = table_of_thread();
    int threads = omp_get_max_threads();
    if (threads != 1) omp_set_num_threads(1);
    struct product *q = product_of(p, s);
    attach(q, 0, A);
    attach(q, 1, B);
    attach(q, 2, C);
    attach(q, 3, p->scratch);
    if (bias) attach(q, 4, bias);
    check(dnnl_primitive_execute(q->primitive, p->stream, q->n_parts, q->parts), "run");
    if (threads != 1) omp_set_num_threads(threads);
}

static struct shape shape_of(dnnl_data_type_t type, bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K,
                             int64_t lda, int64_t ldb, int64_t ldc) {
    struct shape s;
    memset(&s, 0, sizeof s);
    s.type = type, s.transpose_a = transpose_a, s.transpose_b = transpose_b, s.alpha = 1;
    s.M = M, s.N = N, s.K = K, s.lda = lda, s.ldb = ldb, s.ldc = ldc;
    return s;
}

void real_gemm(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, real alpha, const real *A,
               int64_t lda, const real *B, int64_t ldb, bool add, real *C, int64_t ldc) {
    struct shape s = shape_of(dnnl_f32, transpose_a, transpose_b, M, N, K, lda, ldb, ldc);
    s.alpha = alpha, s.add = add;
    run(&s, A, B, NULL, C);
}

void real_gemm_bias(int64_t M, int64_t N, int64_t K, const real *A, const real *B, const real *bias, real *C) {
    struct shape s = shape_of(dnnl_f32, false, true, M, N, K, K, K, N);
    s.bias = bias != NULL;
    run(&s, A, B, bias, C);
}

void gemm_bf16(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
               const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc) {
    struct shape s = shape_of(dnnl_bf16, transpose_a, transpose_b, M, N, K, lda, ldb, ldc);
    if (!has_isa(dnnl_cpu_isa_avx512_core_bf16) || is_of_vector(&s)) {
        gemm_widened(transpose_a, transpose_b, M, N, K, A, lda, B, ldb, bias, add, C, ldc);
        return;
    }
    s.bias = bias != NULL, s.add = add;
    run(&s, A, B, bias, C);
}

#endif
