/*
 * Compiles the kernel with NVRTC for each supported architecture, for models of several shapes and
 * all dtypes. No device is needed. A second run takes unchanged kernels from the build folder; some
 * kernels with two lists are always compiled.
 *
 *     test_cuda_compile             sm_90a: two shapes, a program with two lists, an exit during a
 *                                   compilation; an unknown architecture; other comments
 *     test_cuda_compile others      the other architectures, with one shape each
 *     test_cuda_compile programs    PTX, the maximum of rows and sequences, traces, delays, other
 *                                   programs with two lists, a linker that fails
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/reworded.h"
#include "tests/vm/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schedule/variant_shapes.h"
#include "tests/scratch.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

static const char *const targets[][2] = {
    {"sm_80:108", "sm_80"},   {"sm_86:82", "sm_86"},      {"sm_89:128", "sm_89"},
    {"sm_90a:132", "sm_90a"}, {"sm_100a:148", "sm_100a"}, {"sm_120a:170", "sm_120a"},
};
enum { TARGETS = sizeof targets / sizeof *targets, SM_90A = 3 };
enum { QUICK_REWORDING = COMMENTS_LENGTHENED };

static const mgl_geometry tales = {256, 6, 4, 2, 64, 768, 913, 1e-5f};
static const mgl_geometry one_billion = {2048, 16, 32, 8, 64, 8192, 128256, 1e-5f};
static const mgl_geometry qwen3 = {1024, 28, 16, 8, 128, 3072, 151936, 1e-6f};
static const mgl_geometry eight_billion = {4096, 32, 32, 8, 128, 14336, 128256, 1e-5f};

static const struct {
    const mgl_geometry *geometry;
    device_options options;
} shapes[] = {
    {&tales, {.dtype = MGL_BF16, .capacity = 160}},
    {&odd_model,
     {.dtype = MGL_F32, .capacity = 64, .rows = 16, .sequences = 16, .warps = 16, .splits = 3}},
    {&one_billion, {.dtype = MGL_F16, .capacity = 4096}},
    {&eight_billion, {.dtype = MGL_BF16, .capacity = 2048, .sequences = 8}},
    {&small_model, {.dtype = MGL_F32, .capacity = 64, .rows = 1, .warps = 1}},
    {&qwen3, {.dtype = MGL_BF16, .capacity = 2048, .extras = ALL_EXTRAS}},
    /* the maximum of sequences and rows */
    {&one_billion,
     {.dtype = MGL_BF16,
      .capacity = 64,
      .sequences = 64,
      .rows = 8,
      .second_rows = 128,
      .gamma_scaled = MGL_GAMMA_YES,
      .warpgroups = MGL_WARPGROUPS_NO}},
};
enum { MOST_ROWS = sizeof shapes / sizeof *shapes - 1, SHAPES = MOST_ROWS };

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

/* If a warp copies a page, each 512 bytes must be one instruction: with loop overhead it is slower
 * than the memory, and a token of a 1B model takes a third longer. */
static void check_copies(const mgl_program *program, const char *ptx)
{
    ck_assert_int_ge(count_of(ptx, "cp.async.cg.shared.global"), program->exec.page_bytes / 512);
}

static void compile(int target, int shape, const char *arch, unsigned extras, bool ptx)
{
    mgl_error err;
    mgl_cuda_image image;
    mgl_graph *graph =
        random_family(shapes[shape].geometry, shapes[shape].options.extras, 4096, true, MGL_F32, 1);
    mgl_program *program = program_for(graph, targets[target][0], &shapes[shape].options);
    ok(mgl_cuda_compile(program, arch, extras, NULL, &image, &err), err);
    printf("%s, shape %d: %zu bytes, %.1f s%s\n", arch, shape, image.length, image.compile_s,
           image.cached ? " (kept from before)" : "");
    ck_assert_int_eq(image.ptx, ptx);
    ck_assert_uint_gt(image.length, 1000);
    ck_assert_msg(!memcmp(image.bytes, ptx ? "//" : "\177ELF", ptx ? 2 : 4), "not what was asked");
    if (ptx) /* memory written in an epoch must not be read non-coherently */
        ck_assert_ptr_null(strstr(image.bytes, "ld.global.nc"));
    if (!strcmp(arch, "compute_80"))
        check_copies(program, image.bytes);
    mgl_cuda_image_clear(&image);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* sm_90a with two shapes, the other architectures with one each: together, all shapes. */
START_TEST(an_architecture_compiles)
{
    compile(_i, _i % SHAPES, targets[_i][1], 0, false);
    if (_i == SM_90A)
        compile(_i, (_i + 2) % SHAPES, targets[_i][1], 0, false);
}
END_TEST

START_TEST(ptx_compiles)
{
    compile(3, 0, "compute_80", 0, true);
}
END_TEST

/* All parts that share the block's memory fit. */
START_TEST(most_rows_and_sequences_compile)
{
    compile(3, MOST_ROWS, "compute_90", 0, true);
}
END_TEST

START_TEST(extras_compile)
{
    compile(3, 2, "sm_90a", MGL_CUDA_DELAYS, false);
    compile(3, 0, "compute_80", MGL_CUDA_DELAYS | MGL_CUDA_TRACE, true);
}
END_TEST

/* Compiles the kernel of a program of two lists. Returns the threads of its block. `anew`: not from
 * the build folder. */
static int compile_lists(int target, int warps, bool anew, mgl_cuda_image *out)
{
    const device_options options = {.dtype = MGL_BF16,
                                    .capacity = 160,
                                    .sequences = 16,
                                    .rows = 8,
                                    .second_rows = 32,
                                    .gamma_scaled = MGL_GAMMA_YES,
                                    .warps = warps};
    static const char *const kept[] = {"MEGALITH_CACHE", "XDG_CACHE_HOME", "HOME"};
    char *were[3];
    mgl_error err;
    for (int i = 0; i < 3; i++) {
        were[i] = getenv(kept[i]) ? strdup(getenv(kept[i])) : NULL;
        if (anew)
            unsetenv(kept[i]);
    }
    mgl_graph *graph = random_family(&tales, 0, 4096, true, MGL_F32, 1);
    mgl_program *program = program_for(graph, targets[target][0], &options);
    ok(mgl_cuda_compile(program, targets[target][1], 0, NULL, out, &err), err);
    ck_assert(!(anew && out->cached));
    const int threads = (program->exec.warps + MGL_OTHER_WARPS) * 32;
    mgl_program_free(program);
    mgl_graph_free(graph);
    for (int i = 0; i < 3; i++) {
        if (were[i])
            setenv(kept[i], were[i], 1);
        free(were[i]);
    }
    return threads;
}

/* Whether the kernel was compiled as objects, whose functions are called by their own names. */
static bool is_linked(const mgl_cuda_image *image)
{
    static const char far[] = "_Z10do_small_mv";
    return memmem(image->bytes, image->length, far, sizeof far - 1) != NULL;
}

/* A function with a stack frame waits for it in L2, 0.5 us per task (objects.h). Only the second
 * list's attention has one, with the registers of eight consumer warps. */
static void check_frames(const mgl_cuda_image *image)
{
    static const char *const functions[] = {"_Z9do_skinny7machine",
                                            "_Z9do_panels7machine",
                                            "_Z10do_small_mv",
                                            "_Z11do_kv_round7machine",
                                            "_Z12do_kv_rounds7machine",
                                            "_Z8do_merge7machine",
                                            "_Z16run_panel_loader7machinePK16mgl_device_queue",
                                            "_Z17run_panel_landing7machinePK16mgl_device_queue"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const int bytes = frame_of(image->bytes, image->length, functions[i]);
        ck_assert_msg(bytes <= 0, "%s has a stack frame of %d bytes", functions[i], bytes);
        ck_assert_msg(bytes == 0, "%s: there is no such function", functions[i]);
    }
}

/* A block's threads have 65,536 registers together, allocated per four warps. */
static void check_registers(const mgl_cuda_image *image, int threads)
{
    const int count = registers_of(image->bytes, image->length, "megalith");
    ck_assert_int_gt(count, 0);
    ck_assert_msg((count + 7) / 8 * 8 * ((threads + 127) / 128 * 128) <= 65536,
                  "%d threads with %d registers are not launched", threads, count);
}

/* For an H100, with a number of warps that is no multiple of four, and for a device with less than
 * half the shared memory of a block. */
static const struct {
    int target, warps;
} of_two_lists[] = {{3, 0}, {3, 10}, {5, 0}};
enum { OF_TWO_LISTS = sizeof of_two_lists / sizeof *of_two_lists };

START_TEST(two_lists_are_compiled_in_objects)
{
    const mgl_nvrtc *nvrtc;
    mgl_cuda_image image;
    mgl_error err;
    ok(mgl_nvrtc_open(&nvrtc, &err), err);
    const bool links = mgl_jitlink_for(nvrtc, &err) != NULL;
    const int threads =
        compile_lists(of_two_lists[_i].target, of_two_lists[_i].warps, _i > 0, &image);
    printf("two lists: %zu bytes, %.1f s, %s\n", image.length, image.compile_s,
           links ? "linked" : err.message);
    ck_assert_int_eq(is_linked(&image), links);
    if (links && _i == 0)
        check_frames(&image);
    check_registers(&image, threads);
    mgl_cuda_image_clear(&image);
}
END_TEST

/* Compiles PTX for the architecture without the cache; the caller releases it. */
static mgl_cuda_image compile_anew(const mgl_program *program)
{
    mgl_error err;
    mgl_cuda_image image;
    char *kept = strdup(getenv("MEGALITH_CACHE"));
    char anew[] = MGL_BINARY_DIR "/kernels-XXXXXX";
    scratch_make(anew);
    setenv("MEGALITH_CACHE", anew, 1);
    ok(mgl_cuda_compile(program, "compute_80", 0, NULL, &image, &err), err);
    ck_assert(!image.cached);
    setenv("MEGALITH_CACHE", kept, 1);
    scratch_remove(anew);
    free(kept);
    return image;
}

/* The sources are compiled with their comments, which have no effect on the result. */
START_TEST(comments_change_no_ptx)
{
    static mgl_cuda_image built_in; /* of the first case */
    mgl_error err;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 1);
    mgl_program *program = program_for(graph, "sm_80:4", &shapes[4].options);
    if (!built_in.bytes)
        built_in = compile_anew(program);
    ok(mgl_cuda_override_all_sources(reword_sources(_i), mgl_cuda_source_count, &err), err);
    mgl_cuda_image reworded = compile_anew(program);
    ok(mgl_cuda_override_all_sources(NULL, 0, &err), err);
    ck_assert(built_in.ptx && reworded.ptx);
    ck_assert_uint_eq(built_in.length, reworded.length);
    ck_assert_mem_eq(built_in.bytes, reworded.bytes, built_in.length);
    mgl_cuda_image_clear(&reworded);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

static int links_nothing(void *link)
{
    (void)link;
    return 6;
}

/* If the linker rejects the objects, for example an older one, the kernel is compiled as one
 * text. */
START_TEST(what_is_not_linked_is_one_text)
{
    const mgl_jitlink *linker;
    mgl_cuda_image image;
    mgl_error err;
    if (mgl_jitlink_open(&linker, &err)) {
        printf("SKIPPED what_is_not_linked_is_one_text: %s\n", err.message);
        return;
    }
    mgl_jitlink refusing = *linker;
    refusing.complete = links_nothing;
    mgl_jitlink_override(&refusing);
    compile_lists(3, 0, true, &image);
    mgl_jitlink_override(NULL);
    ck_assert(!is_linked(&image));
    mgl_cuda_image_clear(&image);
}
END_TEST

START_TEST(an_unknown_architecture_is_told)
{
    mgl_error err;
    mgl_cuda_image image;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 1);
    mgl_program *program = program_for(graph, "sm_80:4", &shapes[4].options);
    ck_assert_int_eq(mgl_cuda_compile(program, "sm_999", 0, NULL, &image, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "sm_999"), "%s", err.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Compilation takes some seconds. */
static const mgl_cuda_source slow = {
    "slow.cu", (const unsigned char *)"#define A(x) x x x x x x x x\n"
                                      "__global__ void slow(float *a) {\n"
                                      "float s = 0; A(A(s = sinf(s) + *a++;)) *a = s; }\n"};

static void end_it(void *abort, mgl_stage stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    atomic_store((atomic_int *)abort, 1);
}

/* An abandoned NVRTC crashes at exit unless the exit waits for it. */
START_TEST(an_exit_waits_for_the_compiler)
{
    int how;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        mgl_cuda_image image;
        atomic_int abort = 0;
        mgl_cuda_watch watch = {&abort, end_it, &abort};
        mgl_status status =
            mgl_cuda_compile_sources(&slow, 1, "sm_90a", NULL, 0, &watch, &image, NULL);
        exit(status == MGL_INTERRUPTED ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}
END_TEST

static void add_quick(TCase *tests)
{
    /* first, because NVRTC must not run during a fork */
    tcase_add_loop_test(tests, an_exit_waits_for_the_compiler, 0, 3);
    tcase_add_loop_test(tests, an_architecture_compiles, SM_90A, SM_90A + 1);
    tcase_add_loop_test(tests, two_lists_are_compiled_in_objects, 0, 1);
    tcase_add_test(tests, an_unknown_architecture_is_told);
    tcase_add_loop_test(tests, comments_change_no_ptx, QUICK_REWORDING, QUICK_REWORDING + 1);
}

static void add_others(TCase *tests)
{
    tcase_add_loop_test(tests, an_architecture_compiles, 0, SM_90A);
    tcase_add_loop_test(tests, an_architecture_compiles, SM_90A + 1, TARGETS);
}

static void add_programs(TCase *tests)
{
    tcase_add_test(tests, ptx_compiles);
    tcase_add_loop_test(tests, comments_change_no_ptx, 0, QUICK_REWORDING);
    tcase_add_loop_test(tests, comments_change_no_ptx, QUICK_REWORDING + 1, REWORDINGS);
    tcase_add_test(tests, most_rows_and_sequences_compile);
    tcase_add_test(tests, extras_compile);
    tcase_add_loop_test(tests, two_lists_are_compiled_in_objects, 1, OF_TWO_LISTS);
    tcase_add_test(tests, what_is_not_linked_is_one_text);
}

int main(int argc, char **argv)
{
    int skip = skip_without_compiler("cuda_compile");
    if (skip)
        return skip;
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/kernels", 1);
    TCase *tests = tcase_create("cuda_compile");
    if (argc > 1 && !strcmp(argv[1], "others"))
        add_others(tests);
    else if (argc > 1 && !strcmp(argv[1], "programs"))
        add_programs(tests);
    else
        add_quick(tests);
    return fixture_main("cuda_compile", tests);
}
