/*
 * Tests of random moves: equal states draw equal moves of the requested kinds, most of which give
 * valid programs. Programs of any kind are moved or rejected.
 */
#include "moving.h"

#include "validator/validator.h"

/* ---- draws ----------------------------------------------------------------------------------- */

START_TEST(equal_states_draw_equal_moves)
{
    start(3);
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t a = seed, b = seed;
        mgl_move x, y;
        ck_assert(mgl_move_draw(program, ~0U, &a, &x));
        ck_assert(mgl_move_draw(program, ~0U, &b, &y));
        ck_assert_mem_eq(&x, &y, sizeof x);
        ck_assert_uint_eq(a, b);
    }
    finish();
}
END_TEST

START_TEST(only_the_wanted_kinds_are_drawn)
{
    start(3);
    uint64_t state = 1;
    mgl_move move;
    for (int i = 0; i < 50; i++) {
        ck_assert(mgl_move_draw(program, 1U << MGL_MOVE_ROWS | 1U << MGL_MOVE_SETS, &state, &move));
        ck_assert(move.kind == MGL_MOVE_ROWS || move.kind == MGL_MOVE_SETS);
    }
    ck_assert(!mgl_move_draw(program, 1U << MGL_MOVE_FLAGGED, &state, &move));
    ck_assert(!mgl_move_draw(program, 0, &state, &move));
    finish();
}
END_TEST

/* Most random moves give valid programs, for programs of any kind. */
START_TEST(most_draws_are_accepted)
{
    start(_i);
    uint64_t state = 3;
    int accepted = 0, fit = 0;
    for (int n = 0; n < 100; n++) {
        mgl_move move;
        mgl_moves one = {&move, 1, 1};
        mgl_program *p = NULL;
        mgl_verdict verdict = {0};
        if (!mgl_move_draw(program, ~0U, &state, &move) || mgl_moves_apply(program, &one, &p, NULL))
            continue;
        fit++;
        ck_assert_int_eq(mgl_validator_check(p, graph, &verdict, NULL), MGL_OK);
        accepted += verdict.accepted;
        mgl_verdict_clear(&verdict);
        mgl_program_free(p);
    }
    ck_assert_int_gt(fit, 85);
    ck_assert_int_gt(accepted, 60);
    finish();
}
END_TEST

/* ---- programs of any kind -------------------------------------------------------------------- */

/* Applies every kind of move, random and fixed, to a program that may be unsafe and was not
 * lowered. */
static void move_any(const mgl_program *p)
{
    uint64_t state = 1;
    mgl_moves moves = moves_of(EACH_KIND);
    for (int kind = 0; kind < 4 * MGL_MOVE_COUNT; kind++) {
        mgl_move move = moves.moves[kind % MGL_MOVE_COUNT];
        const mgl_moves one = {&move, 1, 1};
        mgl_program *out = NULL;
        mgl_error err = {0};
        if (kind >= MGL_MOVE_COUNT && !mgl_move_draw(p, 1U << move.kind, &state, &move))
            continue;
        mgl_status status = mgl_moves_apply(p, &one, &out, &err);
        ck_assert(status == MGL_OK || (status == MGL_BAD_INPUT && err.message[0]));
        mgl_program_free(out);
    }
    mgl_moves_clear(&moves);
}

/* The file unchanged, and with each digit changed in turn. */
static void move_file(const char *path, const char *name, void *user)
{
    mgl_text text = fixture(path);
    int *parsed_count = user, each = 0;
    (void)name;
    for (size_t i = 0; i < text.length; i++) {
        mgl_program *p = NULL;
        const char digit = text.bytes[i];
        if (i > 0 && (digit < '0' || digit > '9' || each++ % 29))
            continue;
        if (i > 0)
            text.bytes[i] = (char)('0' + (digit - '0' + 1 + each / 29 % 9) % 10);
        if (mgl_schedule_parse(text.bytes, text.length, path, &p, NULL) == MGL_OK) {
            move_any(p);
            ++*parsed_count;
        }
        mgl_program_free(p);
        text.bytes[i] = digit;
    }
    mgl_text_clear(&text);
}

START_TEST(programs_of_any_kind_are_moved_or_rejected)
{
    int count = 0;
    each_file("tests/validator/programs", move_file, &count);
    each_file("tests/schedule/golden", move_file, &count);
    each_file("tests/validator/cases", move_file, &count);
    ck_assert_int_gt(count, 30);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moves_drawn");
    TCase *tests = tcase_create("moves_drawn");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, equal_states_draw_equal_moves);
    tcase_add_test(tests, only_the_wanted_kinds_are_drawn);
    tcase_add_loop_test(tests, most_draws_are_accepted, 0, SMALL - 2);
    tcase_add_test(tests, programs_of_any_kind_are_moved_or_rejected);
    return run_suite(suite);
}
