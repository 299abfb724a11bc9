/*
 * Tests of programs with unsplit and split rows: lowered programs are accepted, with counters and
 * with flags; a program without one task of attention or merge, or with such a task twice, is
 * rejected; a text that is changed in one place is rejected with the expected code.
 */
#include "support.h"

#include <stdio.h>

static const mgl_geometry geometry = {64, 2, 4, 2, 16, 64, 40, 1e-5F};
enum { UNSPLIT = 7 };

static mgl_error err;

static mgl_program *lowered_as(const mgl_graph *graph, int exchange, int unsplit)
{
    mgl_program *program = NULL;
    mgl_schedule_config config;
    const mgl_target target = {.arch = "sm_90a", .queues = 5, .shared_bytes = 232448};
    const mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 32, .sequences = 2};
    mgl_schedule_config_default(&config);
    config.rows = 4;
    config.splits = 2;
    config.unsplit = unsplit;
    config.exchange = exchange;
    ck_assert_msg(!mgl_schedule_lower(graph, &target, &options, &config, &program, &err), "%s",
                  err.message);
    return program;
}

static mgl_program *divided(const mgl_graph *graph, int exchange)
{
    mgl_program *program = lowered_as(graph, exchange, UNSPLIT);
    ck_assert_int_eq(program->limits.unsplit, UNSPLIT);
    return program;
}

START_TEST(lowered_programs_are_accepted)
{
    char codes[64];
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *program = divided(graph, 1 + _i);
    mgl_verdict verdict = verdict_of(program, graph);
    ck_assert_msg(verdict.accepted, "%s", codes_of(&verdict, codes, sizeof codes));
    ck_assert(verdict.meaning_checked);
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Removes or doubles each task of attention or merge. */
START_TEST(every_piece_is_needed)
{
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *program = divided(graph, 1 + _i);
    for (int t = 0; t < program->task_count; t++) {
        const mgl_op op = program->tasks[t].op;
        if (!mgl_op_is_attention(op) && op != MGL_OP_MERGE)
            continue;
        static const enum piece pieces[] = {PIECE_TASK, DOUBLE_TASK};
        for (int i = 0; i < 2; i++) {
            mgl_program *damaged = copy_without(program, pieces[i], t);
            mgl_verdict verdict = verdict_of(damaged, graph);
            ck_assert_msg(!verdict.accepted, "task %d, %s, piece %d", t, mgl_op_get(op)->name, i);
            mgl_verdict_clear(&verdict);
            mgl_program_free(damaged);
        }
    }
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* `to` replaces the first occurrence of `from` after the first occurrence of `line`. */
static const struct {
    int exchange;
    const char *line, *from, *to;
    int code;
} edits[] = {
    {2, "limits", " unsplit 7", "", 109},
    {2, "limits", " unsplit 7", " unsplit 100000000", 407},
    {2, "limits", "att[:rows unsplit,", "att[:rows,", 304},
    {2, "limits", "pos unsplit", "pos", 109},
    {2, "limits", "pos unsplit", "pos split", 109},
    {2, "\nattend_tail", "part[1:2,:rows split", "part[1:2,:rows", 109},
    {2, "\nattend_past", "part[0:1,:rows split", "part[0:1,:rows unsplit", 503},
    {2, "\nmerge", "part[0:2,:rows split", "part[0:2,:rows", 503},
    {2, "\nmerge", "att[:rows split", "att[:rows unsplit", 304},
    {2, "limits", "att[:rows unsplit,0:32]", "att[:rows unsplit,32:64]", 304},
    {1, "limits", "att[:rows unsplit,0:32]", "att[:rows unsplit,32:64]", 301},
    {2, "\nlinear_add", "att[:rows,", "att[:rows split,", 107},
    {2, "\nclear", "att[:rows,", "att[:rows split,", 107},
    {2, "\nattend.", "qkv[:rows,64:80]", "qkv[:rows,80:96]", 705},
};

static char *replace(const char *text, const char *line, const char *from, const char *to)
{
    const char *at = strstr(text, line);
    at = at ? strstr(at, from) : NULL;
    ck_assert_msg(at != NULL, "%s of %s", from, line);
    const size_t before = (size_t)(at - text), rest = strlen(at + strlen(from));
    char *out = malloc(before + strlen(to) + rest + 1);
    memcpy(out, text, before);
    memcpy(out + before, to, strlen(to));
    memcpy(out + before + strlen(to), at + strlen(from), rest + 1);
    return out;
}

START_TEST(a_wrong_division_is_reported)
{
    char codes[64];
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *program = divided(graph, edits[_i].exchange), *damaged = NULL;
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    char *edited = replace(text.bytes, edits[_i].line, edits[_i].from, edits[_i].to);
    ck_assert_msg(!mgl_schedule_parse(edited, strlen(edited), "edited", &damaged, &err), "%s",
                  err.message);
    mgl_verdict verdict = verdict_of(damaged, graph);
    ck_assert(!verdict.accepted);
    ck_assert_msg(has_code(&verdict, edits[_i].code), "%s",
                  codes_of(&verdict, codes, sizeof codes));
    mgl_verdict_clear(&verdict);
    free(edited);
    mgl_text_clear(&text);
    mgl_program_free(program);
    mgl_program_free(damaged);
    mgl_graph_free(graph);
}
END_TEST

/* Programs whose rows are all split, by tasks of all rows, where limits.unsplit is set. Then other
 * tasks may write the partial results of the unsplit rows. */
static const struct {
    int exchange;
    const char *line, *from, *to;
    int code; /* 0: accepted */
} partials[] = {
    /* the unsplit rows keep the partial results of layer 0, whose buffer both layers use */
    {1, "\nattend_past.tiles in qkv[:rows,0:32], rope[0:32,0:16], k1[", "part[0:1,:rows,",
     "part[0:1,:rows split,", 706},
    /* both kinds of rows are written, each by a task of its own: rightly; by an attention to the
     * cache of another layer; and to another kv head */
    {2, "\nattend_past",
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows,",
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows unsplit,0:2,0:20]"
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows split,",
     0},
    {2, "\nattend_past",
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows,",
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k1[0:2,0:1,:pos,0:16], "
     "v1[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows unsplit,0:2,0:20]"
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows split,",
     706},
    {2, "\nattend_past",
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows,",
     "\nattend_past.tiles in flag l0.qkv[:rows,32:64], rope[0:32,0:16], k0[0:2,1:2,:pos,0:16], "
     "v0[0:2,1:2,:pos,0:16] out flag l0.part[0:1,:rows unsplit,0:2,0:20]"
     "\nattend_past.tiles in flag l0.qkv[:rows,0:32], rope[0:32,0:16], k0[0:2,0:1,:pos,0:16], "
     "v0[0:2,0:1,:pos,0:16] out flag l0.part[0:1,:rows split,",
     706},
};

START_TEST(partials_of_each_kind_of_rows_are_checked)
{
    char codes[64];
    mgl_graph *graph = make_graph(&geometry, false, MGL_BF16);
    mgl_program *program = lowered_as(graph, partials[_i].exchange, 1), *damaged = NULL;
    mgl_text text = {0};
    program->limits.unsplit = UNSPLIT;
    mgl_schedule_print(program, &text);
    char *edited = replace(text.bytes, partials[_i].line, partials[_i].from, partials[_i].to);
    ck_assert_msg(!mgl_schedule_parse(edited, strlen(edited), "edited", &damaged, &err), "%s",
                  err.message);
    mgl_verdict verdict = verdict_of(damaged, graph);
    ck_assert_int_eq(verdict.accepted, partials[_i].code == 0);
    ck_assert_msg(verdict.accepted || has_code(&verdict, partials[_i].code), "%s",
                  codes_of(&verdict, codes, sizeof codes));
    mgl_verdict_clear(&verdict);
    free(edited);
    mgl_text_clear(&text);
    mgl_program_free(program);
    mgl_program_free(damaged);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validator unsplit");
    TCase *cases = tcase_create("unsplit");
    tcase_add_loop_test(cases, lowered_programs_are_accepted, 0, 2);
    tcase_add_loop_test(cases, every_piece_is_needed, 0, 2);
    tcase_add_loop_test(cases, a_wrong_division_is_reported, 0, sizeof edits / sizeof *edits);
    tcase_add_loop_test(cases, partials_of_each_kind_of_rows_are_checked, 0,
                        sizeof partials / sizeof *partials);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
