/* Tests of plans with the public header only: lowering, text, digest, validation, and pricing. */
#include "base/memory.h"
#include "megalith.h"

#include <check.h>
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lowers with counters, so that a test can remove a wait. */
#define COUNTERS "{\"schema\": \"megalith.config/1\", \"exchange\": 1}"

static mgl_error err;
static mgl_plan *plan;

static const char *model_path(const char *name)
{
    static char path[1024];
    const char *root = getenv("MGL_TEST_MODELS");
    snprintf(path, sizeof path, "%s/%s", root ? root : MGL_SOURCE_DIR "/tests/models", name);
    return path;
}

static mgl_plan_options of_tales(void)
{
    return (mgl_plan_options){.size = sizeof(mgl_plan_options),
                              .model = model_path("tales-5m"),
                              .target = "sm_90a:4",
                              .config_text = COUNTERS,
                              .capacity = 256};
}

static mgl_plan *lower(const mgl_plan_options *options)
{
    mgl_plan *out = NULL;
    ck_assert_msg(!mgl_plan_lower(options, &out, &err), "%s: %s", err.where, err.message);
    return out;
}

static mgl_plan *parse(const char *text)
{
    mgl_plan *out = NULL;
    ck_assert_msg(!mgl_plan_parse(text, strlen(text), "t.mls", &out, &err), "%s: %s", err.where,
                  err.message);
    return out;
}

static char *text_of(const mgl_plan *of)
{
    char *text = NULL;
    ck_assert_int_eq(mgl_plan_text(of, &text, NULL, &err), MGL_OK);
    return text;
}

static void get_digest(const mgl_plan *of, char out[MGL_DIGEST_SIZE])
{
    ck_assert_int_eq(mgl_plan_digest(of, out, &err), MGL_OK);
}

static void set_up(void)
{
    err = (mgl_error){0};
    mgl_plan_options options = of_tales();
    plan = lower(&options);
}

static void tear_down(void)
{
    mgl_plan_close(plan);
}

/* ---- text and digest ------------------------------------------------------------------------- */

START_TEST(a_text_is_read_back)
{
    char *text = text_of(plan);
    mgl_plan *again = parse(text);
    char *second = text_of(again);
    ck_assert_str_eq(text, second);
    mgl_text_free(second);
    mgl_text_free(text);
    mgl_plan_close(again);
}
END_TEST

START_TEST(a_text_tells_its_length)
{
    char *text = NULL;
    size_t length = 0;
    ck_assert_int_eq(mgl_plan_text(plan, &text, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, strlen(text));
    mgl_text_free(text);
}
END_TEST

START_TEST(a_digest_is_the_plans)
{
    char digest[MGL_DIGEST_SIZE], again[MGL_DIGEST_SIZE];
    char *text = text_of(plan);
    mgl_plan *parsed = parse(text);
    get_digest(plan, digest);
    get_digest(parsed, again);
    ck_assert_uint_eq(strspn(digest, "0123456789abcdef"), MGL_DIGEST_SIZE - 1);
    ck_assert_str_eq(digest, again);
    mgl_text_free(text);
    mgl_plan_close(parsed);
}
END_TEST

START_TEST(another_plan_has_another_digest)
{
    char digest[MGL_DIGEST_SIZE], other[MGL_DIGEST_SIZE];
    mgl_plan_options options = of_tales();
    options.capacity = 128;
    mgl_plan *shorter = lower(&options);
    get_digest(plan, digest);
    get_digest(shorter, other);
    ck_assert_str_ne(digest, other);
    mgl_plan_close(shorter);
}
END_TEST

START_TEST(a_text_with_a_fault_names_its_place)
{
    mgl_plan *out = plan;
    const char *text = "megalith 1\ntarget sm_90a queues no\n";
    ck_assert_int_eq(mgl_plan_parse(text, strlen(text), "t.mls", &out, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "t.mls:2:22");
    ck_assert_ptr_null(out);
}
END_TEST

START_TEST(an_empty_text_is_no_plan)
{
    mgl_plan *out = plan;
    ck_assert_int_eq(mgl_plan_parse(NULL, 0, NULL, &out, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(out);
}
END_TEST

/* ---- lowering -------------------------------------------------------------------------------- */

/* Checks that lowering with these options fails, with this err->where. */
static const char *place_of_failure(const mgl_plan_options *options, mgl_status status)
{
    mgl_plan *out = plan;
    err = (mgl_error){0};
    ck_assert_int_eq(mgl_plan_lower(options, &out, &err), status);
    ck_assert_ptr_null(out);
    return err.where;
}

START_TEST(a_shape_is_lowered)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    mgl_plan_options options = {
        .size = sizeof options, .shape = "smollm2-135m", .target = "sm_90a:132"};
    mgl_plan *shape = lower(&options);
    ck_assert_int_eq(mgl_plan_check(shape, NULL, "smollm2-135m", &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted && verdict.meaning_checked);
    mgl_plan_verdict_clear(&verdict);
    mgl_plan_close(shape);
}
END_TEST

START_TEST(a_move_makes_another_plan)
{
    char digest[MGL_DIGEST_SIZE], other[MGL_DIGEST_SIZE];
    mgl_plan_options options = of_tales();
    options.moves = "# one row group of the first layer\nrows layer=0 step=o from=1 to=2 count=1\n";
    mgl_plan *moved = lower(&options);
    get_digest(plan, digest);
    get_digest(moved, other);
    ck_assert_str_ne(digest, other);
    mgl_plan_close(moved);
}
END_TEST

START_TEST(what_cannot_be_lowered_is_rejected)
{
    mgl_plan_options options = of_tales();
    options.moves = "rows layer=0 step=o from=1 to=2 count=1\nsideways\n";
    ck_assert_str_eq(place_of_failure(&options, MGL_BAD_INPUT), "moves:2:1");
    options = of_tales();
    options.target = "sm_1:1";
    ck_assert_str_eq(place_of_failure(&options, MGL_USAGE), "sm_1:1");
    options = of_tales();
    options.config_text = "{\"schema\": \"megalith.config/1\", \"sidewards\": 1}";
    ck_assert_ptr_nonnull(strstr(place_of_failure(&options, MGL_BAD_INPUT), "config_text"));
    options = of_tales();
    options.model = "nowhere";
    place_of_failure(&options, MGL_BAD_INPUT);
}
END_TEST

START_TEST(what_the_validator_rejects_is_no_plan)
{
    mgl_plan_options options = of_tales();
    options.target = "sm_90a:132";
    options.config_text =
        "{\"schema\": \"megalith.config/1\", \"page_bytes\": 65536, \"ring_pages\": 64}";
    place_of_failure(&options, MGL_REJECTED);
    ck_assert_msg(strstr(err.message, "MG406") != NULL, "%s", err.message);
}
END_TEST

START_TEST(options_that_contradict_are_rejected)
{
    mgl_plan_options options = of_tales();
    options.shape = "llama-1b";
    ck_assert_str_eq(place_of_failure(&options, MGL_USAGE), "shape");
    options = of_tales();
    options.model = NULL;
    ck_assert_str_eq(place_of_failure(&options, MGL_USAGE), "model");
    options = of_tales();
    options.config = "config.json";
    ck_assert_str_eq(place_of_failure(&options, MGL_USAGE), "config_text");
    options = (mgl_plan_options){.size = sizeof options, .shape = "llama-9b"};
    ck_assert_str_eq(place_of_failure(&options, MGL_USAGE), "llama-9b");
}
END_TEST

/* ---- checking -------------------------------------------------------------------------------- */

START_TEST(a_lowered_plan_is_accepted)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_plan_check(plan, model_path("tales-5m"), NULL, &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted);
    ck_assert(verdict.meaning_checked);
    ck_assert_uint_eq(verdict.count, 0);
    ck_assert_int_gt(verdict.tasks, 0);
    mgl_plan_verdict_clear(&verdict);
}
END_TEST

START_TEST(without_a_model_there_is_no_meaning)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_plan_check(plan, NULL, NULL, &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted);
    ck_assert(!verdict.meaning_checked);
    mgl_plan_verdict_clear(&verdict);
}
END_TEST

START_TEST(another_models_plan_is_rejected)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_plan_check(plan, model_path("llama3-rope"), NULL, &verdict, &err), MGL_OK);
    ck_assert(!verdict.accepted);
    mgl_plan_verdict_clear(&verdict);
}
END_TEST

/* The line number of a position in a text. */
static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

/* The plan without the first wait for a layer's attention; *line: its line. */
static mgl_plan *lose_wait(int *line)
{
    char *text = NULL;
    ck_assert_int_eq(mgl_plan_text(plan, &text, NULL, &err), MGL_OK);
    char *wait = strstr(text, " wait l0.attend>=");
    ck_assert_ptr_nonnull(wait);
    *line = line_of(text, wait);
    size_t length = strcspn(wait + 1, " \n") + 1;
    length += strcspn(wait + length + 1, " \n") + 1;
    memset(wait, ' ', length);
    mgl_plan *broken = parse(text);
    mgl_text_free(text);
    return broken;
}

START_TEST(a_broken_plan_is_rejected_with_code_and_line)
{
    int line;
    mgl_plan *broken = lose_wait(&line);
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_plan_check(broken, NULL, NULL, &verdict, &err), MGL_OK);
    ck_assert(!verdict.accepted);
    ck_assert_uint_ge(verdict.count, 1);
    ck_assert_int_eq(verdict.diagnostics[0].code, 302);
    ck_assert_int_eq(verdict.diagnostics[0].line, line);
    ck_assert_int_ge(verdict.diagnostics[0].task, 0);
    ck_assert_uint_ge(strlen(verdict.diagnostics[0].message), 1);
    ck_assert_uint_ge(verdict.diagnostics[0].witness_count, 1);
    ck_assert_uint_ge(strlen(verdict.diagnostics[0].witness[0]), 1);
    mgl_plan_verdict_clear(&verdict);
    mgl_plan_close(broken);
}
END_TEST

START_TEST(a_verdict_is_used_again)
{
    int line;
    mgl_plan *broken = lose_wait(&line);
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_plan_check(broken, NULL, NULL, &verdict, &err), MGL_OK);
    ck_assert_int_eq(mgl_plan_check(plan, NULL, NULL, &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted);
    ck_assert_ptr_null(verdict.diagnostics);
    ck_assert_int_eq(mgl_plan_check(plan, "nowhere", NULL, &verdict, &err), MGL_BAD_INPUT);
    ck_assert(!verdict.accepted);
    mgl_plan_verdict_clear(&verdict);
    ck_assert_uint_eq(verdict.size, sizeof verdict);
    mgl_plan_close(broken);
}
END_TEST

START_TEST(a_check_is_of_one_model)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_plan_check(plan, "a", "llama-1b", &verdict, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "shape");
}
END_TEST

/* ---- pricing --------------------------------------------------------------------------------- */

static mgl_plan *lower_wide(void)
{
    mgl_plan_options options = of_tales();
    options.target = "sm_90a:132";
    options.config_text = NULL;
    return lower(&options);
}

START_TEST(a_plan_is_priced)
{
    mgl_plan *wide = lower_wide();
    mgl_plan_prediction out = {.size = sizeof out};
    ck_assert_int_eq(mgl_plan_predict(wide, "NVIDIA H200", 1, 16, 32, &out, &err), MGL_OK);
    ck_assert_str_eq(out.device, "NVIDIA H200");
    ck_assert_double_gt(out.floor_us, 0);
    ck_assert_double_gt(out.us, out.floor_us);
    ck_assert_double_gt(out.tape_bytes, 1e6);
    ck_assert_double_gt(out.cache_bytes, 0);
    mgl_plan_close(wide);
}
END_TEST

START_TEST(a_price_is_the_sum_of_its_parts)
{
    mgl_plan *wide = lower_wide();
    mgl_plan_prediction out = {.size = sizeof out};
    ck_assert_int_eq(mgl_plan_predict(wide, "NVIDIA H200", 1, 16, 32, &out, &err), MGL_OK);
    const double sum = out.stream_us + out.products_us + out.edge_us + out.task_us + out.attend_us +
                       out.cache_us + out.token_us + out.launch_us;
    ck_assert_double_eq_tol(sum, out.us, 1e-6 * out.us);
    ck_assert_double_gt(out.edge_us, 0);
    ck_assert_double_gt(out.launch_us, 0);
    mgl_plan_close(wide);
}
END_TEST

/* A struct of an older header lacks the parts: nothing is written beyond its size. */
START_TEST(an_older_price_has_no_parts)
{
    mgl_plan *wide = lower_wide();
    mgl_plan_prediction out = {.size = offsetof(mgl_plan_prediction, stream_us), .stream_us = -1};
    ck_assert_int_eq(mgl_plan_predict(wide, NULL, 1, 16, 32, &out, &err), MGL_OK);
    ck_assert_double_gt(out.us, 0);
    ck_assert_double_eq(out.stream_us, -1);
    mgl_plan_close(wide);
}
END_TEST

START_TEST(a_price_is_the_same_every_time)
{
    mgl_plan *wide = lower_wide();
    mgl_plan_prediction first = {.size = sizeof first}, second = {.size = sizeof second};
    ck_assert_int_eq(mgl_plan_predict(wide, NULL, 1, 16, 32, &first, &err), MGL_OK);
    ck_assert_int_eq(mgl_plan_predict(wide, first.device, 1, 16, 32, &second, &err), MGL_OK);
    ck_assert_double_eq(first.us, second.us);
    mgl_plan_close(wide);
}
END_TEST

START_TEST(what_cannot_be_priced_is_rejected)
{
    int line;
    mgl_plan *broken = lose_wait(&line);
    mgl_plan_prediction out = {.size = sizeof out};
    ck_assert_int_eq(mgl_plan_predict(plan, "NVIDIA H3", 1, 16, 32, &out, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_plan_predict(plan, NULL, 2, 16, 32, &out, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_plan_predict(plan, NULL, 1, 256, 32, &out, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_plan_predict(plan, NULL, 1, 16, 0, &out, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_plan_predict(broken, NULL, 1, 16, 32, &out, &err), MGL_REJECTED);
    mgl_plan_close(broken);
}
END_TEST

/* ---- texts from anywhere --------------------------------------------------------------------- */

/* Every parsed plan supports all functions; only a safe plan is priced. */
static void ask_everything(mgl_plan *of)
{
    char digest[MGL_DIGEST_SIZE];
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    mgl_plan_prediction price = {.size = sizeof price};
    mgl_text_free(text_of(of));
    get_digest(of, digest);
    mgl_status priced = mgl_plan_predict(of, "NVIDIA H200", 1, 0, 1, &price, &err);
    ck_assert_int_eq(mgl_plan_check(of, NULL, NULL, &verdict, &err), MGL_OK);
    if (!verdict.accepted)
        ck_assert(priced == MGL_REJECTED || priced == MGL_BAD_INPUT);
    mgl_plan_verdict_clear(&verdict);
}

static int ask_folder(const char *folder)
{
    static char text[1 << 20];
    int asked = 0;
    DIR *files = opendir(folder);
    ck_assert_ptr_nonnull(files);
    for (struct dirent *file; (file = readdir(files)) != NULL;) {
        char path[1024];
        mgl_plan *found = NULL;
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        FILE *from = strstr(path, ".mls") ? fopen(path, "rb") : NULL;
        if (!from)
            continue;
        size_t length = fread(text, 1, sizeof text, from);
        fclose(from);
        if (mgl_plan_parse(text, length, file->d_name, &found, &err))
            continue;
        ask_everything(found);
        mgl_plan_close(found);
        asked++;
    }
    closedir(files);
    return asked;
}

START_TEST(a_text_from_anywhere_is_asked_everything)
{
    ck_assert_int_ge(ask_folder(MGL_SOURCE_DIR "/tests/validator/cases"), 50);
    ask_folder(MGL_SOURCE_DIR "/tests/damaged/schedule");
}
END_TEST

/* ---- misuse ---------------------------------------------------------------------------------- */

/* Checks that the call is rejected and the message names the argument. */
#define refuses_null(argument, call)                                                               \
    do {                                                                                           \
        err = (mgl_error){0};                                                                      \
        ck_assert_int_eq(call, MGL_USAGE);                                                         \
        ck_assert_msg(strstr(err.message, "\"" argument "\" is NULL"), "%s", err.message);         \
    } while (0)

START_TEST(null_is_rejected)
{
    mgl_plan *out = plan;
    char *text = NULL, digest[MGL_DIGEST_SIZE];
    mgl_plan_options options = of_tales();
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    mgl_plan_prediction price = {.size = sizeof price};
    refuses_null("options", mgl_plan_lower(NULL, &out, &err));
    ck_assert_ptr_null(out);
    refuses_null("out", mgl_plan_lower(&options, NULL, &err));
    refuses_null("text", mgl_plan_parse(NULL, 1, NULL, &out, &err));
    refuses_null("out", mgl_plan_parse("", 0, NULL, NULL, &err));
    refuses_null("plan", mgl_plan_text(NULL, &text, NULL, &err));
    refuses_null("out", mgl_plan_text(plan, NULL, NULL, &err));
    refuses_null("plan", mgl_plan_digest(NULL, digest, &err));
    refuses_null("out", mgl_plan_digest(plan, NULL, &err));
    refuses_null("plan", mgl_plan_check(NULL, NULL, NULL, &verdict, &err));
    refuses_null("out", mgl_plan_check(plan, NULL, NULL, NULL, &err));
    refuses_null("plan", mgl_plan_predict(NULL, NULL, 1, 16, 32, &price, &err));
    refuses_null("out", mgl_plan_predict(plan, NULL, 1, 16, 32, NULL, &err));
    mgl_plan_close(NULL);
    mgl_plan_verdict_clear(NULL);
}
END_TEST

START_TEST(a_struct_without_its_size_is_rejected)
{
    mgl_plan *out = NULL;
    mgl_plan_options options = {.shape = "llama-1b"};
    mgl_plan_verdict verdict = {0};
    mgl_plan_prediction price = {0};
    ck_assert_int_eq(mgl_plan_lower(&options, &out, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_plan_options");
    ck_assert_int_eq(mgl_plan_check(plan, NULL, NULL, &verdict, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_plan_verdict");
    ck_assert_int_eq(mgl_plan_predict(plan, NULL, 1, 16, 32, &price, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_plan_prediction");
}
END_TEST

/* A struct of an older header has only the first fields. */
START_TEST(an_older_struct_gets_what_it_knows)
{
    mgl_plan_verdict verdict = {.size = offsetof(mgl_plan_verdict, tasks), .tasks = -7};
    ck_assert_int_eq(mgl_plan_check(plan, NULL, NULL, &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted);
    ck_assert_int_eq(verdict.tasks, -7);
    verdict.size = sizeof verdict.size;
    ck_assert_int_eq(mgl_plan_check(plan, NULL, NULL, &verdict, &err), MGL_USAGE);
}
END_TEST

/* Calls every function of a plan, up to the first failure. */
static mgl_status use(mgl_plan **used, char **text, mgl_plan_verdict *verdict)
{
    mgl_plan_options options = of_tales();
    mgl_plan_prediction price = {.size = sizeof price};
    char digest[MGL_DIGEST_SIZE];
    mgl_status status = mgl_plan_lower(&options, used, &err);
    if (!status)
        status = mgl_plan_text(*used, text, NULL, &err);
    if (!status)
        status = mgl_plan_digest(*used, digest, &err);
    if (!status)
        status = mgl_plan_check(*used, options.model, NULL, verdict, &err);
    return status ? status : mgl_plan_predict(*used, NULL, 1, 16, 1, &price, &err);
}

START_TEST(memory_that_runs_out_is_told)
{
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n += 1 + n / 4) {
        mgl_plan *used = NULL;
        char *text = NULL;
        mgl_plan_verdict verdict = {.size = sizeof verdict};
        mgl_alloc_fail_at(n, true);
        status = use(&used, &text, &verdict);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(!status || status == MGL_NO_MEMORY, "%s: %s", err.where, err.message);
        mgl_plan_verdict_clear(&verdict);
        mgl_text_free(text);
        mgl_plan_close(used);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tests = tcase_create("plan");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_text_is_read_back);
    tcase_add_test(tests, a_text_tells_its_length);
    tcase_add_test(tests, a_digest_is_the_plans);
    tcase_add_test(tests, another_plan_has_another_digest);
    tcase_add_test(tests, a_text_with_a_fault_names_its_place);
    tcase_add_test(tests, an_empty_text_is_no_plan);
    tcase_add_test(tests, a_shape_is_lowered);
    tcase_add_test(tests, a_move_makes_another_plan);
    tcase_add_test(tests, what_cannot_be_lowered_is_rejected);
    tcase_add_test(tests, what_the_validator_rejects_is_no_plan);
    tcase_add_test(tests, options_that_contradict_are_rejected);
    tcase_add_test(tests, a_lowered_plan_is_accepted);
    tcase_add_test(tests, without_a_model_there_is_no_meaning);
    tcase_add_test(tests, another_models_plan_is_rejected);
    tcase_add_test(tests, a_broken_plan_is_rejected_with_code_and_line);
    tcase_add_test(tests, a_verdict_is_used_again);
    tcase_add_test(tests, a_check_is_of_one_model);
    tcase_add_test(tests, a_plan_is_priced);
    tcase_add_test(tests, a_price_is_the_sum_of_its_parts);
    tcase_add_test(tests, an_older_price_has_no_parts);
    tcase_add_test(tests, a_price_is_the_same_every_time);
    tcase_add_test(tests, what_cannot_be_priced_is_rejected);
    tcase_add_test(tests, a_text_from_anywhere_is_asked_everything);
    tcase_add_test(tests, null_is_rejected);
    tcase_add_test(tests, a_struct_without_its_size_is_rejected);
    tcase_add_test(tests, an_older_struct_gets_what_it_knows);
    tcase_add_test(tests, memory_that_runs_out_is_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
