/* Tests of tuned entries of quantized models: their text, their digest, and the models that they
 * fit. */
#include "lowering.h"

#include "eval/synthetic.h"
#include "schedule/tuned/tuned.h"
#include "vm/cuda/encode.h"
#include "vm/vm.h"

#include <stdio.h>

/* An entry for `even` with a separate head on four queues. */
static const char text[] =
    "{\"schema\": \"megalith.tuned/1\", \"name\": \"even-4\", \"shape\": {\"hidden\": 64, "
    "\"layers\": 1, \"heads\": 4, \"kv_heads\": 2, \"head_dim\": 16, \"ffn\": 96, \"vocab\": 41, "
    "\"eps\": 1e-05, \"tied\": false}, \"formats\": {\"dtype\": \"bf16\", \"kv\": \"bf16\"}, "
    "\"device\": \"Test GPU\", \"target\": \"sm_90a:4\", \"sequences\": 2, \"capacity\": {\"lo\": "
    "64, \"hi\": 512}, \"lowering\": 1, \"config\": {\"exchange\": 1}, \"moves\": [\"sample "
    "to=3\"], "
    "\"evidence\": {\"gain\": 0.031, \"interval\": [0.029, 0.033]}}\n";

static mgl_tuned entry_of(const char *json)
{
    mgl_tuned entry;
    mgl_error err = {0};
    mgl_status status = mgl_tuned_parse(json, strlen(json), "entry.json", &entry, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    return entry;
}

static mgl_text print(const mgl_tuned *entry)
{
    mgl_text out = {0};
    mgl_tuned_print(entry, &out);
    ck_assert(!out.failed);
    return out;
}

static void digest(const mgl_tuned *entry, char out[MGL_SHA256_HEX])
{
    ck_assert_int_eq(mgl_tuned_digest(entry, out, NULL), MGL_OK);
}

/* Formats of an entry: as in its text, and as in a graph. */
static const struct {
    const char *text;
    mgl_weight_format layers, head;
} weights[] = {
    {"", {0}, {0}},
    {", \"layers\": \"int4 group 32 f16\"", {MGL_CODE_INT4, MGL_F16, 32, 1, false}, {0}},
    {", \"layers\": \"int4 group 64 f16\"", {MGL_CODE_INT4, MGL_F16, 64, 1, false}, {0}},
    {", \"layers\": \"int4 group 32 f16 zeros\"", {MGL_CODE_INT4, MGL_F16, 32, 1, true}, {0}},
    {", \"layers\": \"int8 row f32\"", {MGL_CODE_INT8, MGL_F32, 0, 1, false}, {0}},
    {", \"head\": \"int8 row f32\"", {0}, {MGL_CODE_INT8, MGL_F32, 0, 1, false}},
    {", \"layers\": \"int4 group 32 f16\", \"head\": \"int8 row f32\"",
     {MGL_CODE_INT4, MGL_F16, 32, 1, false},
     {MGL_CODE_INT8, MGL_F32, 0, 1, false}},
};
enum { WEIGHTS = sizeof weights / sizeof *weights };

static mgl_tuned entry_of_weights(int i)
{
    char formats[200];
    snprintf(formats, sizeof formats, "\"kv\": \"bf16\"%s}", weights[i].text);
    mgl_text json = edited(text, "\"kv\": \"bf16\"}", formats);
    mgl_tuned entry = entry_of(json.bytes);
    entry.lowering = MGL_LOWERING_VERSION;
    mgl_text_clear(&json);
    return entry;
}

static mgl_graph *graph_of_weights(int i)
{
    mgl_error err = {0};
    const shape of = {even.geometry, false};
    mgl_graph *graph = graph_of(&of);
    mgl_status status = mgl_synthetic_set_formats(graph, weights[i].layers, weights[i].head, &err);
    ck_assert_msg(!status, "%s", err.message);
    return graph;
}

START_TEST(weight_formats_are_read_and_printed)
{
    mgl_tuned entry = entry_of_weights(_i);
    ck_assert(mgl_weight_format_equal(entry.layers, weights[_i].layers));
    ck_assert(mgl_weight_format_equal(entry.head, weights[_i].head));
    mgl_text printed = print(&entry);
    mgl_tuned again = entry_of(printed.bytes);
    ck_assert(mgl_weight_format_equal(again.layers, weights[_i].layers));
    ck_assert(mgl_weight_format_equal(again.head, weights[_i].head));
    ck_assert(!strstr(printed.bytes, "\"layers\": \"") == !strstr(weights[_i].text, "layers"));
    mgl_text_clear(&printed);
    mgl_tuned_clear(&entry);
    mgl_tuned_clear(&again);
}
END_TEST

/* An entry fits models with the same formats only: not the unquantized model, not another group. */
START_TEST(it_fits_one_set_of_weight_formats)
{
    mgl_tuned entry = entry_of_weights(_i);
    char own[MGL_SHA256_HEX], other[MGL_SHA256_HEX];
    digest(&entry, own);
    for (int i = 0; i < WEIGHTS; i++) {
        mgl_graph *graph = graph_of_weights(i);
        mgl_tuned second = entry_of_weights(i);
        digest(&second, other);
        ck_assert_msg(mgl_tuned_is_of(&entry, graph) == (i == _i), "%s", weights[i].text);
        ck_assert_int_eq(!strcmp(own, other), i == _i);
        mgl_tuned_clear(&second);
        mgl_graph_free(graph);
    }
    mgl_tuned_clear(&entry);
}
END_TEST

/* Layers of several formats, and reordered columns, are in no entry. */
START_TEST(it_fits_no_mixed_and_no_reordered_model)
{
    mgl_tuned entry = entry_of_weights(1);
    mgl_graph *graph = graph_of_weights(1);
    mgl_tensor *t =
        &graph->tensors[mgl_graph_find_tensor(graph, "model.layers.0.mlp.up_proj.weight")];
    ck_assert(mgl_tuned_is_of(&entry, graph));
    t->reordered = true;
    ck_assert(!mgl_tuned_is_of(&entry, graph));
    t->reordered = false;
    t->quantized = weights[4].layers;
    ck_assert(!mgl_tuned_is_of(&entry, graph));
    t->quantized = (mgl_weight_format){0};
    ck_assert(!mgl_tuned_is_of(&entry, graph));
    mgl_tuned_clear(&entry);
    mgl_graph_free(graph);
}
END_TEST

/* An entry replays: the program is accepted, and the device can run it. */
START_TEST(it_replays)
{
    mgl_error err = {0};
    mgl_program *program = NULL;
    mgl_tuned entry = entry_of_weights(_i);
    mgl_graph *graph = graph_of_weights(_i);
    mgl_status status = mgl_tuned_replay(&entry, graph, &entry.target, 256, false, &program, &err);
    if (!status)
        status = mgl_vm_check(program, graph, &err);
    if (!status)
        status = mgl_cuda_check_program(program, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    ck_assert_str_eq(program->tuned, "even-4");
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_tuned_clear(&entry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tuned_formats");
    TCase *tests = tcase_create("tuned_formats");
    tcase_add_loop_test(tests, weight_formats_are_read_and_printed, 0, WEIGHTS);
    tcase_add_loop_test(tests, it_fits_one_set_of_weight_formats, 0, WEIGHTS);
    tcase_add_test(tests, it_fits_no_mixed_and_no_reordered_model);
    tcase_add_loop_test(tests, it_replays, 0, WEIGHTS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
