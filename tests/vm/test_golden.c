/*
 * Tests of the provided checkpoints on the CPU VM against Hugging Face's results (golden.json):
 * greedy tokens, and the negative log-likelihood of the validation texts.
 */
#include "golden.h"
#include "tests/sanitized.h"

enum { TOGETHER = 4 }; /* texts per launch: a ragged batch */

static void open_model(golden_model *m, const char *name, const fixture_options *options,
                       bool plain)
{
    golden_open(m, name);
    m->program = fixture_program(m->checkpoint->graph, options);
    m->vm = fixture_vm(m->program, m->checkpoint->graph, plain);
}

/* Fast and plain path, one queue and many: tolerances 1e-4 and 1e-5. */
START_TEST(f32_is_hugging_face)
{
    golden_model m;
    open_model(&m, golden_names[_i],
               &(fixture_options){.dtype = MGL_F32, .capacity = 256, .sequences = TOGETHER}, false);
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
    fixture_options many = {.dtype = MGL_F32, .capacity = 256, .queues = 7, .splits = 3};
    open_model(&m, golden_names[_i], &many, true);
    golden_check_greedy(&m, 1e-4);
    golden_close(&m);
}
END_TEST

START_TEST(f32_of_families)
{
    golden_model m;
    open_model(&m, golden_families[_i],
               &(fixture_options){.dtype = MGL_F32, .capacity = 256, .sequences = 2}, false);
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

/* Longrope up to the original length: a smaller cache uses the short factors. */
START_TEST(f32_of_short_sequences)
{
    golden_model m;
    golden_open(&m, golden_families[_i]);
    const int most = m.checkpoint->graph->short_positions;
    golden_close(&m);
    if (!most)
        return;
    open_model(&m, golden_families[_i],
               &(fixture_options){.dtype = MGL_F32, .capacity = most, .sequences = 2}, false);
    golden_check_greedy(&m, 1e-4);
    golden_check_likelihood(&m, 1e-5);
    golden_close(&m);
}
END_TEST

START_TEST(bf16_of_families)
{
    golden_model m;
    open_model(&m, golden_families[_i],
               &(fixture_options){.dtype = MGL_BF16, .capacity = 256, .sequences = 2}, false);
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

/* bf16 weights, f32 sums, bf16 cache: 3e-4 and a gap of 0.1 for the trained model, 3e-3 and 0.2 for
 * random weights. */
START_TEST(bf16_is_close)
{
    golden_model m;
    open_model(&m, golden_names[_i],
               &(fixture_options){.dtype = MGL_BF16, .capacity = 256, .sequences = TOGETHER},
               false);
    golden_check_greedy(&m, _i == 0 ? 0.1 : 0.2);
    golden_check_likelihood(&m, _i == 0 ? 3e-4 : 3e-3);
    golden_close(&m);
}
END_TEST

START_TEST(f16_is_close)
{
    golden_model m;
    open_model(&m, golden_names[2],
               &(fixture_options){.dtype = MGL_F16, .capacity = 256, .sequences = TOGETHER}, _i);
    golden_check_greedy(&m, 0.2);
    golden_check_likelihood(&m, 3e-3);
    golden_close(&m);
}
END_TEST

/* Logits of the last prompt position, within f32 rounding. */
START_TEST(prompt_logits_are_hugging_faces)
{
    golden_model m;
    float logits[1024];
    open_model(&m, golden_names[_i],
               &(fixture_options){.dtype = MGL_F32, .capacity = 256, .sequences = TOGETHER}, false);
    const cJSON *golden;
    cJSON_ArrayForEach(golden, mgl_json_member(golden_fp32(&m), "greedy"))
    {
        mgl_error err;
        mgl_vm_report report;
        int32_t prompt[GOLDEN_MOST];
        int count = golden_ids(mgl_json_member(golden, "prompt_ids"), prompt), i = 0;
        mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = 1};
        mgl_vm_request request = {.sequences = &sequence, .count = 1};
        ok(mgl_vm_run(m.vm, &request, &report, &err), err);
        ok(mgl_vm_get_logits(m.vm, logits, &err), err);
        const cJSON *item;
        cJSON_ArrayForEach(item, mgl_json_member(golden, "last_logits_first16"))
        {
            ck_assert_double_eq_tol((double)logits[i], item->valuedouble, 2e-3);
            i++;
        }
        ck_assert_int_eq(i, 16);
    }
    golden_close(&m);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("golden");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, f32_is_hugging_face, BY_SANITIZER(0, GOLDEN_MODELS - 2),
                        GOLDEN_MODELS);
    tcase_add_loop_test(tests, f32_of_families, 0, BY_SANITIZER(GOLDEN_FAMILIES, 4));
    tcase_add_loop_test(tests, f32_of_short_sequences, 0, BY_SANITIZER(GOLDEN_FAMILIES, 4));
    tcase_add_loop_test(tests, bf16_of_families, 0, BY_SANITIZER(GOLDEN_FAMILIES, 4));
    tcase_add_loop_test(tests, bf16_is_close, 0, BY_SANITIZER(GOLDEN_MODELS, 1));
    tcase_add_loop_test(tests, f16_is_close, 0, BY_SANITIZER(2, 1));
    tcase_add_loop_test(tests, prompt_logits_are_hugging_faces, 0, GOLDEN_MODELS);
    return fixture_main("golden", tests);
}
