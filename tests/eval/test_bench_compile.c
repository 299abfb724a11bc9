/*
 * NVRTC compiles the benchmark's kernels for each supported architecture, with one or two named
 * shapes each; no device is needed.
 *
 *     test_bench_compile          sm_90a, and the smallest and largest heads
 *     test_bench_compile others   the other architectures, and other heads
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "eval/device.h"

enum { SKIP = 77 };

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

static const struct {
    const char *arch, *shape;
} targets[] = {
    {"sm_90a", "smollm2-135m"},    {"sm_90a", "qwen3-0.6b"}, {"sm_80", "llama-1b"},
    {"sm_86", "llama-3b"},         {"sm_89", "llama-8b"},    {"sm_100a", "qwen2.5-0.5b"},
    {"sm_120a", "tinyllama-1.1b"},
};
enum { TARGETS = sizeof targets / sizeof *targets, OF_SM_90A = 2 };

static void compile(const mgl_geometry *geometry, const char *arch)
{
    mgl_error err;
    mgl_cuda_image image;
    ok(mgl_bench_compile(geometry, arch, NULL, &image, &err), err);
    ck_assert_msg(!memcmp(image.bytes, "\177ELF", 4), "not machine code");
    printf("%s: %zu bytes, %.1f s\n", arch, image.length, image.compile_s);
#define MGL_X(id, name, block)                                                                     \
    ck_assert_msg(memmem(image.bytes, image.length, #name, sizeof #name), "no kernel " #name);
    MGL_BENCH_KERNELS(MGL_X)
#undef MGL_X
    mgl_cuda_image_clear(&image);
}

START_TEST(an_architecture_compiles)
{
    mgl_error err;
    mgl_config config;
    ok(mgl_synthetic_find_shape(targets[_i].shape, &config, &err), err);
    compile(&config.geometry, targets[_i].arch);
}
END_TEST

/* The smallest and the largest head, alone and with the maximum of query heads that share a kv
 * head. */
START_TEST(every_head_compiles)
{
    static const mgl_geometry odd[] = {{64, 1, 2, 2, 16, 64, 64, 1e-5f},
                                       {64, 1, 8, 1, 256, 64, 64, 1e-5f},
                                       {64, 1, 8, 1, 128, 64, 64, 1e-5f},
                                       {64, 1, 3, 1, 32, 64, 64, 1e-5f}};
    compile(&odd[_i], "sm_90a");
}
END_TEST

int main(int argc, char **argv)
{
    mgl_cuda_probe probe;
    mgl_cuda_get_probe(&probe);
    if (!probe.nvrtc) {
        printf("SKIPPED bench_compile: nothing was compiled: %s\n", probe.nvrtc_reason);
        return SKIP;
    }
    TCase *tests = tcase_create("bench_compile");
    if (argc > 1 && !strcmp(argv[1], "others")) {
        tcase_add_loop_test(tests, an_architecture_compiles, OF_SM_90A, TARGETS);
        tcase_add_loop_test(tests, every_head_compiles, 2, 4);
    } else {
        tcase_add_loop_test(tests, an_architecture_compiles, 0, OF_SM_90A);
        tcase_add_loop_test(tests, every_head_compiles, 0, 2);
    }
    Suite *suite = suite_create("bench_compile");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
