/* The provided checkpoints on the CPU VM, against what Hugging Face answers for them (golden.json):
 * greedy tokens one for one, and the negative log-likelihood of the validation texts. */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

/* A checkpoint with its goldens, on a machine. */
struct model {
    const char *name;
    mgl_checkpoint *checkpoint;
    cJSON *golden, *texts;
    mgl_tokenizer *tokenizer;
    mgl_program *program;
    mgl_vm *vm;
};

static const char *const names[] = {"tales-5m", "llama3-rope", "llama-linear-rope"};

static void path_of(char *to, size_t size, const char *model, const char *file)
{
    snprintf(to, size, MGL_SOURCE_DIR "/tests/models/%s/%s", model, file);
}

/* Plain cJSON: the goldens of the tokenizer hold a \u0000, which the strict reader refuses. */
static cJSON *read_json(const char *model, const char *file)
{
    char path[512], *text;
    size_t length;
    mgl_error err;
    path_of(path, sizeof path, model, file);
    ok(mgl_file_read(path, 1 << 20, &text, &length, &err), err);
    cJSON *json = cJSON_ParseWithLength(text, length);
    ck_assert_ptr_nonnull(json);
    mgl_free(text);
    return json;
}

static void open_model(struct model *m, const char *name, const fixture_options *options,
                       bool plain)
{
    char path[512];
    mgl_error err;
    m->name = name;
    path_of(path, sizeof path, name, "");
    ok(mgl_import(path, &m->checkpoint, &err), err);
    ok(mgl_tokenizer_open(path, &m->tokenizer, &err), err);
    m->golden = read_json(name, "golden.json");
    m->texts = read_json(name, "val_texts.json");
    m->program = fixture_program(m->checkpoint->graph, options);
    m->vm = fixture_vm(m->program, m->checkpoint->graph, plain);
}

static void close_model(struct model *m)
{
    mgl_vm_close(m->vm);
    mgl_program_free(m->program);
    mgl_checkpoint_close(m->checkpoint);
    mgl_tokenizer_close(m->tokenizer);
    cJSON_Delete(m->golden);
    cJSON_Delete(m->texts);
}

static const cJSON *fp32_of(const struct model *m)
{
    return mgl_json_member(m->golden, "fp32");
}

static int read_ids(const cJSON *array, int32_t *ids, int most)
{
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        ck_assert_int_lt(count, most);
        ids[count++] = (int32_t)item->valuedouble;
    }
    return count;
}

/* ---- greedy --------------------------------------------------------------------------------- */

enum { MOST = 256 };

/* One prompt. Where the tokens part, the f32 gap must be under `gap`. */
static void check_greedy(const struct model *m, const cJSON *golden, double gap)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[MOST], wanted[MOST], ends[16];
    const cJSON *gaps = mgl_json_member(golden, "top_two_gap");
    int prompts = read_ids(mgl_json_member(golden, "prompt_ids"), prompt, MOST);
    int count = read_ids(mgl_json_member(golden, "output_ids"), wanted, MOST);
    const mgl_generation *generation = &m->checkpoint->generation;
    for (size_t i = 0; i < generation->end_count; i++)
        ends[i] = generation->end_tokens[i];
    mgl_vm_sequence sequence = {.prompt = prompt,
                                .prompt_count = prompts,
                                .max_new = 64,
                                .ends = ends,
                                .end_count = (int32_t)generation->end_count};
    ok(mgl_vm_run(m->vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
       err);
    for (int i = 0; i < count; i++) {
        if (i < report.produced[0] && report.output[0][i] == wanted[i])
            continue;
        double at = cJSON_GetArrayItem(gaps, i)->valuedouble;
        ck_assert_msg(at < gap, "%s: token %d is %d, not %d, where the gap is %g", m->name, i,
                      report.output[0][i], wanted[i], at);
        printf("%s: parts at token %d, where the gap of the two best logits is %g\n", m->name, i,
               at);
        return;
    }
    ck_assert_int_eq(report.produced[0], count);
}

static void check_all_greedy(const struct model *m, double gap)
{
    const cJSON *golden;
    int count = 0;
    cJSON_ArrayForEach(golden, mgl_json_member(fp32_of(m), "greedy"))
    {
        check_greedy(m, golden, gap);
        count++;
    }
    ck_assert_int_ge(count, 4);
}

/* ---- likelihood ----------------------------------------------------------------------------- */

enum { TOGETHER = 4 }; /* texts of a launch: a ragged batch */

/* Scores a batch of texts; adds to *nll and *tokens. */
static void score_texts(const struct model *m, const cJSON *const *texts, int count, double *nll,
                        int *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_ids ids[TOGETHER] = {{0}};
    mgl_vm_sequence sequences[TOGETHER];
    for (int s = 0; s < count; s++) {
        const char *text = texts[s]->valuestring;
        ok(mgl_tokenizer_encode(m->tokenizer, text, strlen(text), true, &ids[s], &err), err);
        sequences[s] = (mgl_vm_sequence){
            .mode = MGL_VM_SCORE, .prompt = ids[s].ids, .prompt_count = (int32_t)ids[s].count};
    }
    mgl_vm_request request = {.sequences = sequences, .count = count};
    ok(mgl_vm_run(m->vm, &request, &report, &err), err);
    for (int s = 0; s < count; s++) {
        for (size_t i = 1; i < ids[s].count; i++)
            *nll -= (double)report.score[s][i];
        *tokens += (int)ids[s].count - 1;
        mgl_ids_clear(&ids[s]);
    }
}

static double likelihood(const struct model *m, int *tokens)
{
    const cJSON *batch[TOGETHER], *text;
    double nll = 0.0;
    int count = 0;
    *tokens = 0;
    cJSON_ArrayForEach(text, m->texts)
    {
        batch[count++] = text;
        if (count == TOGETHER || !text->next) {
            score_texts(m, batch, count, &nll, tokens);
            count = 0;
        }
    }
    return nll;
}

static void check_likelihood(const struct model *m, double tolerance)
{
    const cJSON *golden = mgl_json_member(fp32_of(m), "perplexity");
    double wanted = mgl_json_member(golden, "nll")->valuedouble;
    int tokens;
    double nll = likelihood(m, &tokens);
    ck_assert_int_eq(tokens, (int)mgl_json_member(golden, "tokens")->valuedouble);
    printf("%s %s: nll %.6f, %.2e from %.6f\n", m->name, mgl_dtype_name(m->program->dtype), nll,
           fabs(nll / wanted - 1.0), wanted);
    ck_assert_double_le(fabs(nll / wanted - 1.0), tolerance);
}

/* ---- the tests ------------------------------------------------------------------------------ */

/* Fast and plain, one queue and many: the 1e-4 and 1e-5. */
START_TEST(f32_is_hugging_face)
{
    struct model m = {0};
    open_model(&m, names[_i],
               &(fixture_options){.dtype = MGL_F32, .capacity = 256, .sequences = TOGETHER}, false);
    check_all_greedy(&m, 1e-4);
    check_likelihood(&m, 1e-5);
    close_model(&m);
    fixture_options many = {.dtype = MGL_F32, .capacity = 256, .queues = 7, .splits = 3};
    open_model(&m, names[_i], &many, true);
    check_all_greedy(&m, 1e-4);
    close_model(&m);
}
END_TEST

/* bf16 weights, f32 sums, bf16 cache: 3e-4 and a gap of 0.1 for the trained model, 3e-3 and 0.2 for
 * random weights. */
START_TEST(bf16_is_close)
{
    struct model m = {0};
    open_model(&m, names[_i],
               &(fixture_options){.dtype = MGL_BF16, .capacity = 256, .sequences = TOGETHER},
               false);
    check_all_greedy(&m, _i == 0 ? 0.1 : 0.2);
    check_likelihood(&m, _i == 0 ? 3e-4 : 3e-3);
    close_model(&m);
}
END_TEST

START_TEST(f16_is_close)
{
    struct model m = {0};
    open_model(&m, names[2],
               &(fixture_options){.dtype = MGL_F16, .capacity = 256, .sequences = TOGETHER}, _i);
    check_all_greedy(&m, 0.2);
    check_likelihood(&m, 3e-3);
    close_model(&m);
}
END_TEST

/* The last prompt position's logits, to what f32 leaves of them. */
START_TEST(prompt_logits_are_hugging_faces)
{
    struct model m = {0};
    float logits[1024];
    open_model(&m, names[_i],
               &(fixture_options){.dtype = MGL_F32, .capacity = 256, .sequences = TOGETHER}, false);
    const cJSON *golden;
    cJSON_ArrayForEach(golden, mgl_json_member(fp32_of(&m), "greedy"))
    {
        mgl_error err;
        mgl_vm_report report;
        int32_t prompt[MOST];
        int count = read_ids(mgl_json_member(golden, "prompt_ids"), prompt, MOST), i = 0;
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
    close_model(&m);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("golden");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, f32_is_hugging_face, 0, 3);
    tcase_add_loop_test(tests, bf16_is_close, 0, 3);
    tcase_add_loop_test(tests, f16_is_close, 0, 2);
    tcase_add_loop_test(tests, prompt_logits_are_hugging_faces, 0, 3);
    return fixture_main("golden", tests);
}
