/* The formats of quantized tensors in a compiled model: they are read back, and damaged ones are
 * rejected. */
#include "importer/checkpoint.h"
#include "importer/quantized/compiled.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MODEL MGL_SOURCE_DIR "/tests/models/quantized/q-tales-ct-int4-g64"

static const char *const good[] = {"int4 group 64 f16",      "int4 group 1024 bf16 zeros",
                                   "int8 row f32",           "int8 row bf16 zeros",
                                   "int8 tensor f32 zeros",  "e4m3 tensor f16",
                                   "e4m3 block 128 128 f32", "e4m3 block 48 16 bf16",
                                   "int8 block 16 32 f32",   "int4 row f16"};

START_TEST(test_formats_are_read_back)
{
    mgl_weight_format format;
    char text[MGL_WEIGHT_FORMAT_TEXT];
    ck_assert_msg(mgl_compiled_parse_format(good[_i], &format), "%s", good[_i]);
    ck_assert_str_eq(mgl_weight_format_print(format, text), good[_i]);
}
END_TEST

static const char *const bad[] = {"",
                                  "int4",
                                  "bf16",
                                  "bf16 row f32",
                                  "int3 row f32",
                                  "int4 row",
                                  "int4 row i32",
                                  "int4 row f32 f32",
                                  "int4 row f32  zeros",
                                  " int4 row f32",
                                  "int4 row f32 zeros zeros",
                                  "int4 column f32",
                                  "int4 group f32",
                                  "int4 group 63 f16",
                                  "int4 group 8 f16",
                                  "int4 group +64 f16",
                                  "int4 group -64 f16",
                                  "int4 group 2048 f16",
                                  "int4 group 0 f16",
                                  "int4 group 99999999999999999999 f16",
                                  "e4m3 row f32 zeros",
                                  "e4m3 block 128 f32",
                                  "e4m3 block 128 128 f32 more"};

START_TEST(test_other_texts_are_rejected)
{
    mgl_weight_format format;
    ck_assert_msg(!mgl_compiled_parse_format(bad[_i], &format), "\"%s\"", bad[_i]);
}
END_TEST

static mgl_checkpoint *import(void)
{
    mgl_checkpoint *checkpoint;
    mgl_error err = {0};
    ck_assert_msg(!mgl_import(MODEL, &checkpoint, &err), "%s", err.message);
    return checkpoint;
}

/* The list of tensors of a compiled model, as far as it concerns formats. */
START_TEST(test_formats_of_a_graph)
{
    mgl_checkpoint *checkpoint = import(), *other = import();
    mgl_graph *graph = checkpoint->graph, *empty = other->graph;
    mgl_text text = {0};
    mgl_json json;
    mgl_error err = {0};
    mgl_text_put(&text, "{");
    mgl_compiled_put_formats(graph, &text);
    mgl_text_put(&text, "\"x\":1}");
    ck_assert_int_eq(mgl_json_parse(text.bytes, text.length, 1 << 20, "list", &json, &err), MGL_OK);
    for (int i = 0; i < empty->tensor_count; i++)
        empty->tensors[i].quantized = (mgl_weight_format){0};
    ck_assert_int_eq(mgl_compiled_take_formats(&json, empty, &err), MGL_OK);
    for (int i = 0; i < graph->tensor_count; i++)
        ck_assert(
            mgl_weight_format_equal(graph->tensors[i].quantized, empty->tensors[i].quantized));
    mgl_json_clear(&json);
    mgl_text_clear(&text);
    mgl_checkpoint_close(checkpoint);
    mgl_checkpoint_close(other);
}
END_TEST

static const char *const damaged[] = {
    "{\"__metadata__\":{\"no.such.tensor\":\"int8 row f32\"}}",
    "{\"__metadata__\":{\"model.norm.weight\":\"int8 row f32\"}}",
    "{\"__metadata__\":{\"model.embed_tokens.weight\":\"int9 row f32\"}}",
    "{\"__metadata__\":{\"model.embed_tokens.weight\":8}}"};

START_TEST(test_damaged_lists)
{
    mgl_checkpoint *checkpoint = import();
    mgl_json json;
    mgl_error err = {0};
    const char *text = damaged[_i];
    ck_assert_int_eq(mgl_json_parse(text, strlen(text), 1 << 20, "list", &json, &err), MGL_OK);
    ck_assert_int_eq(mgl_compiled_take_formats(&json, checkpoint->graph, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "compile the model again"));
    mgl_json_clear(&json);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantized_compiled");
    TCase *tests = tcase_create("compiled");
    tcase_add_loop_test(tests, test_formats_are_read_back, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(tests, test_other_texts_are_rejected, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tests, test_formats_of_a_graph);
    tcase_add_loop_test(tests, test_damaged_lists, 0, sizeof damaged / sizeof *damaged);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
