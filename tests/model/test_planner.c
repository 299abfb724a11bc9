/* Tests of planners with the public header only: many plans of one model, with moves, matched and
 * validated. */
#include "base/memory.h"
#include "megalith.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TALES  MGL_SOURCE_DIR "/tests/models/tales-5m"
#define CONFIG "{\"schema\": \"megalith.config/1\", \"exchange\": 1}"
#define MOVE   "rows layer=0 step=o from=1 to=2 count=1\n"

static mgl_error err;
static mgl_planner *planner;
static mgl_plan *plan;

static mgl_plan_options of_tales(void)
{
    return (mgl_plan_options){
        .size = sizeof(mgl_plan_options), .model = TALES, .target = "sm_90a:4", .capacity = 256};
}

static mgl_planner *open_planner(const mgl_plan_options *options)
{
    mgl_planner *out = NULL;
    ck_assert_msg(!mgl_planner_open(options, &out, &err), "%s: %s", err.where, err.message);
    return out;
}

static mgl_plan *lower(const mgl_planner *from, const char *config, const char *moves,
                       int32_t sequences)
{
    mgl_plan *out = NULL;
    ck_assert_msg(!mgl_planner_lower(from, config, moves, sequences, &out, &err), "%s: %s",
                  err.where, err.message);
    return out;
}

static bool same(const mgl_plan *a, const mgl_plan *b)
{
    char digests[2][MGL_DIGEST_SIZE];
    ck_assert_int_eq(mgl_plan_digest(a, digests[0], &err), MGL_OK);
    ck_assert_int_eq(mgl_plan_digest(b, digests[1], &err), MGL_OK);
    return !strcmp(digests[0], digests[1]);
}

static void set_up(void)
{
    err = (mgl_error){0};
    mgl_plan_options options = of_tales();
    planner = open_planner(&options);
    plan = lower(planner, CONFIG, NULL, 1);
}

static void tear_down(void)
{
    mgl_plan_close(plan);
    mgl_planner_close(planner);
}

/* ---- making ---------------------------------------------------------------------------------- */

START_TEST(a_planner_makes_what_lowering_makes)
{
    mgl_plan *other = NULL;
    mgl_plan_options options = of_tales();
    options.config_text = CONFIG;
    ck_assert_int_eq(mgl_plan_lower(&options, &other, &err), MGL_OK);
    ck_assert(same(plan, other));
    mgl_plan_close(other);
}
END_TEST

START_TEST(a_plan_is_moved_as_in_lowering)
{
    mgl_plan *moved = NULL, *lowered = lower(planner, CONFIG, MOVE, 1);
    ck_assert_int_eq(mgl_plan_move(plan, MOVE, &moved, &err), MGL_OK);
    ck_assert(same(moved, lowered));
    ck_assert(!same(moved, plan));
    mgl_plan_close(moved);
    mgl_plan_close(lowered);
}
END_TEST

START_TEST(a_move_that_does_not_fit_is_rejected)
{
    mgl_plan *moved = plan;
    ck_assert_int_eq(mgl_plan_move(plan, "sideways", &moved, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(moved);
    ck_assert_int_eq(mgl_plan_move(plan, "rows layer=99 step=o from=1 to=2 count=1", &moved, &err),
                     MGL_BAD_INPUT);
}
END_TEST

/* Smaller than any real model. */
#define SHAPE                                                                                      \
    "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_hidden_layers\": 2, "                 \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 64, "                   \
    "\"intermediate_size\": 512, \"vocab_size\": 1024, \"rms_norm_eps\": 1e-5, "                   \
    "\"hidden_act\": \"silu\", \"max_position_embeddings\": 512, "                                 \
    "\"tie_word_embeddings\": true, \"rope_theta\": 10000.0}"

START_TEST(a_shape_may_be_the_callers_own)
{
    mgl_plan_options options = of_tales();
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    options.model = NULL;
    options.shape_text = SHAPE;
    mgl_planner *own = open_planner(&options);
    mgl_plan *made = lower(own, NULL, NULL, 0);
    ck_assert_int_eq(mgl_planner_check(own, made, &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted && verdict.meaning_checked);
    ck_assert_int_eq(mgl_planner_match(planner, made, 1, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.message, "the schedule is for another model");
    mgl_plan_verdict_clear(&verdict);
    mgl_plan_close(made);
    mgl_planner_close(own);
}
END_TEST

START_TEST(options_that_contradict_are_rejected)
{
    mgl_planner *out = planner;
    mgl_plan_options options = of_tales();
    options.shape_text = SHAPE;
    ck_assert_int_eq(mgl_planner_open(&options, &out, &err), MGL_USAGE);
    ck_assert_ptr_null(out);
    ck_assert_str_eq(err.where, "shape_text");
    options = of_tales();
    options.moves = MOVE;
    ck_assert_int_eq(mgl_planner_open(&options, &out, &err), MGL_USAGE);
    ck_assert_str_eq(err.where, "mgl_plan_options");
    options = of_tales();
    options.dtype = "a dtype of a long name";
    ck_assert_int_eq(mgl_planner_open(&options, &out, &err), MGL_USAGE);
    options = (mgl_plan_options){.size = sizeof options, .shape_text = "{}"};
    ck_assert_int_eq(mgl_planner_open(&options, &out, &err), MGL_BAD_INPUT);
}
END_TEST

/* A struct of an older header has only the fields before shape_text. */
START_TEST(older_options_have_no_shape_text)
{
    mgl_plan_options options = of_tales();
    options.size = offsetof(mgl_plan_options, shape_text);
    options.shape_text = "not read";
    mgl_planner_close(open_planner(&options));
}
END_TEST

/* ---- judging --------------------------------------------------------------------------------- */

START_TEST(a_plan_is_checked_with_meaning)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    ck_assert_int_eq(mgl_planner_check(planner, plan, &verdict, &err), MGL_OK);
    ck_assert(verdict.accepted && verdict.meaning_checked);
    mgl_plan_verdict_clear(&verdict);
}
END_TEST

START_TEST(a_plan_of_other_sequences_does_not_match)
{
    ck_assert_int_eq(mgl_planner_match(planner, plan, 1, &err), MGL_OK);
    ck_assert_int_eq(mgl_planner_match(planner, plan, 2, &err), MGL_BAD_INPUT);
}
END_TEST

START_TEST(a_machine_has_limits)
{
    mgl_plan *wide = lower(
        planner, "{\"schema\": \"megalith.config/1\", \"ring_pages\": 64, \"page_bytes\": 32768}",
        NULL, 1);
    ck_assert_int_eq(mgl_plan_check_machine(plan, &err), MGL_OK);
    ck_assert_int_eq(mgl_plan_check_machine(wide, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "shared memory");
    mgl_plan_close(wide);
}
END_TEST

START_TEST(a_plan_of_lower_precision_has_other_formats)
{
    mgl_plan *narrow = lower(
        planner, "{\"schema\": \"megalith.config/1\", \"exchange\": 2, \"exchange_precision\": 3}",
        NULL, 1);
    ck_assert_int_eq(mgl_plan_check_formats(plan, plan, &err), MGL_OK);
    ck_assert_int_eq(mgl_plan_check_formats(narrow, plan, &err), MGL_BAD_INPUT);
    mgl_plan_close(narrow);
}
END_TEST

/* The plan with only its weights in f16. */
static mgl_plan *with_weights_in_f16(void)
{
    static const char types[] = "types weights bf16", apart[] = "types weights f16 embedding bf16";
    char *text = NULL, *to = NULL;
    size_t length = 0, size;
    mgl_plan *out = NULL;
    ck_assert_int_eq(mgl_plan_text(plan, &text, &length, &err), MGL_OK);
    FILE *file = open_memstream(&to, &size);
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        char *bf16 = strncmp(line, "tensor ", 7) ? NULL : strstr(line, " bf16 ");
        if (bf16)
            fprintf(file, "%.*s f16 %s\n", (int)(bf16 - line), line, bf16 + 6);
        else if (!strncmp(line, types, sizeof types - 1))
            fprintf(file, "%s exchange bf16%s\n", apart, line + sizeof types - 1);
        else
            fprintf(file, "%s\n", line);
    }
    fclose(file);
    ck_assert_msg(!mgl_plan_parse(to, size, "f16.mls", &out, &err), "%s: %s", err.where,
                  err.message);
    mgl_text_free(text);
    free(to);
    return out;
}

START_TEST(weights_in_other_formats_are_other_formats)
{
    mgl_plan *other = with_weights_in_f16();
    ck_assert_int_eq(mgl_plan_check_formats(other, plan, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "the weights"));
    ck_assert_int_eq(mgl_planner_match(planner, other, 1, &err), MGL_BAD_INPUT);
    mgl_plan_close(other);
}
END_TEST

/* ---- misuse ---------------------------------------------------------------------------------- */

static void refuses_null(const char *name, mgl_status status)
{
    ck_assert_int_eq(status, MGL_USAGE);
    ck_assert_ptr_nonnull(strstr(err.message, name));
}

START_TEST(null_is_rejected)
{
    mgl_plan *out = NULL;
    mgl_planner *opened = NULL;
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    const mgl_plan_options options = of_tales();
    refuses_null("options", mgl_planner_open(NULL, &opened, &err));
    refuses_null("out", mgl_planner_open(&options, NULL, &err));
    refuses_null("planner", mgl_planner_lower(NULL, NULL, NULL, 1, &out, &err));
    refuses_null("out", mgl_planner_lower(planner, NULL, NULL, 1, NULL, &err));
    refuses_null("planner", mgl_planner_match(NULL, plan, 1, &err));
    refuses_null("plan", mgl_planner_match(planner, NULL, 1, &err));
    refuses_null("planner", mgl_planner_check(NULL, plan, &verdict, &err));
    refuses_null("plan", mgl_planner_check(planner, NULL, &verdict, &err));
    refuses_null("out", mgl_planner_check(planner, plan, NULL, &err));
    refuses_null("plan", mgl_plan_move(NULL, MOVE, &out, &err));
    refuses_null("moves", mgl_plan_move(plan, NULL, &out, &err));
    refuses_null("out", mgl_plan_move(plan, MOVE, NULL, &err));
    refuses_null("plan", mgl_plan_check_machine(NULL, &err));
    refuses_null("plan", mgl_plan_check_formats(NULL, plan, &err));
    refuses_null("other", mgl_plan_check_formats(plan, NULL, &err));
    mgl_planner_close(NULL);
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    mgl_plan_options options = of_tales();
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n += 1 + n / 4) {
        mgl_planner *used = NULL;
        mgl_plan *made = NULL, *moved = NULL;
        mgl_alloc_fail_at(n, true);
        status = mgl_planner_open(&options, &used, &err);
        if (!status)
            status = mgl_planner_lower(used, CONFIG, NULL, 1, &made, &err);
        if (!status)
            status = mgl_plan_move(made, MOVE, &moved, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(!status || status == MGL_NO_MEMORY, "%s: %s", err.where, err.message);
        mgl_plan_close(moved);
        mgl_plan_close(made);
        mgl_planner_close(used);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("planner");
    TCase *tests = tcase_create("planner");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_planner_makes_what_lowering_makes);
    tcase_add_test(tests, a_plan_is_moved_as_in_lowering);
    tcase_add_test(tests, a_move_that_does_not_fit_is_rejected);
    tcase_add_test(tests, a_shape_may_be_the_callers_own);
    tcase_add_test(tests, options_that_contradict_are_rejected);
    tcase_add_test(tests, older_options_have_no_shape_text);
    tcase_add_test(tests, a_plan_is_checked_with_meaning);
    tcase_add_test(tests, a_plan_of_other_sequences_does_not_match);
    tcase_add_test(tests, a_machine_has_limits);
    tcase_add_test(tests, a_plan_of_lower_precision_has_other_formats);
    tcase_add_test(tests, weights_in_other_formats_are_other_formats);
    tcase_add_test(tests, null_is_rejected);
    tcase_add_test(tests, memory_that_runs_out_is_told);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
