/* Tests of importing every damaged model: MGL_BAD_INPUT with the expected words; the valid models
 * are accepted. Also, every failed allocation or file operation gives its status. */
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "tests/damaged/models.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/megalith-damaged-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(folder + strlen(folder), 8, "/m");
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %.*s", (int)strlen(folder) - 2, folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(test_good)
{
    damaged_model good = {.name = "good", .sharded = _i, .edit = NONE};
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    uint16_t row[4];
    ck_assert(write_damaged_model(&good, folder));
    mgl_status status = mgl_import(folder, &checkpoint, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq(checkpoint->files, _i ? 2 : 1);
    mgl_graph *graph = checkpoint->graph;
    int norm = mgl_graph_find_tensor(graph, "model.norm.weight");
    ck_assert_int_eq(graph->read(graph, norm, 0, 1, row, &err), MGL_OK);
    ck_assert_uint_eq(row[0] >> 8, 0x3E);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(test_damaged)
{
    const damaged_model *model = &damaged_models[_i];
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    char said[sizeof err.where + sizeof err.message + 2];
    ck_assert_msg(write_damaged_model(model, folder), "%s cannot be made", model->name);
    mgl_status status = mgl_import(folder, &checkpoint, &err);
    if (!status && checkpoint->generation.invalid) { /* an error only when sampling */
        err = *checkpoint->generation.invalid;
        status = err.code;
        mgl_checkpoint_close(checkpoint);
    }
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: status %d", model->name, (int)status);
    snprintf(said, sizeof said, "%s: %s", err.where, err.message);
    ck_assert_msg(strstr(said, model->message) != NULL, "%s: \"%s\" lacks \"%s\"", model->name,
                  said, model->message);
    ck_assert_msg(!strchr(said, '\n'), "%s: more than a line", model->name);
    ck_assert_msg(only_visible(said), "%s: speaks to the terminal", model->name);
}
END_TEST

/* mgl_checkpoint_open reports all errors: here more than one */
START_TEST(test_all_reasons)
{
    damaged_model model = {.edit = REPLACE,
                           .file = "config.json",
                           .from = "\"hidden_act\": \"silu\"",
                           .to = "\"hidden_act\": \"relu\", \"attention_bias\": true, "
                                 "\"clip_qkv\": 8, \"num_experts\": 4"};
    mgl_checkpoint *checkpoint;
    mgl_error err;
    ck_assert(write_damaged_model(&model, folder));
    ck_assert_int_eq(mgl_checkpoint_open(folder, &checkpoint, &err), MGL_OK);
    ck_assert_ptr_null(checkpoint->graph);
    ck_assert_uint_eq(checkpoint->reasons.count, 4);
    ck_assert_uint_eq(checkpoint->parameters, 172);
    ck_assert_uint_eq(checkpoint->bytes, 344);
    mgl_checkpoint_close(checkpoint);
    ck_assert_int_eq(mgl_import(folder, &checkpoint, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "and 3 more reasons"));
}
END_TEST

/* Also while errors are being collected. */
START_TEST(test_every_allocation_of_a_rejection_fails)
{
    damaged_model model = {.edit = REPLACE,
                           .file = "config.json",
                           .from = "\"hidden_act\": \"silu\"",
                           .to = "\"hidden_act\": \"relu\", \"attention_bias\": true, "
                                 "\"head_dim_of_another\": 8, \"num_experts\": 4"};
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    mgl_status status = MGL_NO_MEMORY;
    ck_assert(write_damaged_model(&model, folder));
    for (uint64_t n = 1; status == MGL_NO_MEMORY; n++) {
        mgl_alloc_fail_at(n, false);
        status = mgl_checkpoint_open(folder, &checkpoint, &err);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_eq(checkpoint->reasons.count, 3);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

static mgl_status import_and_read(void)
{
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    uint16_t table[20];
    mgl_status status = mgl_import(folder, &checkpoint, &err);
    if (!status) {
        mgl_graph *graph = checkpoint->graph;
        status = graph->read(graph, 0, 0, 5, table, &err);
        mgl_checkpoint_close(checkpoint);
    }
    ck_assert_msg(!status || status == err.code, "status %d, error %d", (int)status, err.code);
    return status;
}

START_TEST(test_every_allocation_fails)
{
    damaged_model model = {.sharded = true};
    ck_assert(write_damaged_model(&model, folder));
    mgl_status status = MGL_NO_MEMORY;
    uint64_t n = 0;
    while (status == MGL_NO_MEMORY) {
        mgl_alloc_fail_at(++n, _i);
        status = import_and_read();
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_gt(n, 100);
}
END_TEST

START_TEST(test_every_file_operation_fails)
{
    damaged_model model = {.sharded = true};
    ck_assert(write_damaged_model(&model, folder));
    mgl_status status = MGL_SYSTEM;
    uint64_t n = 0;
    while (status == MGL_SYSTEM) {
        mgl_file_fail_at(++n);
        status = import_and_read();
    }
    mgl_file_fail_at(0);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_gt(n, 15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damaged models");
    TCase *cases = tcase_create("damaged models");
    tcase_set_timeout(cases, 100);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, test_good, 0, 2);
    tcase_add_loop_test(cases, test_damaged, 0, (int)damaged_model_count);
    tcase_add_test(cases, test_all_reasons);
    tcase_add_loop_test(cases, test_every_allocation_fails, 0, 2);
    tcase_add_test(cases, test_every_allocation_of_a_rejection_fails);
    tcase_add_test(cases, test_every_file_operation_fails);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
