/* Compares a machine with golden.json. See golden.h. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

const char *const golden_names[GOLDEN_MODELS] = {"tales-5m", "llama3-rope", "llama-linear-rope",
                                                 "qwen2",    "qwen3",       "mistral"};

const char *const golden_families[GOLDEN_FAMILIES] = {
    "families/ernie4_5",      "families/ernie4_5-biases",  "families/exaone",
    "families/exaone-untied", "families/helium",           "families/helium-biases",
    "families/internlm3",     "families/internlm3-biases", "families/llama-longrope",
    "families/llama-yarn",    "families/llava-llama",      "families/llava-qwen2-v5",
    "families/mistral3",      "families/mistral3-v5",      "families/phi3",
    "families/phi3-longrope", "families/phi3-longrope-v5", "families/phi3-su",
    "families/phi3-yarn",     "families/qwen2-yarn",       "families/qwen3-yarn",
    "families/seed-oss",      "families/seed-oss-biases"};

const char *const golden_quantized[GOLDEN_QUANTIZED] = {
    "quantized/q-tales-ct-int8",       "quantized/q-tales-ct-int4-g64",
    "quantized/q-tales-gptq-int4-g64", "quantized/q-tales-awq-int4-g64",
    "quantized/q-tales-fp8-block",     "quantized/q-qwen2-ct-fp8"};

static void path_of(char *to, size_t size, const char *model, const char *file)
{
    const char *folder = getenv("MGL_TEST_MODELS");
    snprintf(to, size, "%s/%s/%s", folder ? folder : MGL_SOURCE_DIR "/tests/models", model, file);
}

/* Uses cJSON directly, because the tokenizer's goldens contain \u0000, which the strict reader
 * rejects. */
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
    m->golden = read_json(name, "golden.json");
    if (!strncmp(name, "families/", 9))
        return;
    ok(mgl_tokenizer_open(path, &m->tokenizer, &err), err);
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
    const mgl_graph *graph = m->checkpoint->graph;
    const bool is_short =
        graph->long_inv_freq && m->program->limits.capacity <= graph->short_positions;
    return mgl_json_member(m->golden, is_short ? "fp32_short" : "fp32");
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

/* ---- greedy ---------------------------------------------------------------------------------- */

/* Compares `most` tokens of one prompt. At the first difference, the f32 gap must be below
 * `gap`. */
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
               mgl_dtype_name(m->program->weight_dtype), i, at);
        return;
    }
    ck_assert_int_eq(report.produced[0], count);
}

/* Tokens that Hugging Face was asked for. */
static int asked_tokens(const golden_model *m)
{
    return !m->tokenizer ? 40 : !strncmp(m->name, "quantized/", 10) ? 48 : 64;
}

void golden_check_greedy(const golden_model *m, double gap)
{
    const cJSON *prompts = mgl_json_member(golden_fp32(m), "greedy"), *golden;
    ck_assert_int_ge(cJSON_GetArraySize(prompts), m->tokenizer ? 4 : 2);
    cJSON_ArrayForEach(golden, prompts) check_prompt(m, golden, gap, asked_tokens(m));
}

void golden_check_first(const golden_model *m, double gap, int most)
{
    check_prompt(m, mgl_json_member(golden_fp32(m), "greedy")->child, gap, most);
}

/* ---- likelihood ------------------------------------------------------------------------------ */

/* The ids of a text: a string, or an array of ids. */
static void encode(const golden_model *m, const cJSON *text, mgl_ids *ids)
{
    mgl_error err;
    if (m->tokenizer) {
        ok(mgl_tokenizer_encode(m->tokenizer, text->valuestring, strlen(text->valuestring), true,
                                ids, &err),
           err);
        return;
    }
    ids->ids = mgl_alloc_zero(GOLDEN_MOST, sizeof *ids->ids);
    ck_assert_ptr_nonnull(ids->ids);
    ids->count = (size_t)golden_ids(text, ids->ids);
}

/* Scores a batch of texts; adds to *nll and *tokens. */
static void score_texts(const golden_model *m, const cJSON *const *texts, int count, double *nll,
                        int *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_ids ids[MGL_MAX_ROWS] = {{0}};
    mgl_vm_sequence sequences[MGL_MAX_ROWS];
    for (int s = 0; s < count; s++) {
        encode(m, texts[s], &ids[s]);
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
    const cJSON *texts =
        m->texts ? m->texts : mgl_json_member(mgl_json_member(golden_fp32(m), "perplexity"), "ids");
    cJSON_ArrayForEach(text, texts)
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
    printf("%s %s: nll %.6f, %.2e from %.6f\n", m->name, mgl_dtype_name(m->program->weight_dtype),
           nll, fabs(nll / wanted - 1.0), wanted);
    ck_assert_double_le(fabs(nll / wanted - 1.0), tolerance);
}
