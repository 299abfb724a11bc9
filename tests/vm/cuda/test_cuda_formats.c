/* Tests of programs with scaled weights that the CUDA machine rejects before it uses a device, and
 * of a quantized embedding in a program for a GPU. */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/scaled_model.h"

#include <string.h>

#include "schedule/variants.h"
#include "vm/cuda/encode.h"

/* Checks that the program is rejected with a message that contains `why`. */
static void refused(const mgl_program *program, const char *why)
{
    mgl_error err = {0};
    ck_assert_int_eq(mgl_cuda_check_program(program, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, why) != NULL, "%s", err.message);
}

/* A program for a GPU whose matrices have a scaled format. */
static mgl_program *scaled_program(const mgl_geometry *geometry, mgl_weight_format format,
                                   const device_options *options)
{
    mgl_graph *graph = random_graph(geometry, 64, true, MGL_F32, 5);
    quantize_matrices(graph, format, true, false);
    mgl_program *program = program_for(graph, "sm_90a:2", options);
    mgl_graph_free(graph);
    return program;
}

/* The kernel adds 16 or 32 columns at a time. */
START_TEST(formats_missing_in_the_kernel_are_rejected)
{
    static const struct {
        mgl_weight_format format;
        const char *why;
    } cases[] = {{{MGL_CODE_INT4, MGL_F16, 80, 1, false}, "groups of 16 columns, or of a multiple"},
                 {{MGL_CODE_INT8, MGL_F32, 48, 1, true}, "groups of 16 columns, or of a multiple"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_program *program =
            scaled_program(&small_model, cases[i].format, &(device_options){.capacity = 64});
        refused(program, cases[i].why);
        mgl_program_free(program);
    }
}
END_TEST

static const mgl_weight_format int8_groups = {MGL_CODE_INT8, MGL_F32, 32, 1, true};

/* The ring holds the scales of a row group, and the stage the ranges of the warps. */
START_TEST(scales_and_ranges_need_room)
{
    mgl_error err;
    mgl_program *program =
        scaled_program(&small_model, int8_groups, &(device_options){.capacity = 64});
    ok(mgl_cuda_check_program(program, &err), err);
    const mgl_exec exec = program->exec;
    program->exec.page_bytes = 512;
    program->exec.ring_pages = MGL_MIN_PAGES;
    refused(program, "increase ring_pages");
    program->exec = exec;
    program->exec.stage_bytes = 0;
    refused(program, "increase stage_bytes");
    mgl_program_free(program);
}
END_TEST

/* The integer sum of a row with one scale has 32 bits. Groups and e4m3 codes have no such limit. */
START_TEST(integer_sums_have_32_bits)
{
    static const mgl_weight_format formats[] = {{MGL_CODE_INT8, MGL_F32, MGL_GROUP_ALL, 1, false},
                                                {MGL_CODE_INT8, MGL_F32, 32, 1, true},
                                                {MGL_CODE_E4M3, MGL_F32, MGL_GROUP_ALL, 1, false}};
    for (int i = 0; i < 3; i++) {
        mgl_error err = {0};
        mgl_program *program =
            scaled_program(&small_model, formats[i], &(device_options){.capacity = 64});
        ok(mgl_cuda_check_program(program, &err), err);
        program->segments[0].col_hi = program->segments[0].col_lo + (1 << 16);
        const mgl_status status = mgl_cuda_check_program(program, &err);
        ck_assert_int_eq(status != MGL_OK && strstr(err.message, "fewer than 65536 columns"),
                         i == 0);
        mgl_program_free(program);
    }
}
END_TEST

/* 36 columns in f32 are whole granules; of 16-bit weights they are not. */
START_TEST(flagged_inputs_are_whole_granules_of_the_weights)
{
    static const mgl_geometry narrow = {36, 1, 2, 1, 20, 44, 75, 1e-5f};
    const device_options options = {
        .dtype = MGL_F32, .capacity = 64, .exchange = MGL_EXCHANGE_FLAGS};
    mgl_error err;
    mgl_program *program = scaled_program(&narrow, int8_groups, &options);
    ok(mgl_cuda_check_program(program, &err), err);
    for (int i = 0; i < program->tensor_count; i++) /* only scaled weights remain */
        if (program->tensors[i].rank == 2 &&
            !mgl_weight_format_is_scaled(program->tensors[i].format))
            program->tensors[i].format = mgl_weight_format_of(MGL_BF16);
    program->weight_dtype = MGL_BF16;
    refused(program, "not whole granules");
    mgl_program_free(program);
}
END_TEST

/* The table has the decoded weights in f32, so the validator finds the checkpoint's values. */
START_TEST(a_quantized_embedding_is_decoded_for_a_gpu)
{
    mgl_error err;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    quantize_matrices(graph, int8_groups, true, true);
    mgl_program *program =
        program_for(graph, "sm_90a:2", &(device_options){.dtype = MGL_BF16, .capacity = 64});
    ck_assert_int_eq(program->embedding_dtype, MGL_F32);
    ok(mgl_vm_check(program, graph, &err), err);
    ok(mgl_cuda_check_program(program, &err), err);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Products of one row run as skinny and those of 2 to 8 rows as a batch, unless the run of a warp
 * splits a group or the program's dtype is f32. */
START_TEST(scaled_weights_have_fast_variants)
{
    static const mgl_geometry wide = {384, 1, 6, 3, 64, 1536, 75, 1e-5f};
    static const struct {
        mgl_weight_format format;
        mgl_dtype dtype;
        int rows, warps;
        mgl_variant variant;
    } cases[] = {{{MGL_CODE_INT8, MGL_F32, 0, 1, false}, MGL_BF16, 1, 2, MGL_VARIANT_SKINNY},
                 {{MGL_CODE_INT8, MGL_F16, 128, 1, true}, MGL_BF16, 1, 3, MGL_VARIANT_SKINNY},
                 {{MGL_CODE_INT8, MGL_F16, 128, 1, true}, MGL_BF16, 1, 2, MGL_VARIANT_GENERAL},
                 {{MGL_CODE_E4M3, MGL_F32, 128, 128, false}, MGL_F16, 1, 6, MGL_VARIANT_SKINNY},
                 {{MGL_CODE_UINT4, MGL_F32, 32, 1, false}, MGL_BF16, 1, 8, MGL_VARIANT_SKINNY},
                 {{MGL_CODE_INT8, MGL_F32, 16, 1, false}, MGL_BF16, 1, 8, MGL_VARIANT_SKINNY},
                 {{MGL_CODE_INT4, MGL_BF16, 64, 1, false}, MGL_BF16, 3, 3, MGL_VARIANT_BATCH},
                 {{MGL_CODE_INT8, MGL_F32, 0, 1, false}, MGL_BF16, 2, 2, MGL_VARIANT_BATCH},
                 {{MGL_CODE_INT8, MGL_F16, 128, 1, true}, MGL_BF16, 2, 2, MGL_VARIANT_GENERAL},
                 {{MGL_CODE_INT4, MGL_BF16, 64, 1, false}, MGL_BF16, 16, 3, MGL_VARIANT_BY_ROWS},
                 {{MGL_CODE_INT4, MGL_BF16, 64, 1, false}, MGL_F32, 1, 3, MGL_VARIANT_GENERAL}};
    const device_options options = {.dtype = cases[_i].dtype,
                                    .capacity = 64,
                                    .rows = cases[_i].rows,
                                    .warps = cases[_i].warps,
                                    .exchange = MGL_EXCHANGE_FLAGS};
    mgl_error err;
    mgl_program *program = scaled_program(&wide, cases[_i].format, &options);
    ok(mgl_cuda_check_program(program, &err), err);
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == MGL_OP_NORM_LINEAR)
            ck_assert_int_eq(program->tasks[i].variant, cases[_i].variant);
    mgl_dimensions dimensions;
    mgl_dimensions_of_program(program, &dimensions);
    for (int i = 0; i < program->task_count; i++) {
        if (program->tasks[i].variant != MGL_VARIANT_BY_ROWS)
            continue;
        const mgl_row_ranges ranges =
            mgl_variant_row_ranges(program, &program->tasks[i], &dimensions);
        /* the head is not quantized */
        ck_assert_int_eq(ranges.skinny, program->tasks[i].op == MGL_OP_HEAD ? 2 : 1);
        ck_assert_int_eq(ranges.batch, 8); /* more rows run as general */
    }
    mgl_program_free(program);
}
END_TEST

/* v has another format than q and k. A queue with rows of both formats gets two tasks. */
START_TEST(matrices_of_other_formats_have_tasks_of_their_own)
{
    mgl_error err;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 5);
    quantize_matrices(graph, int8_groups, true, false);
    for (int i = 0; i < graph->tensor_count; i++)
        if (strstr(graph->tensors[i].name, "v_proj.weight"))
            graph->tensors[i].quantized = (mgl_weight_format){MGL_CODE_INT4, MGL_F32, 32, 1, true};
    mgl_program *program =
        program_for(graph, "sm_90a:2", &(device_options){.dtype = MGL_BF16, .capacity = 64});
    ok(mgl_cuda_check_program(program, &err), err);
    int tasks = 0;
    for (int i = 0; i < program->task_count; i++)
        tasks += program->tasks[i].op == MGL_OP_NORM_LINEAR;
    ck_assert_int_eq(tasks, small_model.layers * 3); /* one of two queues has both formats */
    ok(mgl_vm_check(program, graph, &err), err);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda formats");
    tcase_add_test(tests, formats_missing_in_the_kernel_are_rejected);
    tcase_add_test(tests, scales_and_ranges_need_room);
    tcase_add_test(tests, integer_sums_have_32_bits);
    tcase_add_test(tests, flagged_inputs_are_whole_granules_of_the_weights);
    tcase_add_loop_test(tests, scaled_weights_have_fast_variants, 0, 11);
    tcase_add_test(tests, matrices_of_other_formats_have_tasks_of_their_own);
    tcase_add_test(tests, a_quantized_embedding_is_decoded_for_a_gpu);
    return fixture_main("cuda formats", tests);
}
