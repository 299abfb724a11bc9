/*
 * Tests of number formats: those that the verdict names, and those that lose values of a checkpoint
 * (MG708).
 */
#include "support.h"

static const mgl_dtype floats[] = {MGL_F32, MGL_BF16, MGL_F16};
enum { FLOATS = sizeof floats / sizeof *floats };

static mgl_graph *graph_in(mgl_dtype dtype)
{
    mgl_graph *graph = tiny_graph(1);
    for (int i = 0; i < graph->tensor_count; i++)
        graph->tensors[i].dtype = dtype;
    graph->dtype = dtype;
    return graph;
}

static unsigned bit(mgl_dtype dtype)
{
    return 1u << dtype;
}

/* Tests each format of a program with each format of a checkpoint. */
START_TEST(only_f32_and_its_own_hold_a_format)
{
    mgl_dtype checkpoint = floats[_i / FLOATS], format = floats[_i % FLOATS];
    char got[64];
    mgl_graph *graph = graph_in(checkpoint);
    mgl_program *program = lowered_with(graph, 2, 1, 1, format);
    bool lossy = format != MGL_F32 && format != checkpoint;
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert(verdict.accepted);
    ck_assert_int_eq(verdict.formats.lossy, lossy);
    mgl_verdict_clear(&verdict);
    verdict = strict_verdict_of(program, graph);
    ck_assert_str_eq(codes_of(&verdict, got, sizeof got), lossy ? "MG708" : "accept");
    ck_assert(verdict.meaning_checked);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_verdict_names_the_formats)
{
    mgl_graph *graph = graph_in(MGL_BF16);
    mgl_program *program = lowered_with(graph, 2, 1, 1, MGL_F16);
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert_uint_eq(verdict.formats.checkpoint, bit(MGL_BF16));
    ck_assert_uint_eq(verdict.formats.weights, 1u << MGL_CODE_F16);
    ck_assert_uint_eq(verdict.formats.embedding, bit(MGL_F16));
    ck_assert_uint_eq(verdict.formats.exchange, bit(MGL_F32));
    ck_assert_uint_eq(verdict.formats.cache, bit(MGL_F16));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(nothing_is_lossy_without_a_checkpoint)
{
    mgl_graph *graph = graph_in(MGL_BF16);
    mgl_program *program = lowered_with(graph, 2, 1, 1, MGL_F16);
    mgl_verdict verdict = strict_verdict_of(program, NULL);
    ck_assert(verdict.accepted);
    ck_assert_uint_eq(verdict.formats.checkpoint, 0);
    ck_assert_uint_eq(verdict.formats.weights, 1u << MGL_CODE_F16);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The error names the one f32 tensor among bf16 tensors. */
START_TEST(each_tensor_has_its_own_format)
{
    mgl_graph *graph = graph_in(MGL_BF16);
    mgl_program *program = lowered_with(graph, 2, 1, 1, MGL_BF16);
    int down = mgl_graph_find_tensor(graph, "model.layers.0.mlp.down_proj.weight");
    ck_assert_int_ge(down, 0);
    graph->tensors[down].dtype = MGL_F32;
    mgl_verdict verdict = strict_verdict_of(program, graph);
    ck_assert_int_eq(verdict.count, 1);
    ck_assert_ptr_nonnull(strstr(verdict.diagnostics[0].message, "l0.down"));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(a_buffer_and_a_cache_are_compared_too)
{
    mgl_graph *graph = graph_in(MGL_F32);
    mgl_program *program = lowered_with(graph, 2, 1, 1, MGL_BF16);
    mgl_verdict verdict = strict_verdict_of(program, graph);
    ck_assert_int_eq(verdict.count, 2); /* the first tensor and the first cache */
    ck_assert_ptr_nonnull(strstr(verdict.diagnostics[1].message, "cache k0 is bf16"));
    mgl_verdict_clear(&verdict);
    for (int i = 0; i < program->buffer_count; i++)
        if (program->buffers[i].space == MGL_SPACE_ACT && !strcmp(program->buffers[i].name, "h"))
            program->buffers[i].dtype = MGL_BF16;
    verdict = strict_verdict_of(program, graph);
    ck_assert_int_eq(verdict.count, 3);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(sets_of_formats_are_printed)
{
    char text[MGL_FORMATS_TEXT];
    ck_assert_str_eq(mgl_formats_print(0, text), "");
    ck_assert_str_eq(mgl_formats_print(bit(MGL_F16), text), "f16");
    ck_assert_str_eq(mgl_formats_print_weights(0, text), "");
    ck_assert_str_eq(mgl_formats_print_weights(5u, text), "f32 and f16");
    ck_assert_str_eq(mgl_formats_print(bit(MGL_F32) | bit(MGL_BF16), text), "f32 and bf16");
    ck_assert_str_eq(mgl_formats_print(bit(MGL_DTYPE_COUNT) - 1, text),
                     "f32 and bf16 and f16 and i32");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator formats");
    TCase *cases = tcase_create("formats");
    tcase_add_loop_test(cases, only_f32_and_its_own_hold_a_format, 0, FLOATS * FLOATS);
    tcase_add_test(cases, a_verdict_names_the_formats);
    tcase_add_test(cases, nothing_is_lossy_without_a_checkpoint);
    tcase_add_test(cases, each_tensor_has_its_own_format);
    tcase_add_test(cases, a_buffer_and_a_cache_are_compared_too);
    tcase_add_test(cases, sets_of_formats_are_printed);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
