/*
 * Tests of quantized tensors on the CPU machine: a random model whose matrices are quantized, in
 * every scaled format, against the same model with the decoded weights in f32. With scales on the
 * tape a weight is decoded to the same f32 number, so that the logits have the same bits; row
 * factors multiply the outputs, so that they are near. The reference ops, a text form, a second
 * list, and the validator's MG711.
 */
#include "scaled_model.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "validator/validator.h"

static const mgl_weight_format formats[] = {
    {.code = MGL_CODE_INT8, .scales = MGL_F32, .group_rows = 1},
    {.code = MGL_CODE_INT8, .scales = MGL_BF16, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_INT8, .scales = MGL_F16, .group = 32, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_BF16, .group = 64, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_F16, .group = 128, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_INT4, .scales = MGL_F16, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_UINT4, .scales = MGL_F16, .group = 32, .group_rows = 1},
    {.code = MGL_CODE_UINT4, .scales = MGL_F32, .group_rows = 1},
    {.code = MGL_CODE_E4M3, .scales = MGL_F32, .group = 128, .group_rows = 128},
    {.code = MGL_CODE_E4M3, .scales = MGL_BF16, .group_rows = 1},
    {.code = MGL_CODE_E4M3, .scales = MGL_F32},
};
enum { FORMATS = sizeof formats / sizeof *formats, CAPACITY = 48, PROMPT = 9, TOKENS = 12 };

/* A model in f32, whose matrices are quantized, or have the decoded values. */
static mgl_graph *open_model(mgl_weight_format format, bool quantized, bool embedding)
{
    static const mgl_geometry geometry = {.hidden = 72,
                                          .layers = 2,
                                          .heads = 6,
                                          .kv_heads = 2,
                                          .head_dim = 24,
                                          .ffn = 200,
                                          .vocab = 83,
                                          .eps = 1e-5f};
    mgl_graph *graph = random_family(&geometry, MGL_EXTRA_QKV_BIAS, CAPACITY, false, MGL_F32, 5);
    quantize_matrices(graph, format, quantized, embedding);
    return graph;
}

static const int32_t prompt[PROMPT] = {1, 70, 33, 4, 82, 0, 15, 61, 9};

/* Runs a program; the last logits go to `logits` (vocab), the tokens to `tokens`. */
static void run(const mgl_program *program, const mgl_graph *graph, bool plain, float *logits,
                int32_t *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = PROMPT, .max_new = TOKENS};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], TOKENS);
    memcpy(tokens, report.output[0], TOKENS * sizeof *tokens);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
}

static double difference(const float *a, const float *b, int64_t n)
{
    double sum = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(sum / norm);
}

enum { VOCAB = 83 };

static void compare(const fixture_options *options, mgl_weight_format format, bool plain)
{
    mgl_graph *graph = open_model(format, true, false), *decoded = open_model(format, false, false);
    mgl_program *program = fixture_program(graph, options);
    mgl_program *other = fixture_program(decoded, options);
    float logits[VOCAB], wanted[VOCAB];
    int32_t tokens[TOKENS], same[TOKENS];
    ck_assert(
        mgl_weight_format_equal(program->tensors[program->segments[0].tensor].format, format));
    run(program, graph, plain, logits, tokens);
    run(other, decoded, plain, wanted, same);
    ck_assert_mem_eq(tokens, same, sizeof tokens);
    if (mgl_weight_format_has_factors(format))
        ck_assert_double_le(difference(logits, wanted, VOCAB), 1e-5);
    else
        ck_assert_mem_eq(logits, wanted, sizeof logits);
    mgl_program_free(program);
    mgl_program_free(other);
    mgl_graph_free(graph);
    mgl_graph_free(decoded);
}

START_TEST(a_quantized_model_is_the_decoded_one)
{
    compare(&(fixture_options){.queues = 3, .dtype = MGL_F32}, formats[_i], false);
}
END_TEST

START_TEST(the_reference_ops_read_scaled_formats)
{
    compare(&(fixture_options){.queues = 2, .dtype = MGL_F32}, formats[_i], true);
}
END_TEST

START_TEST(a_second_list_reads_the_same_tapes)
{
    compare(&(fixture_options){.queues = 3, .dtype = MGL_F32, .rows = 2, .second_rows = 8},
            formats[_i], false);
}
END_TEST

/* A quantized embedding is decoded to f32, and a tied head is quantized all the same. */
START_TEST(an_embedding_may_be_quantized)
{
    mgl_graph *graph = open_model(formats[_i], true, true);
    mgl_graph *decoded = open_model(formats[_i], false, true);
    const mgl_dtype dtypes[] = {MGL_F32, MGL_BF16};
    for (int i = 0; i < 2; i++) {
        const fixture_options options = {.queues = 2, .dtype = dtypes[i]};
        mgl_program *program = fixture_program(graph, &options);
        float logits[VOCAB], wanted[VOCAB];
        int32_t tokens[TOKENS], same[TOKENS];
        ck_assert(mgl_weight_format_is(program->tensors[0].format, MGL_F32));
        run(program, graph, false, logits, tokens);
        if (dtypes[i] == MGL_F32) {
            mgl_program *other = fixture_program(decoded, &options);
            run(other, decoded, false, wanted, same);
            ck_assert_mem_eq(tokens, same, sizeof tokens);
            ck_assert_double_le(difference(logits, wanted, VOCAB), 1e-5);
            mgl_program_free(other);
        }
        mgl_program_free(program);
    }
    mgl_graph_free(graph);
    mgl_graph_free(decoded);
}
END_TEST

/* Unscaled weights have the program's dtype, as before. */
START_TEST(unscaled_weights_are_converted)
{
    mgl_graph *graph = open_model(formats[0], false, false);
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = MGL_BF16});
    for (int i = 0; i < program->tensor_count; i++)
        ck_assert(program->tensors[i].rank != 2 ||
                  mgl_weight_format_is(program->tensors[i].format, MGL_BF16));
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Activations and cache have the program's dtype, the weights their own format. */
START_TEST(the_dtype_is_that_of_activations)
{
    mgl_graph *graph = open_model(formats[_i], true, false);
    mgl_program *program =
        fixture_program(graph, &(fixture_options){.queues = 2, .dtype = MGL_BF16});
    float logits[VOCAB];
    int32_t tokens[TOKENS];
    ck_assert_int_eq(program->kv_dtype, MGL_BF16);
    for (int i = 0; i < program->segment_count; i++)
        ck_assert(mgl_weight_format_equal(program->tensors[program->segments[i].tensor].format,
                                          formats[_i]));
    run(program, graph, false, logits, tokens);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(the_text_form_keeps_the_format)
{
    mgl_error err;
    mgl_graph *graph = open_model(formats[_i], true, false);
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = MGL_F32}), *back;
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    ok(mgl_schedule_parse(text.bytes, text.length, "text", &back, &err), err);
    ck_assert(mgl_program_equal(program, back));
    mgl_text_clear(&text);
    mgl_program_free(back);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- what is rejected ------------------------------------------------------------------------ */

static bool has_code(const mgl_verdict *verdict, int code)
{
    for (int i = 0; i < verdict->count; i++)
        if (verdict->diagnostics[i].code == code)
            return true;
    return false;
}

/* The validator's verdict on a program of `lowered` as a program of `graph`, with the first matrix
 * in another format: whether it has the code. */
static bool rejects(const mgl_graph *lowered, const mgl_graph *graph, mgl_weight_format format,
                    int code)
{
    mgl_error err;
    mgl_verdict verdict;
    mgl_program *program = fixture_program(lowered, &(fixture_options){.dtype = MGL_F32});
    program->tensors[program->segments[0].tensor].format = format;
    ok(mgl_validator_check(program, graph, &verdict, &err), err);
    const bool found = has_code(&verdict, code);
    ck_assert(verdict.accepted == (verdict.count == 0));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    return found;
}

START_TEST(another_format_is_another_meaning)
{
    const mgl_weight_format int4 = formats[3];
    mgl_weight_format other = int4;
    mgl_graph *graph = open_model(int4, true, false), *decoded = open_model(int4, false, false);
    ck_assert(!rejects(graph, graph, int4, 711));
    other.scales = MGL_F16; /* of the same bytes on the tape */
    ck_assert(rejects(graph, graph, other, 711));
    ck_assert(rejects(graph, decoded, int4, 711)); /* would quantize f32 weights */
    ck_assert(!rejects(decoded, graph, (mgl_weight_format){0}, 711)); /* decoded to f32 */
    mgl_graph_free(graph);
    mgl_graph_free(decoded);
}
END_TEST

START_TEST(row_factors_need_their_buffer)
{
    mgl_error err;
    mgl_verdict verdict;
    mgl_graph *graph = open_model(formats[0], true, false);
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = MGL_F32});
    mgl_program_tensor *t = &program->tensors[program->segments[0].tensor];
    ck_assert_int_ge(t->factors, 0);
    t->factors = -1;
    ok(mgl_validator_check(program, graph, &verdict, &err), err);
    ck_assert(has_code(&verdict, 105));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("scaled");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_quantized_model_is_the_decoded_one, 0, FORMATS);
    tcase_add_loop_test(tests, the_reference_ops_read_scaled_formats, 0, FORMATS);
    tcase_add_loop_test(tests, a_second_list_reads_the_same_tapes, 0, FORMATS);
    tcase_add_loop_test(tests, the_dtype_is_that_of_activations, 0, FORMATS);
    tcase_add_loop_test(tests, the_text_form_keeps_the_format, 0, FORMATS);
    tcase_add_loop_test(tests, an_embedding_may_be_quantized, 0, FORMATS);
    tcase_add_test(tests, unscaled_weights_are_converted);
    tcase_add_test(tests, another_format_is_another_meaning);
    tcase_add_test(tests, row_factors_need_their_buffer);
    return fixture_main("scaled formats", tests);
}
