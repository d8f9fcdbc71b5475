/* check_cuda_host_products.cc - the shim's cublasLt: what its products compute, and what they refuse. */
#include "tests/cuda/host/launch.h" /* first */

#include <string>

#include "kernels/lib/algorithms.h"
#include "kernels/lib/cuda_gemm.cuh"
#include "kernels/lib/round.h"

#if !REAL_IS_DOUBLE

static void put_halves(void *to, const std::vector<float> &numbers) {
    std::vector<uint16_t> halves;
    for (float x : numbers) halves.push_back(bf16_bits(x));
    cudaMemcpyAsync(to, halves.data(), halves.size() * sizeof halves[0], cudaMemcpyHostToDevice, stream);
}

/* D (M x N) = op(A) op(B), in columns that lie a value further apart than they are long. */
struct lt_product {
    static const int M = 3, N = 2, K = 4, LD = 5, MOST = 5 * 5;
    cublasHandle_t blas;
    device_array<float> a{MOST}, b{MOST}, d{MOST}, vector{MOST}, workspace{256};
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t of_a, of_b, of_d;
    cublasLtMatmulPreferenceOpaque_t wishes;
    cublasLtMatmulHeuristicResult_t found = {};
    size_t bytes = 1024;
    float alpha = 1, beta = 0;
    std::vector<float> numbers = std::vector<float>(MOST); /* of a, b and vector */

    lt_product(int32_t op_a, int32_t op_b, uint32_t epilogue, cudaDataType_t factor = CUDA_R_32F) {
        for (int i = 0; i < MOST; i++) numbers[i] = (float)(i * i % 7 - 3);
        for (float *to : {a.at, b.at, vector.at})
            cudaMemcpyAsync(to, numbers.data(), MOST * sizeof(float), cudaMemcpyHostToDevice, stream);
        if (factor == CUDA_R_16BF) put_halves(a.at, numbers), put_halves(b.at, numbers);
        cudaMemsetAsync(d.at, CUDA_HOST_POISON, MOST * sizeof(float), stream);
        cublasCreate(&blas);
        cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        set(CUBLASLT_MATMUL_DESC_TRANSA, op_a);
        set(CUBLASLT_MATMUL_DESC_TRANSB, op_b);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.at);
        cublasLtMatrixLayoutInit(&of_a, factor, op_a ? K : M, op_a ? M : K, LD);
        cublasLtMatrixLayoutInit(&of_b, factor, op_b ? N : K, op_b ? K : N, LD);
        cublasLtMatrixLayoutInit(&of_d, CUDA_R_32F, M, N, LD);
        cublasLtMatmulPreferenceInit(&wishes);
        wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t)bytes);
    }
    ~lt_product() {
        cublasDestroy(blas);
    }
    template <class T> void set(cublasLtMatmulDescAttributes_t attribute, T value) {
        ck_assert_int_eq(cublasLtMatmulDescSetAttribute(&product, attribute, &value, sizeof value),
                         CUBLAS_STATUS_SUCCESS);
    }
    template <class T> void wish(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
        ck_assert_int_eq(cublasLtMatmulPreferenceSetAttribute(&wishes, attribute, &value, sizeof value),
                         CUBLAS_STATUS_SUCCESS);
    }
    cublasStatus_t ask(int *count) {
        return cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)blas, &product, &of_a, &of_b, &of_d, &of_d, &wishes, 1,
                                              &found, count);
    }
    cublasStatus_t multiply(void) {
        return cublasLtMatmul((cublasLtHandle_t)blas, &product, &alpha, a.at, &of_a, b.at, &of_b, &beta, d.at, &of_d,
                              d.at, &of_d, &found.algo, workspace.at, bytes, stream);
    }
};

/* Whole numbers, so exact in any order. Without beta D begins as NaNs, which are not read. */
static void expect_lt_product(int32_t op_a, int32_t op_b, uint32_t epilogue, float beta, cudaDataType_t factor) {
    lt_product p(op_a, op_b, epilogue, factor);
    const int M = p.M, N = p.N, K = p.K, LD = p.LD;
    int count;
    ck_assert_int_eq(p.ask(&count), CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(count, 1);
    p.beta = beta;
    if (beta != 0) cudaMemsetAsync(p.d.at, 0, p.MOST * sizeof(float), stream);
    std::vector<float> a = p.numbers, b = p.numbers, bias = p.numbers;
    ck_assert_int_eq(p.multiply(), CUBLAS_STATUS_SUCCESS);
    std::vector<float> d = p.d.values(), vector = p.vector.values();
    for (int j = 0; j < N; j++) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += op_b ? b[j + k * LD] : b[k + j * LD];
        if (epilogue == CUBLASLT_EPILOGUE_BGRADB) ck_assert_float_eq(vector[j], sum);
        for (int i = 0; i < M; i++) {
            float want = epilogue == CUBLASLT_EPILOGUE_BIAS ? bias[i] : 0;
            for (int k = 0; k < K; k++)
                want += (op_a ? a[k + i * LD] : a[i + k * LD]) * (op_b ? b[j + k * LD] : b[k + j * LD]);
            ck_assert_float_eq(d[i + j * LD], want);
        }
    }
    if (epilogue == CUBLASLT_EPILOGUE_BIAS) ck_assert(vector == bias);
    ck_assert(std::isnan(p.workspace.values()[0]) && std::isnan(p.workspace.values()[255]));
}

START_TEST(a_product_does_what_its_epilogue_says) {
    for (int ops = 0; ops < 4; ops++)
        for (float beta : {0.0f, 1.0f})
            for (uint32_t epilogue : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BGRADB})
                for (cudaDataType_t factor : {CUDA_R_32F, CUDA_R_16BF})
                    if (factor == CUDA_R_32F || epilogue != CUBLASLT_EPILOGUE_BGRADB)
                        expect_lt_product(ops & 1, ops >> 1, epilogue, beta, factor);
}
END_TEST

/* Asked for, or launched with what was found: with what status it is refused. */
START_TEST(products_that_do_not_fit_are_refused) {
    typedef lt_product p;
    static const struct {
        void (*change)(p &);
        cublasStatus_t asked, launched;
    } cases[] = {
        {[](p &) {}, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS},
        {[](p &x) { x.of_d.ld = 2; }, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.of_b.cols++; }, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.product.op_a = CUBLAS_OP_T; }, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.product.bias = nullptr; }, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.product.epilogue = CUBLASLT_EPILOGUE_BGRADA; }, CUBLAS_STATUS_NOT_SUPPORTED,
         CUBLAS_STATUS_NOT_SUPPORTED},
        {[](p &x) { x.product.epilogue = CUBLASLT_EPILOGUE_BGRADB; }, CUBLAS_STATUS_SUCCESS,
         CUBLAS_STATUS_NOT_SUPPORTED}, /* what was found is another product */
        {[](p &x) { x.product.scale = CUDA_R_64F; }, CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED},
        {[](p &x) { x.of_a.type = CUDA_R_16BF; }, CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED},
        {[](p &x) { x.bytes = 1023; }, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.workspace.at += 1; }, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.a.at += 1; }, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE},
        {[](p &x) { x.product.bias = x.vector.at + 1; }, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE},
    };
    for (const auto &c : cases) {
        p x(CUBLAS_OP_N, CUBLAS_OP_T, CUBLASLT_EPILOGUE_BIAS);
        int count;
        float *a = x.a.at, *workspace = x.workspace.at;
        ck_assert_int_eq(x.ask(&count), CUBLAS_STATUS_SUCCESS);
        cublasLtMatmulHeuristicResult_t found = x.found;
        c.change(x);
        ck_assert_int_eq(x.ask(&count), c.asked);
        x.found = found;
        ck_assert_int_eq(x.multiply(), c.launched);
        x.a.at = a;
        x.workspace.at = workspace;
    }
    char small = 0;
    cublasLtMatmulDescOpaque_t product;
    ck_assert_int_eq(cublasLtMatmulDescSetAttribute(&product, CUBLASLT_MATMUL_DESC_EPILOGUE, &small, sizeof small),
                     CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

/* A product that cublasLt refuses falls back to one without an epilogue. A wrong one is refused there as well; like a
 * failed launch, this is a failure of the place. */
START_TEST(a_wrong_product_is_said) {
    struct place place = {};
    struct error e = {};
    struct exec x = {};
    device_array<float> memory(64);
    ck_assert_msg(place_open(&place, "cuda", &e) == ST_OK, "%s", e.text);
    x.place = &place;
    struct product p = {false, false, 2, 3, 4, memory.at, 4, memory.at, 3, false, memory.at + 16, 3};
    ck_assert(cuda_gemm_epilogue(&x, PRECISION_FULL, p, EPILOGUE_BIAS, memory.at + 32));
    ck_assert_int_eq(place_wait(&place, &e), ST_OK);
    setenv("LRNN_CUDA_HOST_NO_EPILOGUES", "2", 1);
    ck_assert(!cuda_gemm_epilogue(&x, PRECISION_FULL, p, EPILOGUE_BIAS, memory.at + 32));
    ck_assert_int_eq(place_wait(&place, &e), ST_OK);
    unsetenv("LRNN_CUDA_HOST_NO_EPILOGUES");
    p.lda = 3;
    ck_assert(!cuda_gemm_epilogue(&x, PRECISION_FULL, p, EPILOGUE_BIAS, memory.at + 32));
    ck_assert_int_eq(place_wait(&place, &e), ST_OK);
    cuda_gemm(&x, PRECISION_FULL, p);
    ck_assert_int_eq(place_wait(&place, &e), ST_DEVICE);
    ck_assert_msg(strstr(e.text, "failed at ./kernels/lib/cuda_gemm.cuh:"), "%s", e.text);
    place_close(&place);
}
END_TEST

/* --- the choice of an algorithm ----------------------------------------------------------------------------------- */

/* C (2 x 3) = A (2 x 4) B (4 x 3) of ones, so each element is 4, or 4 more than before. */
struct chosen_product {
    struct place place = {};
    struct exec x = {};
    device_array<float> a{8}, b{12}, c{6};
    struct product p = {false, false, 2, 3, 4, a.at, 4, b.at, 3, false, c.at, 3};

    chosen_product() {
        struct error e = {};
        std::vector<float> ones(12, 1);
        cudaMemcpyAsync(a.at, ones.data(), 8 * sizeof(float), cudaMemcpyHostToDevice, stream);
        cudaMemcpyAsync(b.at, ones.data(), 12 * sizeof(float), cudaMemcpyHostToDevice, stream);
        ck_assert_msg(place_open(&place, "cuda", &e) == ST_OK, "%s", e.text);
        x.place = &place;
    }
    ~chosen_product() {
        place_close(&place);
    }
    void expect(float each) {
        struct error e = {};
        ck_assert_msg(place_wait(&place, &e) == ST_OK, "%s", e.text);
        ck_assert(c.values() == std::vector<float>(6, each));
    }
    void multiply(float each) {
        cuda_gemm(&x, PRECISION_FULL, p);
        expect(each);
    }
};

static std::string known_products(void) {
    size_t size;
    char *text = algorithms_text(&size);
    std::string copy(text, size);
    free(text);
    return copy;
}

/* The index of the only timed product's algorithm, and its time. */
static uint64_t known_index(double *us) {
    std::string text = known_products();
    size_t line = text.find('\n') + 1, end = text.find('\n', line), hex = text.rfind('\t', end) + 1;
    size_t time = text.rfind('\t', hex - 2) + 1;
    ck_assert_msg(text.compare(end + 1, 7, "sha256 ") == 0, "%s", text.c_str());
    cublasLtMatmulAlgo_t algorithm;
    unsigned char bytes[sizeof algorithm];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)std::stoul(text.substr(hex + 2 * i, 2), 0, 16);
    memcpy(&algorithm, bytes, sizeof algorithm);
    *us = std::stod(text.substr(time));
    return algorithm.index;
}

/* The times are so long that the host's own time does not matter. */
START_TEST(the_fastest_algorithm_computes_a_product) {
    double us;
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 - 20000 50000", 1);
    chosen_product m;
    m.multiply(4);
    ck_assert_int_eq(known_index(&us), 2);
    ck_assert_msg(us >= 20000 && us < 50000, "%g", us);
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "10 - 20000 50000", 1); /* what was chosen stays */
    m.multiply(4);
    ck_assert_int_eq(known_index(&us), 2);
    ck_assert_int_eq(algorithms_timed(), 1);
    char names[64];
    algorithms_names(m.place.cuda, names, sizeof names);
    ck_assert_msg(strlen(names) == 8 && known_products().find(names) != std::string::npos, "%s", names);
}
END_TEST

/* Factors of bf16 have 16 bits, by cublasLt as by cuBLAS, and are another product than those of tf32. */
START_TEST(factors_of_bf16_have_16_bits) {
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 20000", 1);
    chosen_product m;
    std::vector<float> ones(12, 1);
    cuda_gemm(&m.x, PRECISION_TF32, m.p);
    m.expect(4);
    put_halves(m.a.at, std::vector<float>(8, 2));
    put_halves(m.b.at, ones);
    cuda_gemm(&m.x, PRECISION_BF16, m.p);
    m.expect(8);
    ck_assert_int_eq(algorithms_timed(), 2);
    ck_assert(known_products().find(" 2x3x4 bf16,") != std::string::npos);
    m.p.accumulate = true;
    setenv("LRNN_CUDA_HOST_NO_EPILOGUES", "1", 1);
    cuda_gemm(&m.x, PRECISION_BF16, m.p);
    m.expect(16);
    m.p.accumulate = false, m.p.transpose_b = true, m.p.ldb = 4;
    cuda_gemm(&m.x, PRECISION_BF16, m.p);
    m.expect(8);
}
END_TEST

/* Trials add nothing to a sum. */
START_TEST(a_sum_is_added_to_once) {
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 20000", 1);
    chosen_product m;
    m.p.accumulate = true;
    m.multiply(4);
    m.multiply(8);
    ck_assert_int_eq(algorithms_timed(), 1);
}
END_TEST

START_TEST(a_capture_times_nothing) {
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 20000", 1);
    chosen_product m;
    ck_assert(place_capture_begin(&m.place));
    cuda_gemm(&m.x, PRECISION_FULL, m.p);
    struct place_capture *c = place_capture_end(&m.place);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(place_capture_launches(&m.place, c), 1);
    place_replay(&m.place, c);
    m.expect(4);
    place_capture_free(&m.place, c);
    ck_assert_int_eq(algorithms_timed(), 0);
    m.p.transpose_b = true, m.p.ldb = 4; /* another product */
    setenv("LRNN_CUDA_ALGORITHMS", "0", 1);
    m.multiply(4);
    ck_assert_int_eq(algorithms_timed(), 0);
}
END_TEST

/* First another algorithm takes the place of the refused one, then cuBLAS. */
START_TEST(a_refused_algorithm_is_replaced) {
    double us;
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "50000 20000 90000", 1);
    chosen_product m;
    m.multiply(4);
    ck_assert_int_eq(known_index(&us), 1);
    cudaMemsetAsync(m.c.at, CUDA_HOST_POISON, 6 * sizeof(float), stream);
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "50000 - 90000", 1);
    m.multiply(4);
    ck_assert_int_eq(known_index(&us), 0);
    cudaMemsetAsync(m.c.at, CUDA_HOST_POISON, 6 * sizeof(float), stream);
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "- - -", 1);
    m.multiply(4);
    ck_assert(known_products().find("fp32") == std::string::npos);
}
END_TEST

/* Each byte of the text is changed in turn. */
START_TEST(a_damaged_text_is_refused) {
    struct error e = {};
    setenv("LRNN_CUDA_HOST_ALGORITHMS", "90000 20000", 1);
    chosen_product m;
    m.multiply(4);
    const std::string text = known_products();
    ck_assert_int_eq(algorithms_parse(text.data(), text.size(), "file", &e), ST_OK);
    for (size_t i = 0; i < text.size(); i++) {
        std::string other = text;
        other[i] ^= 1;
        ck_assert_msg(algorithms_parse(other.data(), other.size(), "file", &e) == ST_DATA, "byte %zu", i);
        ck_assert_msg(algorithms_parse(text.data(), i, "file", &e) == ST_DATA, "%zu bytes", i);
    }
    ck_assert(known_products() == text);
}
END_TEST

#endif

extern "C" Suite *check_cuda_host_products(void);
Suite *check_cuda_host_products(void) {
    Suite *suite = suite_create("cuda_host_products");
    TCase *tests = tcase_create("cuda_host_products");
    tcase_add_checked_fixture(tests, begin, end);
#if !REAL_IS_DOUBLE
    tcase_add_test(tests, a_product_does_what_its_epilogue_says);
    tcase_add_test(tests, products_that_do_not_fit_are_refused);
    tcase_add_test(tests, a_wrong_product_is_said);
    tcase_add_test(tests, the_fastest_algorithm_computes_a_product);
    tcase_add_test(tests, factors_of_bf16_have_16_bits);
    tcase_add_test(tests, a_sum_is_added_to_once);
    tcase_add_test(tests, a_capture_times_nothing);
    tcase_add_test(tests, a_refused_algorithm_is_replaced);
    tcase_add_test(tests, a_damaged_text_is_refused);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
