/*
 * Tests of heads whose rows are written by different numbers of shares. Such programs are accepted
 * with their meaning checked, and many interleavings run without an error. A missing share is
 * reported.
 */
#include "support.h"

#include <stdio.h>

#include "base/file.h"
#include "eval/synthetic.h"
#include "tests/vm/explore/explore.h"

#define CASES MGL_SOURCE_DIR "/tests/validator/cases/"

static mgl_error err;

/* The model of the cases. */
static mgl_graph *open_graph(void)
{
    const mgl_config config = {
        .geometry = {16, 2, 2, 2, 8, 24, 40, 1e-5F},
        .max_positions = 64,
        .rope = {.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
        .tied = false};
    mgl_graph *graph = NULL;
    ck_assert_msg(!mgl_synthetic_open(&config, 3, &graph, &err), "%s", err.message);
    return graph;
}

/* A case, without the line that contains `left_out` (NULL: all of it). */
static mgl_program *read_case(const char *name, const char *left_out)
{
    char path[512], *text;
    size_t length;
    mgl_program *program = NULL;
    snprintf(path, sizeof path, CASES "%s.mls", name);
    ck_assert_msg(!mgl_file_read(path, 1 << 20, &text, &length, &err), "%s", err.message);
    if (left_out) {
        char *at = strstr(text, left_out), *end;
        ck_assert_ptr_nonnull(at);
        end = strchr(at, '\n');
        while (at > text && at[-1] != '\n')
            at--;
        memmove(at, end + 1, strlen(end + 1) + 1);
        for (at = text; (at = strstr(at, "second.l1.attend>=5")); at++)
            at[strlen("second.l1.attend>=")] = '4';
    }
    ck_assert_msg(!mgl_schedule_parse(text, strlen(text), name, &program, &err), "%s", err.message);
    mgl_free(text);
    return program;
}

START_TEST(heads_have_different_numbers_of_shares)
{
    char codes[64];
    mgl_graph *graph = open_graph();
    mgl_program *program = read_case("accept_rows_heads", NULL);
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert_msg(verdict.accepted, "%s", codes_of(&verdict, codes, sizeof codes));
    ck_assert(verdict.meaning_checked);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The other half contains the values of the previous layer. */
START_TEST(a_share_of_the_layer_before_is_another_value)
{
    mgl_graph *graph = open_graph();
    mgl_program *program = read_case("accept_rows_heads", "out second.att[:rows 0/2,8:16]");
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert(has_code(&verdict, 704));
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(the_missing_share_is_named)
{
    mgl_program *program = read_case("mg501_heads", NULL);
    mgl_verdict verdict = verdict_of(program, NULL);
    ck_assert_int_gt(verdict.count, 0);
    ck_assert_int_eq(verdict.diagnostics[0].code, 501);
    ck_assert_int_eq(verdict.diagnostics[0].witness_count, 1);
    ck_assert_str_eq(verdict.diagnostics[0].witness[0], "not written: second.att[:rows 0/2,0:8]");
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}
END_TEST

/* Epochs of the second list, with more rows than the first list has. */
START_TEST(nothing_is_found_in_interleavings)
{
    enum { SEQUENCES = 7 };
    static const int32_t prompt[] = {3, 1, 39, 7, 22};
    mgl_vm_sequence sequences[SEQUENCES];
    mgl_explore_report report;
    for (int i = 0; i < SEQUENCES; i++)
        sequences[i] = (mgl_vm_sequence){
            .prompt = prompt + i % 3, .prompt_count = 1 + i % 3, .max_new = 1 + i % 2};
    const mgl_vm_request request = {.sequences = sequences, .count = SEQUENCES};
    const mgl_explore_options options = {
        .request = &request, .seed = 1, .seeds = 60, .plain = true};
    mgl_graph *graph = open_graph();
    mgl_program *program = read_case("accept_rows_heads", NULL);
    ck_assert_msg(!mgl_explore(program, graph, &options, &report, &err), "%s", err.message);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    ck_assert_int_eq(report.seeds, 60);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator shares");
    TCase *cases = tcase_create("shares");
    tcase_add_test(cases, heads_have_different_numbers_of_shares);
    tcase_add_test(cases, a_share_of_the_layer_before_is_another_value);
    tcase_add_test(cases, the_missing_share_is_named);
    tcase_add_test(cases, nothing_is_found_in_interleavings);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
