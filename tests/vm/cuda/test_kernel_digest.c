/* Tests of the normal form of a kernel's text: edits that do not change it, and edits that do. */
#include "vm/cuda/kernel_digest.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static char *normalize(const char *unit, const char *header)
{
    mgl_error err = {0};
    mgl_text text = {0};
    const mgl_cuda_source sources[] = {{"unit.cu", (const unsigned char *)unit},
                                       {"a/header.cuh", (const unsigned char *)header}};
    ck_assert_int_eq(mgl_cuda_normalize(sources, 2, &text, &err), MGL_OK);
    return text.bytes;
}

static const char header[] =
    "#pragma once\n/* a comment */\nstatic float scale_of(float x, int n)\n"
    "{\n    return rsqrtf(x / n); // why\n}\n"
    "enum { FIRST, SECOND = 2 };\n#define WIDTH 32\n";
static const char unit[] = "#include \"a/header.cuh\"\n__global__ void kernel(float *to)\n{\n"
                           "    to[threadIdx.x] = scale_of(to[0], WIDTH) * SECOND;\n}\n";

static const struct {
    const char *unit, *header;
    bool same;
} variants[] = {
    /* other comments, spaces, names, and a header that is included twice */
    {"#include \"a/header.cuh\"\n#include \"a/header.cuh\"\n"
     "__global__ void kernel(float *out) { // here\n"
     "    out[threadIdx.x] = factor(out[0], COLUMNS) * B;\n}\n",
     "static float factor(float value, int count) { return rsqrtf(value / count); }\n"
     "enum { A, B = 2 };\n#define COLUMNS 32\n",
     true},
    {unit,
     "static float scale_of(float x, int n)\n{ return sqrtf(x / n); }\n"
     "enum { FIRST, SECOND = 2 };\n#define WIDTH 32\n",
     false},
    {unit,
     "static float scale_of(float x, int n)\n{ return rsqrtf(n / x); }\n"
     "enum { FIRST, SECOND = 2 };\n#define WIDTH 32\n",
     false},
    {unit,
     "static float scale_of(float x, int n)\n{ return rsqrtf(x / n); }\n"
     "enum { FIRST, SECOND = 3 };\n#define WIDTH 32\n",
     false},
    {unit,
     "static float scale_of(float x, int n)\n{ return rsqrtf(x / n); }\n"
     "enum { SECOND, FIRST = 2 };\n#define WIDTH 32\n",
     false},
    {"#include \"a/header.cuh\"\n__global__ void kernel(float *to)\n{\n"
     "    to[threadIdx.y] = scale_of(to[0], WIDTH) * SECOND;\n}\n",
     header, false},
};

START_TEST(test_variants)
{
    char *wanted = normalize(unit, header);
    char *made = normalize(variants[_i].unit, variants[_i].header);
    const bool same = !strcmp(wanted, made);
    ck_assert_msg(same == variants[_i].same, "%s\n%s", wanted, made);
    mgl_text a = {.bytes = wanted}, b = {.bytes = made};
    mgl_text_clear(&a);
    mgl_text_clear(&b);
}
END_TEST

/* The built-in sources: every name that they declare is found, and no CUDA name is renamed. */
START_TEST(test_kernel)
{
    mgl_error err = {0};
    mgl_text text = {0};
    ck_assert_int_eq(mgl_cuda_normalize(mgl_cuda_sources, mgl_cuda_source_count, &text, &err),
                     MGL_OK);
    ck_assert_ptr_nonnull(strstr(text.bytes, " rsqrtf "));
    ck_assert_ptr_nonnull(strstr(text.bytes, " threadIdx "));
    ck_assert_ptr_nonnull(strstr(text.bytes, " MGL_HIDDEN "));
    ck_assert_ptr_null(strstr(text.bytes, "/*"));
    ck_assert_ptr_null(strstr(text.bytes, " # include \""));
    mgl_text_clear(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_digest");
    TCase *cases = tcase_create("kernel_digest");
    tcase_add_loop_test(cases, test_variants, 0, sizeof variants / sizeof *variants);
    tcase_add_test(cases, test_kernel);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
