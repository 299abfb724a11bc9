/*
 * Tests of prefix reuse: prompts that begin with the content of the KV cache. The tokens equal
 * those of a fresh start, and only the rest of a prompt is read. If a launch failed, or another run
 * used the cache, everything is read.
 */
#include "fixture.h"

#include <string.h>

#include "base/memory.h"
#include "schedule/step.h"
#include "tests/vm/explore/explore.h"
#include "vm/prefix.h"

enum { CAPACITY = 160, TURNS = 10, REPLY = 5 };

/* Token i of the question of turn `turn`. */
static int32_t asked(int turn, int i)
{
    return (int32_t)((unsigned)(turn * 31 + i * 17 + 3) % 41);
}

static mgl_vm_report run(mgl_vm *vm, const mgl_vm_sequence *sequences, int count)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_request request = {.sequences = sequences, .count = count};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    return report;
}

/* The reply to a prompt from a fresh start. */
static void reply_afresh(const mgl_graph *graph, const mgl_program *program,
                         mgl_vm_sequence sequence, int32_t *tokens)
{
    mgl_vm *vm = fixture_vm(program, graph, true);
    sequence.reuse = false;
    mgl_vm_report report = run(vm, &sequence, 1);
    memcpy(tokens, report.output[0], (size_t)report.produced[0] * sizeof *tokens);
    mgl_vm_close(vm);
}

static const fixture_options shapes[] = {
    {.queues = 3, .rows = 4, .capacity = CAPACITY, .exchange = 1, .splits = 1},
    {.queues = 2, .rows = 16, .capacity = CAPACITY, .exchange = 2, .splits = 3},
    {.queues = 2, .rows = 2, .second_rows = 40, .capacity = CAPACITY, .exchange = 2, .splits = 1}};

/* Each turn's prompt is the whole conversation: only the new part is read, and the last token of
 * the previous reply, whose keys and values were not computed. */
START_TEST(a_talk_is_read_once)
{
    int32_t talk[CAPACITY], wanted[REPLY], length = 0;
    mgl_graph *graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 41);
    mgl_program *program = fixture_program(graph, &shapes[_i]);
    mgl_vm *vm = fixture_vm(program, graph, true);
    for (int turn = 0; turn < TURNS; turn++) {
        int32_t before = length, news = 1 + turn * 7 % 9;
        for (int i = 0; i < news; i++)
            talk[length++] = asked(turn, i);
        mgl_vm_sequence sequence = {.prompt = talk,
                                    .prompt_count = length,
                                    .max_new = REPLY,
                                    .temperature = turn % 2 ? 0.8f : 0.0f,
                                    .seed = (uint64_t)turn,
                                    .reuse = true};
        reply_afresh(graph, program, sequence, wanted);
        mgl_vm_report report = run(vm, &sequence, 1);
        ck_assert_int_eq(report.reused[0], before ? before - 1 : 0);
        ck_assert_int_eq(report.written[0], length + REPLY - 1);
        ck_assert_mem_eq(report.output[0], wanted, sizeof wanted);
        memcpy(talk + length, wanted, sizeof wanted);
        length += REPLY;
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- what is not reused ---------------------------------------------------------------------- */

enum { ASKED = 12 };

/* A machine that has replied to a prompt of 12. */
struct bench {
    mgl_graph *graph;
    mgl_program *program;
    mgl_vm *vm;
    int32_t prompt[ASKED];
    mgl_vm_sequence sequence;
};

static void open_bench(struct bench *b)
{
    b->graph = random_graph(&tiny_model, CAPACITY, true, MGL_F32, 42);
    b->program = fixture_program(
        b->graph, &(fixture_options){.queues = 2, .rows = 4, .capacity = 40, .sequences = 2});
    b->vm = fixture_vm(b->program, b->graph, true);
    for (int i = 0; i < ASKED; i++)
        b->prompt[i] = asked(0, i);
    b->sequence =
        (mgl_vm_sequence){.prompt = b->prompt, .prompt_count = ASKED, .max_new = 3, .reuse = true};
    ck_assert_int_eq(run(b->vm, &b->sequence, 1).reused[0], 0);
}

static void close_bench(struct bench *b)
{
    mgl_vm_close(b->vm);
    mgl_program_free(b->program);
    mgl_graph_free(b->graph);
}

/* The prompt tokens that are not read again. */
static int reused(struct bench *b)
{
    return run(b->vm, &b->sequence, 1).reused[0];
}

START_TEST(one_token_is_left_to_read)
{
    struct bench b;
    open_bench(&b);
    ck_assert_int_eq(reused(&b), ASKED - 1);
    close_bench(&b);
}
END_TEST

START_TEST(it_ends_where_prompts_part)
{
    struct bench b;
    open_bench(&b);
    b.prompt[7] = (b.prompt[7] + 1) % 41;
    ck_assert_int_eq(reused(&b), 7);
    b.prompt[0] = (b.prompt[0] + 1) % 41;
    ck_assert_int_eq(reused(&b), 0);
    close_bench(&b);
}
END_TEST

START_TEST(nobody_gets_it_who_did_not_ask)
{
    struct bench b;
    open_bench(&b);
    b.sequence.reuse = false;
    ck_assert_int_eq(reused(&b), 0);
    b.sequence.reuse = true;
    ck_assert_int_eq(reused(&b), ASKED - 1);
    close_bench(&b);
}
END_TEST

START_TEST(each_sequence_has_its_own)
{
    struct bench b;
    open_bench(&b);
    mgl_vm_sequence two[2] = {b.sequence, b.sequence};
    mgl_vm_report report = run(b.vm, two, 2);
    ck_assert_int_eq(report.reused[0], ASKED - 1);
    ck_assert_int_eq(report.reused[1], 0);
    report = run(b.vm, two, 2);
    ck_assert_int_eq(report.reused[1], ASKED - 1);
    ck_assert_mem_eq(report.output[0], report.output[1], 3 * sizeof(int32_t));
    close_bench(&b);
}
END_TEST

/* Scored tokens are cached too, except the last. */
START_TEST(a_score_is_known)
{
    struct bench b;
    open_bench(&b);
    int32_t other[ASKED];
    for (int i = 0; i < ASKED; i++)
        other[i] = asked(3, i);
    mgl_vm_sequence score = {
        .mode = MGL_VM_SCORE, .prompt = other, .prompt_count = ASKED, .reuse = true};
    ck_assert_int_eq(run(b.vm, &score, 1).reused[0], 0);
    ck_assert_int_eq(reused(&b), 0);
    ck_assert_int_eq(run(b.vm, &score, 1).written[0], ASKED - 1);
    b.sequence.prompt = other;
    ck_assert_int_eq(reused(&b), ASKED - 1);
    close_bench(&b);
}
END_TEST

START_TEST(a_failure_empties_it)
{
    struct bench b;
    mgl_error err;
    mgl_vm_report report;
    open_bench(&b);
    mgl_vm_sequence broken = b.sequence;
    broken.prompt_count = 0;
    ck_assert_int_eq(
        mgl_vm_run(b.vm, &(mgl_vm_request){.sequences = &broken, .count = 1}, &report, &err),
        MGL_BAD_INPUT);
    ck_assert_int_eq(reused(&b), 0);
    close_bench(&b);
}
END_TEST

START_TEST(poison_and_exchange_empty_it)
{
    struct bench b;
    mgl_error err;
    open_bench(&b);
    ok(mgl_vm_poison(b.vm, 0x7FC00000, 0, &err), err);
    ck_assert_int_eq(reused(&b), 0);
    ok(mgl_vm_exchange(b.vm, b.program, b.graph, &err), err);
    ck_assert_int_eq(reused(&b), 0);
    close_bench(&b);
}
END_TEST

static bool stop_at_once(void *user, int sequence, int32_t token)
{
    (void)user;
    (void)sequence;
    (void)token;
    return false;
}

/* The completed epochs of a stopped reply count. */
START_TEST(a_stopped_reply_is_known_as_far_as_it_came)
{
    struct bench b;
    mgl_error err;
    mgl_vm_report report;
    open_bench(&b);
    b.prompt[0] = (b.prompt[0] + 1) % 41;
    mgl_vm_request request = {.sequences = &b.sequence, .count = 1, .on_token = stop_at_once};
    ok(mgl_vm_run(b.vm, &request, &report, &err), err);
    ck_assert_int_eq(report.state[0], MGL_STATE_ABORTED);
    ck_assert_int_eq(report.produced[0], 1);
    ck_assert_int_eq(report.written[0], ASKED);
    ck_assert_int_eq(reused(&b), ASKED - 1);
    close_bench(&b);
}
END_TEST

/* If a caller states `start`, the record must know the tokens before it. */
START_TEST(a_start_of_the_caller_s_is_kept)
{
    struct bench b;
    open_bench(&b);
    mgl_vm_sequence behind = {.prompt = b.prompt + 8, .prompt_count = 2, .max_new = 1, .start = 8};
    run(b.vm, &behind, 1);
    ck_assert_int_eq(reused(&b), 10);
    behind.start = 30;
    run(b.vm, &behind, 1);
    ck_assert_int_eq(reused(&b), 0);
    close_bench(&b);
}
END_TEST

/* explore takes the positions below a start as written. */
START_TEST(explore_begins_behind_a_start)
{
    mgl_error err;
    mgl_explore_report report;
    static const int32_t prompt[] = {3, 1, 4, 1, 5};
    mgl_graph *graph = random_graph(&tiny_model, 16, true, MGL_F32, 43);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){.queues = 3, .rows = 2, .sequences = 2, .splits = 1 + _i});
    const mgl_vm_sequence sequences[] = {
        {.prompt = prompt, .prompt_count = 5, .start = 6, .max_new = 2},
        {.prompt = prompt, .prompt_count = 2, .max_new = 3}};
    mgl_vm_request request = {.sequences = sequences, .count = 2};
    mgl_explore_options options = {.request = &request, .seed = 1, .seeds = 100, .plain = true};
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    ck_assert_msg(report.finding == MGL_FOUND_NOTHING, "%s", report.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- launches of all kinds, one after the other ---------------------------------------------- */

enum { LAUNCHES = 40, SLOTS = 3, PLACES = 28, WORDS = 3 };

/* Interferences with a launch. */
struct trouble {
    int tokens; /* on_token returns false after this many tokens */
    int stop;   /* is_stop returns true if the token is divisible by this; 0: never */
};

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static bool count_token(void *user, int sequence, int32_t token)
{
    struct trouble *t = user;
    (void)sequence;
    (void)token;
    return --t->tokens > 0;
}

static bool divides(void *user, int sequence, int32_t token)
{
    const struct trouble *t = user;
    return t->stop && token % t->stop == 0 && sequence != 1;
}

/* A prompt of few different tokens, which often begins like an earlier one and continues with its
 * reply. */
static void draw_prompt(uint32_t *seed, int32_t *talk, int32_t *length)
{
    int32_t kept = (int32_t)draw(seed, (uint32_t)*length + 1);
    *length = draw(seed, 3) ? *length : kept;
    int32_t more = (int32_t)draw(seed, 5);
    for (int32_t i = 0; i < more && *length < PLACES - 1; i++)
        talk[(*length)++] = (int32_t)draw(seed, WORDS);
    if (*length > PLACES - 2)
        *length = (int32_t)draw(seed, PLACES - 4) + 2;
    while (*length < 2)
        talk[(*length)++] = (int32_t)draw(seed, WORDS);
}

static mgl_vm_sequence draw_sequence(uint32_t *seed, const int32_t *talk, int32_t length)
{
    static const float temperatures[] = {0.0f, 0.7f, 30.0f};
    bool scores = draw(seed, 6) == 0;
    return (mgl_vm_sequence){.mode = scores ? MGL_VM_SCORE : MGL_VM_GENERATE,
                             .prompt = talk,
                             .prompt_count = length,
                             .max_new = 1 + (int32_t)draw(seed, (uint32_t)(PLACES - length)),
                             .temperature = temperatures[draw(seed, 3)],
                             .top_k = draw(seed, 2) ? 0 : 4,
                             .min_p = draw(seed, 4) ? 0.0f : 0.2f,
                             .seed = draw(seed, 9),
                             .reuse = draw(seed, 4) > 0};
}

/* Checks that the result of a sequence is a prefix of a fresh run, and equals it unless it was
 * stopped. */
static void compare_afresh(const mgl_graph *graph, const mgl_program *program,
                           const mgl_vm_sequence *asked_for, const mgl_vm_report *report, int s)
{
    mgl_vm_sequence sequence = *asked_for;
    sequence.reuse = false;
    mgl_vm *vm = fixture_vm(program, graph, true);
    mgl_vm_report afresh = run(vm, &sequence, 1);
    bool ended = report->state[s] != MGL_STATE_ABORTED && report->state[s] != MGL_STATE_STOPPED;
    ck_assert_int_le(report->produced[s], afresh.produced[0]);
    if (ended)
        ck_assert_int_eq(report->produced[s], afresh.produced[0]);
    if (report->produced[s])
        ck_assert_mem_eq(report->output[s], afresh.output[0],
                         (size_t)report->produced[s] * sizeof(int32_t));
    for (int i = 0; ended && sequence.mode == MGL_VM_SCORE && i < sequence.prompt_count; i++)
        ck_assert_float_eq_tol(report->score[s][i], afresh.score[0][i], 1e-4f);
    mgl_vm_close(vm);
}

static const fixture_options mixed[] = {
    {.queues = 2, .rows = 4, .sequences = SLOTS, .exchange = 2, .splits = 1},
    {.queues = 3,
     .rows = 3,
     .sequences = SLOTS,
     .exchange = 2,
     .splits = 3,
     .merge = 2,
     .share = 2},
    {.queues = 2,
     .rows = 3,
     .second_rows = 9,
     .sequences = SLOTS,
     .exchange = 2,
     .splits = 2,
     .merge = 2},
    {.queues = 2,
     .rows = 3,
     .second_rows = 9,
     .sequences = SLOTS,
     .exchange = 1,
     .gamma_scaled = 2}};

/* Aborted, stopped, scored, rejected and batched launches, and another program on the machine:
 * after any of them, the tokens equal a fresh start. */
START_TEST(whatever_was_before)
{
    uint32_t seed = 77u + (uint32_t)_i;
    int32_t talks[SLOTS][PLACES], lengths[SLOTS] = {0};
    int64_t skipped = 0;
    mgl_error err;
    mgl_graph *graph = random_graph(&tiny_model, PLACES, true, MGL_F32, 44);
    mgl_program *program = fixture_program(graph, &mixed[_i]);
    mgl_vm *vm = fixture_vm(program, graph, true);
    for (int launch = 0; launch < LAUNCHES; launch++) {
        mgl_vm_sequence sequences[SLOTS];
        mgl_vm_report report;
        int count = 1 + (int)draw(&seed, SLOTS);
        bool broken = draw(&seed, 12) == 0;
        atomic_int abort = draw(&seed, 12) == 0;
        struct trouble trouble = {draw(&seed, 3) ? 1000 : 1 + (int)draw(&seed, 6),
                                  draw(&seed, 3) ? 0 : 1 + (int)draw(&seed, 9)};
        mgl_vm_request request = {.sequences = sequences,
                                  .count = count,
                                  .on_token = count_token,
                                  .is_stop = divides,
                                  .user = &trouble,
                                  .abort = &abort};
        for (int s = 0; s < count; s++) {
            draw_prompt(&seed, talks[s], &lengths[s]);
            sequences[s] = draw_sequence(&seed, talks[s], lengths[s]);
        }
        if (broken)
            sequences[count - 1].top_p = 2;
        mgl_status status = mgl_vm_run(vm, &request, &report, &err);
        ck_assert_msg(status == (broken ? MGL_BAD_INPUT : MGL_OK), "%s", err.message);
        for (int s = 0; s < count && !status; s++) {
            skipped += report.reused[s];
            compare_afresh(graph, program, &sequences[s], &report, s);
            for (int i = 0; i < report.produced[s] && lengths[s] < PLACES - 1 && launch % 3; i++)
                talks[s][lengths[s]++] = report.output[s][i];
        }
        if (draw(&seed, 20) == 0)
            ok(mgl_vm_exchange(vm, program, graph, &err), err);
    }
    ck_assert_int_gt(skipped, 0);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prefix");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_talk_is_read_once, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tests, one_token_is_left_to_read);
    tcase_add_test(tests, it_ends_where_prompts_part);
    tcase_add_test(tests, nobody_gets_it_who_did_not_ask);
    tcase_add_test(tests, each_sequence_has_its_own);
    tcase_add_test(tests, a_score_is_known);
    tcase_add_test(tests, a_failure_empties_it);
    tcase_add_test(tests, poison_and_exchange_empty_it);
    tcase_add_test(tests, a_stopped_reply_is_known_as_far_as_it_came);
    tcase_add_test(tests, a_start_of_the_caller_s_is_kept);
    tcase_add_loop_test(tests, explore_begins_behind_a_start, 0, 2);
    tcase_add_loop_test(tests, whatever_was_before, 0, (int)(sizeof mixed / sizeof *mixed));
    return fixture_main("prefix", tests);
}
