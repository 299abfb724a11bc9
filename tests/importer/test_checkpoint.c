/* Tests of importing: the provided checkpoints, messages for unsupported ones, ignored tensors,
 * mixed dtypes, reading rows, and a file that shrinks while a graph uses it. */
#include "importer/checkpoint.h"
#include "tests/damaged/models.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODELS MGL_SOURCE_DIR "/tests/models/"

static char folder[64];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/megalith-checkpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(folder + strlen(folder), 8, "/m");
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %.*s", (int)strlen(folder) - 2, folder);
    ck_assert_int_eq(system(command), 0);
}

static mgl_checkpoint *import(const char *path)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_import(path, &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return checkpoint;
}

/* Imports the valid model of tests/damaged with one edit. */
static mgl_checkpoint *import_edited(edit_kind edit, const char *file, const char *from,
                                     const char *to)
{
    damaged_model model = {.edit = edit, .file = file, .from = from, .to = to};
    ck_assert(write_damaged_model(&model, folder));
    return import(folder);
}

static const struct {
    const char *path;
    mgl_geometry geometry;
    int max_positions;
    mgl_dtype dtype;
    bool tied;
    uint64_t parameters, bytes;
    int files;
    const char *architecture; /* NULL: LlamaForCausalLM */
} supported[] = {
    {MODELS "tales-5m",
     {256, 6, 4, 2, 64, 768, 913, 1e-5f},
     1024,
     MGL_BF16,
     true,
     4955648,
     9911296,
     2,
     NULL},
    {MODELS "llama3-rope",
     {128, 3, 4, 2, 32, 352, 913, 1e-6f},
     512,
     MGL_BF16,
     true,
     670720,
     1341440,
     1,
     NULL},
    {MODELS "llama-linear-rope",
     {128, 3, 4, 2, 32, 352, 913, 1e-6f},
     512,
     MGL_F16,
     false,
     787584,
     1575168,
     1,
     NULL},
    {MODELS "qwen2",
     {128, 3, 4, 2, 32, 352, 913, 1e-6f},
     512,
     MGL_BF16,
     true,
     671488,
     1342976,
     1,
     "Qwen2ForCausalLM"},
    {MODELS "qwen3",
     {128, 3, 4, 2, 64, 352, 913, 1e-6f},
     512,
     MGL_BF16,
     true,
     818560,
     1637120,
     1,
     "Qwen3ForCausalLM"},
    {MODELS "mistral",
     {128, 3, 4, 2, 32, 352, 913, 1e-6f},
     512,
     MGL_F32,
     false,
     787584,
     3150336,
     1,
     "MistralForCausalLM"},
};

START_TEST(test_provided)
{
    mgl_checkpoint *checkpoint = import(supported[_i].path);
    const mgl_graph *graph = checkpoint->graph;
    ck_assert_str_eq(checkpoint->folder, supported[_i].path);
    const char *architecture = supported[_i].architecture;
    ck_assert_str_eq(checkpoint->architecture, architecture ? architecture : "LlamaForCausalLM");
    ck_assert_mem_eq(&graph->geometry, &supported[_i].geometry, sizeof graph->geometry);
    ck_assert_int_eq(graph->max_positions, supported[_i].max_positions);
    ck_assert_int_eq(graph->dtype, supported[_i].dtype);
    ck_assert_int_eq(graph->tied, supported[_i].tied);
    ck_assert_uint_eq(checkpoint->parameters, supported[_i].parameters);
    ck_assert_uint_eq(checkpoint->bytes, supported[_i].bytes);
    ck_assert_int_eq(checkpoint->files, supported[_i].files);
    ck_assert_int_eq(checkpoint->ignored, 0);
    ck_assert_uint_eq(checkpoint->generation.end_count, 1);
    ck_assert_int_eq(checkpoint->generation.end_tokens[0], 910);
    mgl_checkpoint_close(checkpoint);
    mgl_checkpoint_close(NULL);
}
END_TEST

/* Several reasons are reported together: the architecture's name, and its tensors. */
START_TEST(test_unsupported)
{
    static const char *const reasons[] = {
        "config.json: architectures: OtherForCausalLM is not supported",
        "layers.0.self_attn.k_proj.bias: a bias that config.json does not give the model; it would "
        "be left out (9 tensors"};
    char line[1024], said[2048];
    mgl_checkpoint *checkpoint;
    mgl_error err;
    snprintf(line, sizeof line,
             "mkdir %s && ln -s " MODELS "qwen2/model.safetensors %s && "
             "sed 's/Qwen2For/OtherFor/' " MODELS "qwen2/config.json > %s/config.json",
             folder, folder, folder);
    ck_assert_int_eq(system(line), 0);
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_checkpoint_open(folder, &checkpoint, &err), MGL_OK);
    ck_assert_ptr_null(checkpoint->graph);
    ck_assert_uint_eq(checkpoint->reasons.count, sizeof reasons / sizeof *reasons);
    for (size_t i = 0; i < checkpoint->reasons.count; i++) {
        const mgl_reason *reason = &checkpoint->reasons.items[i];
        snprintf(said, sizeof said, "%s: %s", reason->where, reason->message);
        ck_assert_msg(strstr(said, reasons[i]) != NULL, "%s", said);
    }
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_not_a_folder)
{
    mgl_checkpoint *checkpoint;
    mgl_error err;
    ck_assert_int_eq(mgl_import(MODELS "README.md", &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "is a file"));
    ck_assert_int_eq(mgl_import(MODELS "none", &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "no such folder"));
    ck_assert_int_eq(mgl_import(MODELS "tokenizers/qwen", &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.where, "config.json"));
}
END_TEST

START_TEST(test_no_generation_config)
{
    mgl_checkpoint *checkpoint = import_edited(REMOVE, "generation_config.json", NULL, NULL);
    ck_assert_uint_eq(checkpoint->generation.end_count, 1); /* from config.json */
    ck_assert_int_eq(checkpoint->generation.end_tokens[0], 2);
    ck_assert(!checkpoint->generation.do_sample);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Writes the tiny model with an edited header and a config that ties the head; with `copy`, the
 * head has the bytes of the embedding. */
static void write_tied(const char *from, const char *to, bool copy)
{
    char command[512];
    damaged_model model = {
        .edit = from ? HEADER : NONE, .file = "model.safetensors", .from = from, .to = to};
    ck_assert(write_damaged_model(&model, folder));
    snprintf(command, sizeof command,
             "cd %s && sed -i 's/embeddings\": false/embeddings\": true/' config.json", folder);
    ck_assert_int_eq(system(command), 0);
    if (!copy)
        return;
    snprintf(command, sizeof command,
             "cd %s && size=$(stat -c %%s model.safetensors) && dd if=model.safetensors "
             "of=table bs=1 skip=$((size - 344)) count=40 2>/dev/null && dd if=table "
             "of=model.safetensors bs=1 seek=$((size - 40)) conv=notrunc 2>/dev/null",
             folder);
    ck_assert_int_eq(system(command), 0);
}

/* The stored head of a tied model is used if it has other values than the embedding. */
START_TEST(test_tied_with_head)
{
    write_tied(NULL, NULL, true);
    mgl_checkpoint *checkpoint = import(folder);
    const mgl_graph *graph = checkpoint->graph;
    ck_assert(graph->tied && !graph->own_head);
    ck_assert_int_eq(checkpoint->ignored, 1);
    ck_assert_int_eq(mgl_graph_find_tensor(graph, "lm_head.weight"), -1);
    ck_assert_uint_eq(checkpoint->bytes, 304);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_tied_with_own_head)
{
    write_tied(NULL, NULL, false);
    mgl_checkpoint *checkpoint = import(folder);
    const mgl_graph *graph = checkpoint->graph;
    const int head = mgl_graph_find_tensor(graph, "lm_head.weight");
    ck_assert(!graph->tied && graph->own_head);
    ck_assert_int_eq(checkpoint->ignored, 0);
    ck_assert_int_ge(head, 0);
    ck_assert_str_eq(mgl_checkpoint_stored_name(checkpoint, head), "lm_head.weight");
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* If only the head is stored, it is the embedding too. */
START_TEST(test_tied_head_alone)
{
    write_tied("model.embed_tokens.weight", "model.rotary_emb.inv_freq", false);
    mgl_checkpoint *checkpoint = import(folder);
    const int table = mgl_graph_find_tensor(checkpoint->graph, "model.embed_tokens.weight");
    ck_assert(checkpoint->graph->tied);
    ck_assert_str_eq(mgl_checkpoint_stored_name(checkpoint, table), "lm_head.weight");
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* A wrapper may store the head under another prefix than the body's. It is used as the head, not as
 * a part of the vision model. */
START_TEST(test_head_of_wrapper)
{
    char command[512];
    snprintf(command, sizeof command,
             "cp -r " MODELS "families/mistral3 %s && sed -i "
             "'s/\"language_model\\.lm_head\\.weight\":/\"lm_head.weight\":               /' "
             "%s/model.safetensors",
             folder, folder);
    ck_assert_int_eq(system(command), 0);
    mgl_checkpoint *checkpoint = import(folder);
    const int head = mgl_graph_find_tensor(checkpoint->graph, "lm_head.weight");
    ck_assert(!checkpoint->graph->tied && checkpoint->graph->own_head);
    ck_assert_str_eq(mgl_checkpoint_stored_name(checkpoint, head), "lm_head.weight");
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Names without "model.", as other programs write them. */
START_TEST(test_names_without_prefix)
{
    uint16_t rows[2][24];
    mgl_error err = {0};
    mgl_checkpoint *checkpoint = import_edited(NONE, NULL, NULL, NULL);
    int norm = mgl_graph_find_tensor(checkpoint->graph, "model.norm.weight");
    ck_assert_int_eq(checkpoint->graph->read(checkpoint->graph, norm, 0, 1, rows[0], &err), 0);
    mgl_checkpoint_close(checkpoint);
    tear_down();
    set_up();
    ck_assert(write_damaged_model(&(damaged_model){.edit = NONE}, folder));
    char command[256];
    snprintf(command, sizeof command,
             "sed -i 's/\"model\\.\\([a-z_0-9.]*\\)\":/\"\\1\"      :/g' %s/model.safetensors",
             folder);
    ck_assert_int_eq(system(command), 0);
    checkpoint = import(folder);
    norm = mgl_graph_find_tensor(checkpoint->graph, "model.norm.weight");
    ck_assert_str_eq(mgl_checkpoint_stored_name(checkpoint, norm), "norm.weight");
    ck_assert_int_eq(checkpoint->graph->read(checkpoint->graph, norm, 0, 1, rows[1], &err), 0);
    ck_assert_mem_eq(rows[0], rows[1], 8);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* The shape must fit config.json, otherwise the checkpoint is rejected. */
START_TEST(test_tied_with_wrong_head)
{
    char line[512];
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    damaged_model model = {.edit = HEADER,
                           .file = "model.safetensors",
                           .from = "[5,4],\"data_offsets\":[304,344]",
                           .to = "[4,5],\"data_offsets\":[304,344]"};
    ck_assert(write_damaged_model(&model, folder));
    snprintf(line, sizeof line, "sed -i 's/embeddings\": false/embeddings\": true/' %s/config.json",
             folder);
    ck_assert_int_eq(system(line), 0);
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "lm_head.weight");
    ck_assert_str_eq(err.message, "its shape is [4, 5]; config.json makes it [5, 4]");
}
END_TEST

START_TEST(test_stored_frequencies)
{
    mgl_checkpoint *checkpoint = import_edited(
        HEADER, "model.safetensors", "[304,344]}",
        "[304,344]},\"model.layers.0.self_attn.rotary_emb.inv_freq\":{\"dtype\":\"F32\","
        "\"shape\":[0],\"data_offsets\":[344,344]}");
    ck_assert_int_eq(checkpoint->ignored, 1);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* Every tensor keeps its dtype; the graph's dtype is that of the largest tensor. */
START_TEST(test_mixed_dtypes)
{
    mgl_checkpoint *checkpoint =
        import_edited(HEADER, "model.safetensors", "\"BF16\",\"shape\":[4],\"data_offsets\":[40",
                      "\"F16\",\"shape\":[4],\"data_offsets\":[40");
    const mgl_graph *graph = checkpoint->graph;
    int norm = mgl_graph_find_tensor(graph, "model.layers.0.input_layernorm.weight");
    ck_assert_int_eq(graph->tensors[norm].dtype, MGL_F16);
    ck_assert_int_eq(graph->tensors[norm + 1].dtype, MGL_BF16);
    ck_assert_int_eq(graph->dtype, MGL_BF16);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_rows)
{
    uint16_t whole[913], row[128];
    static uint16_t table[913 * 128];
    mgl_error err = {0};
    mgl_checkpoint *checkpoint = import(MODELS "llama3-rope");
    mgl_graph *graph = checkpoint->graph;
    checkpoint->graph = NULL; /* the graph outlives its checkpoint */
    mgl_checkpoint_close(checkpoint);
    ck_assert_int_eq(graph->read(graph, 0, 0, 913, table, &err), MGL_OK);
    for (int i = 0; i < 913; i += 76) {
        ck_assert_int_eq(graph->read(graph, 0, i, 1, row, &err), MGL_OK);
        ck_assert_mem_eq(row, table + i * 128, sizeof row);
    }
    ck_assert_int_eq(graph->read(graph, 0, 913, 0, whole, &err), MGL_OK);
    ck_assert_int_eq(graph->read(graph, 0, 912, 2, whole, &err), MGL_USAGE);
    ck_assert_int_eq(graph->read(graph, 0, -1, 1, whole, &err), MGL_USAGE);
    ck_assert_int_eq(graph->read(graph, 0, INT64_MAX, 1, whole, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "model.embed_tokens.weight");
    mgl_graph_free(graph);
}
END_TEST

START_TEST(test_shrinking_file)
{
    char path[128];
    uint16_t table[20];
    mgl_error err = {0};
    mgl_checkpoint *checkpoint = import_edited(NONE, NULL, NULL, NULL);
    const mgl_graph *graph = checkpoint->graph;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    ck_assert_int_eq(graph->read(graph, 0, 0, 5, table, &err), MGL_OK);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_int_eq(graph->read(graph, 0, 0, 5, table, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, path);
    ck_assert_ptr_nonnull(strstr(err.message, "shrank"));
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* A dangling link, as in a partly emptied cache, is an error, not a missing file. A named pipe
 * instead of a file is rejected without waiting. */
START_TEST(test_no_plain_files)
{
    static const char *const names[] = {"config.json", "generation_config.json"};
    char path[128];
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    damaged_model model = {.edit = NONE};
    ck_assert(write_damaged_model(&model, folder));
    snprintf(path, sizeof path, "%s/%s", folder, names[_i / 2]);
    unlink(path);
    ck_assert_int_eq(_i % 2 ? mkfifo(path, 0600) : symlink("gone", path), 0);
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *cases = tcase_create("checkpoint");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, test_provided, 0, sizeof supported / sizeof *supported);
    tcase_add_test(cases, test_unsupported);
    tcase_add_test(cases, test_not_a_folder);
    tcase_add_test(cases, test_no_generation_config);
    tcase_add_test(cases, test_tied_with_head);
    tcase_add_test(cases, test_tied_with_own_head);
    tcase_add_test(cases, test_tied_head_alone);
    tcase_add_test(cases, test_names_without_prefix);
    tcase_add_test(cases, test_head_of_wrapper);
    tcase_add_test(cases, test_tied_with_wrong_head);
    tcase_add_test(cases, test_stored_frequencies);
    tcase_add_test(cases, test_mixed_dtypes);
    tcase_add_test(cases, test_rows);
    tcase_add_test(cases, test_shrinking_file);
    tcase_add_loop_test(cases, test_no_plain_files, 0, 4);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
