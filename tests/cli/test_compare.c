/* Tests of `eval --compare`: the numbers of formats and checkpoints of tales-5m, the object and the
 * table, and rejected input. */
#include "command.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two texts, and two with one token: an empty text has the special token at its begin. */
static const char *few_texts(void)
{
    return scratch_file(
        "few.json", "[\"Once there was a curious toad named Yara who lived near the old mill. \", "
                    "\"The wind blew hard, and Finn was tired.\", \"\", {\"ids\": [909]}]");
}

static mgl_json compare(const char *model, const char *list, const char *flags)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --compare %s --json --quiet %s", model,
                     few_texts(), list, flags);
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_str_eq(result.err, "");
    mgl_json json = command_json(&result, "megalith.eval_compare/1");
    command_clear(&result);
    return json;
}

static const cJSON *row_of(const mgl_json *json, int row)
{
    const cJSON *item = cJSON_GetArrayItem(json_at(json, "formats"), row);
    ck_assert_ptr_nonnull(item);
    return item;
}

static double number_of(const mgl_json *json, int row, const char *key)
{
    const cJSON *number = mgl_json_member(row_of(json, row), key);
    ck_assert_msg(cJSON_IsNumber(number), "row %d has no number %s", row, key);
    return number->valuedouble;
}

static const char *text_of(const mgl_json *json, int row, const char *key)
{
    const cJSON *text = mgl_json_member(row_of(json, row), key);
    ck_assert_msg(cJSON_IsString(text), "row %d has no text %s", row, key);
    return text->valuestring;
}

/* f32, and the checkpoint itself, are the reference. */
START_TEST(a_model_and_itself)
{
    char list[1200];
    snprintf(list, sizeof list, "f32,%s", model_path("tales-5m"));
    mgl_json json = compare(model_path("tales-5m"), list, "--greedy 8");
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq(number_of(&json, i, "kl_mean"), 0);
        ck_assert_double_eq(number_of(&json, i, "kl_p999"), 0);
        ck_assert_double_eq(number_of(&json, i, "top1_agreement"), 1);
        ck_assert_double_eq(number_of(&json, i, "nll"), json_number(&json, "reference.nll"));
        const cJSON *first = mgl_json_member(row_of(&json, i), "first_divergence");
        ck_assert_double_eq(mgl_json_member(first, "equal_replies")->valuedouble, 4);
        ck_assert_double_eq(mgl_json_member(first, "mean")->valuedouble, 8);
        ck_assert_int_eq(cJSON_GetArraySize(mgl_json_member(first, "equal_tokens")), 4);
    }
    ck_assert_str_eq(text_of(&json, 1, "path"), model_path("tales-5m"));
    mgl_json_clear(&json);
}
END_TEST

/* The numbers of `eval`: tokens are those with a context. */
START_TEST(the_likelihood_of_eval)
{
    mgl_json json = compare(model_path("tales-5m"), "int8", "--greedy 1");
    command_result result =
        command_runf("eval %s --device cpu --texts %s --json", model_path("tales-5m"), few_texts());
    mgl_json plain = command_json(&result, "megalith.eval/1");
    ck_assert_double_eq(json_number(&json, "tokens"), json_number(&plain, "tokens"));
    ck_assert_double_eq(json_number(&json, "texts"), 4);
    ck_assert_double_eq(json_number(&json, "greedy.replies"), 4);
    ck_assert_double_eq_tol(json_number(&json, "reference.nll"), json_number(&plain, "nll"), 1e-3);
    ck_assert_double_eq_tol(json_number(&json, "reference.perplexity"),
                            json_number(&plain, "perplexity"), 1e-3);
    mgl_json_clear(&json);
    mgl_json_clear(&plain);
    command_clear(&result);
}
END_TEST

/* The first texts of the validation set. */
static const char *many_texts(void)
{
    enum { TEXTS = 20 };
    mgl_json all = model_json("tales-5m", "val_texts.json");
    cJSON *texts = cJSON_CreateArray();
    for (int i = 0; i < TEXTS; i++)
        cJSON_AddItemToArray(texts, cJSON_Duplicate(cJSON_GetArrayItem(all.root, i), true));
    const char *file = scratch_json("many.json", texts);
    cJSON_Delete(texts);
    mgl_json_clear(&all);
    return file;
}

/* More bits and smaller groups diverge less. */
START_TEST(the_order_of_formats)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --json --quiet --greedy 16 "
                     "--compare bf16,int8,int4-g32-asym,int4",
                     model_path("tales-5m"), many_texts());
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval_compare/1");
    ck_assert_double_gt(json_number(&json, "tokens"), 1000);
    ck_assert_double_eq(json_number(&json, "greedy.replies"), 20);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_lt(number_of(&json, i, "kl_mean"), number_of(&json, i + 1, "kl_mean"));
        ck_assert_double_lt(number_of(&json, i, "kl_p999"), number_of(&json, i + 1, "kl_p999"));
    }
    ck_assert_double_gt(number_of(&json, 1, "top1_agreement"), 0.99);
    ck_assert_double_lt(number_of(&json, 3, "top1_agreement"), 0.97);
    ck_assert_double_gt(number_of(&json, 3, "kl_mean"), 1e-5);
    ck_assert_double_lt(number_of(&json, 3, "weight_bytes"), number_of(&json, 1, "weight_bytes"));
    ck_assert_str_eq(text_of(&json, 0, "dtype"), "bf16");
    ck_assert_str_eq(text_of(&json, 1, "dtype"), "f32");
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The name of a method selects it; GPTQ is calibrated with the default texts. */
START_TEST(methods)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --json --quiet --greedy 1 --compare "
                     "int4-g64-gptq,int4-g64-clip,int4-g64-rtn,int4-g64",
                     model_path("tales-5m"), many_texts());
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval_compare/1");
    ck_assert_double_lt(2 * number_of(&json, 0, "kl_mean"), number_of(&json, 3, "kl_mean"));
    ck_assert_double_ne(number_of(&json, 1, "kl_mean"), number_of(&json, 3, "kl_mean"));
    ck_assert_double_eq(number_of(&json, 2, "kl_mean"), number_of(&json, 3, "kl_mean"));
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* A format is what `megalith quantize` writes, and --dtype is the format of activations. */
START_TEST(a_folder_that_was_quantized)
{
    char folder[1100], list[1300];
    snprintf(folder, sizeof folder, "%s/q", scratch_folder());
    ck_assert_int_eq(command_code("quantize %s --bits 4 --group 64 --asym --head 8 --method clip "
                                  "-o %s",
                                  model_path("tales-5m"), folder),
                     0);
    snprintf(list, sizeof list, "%s,int4-g64-asym-head8-clip", folder);
    mgl_json json = compare(model_path("tales-5m"), list, "--greedy 4 --dtype bf16");
    ck_assert_double_eq(number_of(&json, 0, "nll"), number_of(&json, 1, "nll"));
    ck_assert_double_eq(number_of(&json, 0, "kl_mean"), number_of(&json, 1, "kl_mean"));
    ck_assert_double_eq(number_of(&json, 0, "weight_bytes"), number_of(&json, 1, "weight_bytes"));
    ck_assert_double_gt(number_of(&json, 0, "kl_mean"), 0);
    ck_assert_str_eq(text_of(&json, 0, "dtype"), "bf16");
    ck_assert_str_eq(json_string(&json, "reference.dtype"), "f32");
    mgl_json_clear(&json);
}
END_TEST

/* The reference of a quantized model has its weights, in f32. */
START_TEST(a_quantized_model)
{
    mgl_json json =
        compare(model_path("quantized/q-tales-ct-int4-g64"), model_path("tales-5m"), "--greedy 4");
    mgl_json back =
        compare(model_path("tales-5m"), model_path("quantized/q-tales-ct-int4-g64"), "--greedy 4");
    ck_assert_double_eq(json_number(&json, "reference.nll"), number_of(&back, 0, "nll"));
    ck_assert_double_eq(json_number(&back, "reference.nll"), number_of(&json, 0, "nll"));
    ck_assert_double_gt(number_of(&json, 0, "kl_mean"), 0);
    mgl_json_clear(&json);
    mgl_json_clear(&back);
}
END_TEST

START_TEST(the_table)
{
    command_result result = command_runf("eval %s --device cpu --texts %s --compare int8,f32 "
                                         "--greedy 5 --capacity 12 --stride 6",
                                         model_path("tales-5m"), few_texts());
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_eq(strstr(result.out, "texts    4\ntokens   "), result.out);
    ck_assert_ptr_nonnull(strstr(result.out, "\nwindows  "));
    ck_assert_ptr_nonnull(strstr(result.out, "\nreplies  4, greedy, of up to 5 tokens\n"));
    ck_assert_ptr_nonnull(strstr(result.out, "\nf32 (reference)  f32 "));
    ck_assert_ptr_nonnull(strstr(result.out, "\nint8             f32 "));
    ck_assert_ptr_nonnull(strstr(result.out, " 0.000e+00   0.000e+00   100.00 "));
    ck_assert_ptr_nonnull(strstr(result.err, "with f32 and 2 others in"));
    command_clear(&result);
}
END_TEST

/* ---- what is rejected ------------------------------------------------------------------------ */

#define ALLOWED "; allowed: f32, bf16, f16, int8, int4, fp8; after int8, int4 or fp8: -gN"

static const struct {
    const char *list, *flags;
    int code;
    const char *message;
} rejected[] = {
    {"int5", "", 1, "--compare: unknown format: \"int5\"" ALLOWED},
    {"int8-g40", "", 1, "unknown format: \"int8-g40\"" ALLOWED},
    {"int8-g2048", "", 1, "unknown format: \"int8-g2048\"" ALLOWED},
    {"int4-g64-row", "", 1, "unknown format: \"int4-g64-row\"" ALLOWED},
    {"fp8-asym", "", 1, "unknown format: \"fp8-asym\"" ALLOWED},
    {"fp8-asym", "", 1, "-asym (int8 and int4: zero points)"},
    {"int8-", "", 1, "unknown format: \"int8-\"" ALLOWED},
    {"bf16-g64", "", 1, "unknown format: \"bf16-g64\"" ALLOWED},
    {"int8-rtn-clip", "", 1, "unknown format: \"int8-rtn-clip\"" ALLOWED},
    {"int8-head8-head4", "", 1, "unknown format: \"int8-head8-head4\"" ALLOWED},
    {"bf16,,int8", "", 1, "--compare: has an empty name"},
    {"no/such", "", 2, "no/such: is neither a folder nor a model"},
    {"int4-g512", "", 2,
     "int4-g512: model.layers.0.mlp.down_proj.weight: 768 columns are not a multiple of the group: "
     "512; use groups of 256 columns"},
    {"int8", "--schedule x.mls", 1, "--schedule: belongs to one number format"},
    {"int8", "--capacity 5", 2, "few.json: text 0: "},
};

START_TEST(what_is_rejected)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --compare %s %s", model_path("tales-5m"),
                     few_texts(), rejected[_i].list, rejected[_i].flags);
    ck_assert_msg(result.code == rejected[_i].code, "exit %d: %s", result.code, result.err);
    ck_assert_msg(strstr(result.err, rejected[_i].message) != NULL, "%s", result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(replies_without_a_comparison)
{
    command_result result =
        command_runf("eval %s --texts %s --greedy 4", model_path("tales-5m"), few_texts());
    ck_assert_int_eq(result.code, 1);
    ck_assert_ptr_nonnull(strstr(result.err, "give --compare LIST too"));
    command_clear(&result);
}
END_TEST

START_TEST(nothing_to_score)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --compare int8", model_path("tales-5m"),
                     scratch_file("none.json", "[\"\", {\"ids\": [3]}]"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "there is nothing to score"));
    command_clear(&result);
}
END_TEST

/* Codes are rounded once. */
START_TEST(a_quantized_model_is_not_rounded)
{
    command_result result = command_runf("eval %s --device cpu --texts %s --compare bf16,int8",
                                         model_path("quantized/q-tales-ct-int8"), few_texts());
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "is quantized already and cannot be rounded to int8"));
    command_clear(&result);
}
END_TEST

/* The name of the model with `from` replaced by `to` in a file. */
static const char *changed_model(const char *name, const char *file, const char *from,
                                 const char *to)
{
    static char folder[1100];
    char line[4000];
    snprintf(folder, sizeof folder, "%s", scratch_model("tales-5m", name));
    snprintf(line, sizeof line, "cd %s && sed 's|%s|%s|g' %s > new && rm %s && mv new %s", folder,
             from, to, file, file, file);
    ck_assert_int_eq(system(line), 0);
    return folder;
}

static const struct {
    const char *from, *to, *message;
} tokenizers[] = {{"begin_of_text", "begin_of_talk", "the token of id 913 differs"},
                  {"\"add_prefix_space\": false", "\"add_prefix_space\": true",
                   "the encoding of text 0 differs"}};

START_TEST(another_tokenizer)
{
    const char *other =
        changed_model("other", "tokenizer.json", tokenizers[_i].from, tokenizers[_i].to);
    command_result result = command_runf("eval %s --device cpu --texts %s --compare %s",
                                         model_path("tales-5m"), few_texts(), other);
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "has another tokenizer than") != NULL, "%s", result.err);
    ck_assert_msg(strstr(result.err, tokenizers[_i].message) != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(another_vocabulary)
{
    command_result result =
        command_runf("eval %s --device cpu --texts %s --compare %s", model_path("tales-5m"),
                     few_texts(), model_path("families/phi3"));
    ck_assert_int_eq(result.code, 2);
    ck_assert_msg(strstr(result.err, "has another vocabulary than") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

/* Tables of a model may have more ids than its tokenizer. */
START_TEST(ids_without_a_token)
{
    char folder[1100], line[8000];
    snprintf(folder, sizeof folder, "%s/padded", scratch_folder());
    snprintf(line, sizeof line,
             MGL_BINARY_DIR "/tests/tools/write_random_model %s --vocab 1000 --dtype bf16 >&2 && "
                            "cp %s/tokenizer*.json %s && cp -r %s %s-copy",
             folder, model_path("tales-5m"), folder, folder, folder);
    ck_assert_int_eq(system(line), 0);
    command_result result =
        command_runf("eval %s --device cpu --texts %s --compare %s-copy --greedy 2 --json", folder,
                     scratch_file("padded.json", "[{\"ids\": [1, 2, 999]}]"), folder);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.eval_compare/1");
    ck_assert_double_eq(number_of(&json, 0, "kl_mean"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The temporary folder is removed, also after an error. */
START_TEST(no_folder_is_left)
{
    static const char *const lists[] = {"int8", "int4-g512"};
    DIR *folder;
    char temporary[1100];
    snprintf(temporary, sizeof temporary, "%s/t", scratch_folder());
    for (int i = 0; i < 2; i++) {
        char line[1300];
        snprintf(line, sizeof line, "mkdir -p %s", temporary);
        ck_assert_int_eq(system(line), 0);
        setenv("TMPDIR", temporary, 1);
        command_result result = command_runf("eval %s --device cpu --texts %s --compare %s",
                                             model_path("tales-5m"), few_texts(), lists[i]);
        ck_assert_int_eq(result.code, i ? 2 : 0);
        unsetenv("TMPDIR");
        folder = opendir(temporary);
        ck_assert_ptr_nonnull(folder);
        for (const struct dirent *entry; (entry = readdir(folder));)
            ck_assert_msg(entry->d_name[0] == '.', "%s is left", entry->d_name);
        closedir(folder);
        command_clear(&result);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli compare");
    TCase *tests = tcase_create("compare");
    tcase_set_timeout(tests, 0); /* ctest has the limit */
    tcase_add_test(tests, a_model_and_itself);
    tcase_add_test(tests, the_likelihood_of_eval);
    tcase_add_test(tests, the_order_of_formats);
    tcase_add_test(tests, methods);
    tcase_add_test(tests, a_folder_that_was_quantized);
    tcase_add_test(tests, a_quantized_model);
    tcase_add_test(tests, the_table);
    tcase_add_loop_test(tests, what_is_rejected, 0, sizeof rejected / sizeof *rejected);
    tcase_add_test(tests, replies_without_a_comparison);
    tcase_add_test(tests, nothing_to_score);
    tcase_add_test(tests, a_quantized_model_is_not_rounded);
    tcase_add_loop_test(tests, another_tokenizer, 0, sizeof tokenizers / sizeof *tokenizers);
    tcase_add_test(tests, another_vocabulary);
    tcase_add_test(tests, ids_without_a_token);
    tcase_add_test(tests, no_folder_is_left);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
