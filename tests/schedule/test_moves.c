/*
 * Tests of moves: their texts, their effect on a program, the restored order of what is moved, and
 * their reversal. test_moves_drawn.c tests random moves. tests/vm/test_moved.c runs moved programs.
 */
#include "moving.h"

#include "base/clock.h"
#include "schedule/digest.h"
#include "schedule/variants.h"
#include "tests/time_limit.h"
#include "validator/validator.h"

#include <stdio.h>

/* ---- moved programs -------------------------------------------------------------------------- */

static mgl_program *moved_from(const mgl_program *from, const char *text)
{
    mgl_error err = {0};
    mgl_program *out;
    mgl_moves moves = moves_of(text);
    mgl_status status = mgl_moves_apply(from, &moves, &out, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_moves_clear(&moves);
    return out;
}

static mgl_program *moved(const char *text)
{
    return moved_from(program, text);
}

static bool is_same(const mgl_program *a, const mgl_program *b)
{
    unsigned char x[MGL_SHA256_BYTES], y[MGL_SHA256_BYTES];
    ck_assert_int_eq(mgl_program_digest(a, x, NULL), MGL_OK);
    ck_assert_int_eq(mgl_program_digest(b, y, NULL), MGL_OK);
    return !memcmp(x, y, sizeof x);
}

static void expect_accepted(const mgl_program *p, const char *what)
{
    mgl_verdict verdict = {0};
    ck_assert_int_eq(mgl_validator_check(p, graph, &verdict, NULL), MGL_OK);
    ck_assert_msg(verdict.accepted, "%s: MG%d %s", what,
                  verdict.count ? verdict.diagnostics[0].code : 0,
                  verdict.count ? verdict.diagnostics[0].message : "");
    mgl_verdict_clear(&verdict);
}

/* ---- texts ----------------------------------------------------------------------------------- */

START_TEST(canonical_texts_print_as_they_are)
{
    mgl_moves moves = moves_of(EACH_KIND);
    mgl_text text = {0};
    mgl_moves_print(&moves, &text);
    ck_assert_int_eq(moves.count, MGL_MOVE_COUNT);
    ck_assert_str_eq(text.bytes, EACH_KIND);
    mgl_text_clear(&text);
    mgl_moves_clear(&moves);
}
END_TEST

START_TEST(loose_texts_are_read)
{
    mgl_moves moves =
        moves_of("# first\n\n\t rows count = 2 to=1  from=0 step=o layer=all # why\n");
    mgl_text text = {0};
    mgl_moves_print(&moves, &text);
    ck_assert_str_eq(text.bytes, "rows layer=all step=o from=0 to=1 count=2\n");
    mgl_text_clear(&text);
    mgl_moves_clear(&moves);
}
END_TEST

START_TEST(no_text_has_no_moves)
{
    mgl_moves moves = moves_of("# nothing\n");
    ck_assert_int_eq(moves.count, 0);
}
END_TEST

static const struct {
    const char *text, *where, *message;
} wrong[] = {
    {"row layer=1", "test.moves:1:1",
     "unknown move `row`; known: queues, rows, shift, place, splits"},
    {"\nsample", "test.moves:2:7", "`to=` is missing; sample has to"},
    {"rows layer=1 step=o from=1 to=2", "test.moves:1:32", "`count=` is missing; rows has layer,"},
    {"sample to=1 to=2", "test.moves:1:13", "`to` is given twice"},
    {"sample from=1", "test.moves:1:8", "unknown parameter `from` of sample; known: to"},
    {"sample to=257", "test.moves:1:11", "this number is too large: at most 256"},
    {"sample to=99999999999999999999", "test.moves:1:11", "this number is too large"},
    {"sample to=-1", "test.moves:1:11", "expected a number, found `-1`"},
    {"sample to 1", "test.moves:1:11", "expected `=`, found `1`"},
    {"sample to=1 1", "test.moves:1:13", "unknown parameter `1` of sample"},
    {"coarser layer=x step=o", "test.moves:1:15", "expected a number, or all, found `x`"},
    {"coarser layer=1 step=embed", "test.moves:1:22",
     "unknown step `embed`; known: qkv, attend, o, gate_up"},
    {"coarser layer=1 step=O", "test.moves:1:22", "names and words are lower case"},
    {"sets layer=1 step=o count=0", "test.moves:1:27", "`count` is at least 1"},
    {"clear layer=1 step=o from=1 count=0", "test.moves:1:35",
     "a move by 0 places changes nothing"},
    {"clear layer=1 step=o from=1 count=-", "test.moves:1:36", "expected a number, found the end"},
    {"sample to=\x01", "test.moves:1:11", "expected a number, found byte 0x01"},
};

START_TEST(wrong_texts_say_where_and_why)
{
    mgl_moves moves;
    mgl_error err = {0};
    const char *text = wrong[_i].text;
    ck_assert_int_eq(mgl_moves_parse(text, strlen(text), "test.moves", &moves, &err),
                     MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, wrong[_i].where);
    ck_assert_msg(strstr(err.message, wrong[_i].message) != NULL, "%s", err.message);
    ck_assert_msg(strchr(err.message, '^') != NULL, "%s", err.message);
    ck_assert_int_eq(moves.count, 0);
}
END_TEST

/* Every prefix of a text, and every change of one byte, is parsed or rejected. */
START_TEST(damaged_texts_end_well)
{
    const size_t length = sizeof EACH_KIND - 1;
    char *text = malloc(length);
    int read = 0;
    for (size_t i = 0; i < length; i++)
        for (int byte = 0; byte < 256; byte += 5) {
            mgl_moves moves;
            memcpy(text, EACH_KIND, length);
            text[i] = (char)byte;
            read += mgl_moves_parse(text, length, NULL, &moves, NULL) == MGL_OK;
            mgl_moves_clear(&moves);
            if (byte == 0) {
                mgl_moves_parse(EACH_KIND, i, NULL, &moves, NULL);
                mgl_moves_clear(&moves);
            }
        }
    ck_assert_int_gt(read, 100);
    free(text);
}
END_TEST

START_TEST(long_texts_are_rejected_by_their_length)
{
    mgl_moves moves;
    mgl_error err = {0};
    const size_t length = 100 << 20;
    char *text = malloc(length);
    memset(text, ' ', length);
    ck_assert_int_eq(mgl_moves_parse(text, length, "m", &moves, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.message, "the moves have 104857600 bytes; at most 65536 are read");
    free(text);
}
END_TEST

START_TEST(too_many_moves_are_rejected)
{
    mgl_moves moves;
    mgl_error err = {0};
    mgl_text text = {0};
    for (int i = 0; i <= MGL_MAX_MOVES; i++)
        mgl_text_put(&text, "sample to=1\n");
    ck_assert_int_eq(mgl_moves_parse(text.bytes, text.length, "m", &moves, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "m:257:1");
    mgl_text_clear(&text);
}
END_TEST

START_TEST(every_kind_has_a_sentence)
{
    for (int kind = 0; kind < MGL_MOVE_COUNT; kind++)
        ck_assert_uint_gt(strlen(mgl_move_what((mgl_move_kind)kind)), 20);
}
END_TEST

/* ---- nothing, and back ----------------------------------------------------------------------- */

/* An empty list of moves gives the same program, and so does a move that redistributes a step to
 * its current queues. */
START_TEST(no_moves_change_nothing)
{
    start(_i);
    mgl_program *same = moved("");
    ck_assert(mgl_program_equal(same, program));
    mgl_program_free(same);
    finish();
}
END_TEST

/* The name of a tuned entry depends on its result, not on the moves. */
START_TEST(a_moved_program_names_no_entry)
{
    start(2);
    strcpy(program->tuned, "some-entry");
    memset(program->tuned_digest, 'a', MGL_SHA256_HEX - 1);
    mgl_program *same = moved(""), *other = moved("sample to=3");
    ck_assert(mgl_program_equal(same, program));
    ck_assert_str_eq(other->tuned, "");
    ck_assert_str_eq(other->tuned_digest, "");
    mgl_program_free(same);
    mgl_program_free(other);
    finish();
}
END_TEST

/* The queue that runs sample. */
static int queue_of_sample(const mgl_program *p)
{
    for (int q = 0; q < p->queue_count; q++) {
        const mgl_run *tasks = &p->queues[q].tasks;
        if (tasks->count > 0 && p->tasks[tasks->first + tasks->count - 1].op == MGL_OP_SAMPLE)
            return q;
    }
    ck_abort_msg("no sample");
}

/* The inverse of a move, if it follows from the move alone. */
static bool is_reversible(const mgl_move *move, mgl_move *back)
{
    *back = *move;
    if (move->kind == MGL_MOVE_ROWS) {
        back->from = move->to;
        back->to = move->from;
    } else if (move->kind == MGL_MOVE_SHIFT) {
        back->count = -move->count;
    } else if (move->kind == MGL_MOVE_SAMPLE) {
        back->to = queue_of_sample(program);
    } else {
        return false;
    }
    return true;
}

START_TEST(a_move_and_its_inverse_change_nothing)
{
    const unsigned kinds = 1u << MGL_MOVE_ROWS | 1u << MGL_MOVE_SHIFT | 1u << MGL_MOVE_SAMPLE;
    start(_i);
    uint64_t state = 77;
    int inverted = 0;
    for (int n = 0; n < 150; n++) {
        mgl_move both[2];
        mgl_moves one = {both, 1, 2}, two = {both, 2, 2};
        mgl_program *there = NULL, *again = NULL;
        ck_assert(mgl_move_draw(program, kinds, &state, &both[0]));
        ck_assert(is_reversible(&both[0], &both[1]));
        if (mgl_moves_apply(program, &one, &there, NULL))
            continue;
        ck_assert_int_eq(mgl_moves_apply(program, &two, &again, NULL), MGL_OK);
        ck_assert(is_same(again, program));
        inverted++;
        mgl_program_free(there);
        mgl_program_free(again);
    }
    ck_assert_int_gt(inverted, 100);
    finish();
}
END_TEST

/* Moves of the other kinds, each with its inverse. */
START_TEST(pairs_of_moves_change_nothing)
{
    static const char *const pairs[] = {
        "queues layer=all step=o from=0 to=4\nqueues layer=all step=o from=0 to=5",
        "place layer=1 step=attend from=2 to=0\nplace layer=1 step=attend from=0 to=2",
        "sets layer=all step=down count=3\nsets layer=all step=down count=2",
        "clear layer=1 step=qkv from=1 count=-2\nclear layer=1 step=qkv from=1 count=2",
        "counted layer=2 step=o\nflagged layer=2 step=o",
        "counted layer=0 step=o\nfiner layer=0 step=o count=2\ncoarser layer=0 step=o\n"
        "flagged layer=0 step=o",
    };
    start(3);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        mgl_program *again = moved(pairs[i]);
        ck_assert_msg(is_same(again, program), "%s", pairs[i]);
        mgl_program_free(again);
    }
    finish();
}
END_TEST

/* The variants that lowering chooses for a program of several rows with flags, without the head. */
static mgl_variant usual_variant(const mgl_task *task)
{
    if (mgl_op_is_attention(task->op))
        return MGL_VARIANT_TILES;
    return task->segments.count > 0 && task->op != MGL_OP_HEAD ? MGL_VARIANT_BY_ROWS
                                                               : MGL_VARIANT_GENERAL;
}

static const char *const kept_through[] = {
    "queues layer=all step=down from=1 to=4", "rows layer=1 step=qkv from=2 to=3 count=1",
    "splits layer=1 from=0 to=5 count=4",     "counted layer=1 step=gate_up",
    "sets layer=all step=down count=3",       "sample to=2"};

/* The head has a user's variant, all else is as lowered: every task keeps its variant through a
 * move, if it still fits. */
START_TEST(moved_tasks_keep_their_variants)
{
    mgl_dimensions dimensions;
    start(3);
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == MGL_OP_HEAD)
            program->tasks[i].variant = MGL_VARIANT_GENERAL;
    ck_assert(!mgl_variants_are_chosen(program));
    mgl_program *p = moved(kept_through[_i]);
    mgl_dimensions_of_program(p, &dimensions);
    for (int i = 0; i < p->task_count; i++) {
        const mgl_task *task = &p->tasks[i];
        const mgl_variant usual = usual_variant(task);
        ck_assert_msg(task->variant == usual ||
                          !mgl_variant_takes_task(p, task, usual, &dimensions, NULL),
                      "task %d is %s.%s", i, mgl_op_get(task->op)->name,
                      mgl_variant_get(task->variant)->name);
    }
    expect_accepted(p, kept_through[_i]);
    mgl_program_free(p);
    finish();
}
END_TEST

/* Applying moves together equals applying them one by one. */
START_TEST(moves_compose)
{
    start(_i);
    uint64_t state = 5;
    for (int n = 0; n < 40; n++) {
        mgl_move pair[2];
        mgl_moves both = {pair, 2, 2}, first = {pair, 1, 1}, second = {pair + 1, 1, 1};
        mgl_program *a = NULL, *b = NULL, *c = NULL;
        ck_assert(mgl_move_draw(program, ~0U, &state, &pair[0]));
        if (mgl_moves_apply(program, &first, &b, NULL))
            continue;
        ck_assert(mgl_move_draw(b, ~0U, &state, &pair[1]));
        mgl_status one = mgl_moves_apply(b, &second, &c, NULL);
        ck_assert_int_eq(one, mgl_moves_apply(program, &both, &a, NULL));
        if (!one) {
            mgl_text text = {0};
            mgl_moves_print(&both, &text);
            ck_assert_msg(is_same(a, c), "%s", text.bytes);
            mgl_text_clear(&text);
        }
        mgl_program_free(a);
        mgl_program_free(b);
        mgl_program_free(c);
    }
    finish();
}
END_TEST

/* ---- against lowering ------------------------------------------------------------------------ */

/* Redistributing all steps gives the same program as lowering for these queues. */
START_TEST(dealing_is_that_of_lowering)
{
    char text[400];
    mgl_schedule_config config;
    const bool flags = _i == 1;
    graph = graph_of(&three);
    mgl_schedule_config_default(&config);
    config.splits = 2;
    config.unsplit = 1; /* no unsplit rows: lowering places their attention elsewhere */
    config.exchange = flags ? 2 : 1;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        config.queues[i].count = 7;
    program = lowered_for(1, graph, 7, &config, 512);
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        config.queues[i].first = 1 + (flags && i == MGL_STEP_DOWN ? 2 : i % 3);
        config.queues[i].count = 3;
    }
    config.queues[MGL_STEP_O] = config.queues[MGL_STEP_DOWN];
    mgl_program *wanted = lowered_for(1, graph, 7, &config, 512);
    snprintf(text, sizeof text,
             "queues layer=all step=qkv from=1 to=4\nqueues layer=all step=attend from=2 to=5\n"
             "queues layer=all step=merge from=2 to=5\nqueues layer=all step=gate_up from=1 to=4\n"
             "queues layer=all step=down from=%d to=%d\n%s"
             "queues layer=all step=head from=3 to=6\n",
             config.queues[MGL_STEP_DOWN].first, config.queues[MGL_STEP_DOWN].first + 3,
             flags ? "" : "queues layer=all step=o from=2 to=5\n");
    mgl_program *is = moved(text);
    if (flags)
        ck_assert(is_same(is, wanted));
    else
        expect_accepted(is, text);
    mgl_program_free(is);
    mgl_program_free(wanted);
    finish();
}
END_TEST

/* Beside tasks of unsplit rows, which stay if the other rows are still split. */
START_TEST(splits_beside_unsplit_rows_are_accepted)
{
    mgl_schedule_config config;
    graph = graph_of(&three);
    mgl_schedule_config_default(&config);
    config.unsplit = 100;
    config.exchange = 1 + _i;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        config.queues[i].count = 6;
    for (int from = 2; from <= 4; from++)
        for (int to = 1; to <= 4; to++) {
            char text[80];
            config.splits = from;
            program = lowered_for(1, graph, 6, &config, 512);
            snprintf(text, sizeof text, "splits layer=all from=0 to=6 count=%d", to);
            mgl_program *is = moved(text);
            expect_accepted(is, text);
            int attends = 0;
            for (int i = 0; i < is->task_count; i++)
                attends += is->tasks[i].op == MGL_OP_ATTEND;
            ck_assert_int_eq(attends, program->geometry.layers * program->geometry.kv_heads);
            mgl_program_free(is);
            mgl_program_free(program);
        }
    mgl_graph_free(graph);
}
END_TEST

/* The same for another number of splits in all layers. */
START_TEST(splits_are_those_of_lowering)
{
    static const int exchanges[] = {1, 2};
    mgl_schedule_config config;
    graph = graph_of(&three);
    mgl_schedule_config_default(&config);
    config.pending_bytes = 32768;
    config.unsplit = 1;
    config.exchange = exchanges[_i];
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        config.queues[i].count = 6;
    for (int from = 1; from <= 4; from++)
        for (int to = 1; to <= 4; to++) {
            char text[80];
            config.splits = from;
            program = lowered_for(1, graph, 6, &config, 512);
            config.splits = to;
            mgl_program *wanted = lowered_for(1, graph, 6, &config, 512);
            snprintf(text, sizeof text, "splits layer=all from=0 to=6 count=%d", to);
            mgl_program *is = moved(text);
            ck_assert_msg(is_same(is, wanted), "%d to %d splits", from, to);
            mgl_program_free(is);
            mgl_program_free(wanted);
            mgl_program_free(program);
        }
    mgl_graph_free(graph);
}
END_TEST

/* Also if merges have separate queues, which they keep. */
START_TEST(splits_beside_merges_apart_are_those_of_lowering)
{
    mgl_schedule_config config;
    graph = graph_of(&billion);
    mgl_schedule_config_default(&config);
    config.splits = 16;
    program = lowered_for(1, graph, 132, &config, 4096);
    config.splits = 8;
    mgl_program *wanted = lowered_for(1, graph, 132, &config, 4096);
    mgl_program *is = moved("splits layer=all from=0 to=128 count=8");
    ck_assert(is_same(is, wanted));
    mgl_program_free(is);
    mgl_program_free(wanted);
    finish();
}
END_TEST

/* On a CPU, merges keep the width that lowering chose. */
START_TEST(splits_of_a_layer_are_taken_back)
{
    static const char *const targets[] = {"cpu:12", "sm_90a:12"};
    mgl_schedule_config config;
    mgl_program *again;
    mgl_moves moves = moves_of("splits layer=1 from=0 to=12 count=4\n"
                               "splits layer=1 from=0 to=12 count=3");
    const mgl_target target = target_of(targets[_i]);
    const mgl_lower_options options = {.dtype = MGL_F32, .capacity = 512, .sequences = 1};
    graph = graph_of(&three);
    mgl_schedule_config_default(&config);
    config.splits = 3;
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &program, NULL), MGL_OK);
    ck_assert_int_eq(mgl_moves_apply(program, &moves, &again, NULL), MGL_OK);
    ck_assert(is_same(again, program));
    mgl_program_free(again);
    mgl_moves_clear(&moves);
    finish();
}
END_TEST

/* ---- one by one ------------------------------------------------------------------------------ */

/* The columns of the queue's nth task with this op. */
static mgl_range columns_of(const mgl_program *p, int queue, mgl_op op, int nth)
{
    const mgl_run run = p->queues[queue].tasks;
    for (int t = run.first; t < run.first + run.count; t++)
        if (p->tasks[t].op == op && nth-- == 0)
            return p->regions[p->tasks[t].out.first].ranges[1];
    return (mgl_range){0};
}

START_TEST(adjacent_rows_join)
{
    start(0);
    const mgl_range a = columns_of(program, 1, MGL_OP_NORM_SWIGLU, 1);
    const mgl_range b = columns_of(program, 2, MGL_OP_NORM_SWIGLU, 1);
    mgl_program *p = moved("rows layer=1 step=gate_up from=1 to=2 count=1");
    ck_assert_int_eq(columns_of(p, 1, MGL_OP_NORM_SWIGLU, 1).hi, a.hi - 8);
    ck_assert_int_eq(columns_of(p, 2, MGL_OP_NORM_SWIGLU, 1).lo, b.lo - 8);
    ck_assert_int_eq(columns_of(p, 2, MGL_OP_NORM_SWIGLU, 0).lo,
                     columns_of(program, 2, MGL_OP_NORM_SWIGLU, 0).lo);
    ck_assert_int_eq(p->task_count, program->task_count);
    expect_accepted(p, "rows");
    mgl_program_free(p);
    finish();
}
END_TEST

START_TEST(distant_rows_are_a_second_task)
{
    start(2);
    mgl_program *p = moved("rows layer=1 step=qkv from=0 to=4 count=1");
    ck_assert_int_eq(p->task_count, program->task_count + 1);
    expect_accepted(p, "rows");
    mgl_program_free(p);
    finish();
}
END_TEST

START_TEST(residual_rows_move_in_all_layers)
{
    start(2);
    mgl_program *p = moved("rows layer=all step=down from=1 to=2 count=1");
    for (int nth = 0; nth < 6; nth++)
        ck_assert_int_eq(columns_of(p, 1, MGL_OP_LINEAR_ADD, nth).hi,
                         columns_of(program, 1, MGL_OP_LINEAR_ADD, nth).hi - 8);
    ck_assert_int_eq(columns_of(p, 1, MGL_OP_EMBED, 0).hi,
                     columns_of(program, 1, MGL_OP_EMBED, 0).hi - 8);
    expect_accepted(p, "rows");
    mgl_program_free(p);
    finish();
}
END_TEST

/* Moves all rows of a queue's head, so that sample learns of its end through another counter. */
START_TEST(a_queue_may_lose_its_head)
{
    start(_i);
    mgl_program *p = moved("rows layer=all step=head from=3 to=4 count=2\n"
                           "rows layer=all step=head from=3 to=2 count=1");
    expect_accepted(p, "rows");
    mgl_program_free(p);
    finish();
}
END_TEST

/* Moving a head moves the columns of all its penalty operands. */
START_TEST(a_head_moves_with_its_penalties)
{
    const mgl_target target = target_of(_i ? "sm_90a:6" : "cpu:6");
    const mgl_lower_options options = {
        .dtype = MGL_F32, .capacity = 64, .sequences = 2, .penalties = true};
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    graph = graph_of(&three);
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &program, NULL), MGL_OK);
    mgl_program *p = moved("rows layer=all step=head from=3 to=4 count=2\n"
                           "rows layer=all step=head from=3 to=2 count=1\nsample to=2");
    ck_assert(mgl_program_has_penalties(p));
    expect_accepted(p, "rows");
    mgl_program_free(p);
    finish();
}
END_TEST

START_TEST(sample_may_stand_elsewhere)
{
    start(_i);
    mgl_program *p = moved("sample to=3");
    const mgl_run run = p->queues[3].tasks;
    ck_assert_int_eq(p->tasks[run.first + run.count - 1].op, MGL_OP_SAMPLE);
    expect_accepted(p, "sample");
    mgl_program_free(p);
    finish();
}
END_TEST

static const struct {
    int variant;
    const char *text, *message;
} misfits[] = {
    {0, "rows layer=3 step=o from=0 to=1 count=1", "the model has layers 0 to 2"},
    {0, "rows layer=1 step=o from=0 to=5 count=1", "the program has queues 0 to 4"},
    {0, "rows layer=1 step=o from=1 to=1 count=1", "the rows are on that queue already"},
    {0, "rows layer=1 step=o from=0 to=1 count=9", "the task of queue 0 has 1 row groups"},
    {0, "rows layer=1 step=attend from=0 to=1 count=1", "heads rather than rows"},
    {0, "rows layer=1 step=head from=0 to=1 count=1", "write layer=all"},
    {2, "rows layer=1 step=o from=0 to=1 count=1", "with flags the residual stays"},
    {0, "queues layer=1 step=o from=3 to=3", "queues [3, 3) are not within the program's 5"},
    {0, "shift layer=1 step=o from=0 count=99", "are after it"},
    {0, "place layer=0 step=o from=0 to=1", "only attend and merge are placed"},
    {0, "place layer=0 step=merge from=0 to=1", "queue 0 has no task of the step in layer 0"},
    {0, "splits layer=0 from=0 to=5 count=65", "attention has 1 to 64 splits"},
    {0, "sets layer=0 step=o count=2", "the step writes no flagged buffer in layer 0"},
    {2, "sets layer=0 step=o count=1", "at least 2 sets"},
    {0, "coarser layer=0 step=o", "the step has one counter in layer 0"},
    {2, "coarser layer=0 step=o", "the step has no counter in layer 0"},
    {0, "finer layer=0 step=o count=6", "a counter of 5 tasks is cut into 2 to 5"},
    {0, "counted layer=0 step=o", "the step writes no flagged buffer in layer 0"},
    {2, "flagged layer=0 step=o", "the step has no counter in layer 0"},
    {0, "clear layer=0 step=o from=0 count=1", "queue 0 clears nothing"},
    {0, "sample to=0", "sample is on that queue already"},
};

START_TEST(misfits_say_why)
{
    start(misfits[_i].variant);
    mgl_error err = {0};
    mgl_program *p;
    mgl_moves moves = moves_of(misfits[_i].text);
    ck_assert_int_eq(mgl_moves_apply(program, &moves, &p, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, misfits[_i].text);
    ck_assert_msg(strstr(err.message, misfits[_i].message) != NULL, "%s", err.message);
    ck_assert_ptr_null(p);
    mgl_moves_clear(&moves);
    finish();
}
END_TEST

/* ---- memory and time ------------------------------------------------------------------------- */

START_TEST(lost_memory_is_an_error)
{
    static const char *const texts[] = {"rows layer=all step=head from=3 to=4 count=2",
                                        "queues layer=all step=down from=1 to=4",
                                        "splits layer=1 from=0 to=5 count=4",
                                        ("counted layer=0 step=o\nfiner layer=0 step=o count=2\n"
                                         "coarser layer=0 step=o\nflagged layer=0 step=o"),
                                        "clear layer=1 step=qkv from=1 count=-2\nsample to=2"};
    start(3);
    mgl_moves moves = moves_of(texts[_i]);
    for (uint64_t n = 1;; n += 1 + n / 16) {
        mgl_program *p;
        mgl_error err = {0};
        mgl_alloc_fail_at(n, n % 2 == 0);
        mgl_status status = mgl_moves_apply(program, &moves, &p, &err);
        bool reached = mgl_alloc_count() >= n;
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, reached ? MGL_NO_MEMORY : MGL_OK);
        mgl_program_free(p);
        if (!reached)
            break;
    }
    mgl_moves_clear(&moves);
    finish();
}
END_TEST

START_TEST(moves_on_a_billion_are_fast)
{
    start(9);
    double begun = mgl_clock_s();
    mgl_program *p = moved("rows layer=3 step=gate_up from=12 to=13 count=1");
    ck_assert_double_lt(mgl_clock_s() - begun, time_limit(1)); /* 10 ms on an idle machine */
    mgl_program_free(p);
    finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moves");
    TCase *tests = tcase_create("moves");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, canonical_texts_print_as_they_are);
    tcase_add_test(tests, loose_texts_are_read);
    tcase_add_test(tests, no_text_has_no_moves);
    tcase_add_loop_test(tests, wrong_texts_say_where_and_why, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tests, damaged_texts_end_well);
    tcase_add_test(tests, long_texts_are_rejected_by_their_length);
    tcase_add_test(tests, too_many_moves_are_rejected);
    tcase_add_test(tests, every_kind_has_a_sentence);
    tcase_add_loop_test(tests, no_moves_change_nothing, 0, MOVED_VARIANTS);
    tcase_add_test(tests, a_moved_program_names_no_entry);
    tcase_add_loop_test(tests, a_move_and_its_inverse_change_nothing, 0, SMALL - 2);
    tcase_add_test(tests, pairs_of_moves_change_nothing);
    tcase_add_loop_test(tests, moved_tasks_keep_their_variants, 0,
                        sizeof kept_through / sizeof *kept_through);
    tcase_add_loop_test(tests, moves_compose, 0, SMALL);
    tcase_add_loop_test(tests, dealing_is_that_of_lowering, 0, 2);
    tcase_add_test(tests, splits_beside_merges_apart_are_those_of_lowering);
    tcase_add_loop_test(tests, splits_are_those_of_lowering, 0, 2);
    tcase_add_loop_test(tests, splits_beside_unsplit_rows_are_accepted, 0, 2);
    tcase_add_loop_test(tests, splits_of_a_layer_are_taken_back, 0, 2);
    tcase_add_test(tests, adjacent_rows_join);
    tcase_add_test(tests, distant_rows_are_a_second_task);
    tcase_add_test(tests, residual_rows_move_in_all_layers);
    tcase_add_loop_test(tests, a_queue_may_lose_its_head, 0, 4);
    tcase_add_loop_test(tests, a_head_moves_with_its_penalties, 0, 2);
    tcase_add_loop_test(tests, sample_may_stand_elsewhere, 0, 6);
    tcase_add_loop_test(tests, misfits_say_why, 0, sizeof misfits / sizeof *misfits);
    tcase_add_loop_test(tests, lost_memory_is_an_error, 0, 5);
    tcase_add_test(tests, moves_on_a_billion_are_fast);
    return run_suite(suite);
}
