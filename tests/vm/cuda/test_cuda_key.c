/*
 * Tests of the keys of compiled kernels: which programs share a kernel. No compiler and no device
 * is needed. Values that a launch can set, such as the capacity, must not be constants of the
 * kernel. Otherwise every prompt length would need a compilation.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/reworded.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"

enum { POSITIONS = 131072, REPLY = 128 /* tokens of a reply by default */ };

static const mgl_geometry tales = {256, 6, 4, 2, 64, 768, 913, 1e-5f};
static const mgl_geometry smollm = {576, 30, 9, 3, 64, 1536, 49152, 1e-5f};
static const mgl_geometry one_billion = {2048, 16, 32, 8, 64, 8192, 128256, 1e-5f};
static const mgl_geometry eight_billion = {4096, 32, 32, 8, 128, 14336, 128256, 1e-5f};

/* The key of a program's kernel. */
typedef struct key {
    char text[MGL_SHA256_HEX];
} key;

static mgl_program *program_of(const mgl_geometry *geometry, const char *target,
                               const device_options *options)
{
    static const float inv_freq[64] = {1};
    mgl_error err;
    mgl_graph *graph;
    ok(mgl_graph_build_llama(geometry, POSITIONS, true, MGL_BF16, inv_freq, &graph, &err), err);
    mgl_program *program = program_for(graph, target, options);
    mgl_graph_free(graph);
    return program;
}

static key key_of(const mgl_geometry *geometry, const char *arch, int capacity, int sequences)
{
    key out;
    char target[32];
    snprintf(target, sizeof target, "%s:132", arch);
    const device_options options = {
        .dtype = MGL_BF16, .capacity = capacity, .sequences = sequences};
    mgl_program *program = program_of(geometry, target, &options);
    mgl_cuda_kernel_key(program, arch, 0, out.text);
    mgl_program_free(program);
    return out;
}

static bool is_same(const key *a, const key *b)
{
    return !strcmp(a->text, b->text);
}

/* ---- capacities ------------------------------------------------------------------------------ */

/* Prompts of different length, each with room for a reply: one kernel. */
static const struct {
    const mgl_geometry *geometry;
    int prompts[3];
} replies[] = {{&tales, {5, 50, 700}}, {&smollm, {5, 50, 8000}}, {&one_billion, {20, 200, 2000}}};

START_TEST(prompts_of_any_length_share_a_kernel)
{
    const mgl_geometry *geometry = replies[_i].geometry;
    const key first = key_of(geometry, "sm_90a", replies[_i].prompts[0] + REPLY, 1);
    for (int i = 1; i < 3; i++) {
        const key other = key_of(geometry, "sm_90a", replies[_i].prompts[i] + REPLY, 1);
        ck_assert_msg(is_same(&first, &other), "a prompt of %d tokens has a kernel of its own",
                      replies[_i].prompts[i]);
    }
}
END_TEST

/* The number of kernels over all capacities. */
static const struct {
    const mgl_geometry *geometry;
    const char *arch;
    int sequences, kernels;
} kinds[] = {
    {&tales, "sm_90a", 1, 1},       {&tales, "sm_90a", 4, 1},         {&smollm, "sm_90a", 1, 1},
    {&one_billion, "sm_90a", 8, 1}, {&smollm, "sm_80", 1, 1},         {&one_billion, "sm_80", 1, 1},
    {&one_billion, "sm_90a", 1, 2}, {&eight_billion, "sm_90a", 1, 2}, /* and one for the ring */
};

START_TEST(all_capacities_have_few_kernels)
{
    enum { MOST = 40 };
    key seen[MOST];
    int count = 0;
    for (int capacity = 33; capacity <= POSITIONS && count < MOST; capacity += capacity / 2 + 1) {
        seen[count] = key_of(kinds[_i].geometry, kinds[_i].arch, capacity, kinds[_i].sequences);
        int i = 0;
        while (!is_same(&seen[i], &seen[count]))
            i++;
        count += i == count;
    }
    ck_assert_int_eq(count, kinds[_i].kernels);
}
END_TEST

/* The effect of a capacity in the one kernel that knows it. */
START_TEST(a_split_of_more_than_registers_hold_has_the_other_kernel)
{
    key keys[3];
    int split_at = 0;
    for (int capacity = 4000; capacity < 4200 && split_at == 0; capacity++) {
        mgl_program *program = program_of(
            &one_billion, "sm_90a:132", &(device_options){.dtype = MGL_BF16, .capacity = capacity});
        split_at = mgl_cuda_streams_kv(program, "sm_90a") ? capacity : 0;
        mgl_program_free(program);
    }
    ck_assert_int_gt(split_at, 4000);
    for (int i = 0; i < 3; i++)
        keys[i] = key_of(&one_billion, "sm_90a", split_at - 1 + i, 1);
    ck_assert(!is_same(&keys[0], &keys[1]));
    ck_assert(is_same(&keys[1], &keys[2]));
}
END_TEST

/* ---- sequences ------------------------------------------------------------------------------- */

/* A kernel for one sequence omits the code that only batches need. */
START_TEST(batches_of_as_many_rows_share_a_kernel)
{
    const key one = key_of(&tales, "sm_90a", 160, 1), two = key_of(&tales, "sm_90a", 160, 2);
    const key eight = key_of(&tales, "sm_90a", 160, 8), nine = key_of(&tales, "sm_90a", 160, 9);
    const key most = key_of(&tales, "sm_90a", 160, 64);
    ck_assert(is_same(&two, &eight));
    ck_assert(!is_same(&one, &two));
    ck_assert(!is_same(&eight, &nine)); /* which have a second list */
    ck_assert(is_same(&nine, &most));
}
END_TEST

/* The key includes everything that shapes the code. */
START_TEST(another_shape_has_another_kernel)
{
    const device_options options[] = {{.dtype = MGL_BF16, .capacity = 160},
                                      {.dtype = MGL_F16, .capacity = 160},
                                      {.dtype = MGL_BF16, .capacity = 160, .rows = 3},
                                      {.dtype = MGL_BF16, .capacity = 160, .warps = 4}};
    key keys[4];
    for (int i = 0; i < 4; i++) {
        mgl_program *program = program_of(&tales, "sm_90a:132", &options[i]);
        mgl_cuda_kernel_key(program, "sm_90a", 0, keys[i].text);
        mgl_program_free(program);
        for (int j = 0; j < i; j++)
            ck_assert(!is_same(&keys[i], &keys[j]));
    }
}
END_TEST

/* The embedding's dtype is a constant of the kernel; the exchange's dtype belongs to a task. */
START_TEST(the_embedding_is_in_the_key)
{
    key keys[3];
    const device_options options = {.dtype = MGL_BF16, .capacity = 160};
    mgl_program *program = program_of(&tales, "sm_90a:132", &options);
    mgl_cuda_kernel_key(program, "sm_90a", 0, keys[0].text);
    program->exchange_dtype = MGL_F32;
    mgl_cuda_kernel_key(program, "sm_90a", 0, keys[1].text);
    program->embedding_dtype = MGL_F32;
    mgl_cuda_kernel_key(program, "sm_90a", 0, keys[2].text);
    ck_assert(is_same(&keys[0], &keys[1]));
    ck_assert(!is_same(&keys[0], &keys[2]));
    mgl_program_free(program);
}
END_TEST

/* ---- comments -------------------------------------------------------------------------------- */

static key key_with(const mgl_cuda_source *sources, int count)
{
    mgl_error err;
    ok(mgl_cuda_override_all_sources(sources, count, &err), err);
    const key out = key_of(&tales, "sm_90a", 160, 16);
    ok(mgl_cuda_override_all_sources(NULL, 0, &err), err);
    return out;
}

START_TEST(comments_are_not_in_the_key)
{
    const key built_in = key_with(NULL, 0);
    const key reworded = key_with(reword_sources(_i), mgl_cuda_source_count);
    ck_assert(is_same(&built_in, &reworded));
}
END_TEST

/* One more token, in each of the sources. */
START_TEST(a_token_is_in_the_key)
{
    const key built_in = key_with(NULL, 0);
    for (int i = 0; i < mgl_cuda_source_count; i++) {
        mgl_text text = {0};
        mgl_text_format(&text, "%s\n;", (const char *)mgl_cuda_sources[i].text);
        ck_assert(!text.failed);
        const mgl_cuda_source other = {mgl_cuda_sources[i].name, (unsigned char *)text.bytes};
        const key changed = key_with(&other, 1);
        ck_assert_msg(!is_same(&built_in, &changed), "%s", other.name);
        mgl_text_clear(&text);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda_key");
    tcase_add_loop_test(tests, prompts_of_any_length_share_a_kernel, 0,
                        (int)(sizeof replies / sizeof *replies));
    tcase_add_loop_test(tests, all_capacities_have_few_kernels, 0,
                        (int)(sizeof kinds / sizeof *kinds));
    tcase_add_test(tests, a_split_of_more_than_registers_hold_has_the_other_kernel);
    tcase_add_test(tests, batches_of_as_many_rows_share_a_kernel);
    tcase_add_test(tests, another_shape_has_another_kernel);
    tcase_add_test(tests, the_embedding_is_in_the_key);
    tcase_add_loop_test(tests, comments_are_not_in_the_key, 0, REWORDINGS);
    tcase_add_test(tests, a_token_is_in_the_key);
    return fixture_main("cuda_key", tests);
}
