/*
 * Tests of transformations: the file format, the starter library, scripts, and running them on the
 * kernel's own texts.
 */
#include "autotune/kernels/gates/scan.h"
#include "autotune/kernels/methods/pass_engine.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "schedule/program.h"
#include "tests/sanitized.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static mgl_library library;

static void setup(void)
{
    mgl_error err = {0};
    ck_assert_msg(mgl_library_open(NULL, &library, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
}

static void teardown(void)
{
    mgl_library_clear(&library);
}

/* ---- the format ------------------------------------------------------------------------------ */

#define HEAD                                                                                       \
    "{\"schema\":\"megalith.transformation/1\",\"name\":\"a\",\"summary\":\"b\","                  \
    "\"architectures\":[\"sm_80\"],\"ops\":[\"merge\"],\"requires\":[],\"provides\":[\"c\"],"
#define TUNABLES "\"tunables\":[{\"name\":\"n\",\"values\":[1,2]}],"
#define PASS(regions, may_break, retries)                                                          \
    "{\"name\":\"p\",\"instruction\":\"do\",\"regions\":[" regions "],\"may_break\":" may_break    \
    ",\"retries\":" retries "}"
#define PASSES(list) "\"inserts\":[],\"passes\":[" list "]}"
#define GOOD_PASS    PASS("\"device\"", "false", "1")

START_TEST(a_transformation_is_read)
{
    static const char text[] = HEAD TUNABLES
        "\"valid\":\"2 - n\"," PASSES(PASS("\"macros\",\"device\"", "true", "0") "," GOOD_PASS);
    mgl_transformation t;
    mgl_error err = {0};
    ck_assert_msg(mgl_transformation_parse(text, strlen(text), "t", &t, &err) == MGL_OK, "%s",
                  err.message);
    ck_assert_str_eq(t.name, "a");
    ck_assert_int_eq(t.pass_count, 2);
    ck_assert_int_eq(t.passes[0].regions[1], MGL_KERNEL_REGION_DEVICE);
    ck_assert_int_eq(mgl_transformation_calls(&t), 3);
    ck_assert_int_eq(t.tunables[0].values[1], 2);
    ck_assert(t.has_valid);
    mgl_transformation_clear(&t);
}
END_TEST

static const char *const bad[] = {
    "",
    "[]",
    "{}",
    "{\"schema\":\"megalith.plan/1\"}",
    HEAD TUNABLES PASSES(""),
    HEAD TUNABLES PASSES(PASS("\"device\"", "true", "1")),
    HEAD TUNABLES PASSES(PASS("\"host\"", "false", "1")),
    HEAD TUNABLES PASSES(PASS("", "false", "1")),
    HEAD TUNABLES PASSES(PASS("\"device\",\"device\"", "false", "1")),
    HEAD TUNABLES PASSES(PASS("\"device\"", "false", "15")),
    HEAD TUNABLES PASSES(PASS("\"device\"", "0", "1")),
    HEAD TUNABLES "\"more\":1," PASSES(GOOD_PASS),
    HEAD TUNABLES "\"valid\":\"m\"," PASSES(GOOD_PASS),
    HEAD "\"tunables\":[{\"name\":\"n\",\"values\":[]}]," PASSES(GOOD_PASS),
    HEAD "\"tunables\":[{\"name\":\"n\",\"values\":[2,1]}]," PASSES(GOOD_PASS),
    HEAD "\"tunables\":[{\"name\":\"n\",\"values\":[1.5]}]," PASSES(GOOD_PASS),
    HEAD "\"tunables\":[{\"name\":\"1\",\"values\":[1]}]," PASSES(GOOD_PASS),
    HEAD "\"tunables\":[{\"name\":\"N\",\"values\":[1]}]," PASSES(GOOD_PASS),
    HEAD "\"tunables\":[{\"name\":\"n\",\"values\":[1]},{\"name\":\"n\",\"values\":[1]}]," PASSES(
        GOOD_PASS),
    HEAD TUNABLES "\"inserts\":[{\"region\":\"x\",\"text\":\"y\"}],\"passes\":[" GOOD_PASS "]}",
    "{\"schema\":\"megalith.transformation/1\",\"name\":\"a\",\"summary\":\"b\",\"architectures\":["
    "\"sm_80\"],\"ops\":[\"nothing\"],\"requires\":[],\"provides\":[\"c\"]," TUNABLES PASSES(
        GOOD_PASS),
    HEAD TUNABLES PASSES(GOOD_PASS) "x",
};

START_TEST(what_is_no_transformation_is_rejected)
{
    mgl_transformation t;
    mgl_error err = {0};
    ck_assert_msg(mgl_transformation_parse(bad[_i], strlen(bad[_i]), "t", &t, &err) ==
                      MGL_BAD_INPUT,
                  "%s", bad[_i]);
    ck_assert_str_ne(err.message, "");
}
END_TEST

START_TEST(every_cut_of_a_transformation_is_rejected)
{
    static const char text[] = HEAD TUNABLES PASSES(GOOD_PASS);
    for (size_t cut = 0; cut < strlen(text); cut++) {
        mgl_transformation t;
        ck_assert_int_eq(mgl_transformation_parse(text, cut, "t", &t, NULL), MGL_BAD_INPUT);
    }
}
END_TEST

/* ---- the library ----------------------------------------------------------------------------- */

/* The published counts: passes and calls. */
static const struct {
    const char *name;
    int passes, calls;
} counts[] = {{"refactor", 2, 3},    {"block_tiling", 6, 9}, {"thread_tiling", 3, 3},
              {"warp_tiling", 1, 1}, {"split_k", 1, 3},      {"offset", 1, 2},
              {"pipelining", 1, 2}};

START_TEST(the_starter_has_the_published_counts)
{
    const mgl_transformation *t = mgl_library_find(&library, counts[_i].name);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->pass_count, counts[_i].passes);
    ck_assert_int_eq(mgl_transformation_calls(t), counts[_i].calls);
}
END_TEST

START_TEST(every_transformation_of_the_starter_is_in_reach)
{
    ck_assert_uint_eq(library.count, 20);
    for (size_t i = 0; i < library.count; i++)
        for (int j = 0; j < library.list[i].requires.count; j++) {
            bool provided = false;
            for (size_t k = 0; k < library.count; k++)
                provided |=
                    mgl_names_have(&library.list[k].provides, library.list[i].requires.names[j]);
            ck_assert_msg(provided, "%s: %s", library.list[i].name,
                          library.list[i].requires.names[j]);
        }
}
END_TEST

START_TEST(every_script_holds_for_every_op)
{
    static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a"};
    static const char *const ops[] = {"norm_linear", "linear_add", "norm_swiglu",
                                      "head",        "merge",      "attend"};
    const mgl_transform_script *script = mgl_library_find_script(&library, archs[_i]);
    ck_assert_ptr_nonnull(script);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const mgl_transformation *steps[MGL_MAX_NAMES];
        mgl_error err = {0};
        int count;
        ck_assert_msg(mgl_transform_script_steps(&library, script, ops[i], steps, &count, &err) ==
                          MGL_OK,
                      "%s: %s", ops[i], err.message);
        ck_assert_int_ge(count, 4);
    }
}
END_TEST

START_TEST(a_script_in_the_wrong_order_is_rejected)
{
    static const char text[] = "{\"schema\":\"megalith.plan/1\",\"name\":\"x\",\"architecture\":"
                               "\"sm_80\",\"summary\":\"s\",\"steps\":[\"offset\",\"refactor\"]}";
    const mgl_transformation *steps[MGL_MAX_NAMES];
    mgl_transform_script script;
    mgl_error err = {0};
    int count;
    ck_assert_int_eq(mgl_transform_script_parse(text, strlen(text), "p", &script, NULL), MGL_OK);
    ck_assert_int_eq(mgl_transform_script_steps(&library, &script, "attend", steps, &count, &err),
                     MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "transposed"));
    mgl_transform_script_clear(&script);
}
END_TEST

START_TEST(a_users_own_takes_the_place_of_the_starters)
{
    static const char folder[] = MGL_BINARY_DIR "/test_transformations";
    static const char text[] =
        "{\"schema\":\"megalith.transformation/1\",\"name\":\"offset\",\"summary\":\"mine\","
        "\"architectures\":[\"sm_80\"],\"ops\":[\"merge\"],\"requires\":[],\"provides\":[\"c\"]"
        "," TUNABLES PASSES(GOOD_PASS);
    mgl_library own;
    mkdir(folder, 0700);
    ck_assert_int_eq(mgl_output_write_file(MGL_BINARY_DIR "/test_transformations/o.json", text,
                                           strlen(text), NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_library_open(folder, &own, NULL), MGL_OK);
    ck_assert_uint_eq(own.count, library.count);
    ck_assert_str_eq(mgl_library_find(&own, "offset")->summary, "mine");
    ck_assert(mgl_library_find(&own, "offset")->own);
    mgl_library_clear(&own);
}
END_TEST

/* Text that transformations insert without a model passes the scan that answers of models must
 * pass. A build with sanitizers tests a quarter of the pairs of units and transformations, because
 * the scan runs the same code for each pair. */
START_TEST(what_is_inserted_passes_the_scan)
{
    enum { STEP = BY_SANITIZER(1, 4) };
    for (int u = 0; u < mgl_kernel_unit_count(); u++) {
        const mgl_kernel_unit *unit = mgl_kernel_unit_get(u);
        size_t length;
        const char *text = mgl_kernel_unit_text(unit, &length);
        for (size_t i = 0; i < library.count; i++) {
            const mgl_transformation *t = &library.list[i];
            mgl_text made = {0};
            mgl_scan_fault fault = {0};
            mgl_error err = {0};
            if (((size_t)u + i) % STEP || !mgl_names_have(&t->ops, mgl_op_get(unit->op)->name))
                continue;
            ck_assert_msg(mgl_transformation_insert(t, text, length, &made, &err) == MGL_OK,
                          "%s %s: %s", unit->name, t->name, err.message);
            ck_assert_int_eq(mgl_kernel_scan(unit, made.bytes, made.length, 0, &fault, &err),
                             MGL_OK);
            ck_assert_msg(!fault.line, "%s %s: line %d: %s", unit->name, t->name, fault.line,
                          fault.what);
            mgl_text_clear(&made);
        }
    }
}
END_TEST

/* ---- the runner ------------------------------------------------------------------------------ */

static const char unit_text[] = "frame\n"
                                "/* region: launch */\nl\n"
                                "/* region: macros */\nm\n"
                                "/* region: device */\nd\n"
                                "/* region: end */\n"
                                "frame\n";
static int evaluated, told;

/* A text is accepted if it contains the word; otherwise the diagnostic reports the missing word. */
static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    const char *word = user;
    (void)values, (void)count, (void)err;
    evaluated++;
    out->outcome = memmem(text, length, word, strlen(word)) ? MGL_OUTCOME_UNMEASURED
                                                            : MGL_OUTCOME_COMPILE_OTHER;
    return MGL_OK;
}

static void on_call(void *user, const mgl_feedback_call *call)
{
    (void)user, (void)call;
    told++;
}

static mgl_work work_with(const char *word)
{
    evaluated = told = 0;
    return (mgl_work){.unit = "merge",
                      .op = "merge",
                      .arch = "sm_90a",
                      .context = "registers: 128",
                      .model = "stub",
                      .evaluator = {evaluate, (void *)(uintptr_t)word},
                      .on_call = on_call};
}

static mgl_model_client *script_of(const char *answers)
{
    static const char path[] = MGL_BINARY_DIR "/test_transformation_script.json";
    mgl_model_client *model_client = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_output_write_file(path, answers, strlen(answers), NULL), MGL_OK);
    ck_assert_msg(mgl_model_client_open_replay(path, &model_client, &err) == MGL_OK, "%s",
                  err.message);
    return model_client;
}

/* Repeats "```cuda\nw<i>\n```". */
static void put_words(mgl_text *to, int count)
{
    for (int i = 0; i < count; i++)
        mgl_text_format(to, "%s\"```cuda\\nw%d\\n```\"", i ? "," : "[", i);
    mgl_text_put(to, "]");
}

static mgl_pass_engine *run(const char *name, const char *word, const char *answers,
                            mgl_outcome *stopped)
{
    const mgl_transformation *t = mgl_library_find(&library, name);
    mgl_work work = work_with(word);
    mgl_model_client *model_client = script_of(answers);
    mgl_waiter waiter = mgl_waiter_real(NULL);
    mgl_pass_engine *peak = NULL;
    mgl_error err = {0};
    ck_assert_msg(mgl_pass_engine_open(&work, t, unit_text, strlen(unit_text), &peak, &err) ==
                      MGL_OK,
                  "%s", err.message);
    ck_assert_int_eq(mgl_pass_engine_run(peak, model_client, &waiter, stopped, NULL), MGL_OK);
    mgl_model_client_close(model_client);
    return peak;
}

START_TEST(six_passes_make_exactly_nine_calls)
{
    mgl_text words = {0};
    mgl_outcome stopped;
    size_t length;
    put_words(&words, 20);
    mgl_pass_engine *peak = run("block_tiling", "w", words.bytes, &stopped);
    ck_assert_int_eq(mgl_pass_engine_state_of(peak), MGL_PASS_ENGINE_DONE);
    ck_assert_int_eq(mgl_pass_engine_calls(peak), 9);
    ck_assert_int_eq(told, 9);
    ck_assert_int_eq(evaluated, 1);
    const char *text = mgl_pass_engine_text(peak, &length);
    ck_assert_ptr_nonnull(strstr(text, "/* region: launch */\nw0\n/* region: macros */\n"));
    ck_assert_ptr_nonnull(strstr(text, "/* region: device */\nw7\n/* region: end */\n"));
    mgl_pass_engine_close(peak);
    mgl_text_clear(&words);
}
END_TEST

START_TEST(every_transformation_makes_exactly_its_calls)
{
    for (size_t i = 0; i < library.count; i++) {
        mgl_text words = {0};
        mgl_outcome stopped;
        put_words(&words, 20);
        mgl_pass_engine *peak = run(library.list[i].name, "w", words.bytes, &stopped);
        ck_assert_int_eq(mgl_pass_engine_state_of(peak), MGL_PASS_ENGINE_DONE);
        ck_assert_int_eq(mgl_pass_engine_calls(peak), mgl_transformation_calls(&library.list[i]));
        mgl_pass_engine_close(peak);
        mgl_text_clear(&words);
    }
}
END_TEST

START_TEST(tunables_and_pieces_are_inserted)
{
    mgl_text made = {0};
    ck_assert_int_eq(mgl_transformation_insert(mgl_library_find(&library, "offset"), unit_text,
                                               strlen(unit_text), &made, NULL),
                     MGL_OK);
    ck_assert_ptr_nonnull(
        strstr(made.bytes, "/* region: launch */\n/* tunable pad: 0 4 8 16 */\nl\n"));
    ck_assert_ptr_nonnull(strstr(made.bytes, "/* region: macros */\n#define PADDED(columns)"));
    mgl_text_clear(&made);
}
END_TEST

/* The only pass allows three retries: the fourth answer is right. */
START_TEST(what_the_evaluator_finds_is_mended)
{
    mgl_outcome stopped;
    size_t length;
    mgl_pass_engine *peak = run("warp_tiling", "right",
                                "[\"```cuda\\na\\n```\",\"no\",\"```cuda\\nb\\n```\","
                                "\"```cuda\\nright\\n```\"]",
                                &stopped);
    ck_assert_int_eq(mgl_pass_engine_state_of(peak), MGL_PASS_ENGINE_DONE);
    ck_assert_int_eq(mgl_pass_engine_calls(peak), 4);
    ck_assert_int_eq(evaluated, 3);
    ck_assert_ptr_nonnull(strstr(mgl_pass_engine_text(peak, &length), "right\n"));
    mgl_pass_engine_close(peak);
}
END_TEST

START_TEST(it_fails_when_the_retries_are_used_up)
{
    mgl_text words = {0};
    mgl_outcome stopped;
    mgl_error err = {0};
    mgl_reply reply = {0};
    put_words(&words, 20);
    mgl_pass_engine *peak = run("warp_tiling", "right", words.bytes, &stopped);
    ck_assert_int_eq(mgl_pass_engine_state_of(peak), MGL_PASS_ENGINE_FAILED);
    ck_assert_int_eq(mgl_pass_engine_calls(peak), 4);
    ck_assert_int_eq(mgl_pass_engine_verdict(peak)->outcome, MGL_OUTCOME_COMPILE_OTHER);
    ck_assert_int_eq(mgl_pass_engine_take(peak, NULL, &reply, &err), MGL_USAGE);
    mgl_pass_engine_close(peak);
    mgl_text_clear(&words);
}
END_TEST

/* Answers that are whole texts, as JSON strings. In turn, each byte outside the region `device` is
 * changed. */
START_TEST(any_byte_outside_of_the_region_is_caught)
{
    const mgl_transformation *t = mgl_library_find(&library, "warp_tiling");
    mgl_text before = {0};
    mgl_kernel_regions regions;
    ck_assert_int_eq(mgl_transformation_insert(t, unit_text, strlen(unit_text), &before, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_kernel_regions_find(before.bytes, before.length, &regions, NULL), MGL_OK);
    /* the last byte is the line end before the fence */
    for (size_t at = 0; at + 1 < before.length; at++) {
        bool inside = at >= regions.of[MGL_KERNEL_REGION_DEVICE].first &&
                      at < regions.of[MGL_KERNEL_REGION_DEVICE].end;
        mgl_work work = work_with("frame");
        mgl_pass_engine *peak = NULL;
        mgl_reply reply = {.retry_after_s = -1};
        char was = before.bytes[at];
        ck_assert_int_eq(mgl_pass_engine_open(&work, t, unit_text, strlen(unit_text), &peak, NULL),
                         MGL_OK);
        before.bytes[at] = was == '\n' ? ' ' : (char)(was ^ 1);
        mgl_text_format(&reply.content, "```cuda\n%s```\n", before.bytes);
        before.bytes[at] = was;
        ck_assert_int_eq(mgl_pass_engine_take(peak, NULL, &reply, NULL), MGL_OK);
        const mgl_trial_verdict *v = mgl_pass_engine_verdict(peak);
        if (inside && was != '\n')
            ck_assert_int_eq(v->outcome, MGL_OUTCOME_UNMEASURED);
        else if (!inside)
            ck_assert_msg(v->outcome == MGL_OUTCOME_REGION_VIOLATION, "byte %zu: %s", at,
                          mgl_outcome_name(v->outcome));
        mgl_reply_clear(&reply);
        mgl_pass_engine_close(peak);
    }
    mgl_text_clear(&before);
}
END_TEST

START_TEST(a_script_that_ends_leaves_it_where_it_is)
{
    mgl_outcome stopped;
    mgl_text words = {0};
    put_words(&words, 4);
    mgl_pass_engine *peak = run("block_tiling", "w", words.bytes, &stopped);
    ck_assert_int_eq(stopped, MGL_OUTCOME_PROPOSER_BUDGET);
    ck_assert_int_eq(mgl_pass_engine_state_of(peak), MGL_PASS_ENGINE_RUNNING);
    ck_assert_int_eq(mgl_pass_engine_place(peak).pass, 3);
    ck_assert_int_eq(mgl_pass_engine_place(peak).region, 1);
    mgl_pass_engine_close(peak);
    mgl_text_clear(&words);
}
END_TEST

START_TEST(it_goes_on_from_a_file)
{
    const mgl_transformation *t = mgl_library_find(&library, "block_tiling");
    mgl_outcome stopped;
    mgl_text words = {0}, before = {0}, after = {0};
    mgl_json_out out = {0};
    mgl_json json;
    mgl_work work;
    mgl_error err = {0};
    put_words(&words, 4);
    mgl_pass_engine *peak = run("block_tiling", "w", words.bytes, &stopped), *again = NULL;
    mgl_json_out_begin(&out, "test/1");
    mgl_pass_engine_write(peak, &out, "peak");
    mgl_json_out_close(&out);
    ck_assert_int_eq(mgl_pass_engine_body(peak, &before, NULL), MGL_OK);
    work = work_with("w");
    ck_assert_int_eq(mgl_pass_engine_open(&work, t, unit_text, strlen(unit_text), &again, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_json_parse(out.text.bytes, out.text.length, 1 << 20, "peak", &json, NULL),
                     MGL_OK);
    ck_assert_msg(mgl_pass_engine_read(again, &json, mgl_json_member(json.root, "peak"), &err) ==
                      MGL_OK,
                  "%s", err.message);
    ck_assert_int_eq(mgl_pass_engine_body(again, &after, NULL), MGL_OK);
    ck_assert_str_eq(before.bytes, after.bytes);
    mgl_json_clear(&json);
    mgl_text_clear(&out.text);
    mgl_text_clear(&before);
    mgl_text_clear(&after);
    mgl_text_clear(&words);
    mgl_pass_engine_close(peak);
    mgl_pass_engine_close(again);
}
END_TEST

START_TEST(the_request_of_a_pass_is_a_golden)
{
    static const char path[] = MGL_SOURCE_DIR "/tests/autotune/golden/pass_request.json";
    mgl_work work = work_with("w");
    mgl_pass_engine *peak = NULL;
    mgl_text body = {0};
    char *golden = NULL;
    size_t length;
    ck_assert_int_eq(mgl_pass_engine_open(&work, mgl_library_find(&library, "split_k"), unit_text,
                                          strlen(unit_text), &peak, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_pass_engine_body(peak, &body, NULL), MGL_OK);
    mgl_text_put(&body, "\n");
    if (getenv("MEGALITH_WRITE_GOLDENS"))
        ck_assert_int_eq(mgl_output_write_file(path, body.bytes, body.length, NULL), MGL_OK);
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &golden, &length, NULL), MGL_OK);
    ck_assert_msg(!strcmp(body.bytes, golden), "%s is another one", path);
    mgl_free(golden);
    mgl_text_clear(&body);
    mgl_pass_engine_close(peak);
}
END_TEST

/* The n-th allocation and all later ones fail, for every 61st n. */
START_TEST(memory_may_run_out)
{
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n += 61) {
        mgl_library l;
        mgl_alloc_fail_at(n, true);
        status = mgl_library_open(NULL, &l, NULL);
        mgl_alloc_fail_at(0, false);
        ck_assert(!status || status == MGL_NO_MEMORY);
        if (!status)
            mgl_library_clear(&l);
    }
}
END_TEST

START_TEST(memory_may_run_out_in_a_run)
{
    const mgl_transformation *t = mgl_library_find(&library, "block_tiling");
    mgl_text words = {0};
    mgl_status status = MGL_NO_MEMORY;
    put_words(&words, 20);
    for (uint64_t n = 1; status; n += n < 300 ? 3 : 97) {
        mgl_model_client *model_client = script_of(words.bytes);
        mgl_waiter waiter = mgl_waiter_real(NULL);
        mgl_work work = work_with("w");
        mgl_pass_engine *peak = NULL;
        mgl_outcome stopped;
        mgl_alloc_fail_at(n, true);
        status = mgl_pass_engine_open(&work, t, unit_text, strlen(unit_text), &peak, NULL);
        if (!status)
            status = mgl_pass_engine_run(peak, model_client, &waiter, &stopped, NULL);
        mgl_alloc_fail_at(0, false);
        ck_assert(!status || status == MGL_NO_MEMORY);
        mgl_pass_engine_close(peak);
        mgl_model_client_close(model_client);
    }
    mgl_text_clear(&words);
}
END_TEST

#define ADD(test)       tcase_add_test(tests, test)
#define ALL(test, rows) tcase_add_loop_test(tests, test, 0, (int)(sizeof(rows) / sizeof *(rows)))

int main(void)
{
    Suite *suite = suite_create("transformation");
    TCase *tests = tcase_create("transformation");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    ADD(a_transformation_is_read);
    ALL(what_is_no_transformation_is_rejected, bad);
    ADD(every_cut_of_a_transformation_is_rejected);
    ALL(the_starter_has_the_published_counts, counts);
    ADD(every_transformation_of_the_starter_is_in_reach);
    tcase_add_loop_test(tests, every_script_holds_for_every_op, 0, 3);
    ADD(a_script_in_the_wrong_order_is_rejected);
    ADD(a_users_own_takes_the_place_of_the_starters);
    ADD(what_is_inserted_passes_the_scan);
    ADD(six_passes_make_exactly_nine_calls);
    ADD(every_transformation_makes_exactly_its_calls);
    ADD(tunables_and_pieces_are_inserted);
    ADD(what_the_evaluator_finds_is_mended);
    ADD(it_fails_when_the_retries_are_used_up);
    ADD(any_byte_outside_of_the_region_is_caught);
    ADD(a_script_that_ends_leaves_it_where_it_is);
    ADD(it_goes_on_from_a_file);
    ADD(the_request_of_a_pass_is_a_golden);
    ADD(memory_may_run_out);
    ADD(memory_may_run_out_in_a_run);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
