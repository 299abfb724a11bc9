#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

const char *const golden_names[GOLDEN_MODELS] = {"tales-5m", "llama3-rope", "llama-linear-rope",
                                                 "qwen2",    "qwen3",       "mistral"};

static void path_of(char *to, size_t size, const char *model, const char *file)
{
    const char *folder = getenv("MGL_TEST_MODELS");
    snprintf(to, size, "%s/%s/%s", folder ? folder : MGL_SOURCE_DIR "/tests/models", model, file);
}

/* Plain cJSON: the goldens of the tokenizer hold a \u0000, which the strict reader refuses. */
static cJSON *read_json(const char *model, const char *file)
{
    char path[1024], *text;
    size_t length;
    mgl_error err;
    path_of(path, sizeof path, model, file);
    ok(mgl_file_read(path, 1 << 20, &text, &length, &err), err);
    cJSON *json = cJSON_ParseWithLength(text, length);
    ck_assert_ptr_nonnull(json);
    mgl_free(text);
    return json;
}

void golden_open(golden_model *m, const char *name)
{
    char path[1024];
    mgl_error err;
    *m = (golden_model){.name = name};
    path_of(path, sizeof path, name, "");
    ok(mgl_import(path, &m->checkpoint, &err), err);
    ok(mgl_tokenizer_open(path, &m->tokenizer, &err), err);
    m->golden = read_json(name, "golden.json");
    m->texts = read_json(name, "val_texts.json");
}

void golden_close(golden_model *m)
{
    mgl_vm_close(m->vm);
    mgl_program_free(m->program);
    mgl_checkpoint_close(m->checkpoint);
    mgl_tokenizer_close(m->tokenizer);
    cJSON_Delete(m->golden);
    cJSON_Delete(m->texts);
}

const cJSON *golden_fp32(const golden_model *m)
{
    return mgl_json_member(m->golden, "fp32");
}

int golden_ids(const cJSON *array, int32_t *ids)
{
    int count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        ck_assert_int_lt(count, GOLDEN_MOST);
        ids[count++] = (int32_t)item->valuedouble;
    }
    return count;
}

/* ---- greedy --------------------------------------------------------------------------------- */

/* `most` tokens of one prompt. Where they part, the f32 gap must be under `gap`. */
static void check_prompt(const golden_model *m, const cJSON *golden, double gap, int most)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[GOLDEN_MOST], wanted[GOLDEN_MOST], ends[16];
    const cJSON *gaps = mgl_json_member(golden, "top_two_gap");
    int prompts = golden_ids(mgl_json_member(golden, "prompt_ids"), prompt);
    int count = golden_ids(mgl_json_member(golden, "output_ids"), wanted);
    const mgl_generation *generation = &m->checkpoint->generation;
    count = count < most ? count : most;
    for (size_t i = 0; i < generation->end_count; i++)
        ends[i] = generation->end_tokens[i];
    mgl_vm_sequence sequence = {.prompt = prompt,
                                .prompt_count = prompts,
                                .max_new = most,
                                .ends = ends,
                                .end_count = (int32_t)generation->end_count};
    ok(mgl_vm_run(m->vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
       err);
    ck_assert_int_eq(report.launches, 1);
    for (int i = 0; i < count; i++) {
        if (i < report.produced[0] && report.output[0][i] == wanted[i])
            continue;
        double at = cJSON_GetArrayItem(gaps, i)->valuedouble;
        ck_assert_msg(at < gap, "%s: token %d is %d, not %d, where the gap is %g", m->name, i,
                      report.output[0][i], wanted[i], at);
        printf("%s %s: parts at token %d, where the gap of the two best logits is %g\n", m->name,
               mgl_weight_format_name(m->program->weight_format), i, at);
        return;
    }
    ck_assert_int_eq(report.produced[0], count);
}

void golden_check_greedy(const golden_model *m, double gap)
{
    const cJSON *prompts = mgl_json_member(golden_fp32(m), "greedy"), *golden;
    ck_assert_int_ge(cJSON_GetArraySize(prompts), 4);
    cJSON_ArrayForEach(golden, prompts) check_prompt(m, golden, gap, 64);
}

void golden_check_first(const golden_model *m, double gap, int most)
{
    check_prompt(m, mgl_json_member(golden_fp32(m), "greedy")->child, gap, most);
}

/* ---- likelihood ----------------------------------------------------------------------------- */

/* Scores a batch of texts; adds to *nll and *tokens. */
static void score_texts(const golden_model *m, const cJSON *const *texts, int count, double *nll,
                        int *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_ids ids[MGL_MAX_ROWS] = {{0}};
    mgl_vm_sequence sequences[MGL_MAX_ROWS];
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

static double likelihood(const golden_model *m, int *tokens)
{
    const cJSON *batch[MGL_MAX_ROWS], *text;
    double nll = 0.0;
    int count = 0;
    *tokens = 0;
    cJSON_ArrayForEach(text, m->texts)
    {
        batch[count++] = text;
        if (count == m->program->limits.sequences || !text->next) {
            score_texts(m, batch, count, &nll, tokens);
            count = 0;
        }
    }
    return nll;
}

void golden_check_likelihood(const golden_model *m, double tolerance)
{
    const cJSON *golden = mgl_json_member(golden_fp32(m), "perplexity");
    double wanted = mgl_json_member(golden, "nll")->valuedouble;
    int tokens;
    double nll = likelihood(m, &tokens);
    ck_assert_int_eq(tokens, (int)mgl_json_member(golden, "tokens")->valuedouble);
    printf("%s %s: nll %.6f, %.2e from %.6f\n", m->name,
           mgl_weight_format_name(m->program->weight_format), nll, fabs(nll / wanted - 1.0),
           wanted);
    ck_assert_double_le(fabs(nll / wanted - 1.0), tolerance);
}
