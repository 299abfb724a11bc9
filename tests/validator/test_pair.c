/*
 * Tests of pairs of programs that use the same weights and caches (validator/pair.c). A program and
 * the same program with a second list agree, in both directions. A pair that differs in one thing
 * is rejected with the expected code, although each program alone is accepted.
 */
#include "support.h"

#include <stdio.h>

static const mgl_geometry geometry = {64, 2, 4, 2, 16, 128, 40, 1e-5F};

static mgl_error err;

/* How a program is lowered; 0: the default. */
struct how {
    int second_rows, queues, warps, splits, exchange, capacity, sequences;
    mgl_dtype dtype;
};
static const struct how plain = {.second_rows = 0, .dtype = MGL_BF16};

static mgl_program *lowered_as(const mgl_graph *graph, struct how how)
{
    mgl_program *program = NULL;
    mgl_schedule_config config;
    const mgl_target target = {
        .arch = "sm_90a", .queues = how.queues ? how.queues : 5, .shared_bytes = 232448};
    const mgl_lower_options options = {.dtype = how.dtype,
                                       .capacity = how.capacity ? how.capacity : 64,
                                       .sequences = how.sequences ? how.sequences : 1};
    mgl_schedule_config_default(&config);
    config.rows = how.sequences ? how.sequences : 1;
    config.second_rows = how.second_rows;
    config.warps = how.warps ? how.warps : config.warps;
    config.splits = how.splits;
    config.exchange = how.exchange;
    ck_assert_msg(!mgl_schedule_lower(graph, &target, &options, &config, &program, &err), "%s",
                  err.message);
    return program;
}

/* The program with the names of two caches of equal length exchanged. */
static mgl_program *with_caches_exchanged(const mgl_program *program, const char *a, const char *b)
{
    mgl_program *changed = NULL;
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    char *const copy = malloc(strlen(text.bytes) + 1);
    strcpy(copy, text.bytes);
    const size_t length = strlen(a);
    for (char *at = copy; *at; at++) {
        const bool is_a = !strncmp(at, a, length), is_b = !strncmp(at, b, length);
        if (is_a || is_b)
            memcpy(at, is_a ? b : a, length);
    }
    ck_assert_msg(!mgl_schedule_parse(copy, strlen(copy), "changed", &changed, &err), "%s",
                  err.message);
    free(copy);
    mgl_text_clear(&text);
    return changed;
}

static void check_pair(const mgl_program *program, const mgl_program *owner, const mgl_graph *graph,
                       const char *wanted)
{
    char codes[64];
    mgl_verdict verdict = {0};
    mgl_verdict alone = verdict_of(program, graph);
    ck_assert_msg(alone.accepted, "%s", codes_of(&alone, codes, sizeof codes));
    mgl_verdict_clear(&alone);
    ck_assert_int_eq(mgl_validator_check_pair(program, owner, graph, &verdict, &err), MGL_OK);
    ck_assert_str_eq(codes_of(&verdict, codes, sizeof codes), wanted);
    ck_assert_int_eq(verdict.accepted, !strcmp(wanted, "accept"));
    mgl_verdict_clear(&verdict);
}

START_TEST(a_program_agrees_with_its_two_lists)
{
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *one = lowered_as(graph, plain);
    mgl_program *two = lowered_as(graph, (struct how){.second_rows = 32 << _i, .dtype = MGL_BF16});
    ck_assert_ptr_null(one->second);
    ck_assert_ptr_nonnull(two->second);
    check_pair(two, one, graph, "accept");
    check_pair(one, two, graph, "accept");
    check_pair(one, one, graph, "accept");
    check_pair(two, one, NULL, "accept");
    mgl_program_free(two);
    mgl_program_free(one);
    mgl_graph_free(graph);
}
END_TEST

/* Programs that do not fit the plain program, and the code. */
static const struct {
    struct how how;
    const char *code;
} differences[] = {
    {{.capacity = 32, .dtype = MGL_BF16}, "MG140"},
    {{.sequences = 2, .dtype = MGL_BF16}, "MG140"},
    {{.dtype = MGL_F16}, "MG140"},
    {{.dtype = MGL_F32}, "MG140"},
    {{.queues = 4, .dtype = MGL_BF16}, "MG606"},
    {{.warps = 4, .dtype = MGL_BF16}, "MG606"},
    {{.splits = 3, .dtype = MGL_BF16}, "accept"},
    {{.exchange = 1, .dtype = MGL_BF16}, "accept"},
    {{.second_rows = 64, .warps = 4, .dtype = MGL_BF16}, "MG606"},
};

START_TEST(a_difference_has_its_code)
{
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *owner = lowered_as(graph, plain),
                *program = lowered_as(graph, differences[_i].how);
    check_pair(program, owner, graph, differences[_i].code);
    mgl_program_free(program);
    mgl_program_free(owner);
    mgl_graph_free(graph);
}
END_TEST

/* Both programs append every layer to a cache, but not to the same one. */
START_TEST(caches_of_other_layers)
{
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *owner = lowered_as(graph, plain);
    static const char *const names[][2] = {{"k0", "k1"}, {"v0", "v1"}};
    mgl_program *changed = with_caches_exchanged(owner, names[_i][0], names[_i][1]);
    check_pair(changed, owner, graph, "MG712");
    check_pair(changed, owner, NULL, "accept");
    mgl_program_free(changed);
    mgl_program_free(owner);
    mgl_graph_free(graph);
}
END_TEST

/* A program that is rejected alone is also rejected in a pair. */
START_TEST(a_wrong_program_in_a_pair)
{
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *right = lowered_as(graph, plain), *wrong = copy_without(right, PIECE_WAIT, 0);
    mgl_verdict verdict;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            mgl_validator_check_pair(i ? wrong : right, i ? right : wrong, graph, &verdict, &err),
            MGL_OK);
        ck_assert(!verdict.accepted);
        mgl_verdict_clear(&verdict);
    }
    mgl_program_free(wrong);
    mgl_program_free(right);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pair");
    TCase *tests = tcase_create("pairs");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, a_program_agrees_with_its_two_lists, 0, 3);
    tcase_add_loop_test(tests, a_difference_has_its_code, 0,
                        (int)(sizeof differences / sizeof *differences));
    tcase_add_loop_test(tests, caches_of_other_layers, 0, 2);
    tcase_add_test(tests, a_wrong_program_in_a_pair);
    return run_suite(suite);
}
