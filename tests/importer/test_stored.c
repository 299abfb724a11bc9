/* Tests of checkpoints whose tensors have other names or dtypes than in Transformers: the model is
 * the same, or the checkpoint is rejected. */
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ok(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

static char folder[] = "/tmp/megalith-stored-XXXXXX";
static mgl_error err;

static void set_up(void)
{
    scratch_make(folder);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ---- a checkpoint with changes --------------------------------------------------------------- */

/* Changes of a fixture. */
typedef struct change {
    const char *body, *head; /* replace "model." and "lm_head."; NULL: unchanged */
    const char *wide;        /* tensors with this text in their name become F64 */
    double more;             /* ... and this is added to their numbers */
    const char *drop;        /* the tensor of this name is left out */
    const char *config;      /* a sed script for config.json */
} change;

static void rename_tensor(const change *c, const char *from, char to[200])
{
    const bool is_head = !strncmp(from, "lm_head.", 8), is_body = !strncmp(from, "model.", 6);
    const char *prefix = is_head ? c->head : is_body ? c->body : NULL;
    snprintf(to, 200, "%s%s", prefix ? prefix : "", from + (prefix ? (is_head ? 8 : 6) : 0));
}

/* Writes the numbers of a tensor of bf16 as F64. */
static void put_wide(const char *bytes, size_t length, double more, FILE *to)
{
    for (size_t i = 0; i < length; i += 2) {
        uint32_t bits =
            (uint32_t)(unsigned char)bytes[i + 1] << 24 | (uint32_t)(unsigned char)bytes[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        const double wide = (double)value + more;
        ck_assert_uint_eq(fwrite(&wide, sizeof wide, 1, to), 1);
    }
}

/* Writes one tensor, and its entry of the new header. */
static void put_tensor(const change *c, const cJSON *entry, const char *data, cJSON *header,
                       FILE *to)
{
    char name[200];
    const cJSON *offsets = mgl_json_member(entry, "data_offsets");
    const size_t begin = (size_t)offsets->child->valuedouble;
    const size_t length = (size_t)offsets->child->next->valuedouble - begin;
    const bool wide = c->wide && strstr(entry->string, c->wide);
    const double at[2] = {(double)ftell(to),
                          (double)ftell(to) + (double)(wide ? 4 : 1) * (double)length};
    cJSON *copy = cJSON_CreateObject();
    rename_tensor(c, entry->string, name);
    cJSON_AddStringToObject(copy, "dtype",
                            wide ? "F64" : mgl_json_member(entry, "dtype")->valuestring);
    cJSON_AddItemToObject(copy, "shape", cJSON_Duplicate(mgl_json_member(entry, "shape"), true));
    cJSON_AddItemToObject(copy, "data_offsets", cJSON_CreateDoubleArray(at, 2));
    cJSON_AddItemToObject(header, name, copy);
    if (wide)
        put_wide(data + begin, length, c->more, to);
    else
        ck_assert_uint_eq(fwrite(data + begin, 1, length, to), length);
}

/* The file of weights: length of the header, header, data. */
static void put_file(const char *header, const char *data, size_t length)
{
    char path[128];
    uint64_t size = strlen(header);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&size, sizeof size, 1, file), 1);
    ck_assert_uint_eq(fwrite(header, 1, size, file), size);
    ck_assert_uint_eq(fwrite(data, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_changed(const char *fixture, const change *c)
{
    char path[600], *text, *data = NULL;
    size_t length, size = 0;
    uint64_t header_length;
    mgl_json header;
    cJSON *changed = cJSON_CreateObject();
    snprintf(path, sizeof path, MGL_SOURCE_DIR "/tests/models/%s/model.safetensors", fixture);
    ok(mgl_file_read(path, 1 << 24, &text, &length, &err));
    memcpy(&header_length, text, sizeof header_length);
    ok(mgl_json_parse(text + 8, header_length, 1 << 20, path, &header, &err));
    FILE *to = open_memstream(&data, &size);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, header.root)
    {
        if (strcmp(entry->string, "__metadata__") != 0 &&
            !(c->drop && !strcmp(entry->string, c->drop)))
            put_tensor(c, entry, text + 8 + header_length, changed, to);
    }
    fclose(to);
    char *printed = cJSON_PrintUnformatted(changed);
    put_file(printed, data, size);
    cJSON_free(printed);
    cJSON_Delete(changed);
    free(data);
    mgl_json_clear(&header);
    mgl_free(text);
    snprintf(path, sizeof path,
             "sed '%s' " MGL_SOURCE_DIR "/tests/models/%s/config.json >%s/config.json",
             c->config ? c->config : "", fixture, folder);
    ck_assert_int_eq(system(path), 0);
}

/* ---- the same model -------------------------------------------------------------------------- */

/* Element `i` of a row. */
static float number_of(const void *row, mgl_dtype dtype, int64_t i)
{
    float value;
    uint32_t bits = 0;
    if (dtype == MGL_F32)
        return ((const float *)row)[i];
    ck_assert_int_eq(dtype, MGL_BF16);
    bits = (uint32_t)((const uint16_t *)row)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Both graphs have the same numbers: of each tensor the first row is compared. */
static void check_same(const mgl_graph *a, const mgl_graph *b)
{
    static float rows[2][4096];
    ck_assert_int_eq(a->tensor_count, b->tensor_count);
    ck_assert_int_eq(a->tied, b->tied);
    for (int i = 0; i < a->tensor_count; i++) {
        const mgl_tensor *t = &a->tensors[i], *u = &b->tensors[i];
        ck_assert_str_eq(t->name, u->name);
        ck_assert_int_le(t->cols, 4096);
        ok(a->read(a, i, 0, 1, rows[0], &err));
        ok(b->read(b, i, 0, 1, rows[1], &err));
        for (int64_t k = 0; k < t->cols; k++)
            ck_assert_msg(number_of(rows[0], t->dtype, k) == number_of(rows[1], u->dtype, k), "%s",
                          t->name);
    }
}

/* A model with a head and biases of its own. */
#define HELIUM          "families/helium-biases"
#define CLASS(from, to) "s/" from "ForCausalLM/" to "/"

static const struct {
    const char *fixture;
    change change;
} same[] = {
    {"qwen2", {.body = NULL}},
    {"qwen2", {.body = "model.model."}},
    {HELIUM, {.body = "model.model."}},
    {HELIUM, {.body = "model.model.", .head = "model.lm_head."}},
    {HELIUM, {.head = "model.lm_head."}},
    {HELIUM, {.body = ""}},
    {HELIUM, {.body = "", .head = "model.lm_head."}},
    {"qwen2", {.wide = "norm"}},
    {"qwen2", {.wide = ".bias"}},
    {HELIUM, {.wide = ".bias"}}, /* its rows of q and k have another order */
    {"qwen2", {.config = CLASS("Qwen2", "Qwen2Model")}},
    {"llama3-rope", {.config = CLASS("Llama", "LlamaModel"), .body = ""}},
};

START_TEST(the_model_is_the_same)
{
    char path[300];
    mgl_checkpoint *original, *changed;
    write_changed(same[_i].fixture, &same[_i].change);
    snprintf(path, sizeof path, MGL_SOURCE_DIR "/tests/models/%s", same[_i].fixture);
    ok(mgl_import(path, &original, &err));
    ok(mgl_import(folder, &changed, &err));
    check_same(original->graph, changed->graph);
    mgl_checkpoint_close(original);
    mgl_checkpoint_close(changed);
}
END_TEST

static const struct {
    const char *fixture;
    change change;
    const char *where, *message;
} rejected[] = {
    {"qwen2",
     {.wide = "down_proj"},
     "down_proj",
     "its dtype F64 is not supported; F32, F16 and BF16 are"},
    {"qwen2",
     {.wide = "norm", .more = 1e-12},
     "norm",
     "vectors whose numbers F32 holds; load the model"},
    {"qwen2", {.body = "module.model."}, "", "missing"},
    {HELIUM, {.body = "model.model.", .head = "model.model.lm_head."}, "lm_head", ""},
    {"families/exaone-untied",
     {.drop = "lm_head.weight"},
     "lm_head.weight",
     "the checkpoint has no head"},
    {"qwen2",
     {.config = CLASS("Qwen2", "Qwen2ForSequenceClassification")},
     "architectures",
     "Qwen2ForSequenceClassification is not supported"},
    {"qwen2", {.config = CLASS("Qwen2", "LlamaModel")}, "model_type", "LlamaForCausalLM"},
    {"qwen2", {.config = "s/^{/{\"is_causal\": false,/"}, "is_causal", "attention to later tokens"},
    {"qwen2", {.config = "s/^{/{\"is_causal\": null,/"}, "is_causal", "attention to later tokens"},
};

START_TEST(the_checkpoint_is_rejected)
{
    mgl_checkpoint *checkpoint;
    write_changed(rejected[_i].fixture, &rejected[_i].change);
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.where, rejected[_i].where) &&
                      strstr(err.message, rejected[_i].message),
                  "%s: %s", err.where, err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stored");
    TCase *tests = tcase_create("stored");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, the_model_is_the_same, 0, sizeof same / sizeof *same);
    tcase_add_loop_test(tests, the_checkpoint_is_rejected, 0, sizeof rejected / sizeof *rejected);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
