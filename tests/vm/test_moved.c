/*
 * Tests that moved programs that the validator accepts run correctly: the same tokens, and bitwise
 * equal logits (with other splits of attention: close ones). explore, which shares no code with the
 * validator, finds no fault. Runs lineages of random moves; MGL_LINEAGES sets their number.
 */
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/moves/moves.h"
#include "tests/sanitized.h"
#include "tests/vm/explore/explore.h"
#include "validator/validator.h"

enum { MOST_MOVES = 4, CAPACITY = 16, VOCAB = 75 };

static const int32_t prompt[] = {3, 1, 40, 7, 22};
static const mgl_vm_sequence sequences[] = {
    {.prompt = prompt, .prompt_count = 5, .max_new = 3},
    {.prompt = prompt + 1, .prompt_count = 2, .max_new = 4},
};
static const mgl_vm_request request = {.sequences = sequences, .count = 2};

static const fixture_options variants[] = {
    {.queues = 5, .splits = 1, .exchange = 1},
    {.queues = 5, .splits = 3, .exchange = 1},
    {.queues = 5, .splits = 1, .exchange = 2},
    {.queues = 5, .splits = 3, .exchange = 2},
    {.queues = 12, .splits = 2, .exchange = 2},
    {.queues = 2, .splits = 2, .exchange = 2},
    {.queues = 5, .splits = 3, .exchange = 1, .merge = 2, .share = 2},
    {.queues = 5, .splits = 3, .exchange = 2, .merge = 2, .share = 2},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* Results of a run. */
struct outcome {
    int32_t tokens[2][CAPACITY], produced[2];
    float logits[VOCAB];
};

static struct outcome run(const mgl_program *program, const mgl_graph *graph)
{
    struct outcome out = {0};
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *vm = fixture_vm(program, graph, true);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ok(mgl_vm_get_logits(vm, out.logits, &err), err);
    for (int s = 0; s < 2; s++) {
        out.produced[s] = report.produced[s];
        memcpy(out.tokens[s], report.output[s], (size_t)report.produced[s] * sizeof(int32_t));
    }
    mgl_vm_close(vm);
    return out;
}

static double largest_difference(const float *a, const float *b)
{
    double largest = 0;
    for (int i = 0; i < VOCAB; i++)
        largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

static bool is_accepted(const mgl_program *program, const mgl_graph *graph)
{
    mgl_error err;
    mgl_verdict verdict = {0};
    ok(mgl_validator_check(program, graph, &verdict, &err), err);
    bool accepted = verdict.accepted;
    mgl_verdict_clear(&verdict);
    return accepted;
}

/* Applies up to MOST_MOVES moves, each drawn for the current program; NULL if one does not fit. */
static mgl_program *draw_lineage(const mgl_program *from, uint64_t *state, mgl_moves *moves)
{
    mgl_error err;
    mgl_program *program = NULL;
    const int count = 1 + (int)(*state % MOST_MOVES);
    for (int i = 0; i < count; i++) {
        mgl_move move;
        if (!mgl_move_draw(program ? program : from, ~0U, state, &move))
            break;
        ok(mgl_moves_add(moves, &move, &err), err);
        mgl_program_free(program);
        if (mgl_moves_apply(from, moves, &program, &err))
            return NULL;
    }
    return program;
}

static bool changes_splits(const mgl_moves *moves)
{
    bool changes = false;
    for (int i = 0; i < moves->count; i++)
        changes |= moves->moves[i].kind == MGL_MOVE_SPLITS;
    return changes;
}

static void check(const mgl_program *program, const mgl_graph *graph, const mgl_moves *moves,
                  const struct outcome *wanted)
{
    mgl_error err;
    mgl_text text = {0};
    mgl_explore_report report;
    const mgl_explore_options options = {
        .request = &request, .seed = 1, .seeds = 12, .plain = true};
    const struct outcome is = run(program, graph);
    mgl_moves_print(moves, &text);
    ck_assert_msg(!memcmp(is.produced, wanted->produced, sizeof is.produced), "%s", text.bytes);
    ck_assert_msg(!memcmp(is.tokens, wanted->tokens, sizeof is.tokens), "%s", text.bytes);
    if (changes_splits(moves))
        ck_assert_msg(largest_difference(is.logits, wanted->logits) < 1e-4, "%s", text.bytes);
    else
        ck_assert_msg(!memcmp(is.logits, wanted->logits, sizeof is.logits), "%s", text.bytes);
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s%s", text.bytes, report.message);
    mgl_text_clear(&text);
}

START_TEST(accepted_lineages_compute_the_same)
{
    const char *asked = getenv("MGL_LINEAGES");
    const int lineages = asked ? atoi(asked) : 25;
    fixture_options options = variants[_i];
    const unsigned extras = _i % 2 ? ALL_EXTRAS : MGL_EXTRA_NONE;
    mgl_graph *graph = random_family(&small_model, extras, 32, true, MGL_F32, 31);
    uint64_t state = 100 + (uint64_t)_i;
    int accepted = 0;
    options.rows = 4;
    options.sequences = 2;
    options.capacity = CAPACITY;
    mgl_program *program = fixture_program(graph, &options);
    const struct outcome wanted = run(program, graph);
    for (int n = 0; n < lineages; n++) {
        mgl_moves moves = {0};
        mgl_program *moved = draw_lineage(program, &state, &moves);
        if (moved && is_accepted(moved, graph)) {
            check(moved, graph, &moves, &wanted);
            accepted++;
        }
        mgl_program_free(moved);
        mgl_moves_clear(&moves);
    }
    ck_assert_int_gt(accepted, lineages / 3);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Kinds of moves that the validator often rejects are rejected rightly: explore finds a fault in
 * most. */
START_TEST(explore_sees_most_of_what_is_rejected)
{
    mgl_error err;
    mgl_graph *graph = random_graph(&small_model, 32, true, MGL_F32, 32);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 5,
                                                                     .splits = 3,
                                                                     .exchange = 1,
                                                                     .rows = 4,
                                                                     .sequences = 2,
                                                                     .capacity = CAPACITY});
    uint64_t state = 9;
    int refused = 0, seen = 0;
    for (int n = 0; n < 60; n++) {
        mgl_move move;
        const mgl_moves one = {&move, 1, 1};
        mgl_program *moved;
        mgl_explore_report report;
        const mgl_explore_options options = {
            .request = &request, .seed = 1, .seeds = 60, .plain = true};
        if (!mgl_move_draw(program, 1U << MGL_MOVE_FLAGGED | 1U << MGL_MOVE_SHIFT, &state, &move))
            continue;
        if (mgl_moves_apply(program, &one, &moved, &err))
            continue;
        if (!is_accepted(moved, graph)) {
            refused++;
            seen += mgl_explore(moved, graph, &options, &report, &err) == MGL_OK &&
                    report.finding != MGL_FOUND_NOTHING;
        }
        mgl_program_free(moved);
    }
    ck_assert_int_gt(refused, 10);
    ck_assert_int_gt(seen, refused / 2);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("moved");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, accepted_lineages_compute_the_same, 0, BY_SANITIZER(VARIANTS, 2));
    tcase_add_test(tests, explore_sees_most_of_what_is_rejected);
    return fixture_main("moved", tests);
}
