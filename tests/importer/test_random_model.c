/* Tests of the tool that writes random checkpoints: all forms can be imported, the same options
 * give the same bytes, and the weights have the documented distribution. */
#include "importer/checkpoint.h"
#include "tests/scratch.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/megalith-random-XXXXXX";

static void set_up(void)
{
    scratch_make(folder);
}

static void tear_down(void)
{
    scratch_remove(folder);
}

/* Runs the tool for <folder>/<name>. Returns the exit status. */
static int write_model(const char *name, const char *options)
{
    char command[1024];
    snprintf(command, sizeof command, "%s/tests/tools/write_random_model %s/%s %s 2>/dev/null",
             MGL_BINARY_DIR, folder, name, options);
    return system(command);
}

static mgl_checkpoint *import(const char *name)
{
    char path[128];
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mgl_status status = mgl_import(path, &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return checkpoint;
}

static const struct {
    const char *options;
    mgl_geometry geometry;
    mgl_dtype dtype;
    bool tied;
} shapes[] = {
    {"", {64, 2, 4, 2, 16, 160, 256, 1e-5f}, MGL_BF16, false},
    {"--hidden 96 --layers 1 --heads 3 --kv-heads 1 --head-dim 128 --ffn 500 --vocab 1213"
     " --dtype f32 --tied --old-config",
     {96, 1, 3, 1, 128, 500, 1213, 1e-5f},
     MGL_F32,
     true},
    {"--ffn 7 --vocab 13 --dtype f16 --rope llama3 --max-positions 512",
     {64, 2, 4, 2, 16, 7, 13, 1e-5f},
     MGL_F16,
     false},
    {"--rope linear --old-config", {64, 2, 4, 2, 16, 160, 256, 1e-5f}, MGL_BF16, false},
    {"--rope dynamic --old-config --tied", {64, 2, 4, 2, 16, 160, 256, 1e-5f}, MGL_BF16, true},
};

START_TEST(test_shapes)
{
    ck_assert_int_eq(write_model("m", shapes[_i].options), 0);
    mgl_checkpoint *checkpoint = import("m");
    const mgl_graph *graph = checkpoint->graph;
    ck_assert_mem_eq(&graph->geometry, &shapes[_i].geometry, sizeof graph->geometry);
    ck_assert_int_eq(graph->dtype, shapes[_i].dtype);
    ck_assert_int_eq(graph->tied, shapes[_i].tied);
    ck_assert_int_eq(checkpoint->generation.end_tokens[0], graph->geometry.vocab - 1);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_seed)
{
    char command[256];
    ck_assert_int_eq(write_model("a", "--seed 5"), 0);
    ck_assert_int_eq(write_model("b", "--seed 5"), 0);
    ck_assert_int_eq(write_model("c", "--seed 6"), 0);
    snprintf(command, sizeof command,
             "cd %s && diff -r a b && ! cmp -s a/model.safetensors c/model.safetensors", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Mean and deviation of a tensor of 64 columns or of one row. */
static void check_spread(const mgl_graph *graph, const char *name, double mean, double deviation)
{
    static float values[256 * 64];
    mgl_error err;
    int index = mgl_graph_find_tensor(graph, name);
    ck_assert_int_ge(index, 0);
    const mgl_tensor *t = &graph->tensors[index];
    size_t count = (size_t)(t->rows * t->cols);
    double sum = 0, squares = 0;
    ck_assert_int_eq(graph->read(graph, index, 0, t->rows, values, &err), MGL_OK);
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    for (size_t i = 0; i < count; i++)
        squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    double slack = 6 / sqrt((double)count); /* six standard errors of the estimate */
    ck_assert_double_eq_tol(sum / (double)count, mean, deviation * slack);
    ck_assert_double_eq_tol(sqrt(squares / (double)count), deviation, deviation * slack);
}

START_TEST(test_spread)
{
    ck_assert_int_eq(write_model("m", "--dtype f32"), 0);
    mgl_checkpoint *checkpoint = import("m");
    check_spread(checkpoint->graph, "model.embed_tokens.weight", 0, 0.25);
    check_spread(checkpoint->graph, "lm_head.weight", 0, 0.25);
    check_spread(checkpoint->graph, "model.layers.1.self_attn.q_proj.weight", 0, 0.125);
    check_spread(checkpoint->graph, "model.layers.1.self_attn.o_proj.weight", 0, 0.0625);
    check_spread(checkpoint->graph, "model.norm.weight", 1, 0.1);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_rejected)
{
    ck_assert_int_ne(write_model("m", "--hidden 0"), 0);
    ck_assert_int_ne(write_model("m", "--hidden 12x"), 0);
    ck_assert_int_ne(write_model("m", "--heads 3 --kv-heads 2"), 0);
    ck_assert_int_ne(write_model("m", "--dtype i32"), 0);
    ck_assert_int_ne(write_model("m", "--rope yarn"), 0);
    ck_assert_int_ne(write_model("m", "--unknown"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random model");
    TCase *cases = tcase_create("random model");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, test_shapes, 0, sizeof shapes / sizeof *shapes);
    tcase_add_test(cases, test_seed);
    tcase_add_test(cases, test_spread);
    tcase_add_test(cases, test_rejected);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
