/*
 * Tests of NaN and infinite weights, and weights that lead to such values: the affected sequences
 * end without a token, and the run fails with the position. The other sequences of the launch
 * continue. Tests the reference and the fast path.
 */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schedule/step.h"

enum { NEW = 6, BATCH = 3, SPOILT = 7 /* token */ };

static const int32_t prompt[] = {3, 14, 15};

/* A model with one changed row, its machine, and the results. */
struct run {
    mgl_graph *graph;
    mgl_program *program;
    mgl_vm *vm;
    mgl_vm_report report;
    mgl_error err;
    int heard[BATCH]; /* delivered tokens */
};

static bool hear(void *user, int sequence, int32_t token)
{
    struct run *run = user;
    ck_assert_int_ge(token, 0);
    run->heard[sequence]++;
    return true;
}

static void open_run(struct run *run, const char *tensor, int row, float value, bool plain)
{
    *run = (struct run){.graph = random_graph(&small_model, 64, false, MGL_F32, 9)};
    if (tensor)
        spoil_row(run->graph, tensor, row, value);
    run->program = fixture_program(run->graph, &(fixture_options){.queues = 3, .sequences = BATCH});
    run->vm = fixture_vm(run->program, run->graph, plain);
}

static void close_run(struct run *run)
{
    mgl_vm_close(run->vm);
    mgl_program_free(run->program);
    mgl_graph_free(run->graph);
}

static mgl_status launch(struct run *run, const mgl_vm_sequence *sequences, int count)
{
    const mgl_vm_request request = {
        .sequences = sequences, .count = count, .on_token = hear, .user = run};
    memset(run->heard, 0, sizeof run->heard);
    return mgl_vm_run(run->vm, &request, &run->report, &run->err);
}

static void check_message(const struct run *run, const char *where, const char *position)
{
    ck_assert_str_eq(run->err.where, where);
    ck_assert_msg(strstr(run->err.message, position) &&
                      strstr(run->err.message, "is not a number") &&
                      strstr(run->err.message, "check the checkpoint"),
                  "%s", run->err.message);
}

/* One NaN, or values that overflow, among the logits, greedy and drawn. */
static const struct {
    const char *tensor;
    float value, temperature;
} spoilt[] = {{"lm_head.weight", NAN, 0.0f},        {"lm_head.weight", NAN, 0.9f},
              {"lm_head.weight", INFINITY, 0.0f},   {"lm_head.weight", INFINITY, 0.9f},
              {"model.norm.weight", 3e38f, 0.0f},   {"model.norm.weight", 3e38f, 0.9f},
              {"model.norm.weight", INFINITY, 0.0f}};

START_TEST(no_token_is_made_up)
{
    for (int plain = 0; plain < 2; plain++) {
        struct run run;
        const mgl_vm_sequence sequence = {.prompt = prompt,
                                          .prompt_count = 3,
                                          .max_new = NEW,
                                          .temperature = spoilt[_i].temperature};
        const int row = spoilt[_i].tensor[0] == 'l' ? SPOILT : 0;
        open_run(&run, spoilt[_i].tensor, row, spoilt[_i].value, plain);
        ck_assert_int_eq(launch(&run, &sequence, 1), MGL_BAD_INPUT);
        ck_assert_int_eq(run.report.state[0], MGL_STATE_NOT_A_NUMBER);
        ck_assert_int_eq(run.report.produced[0], 0);
        ck_assert_int_eq(run.heard[0], 0);
        check_message(&run, "", "position 3");
        close_run(&run);
    }
}
END_TEST

/* Returns the tokens of a clean model up to the token with the changed embedding, which is still
 * chosen; no other token follows. */
START_TEST(what_came_before_is_told)
{
    struct run run;
    int32_t clean[NEW];
    const mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = NEW};
    open_run(&run, NULL, 0, 0, _i);
    ok(launch(&run, &sequence, 1), run.err);
    memcpy(clean, run.report.output[0], sizeof clean);
    close_run(&run);
    int count = 1; /* of those up to the first one that differs from the first */
    while (count < NEW - 1 && clean[count] == clean[0])
        count++;
    ck_assert_int_lt(count, NEW - 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(prompt[i], clean[count]);
    open_run(&run, "model.embed_tokens.weight", clean[count], NAN, _i);
    ck_assert_int_eq(launch(&run, &sequence, 1), MGL_BAD_INPUT);
    ck_assert_int_eq(run.report.produced[0], count + 1);
    ck_assert_int_eq(run.heard[0], count + 1);
    ck_assert_mem_eq(run.report.output[0], clean, (size_t)(count + 1) * sizeof *clean);
    char position[32];
    snprintf(position, sizeof position, "position %d", 3 + count + 1);
    check_message(&run, "", position);
    close_run(&run);
}
END_TEST

/* Only the sequence with the changed token ends; the others have the tokens of a clean model. */
START_TEST(the_others_of_a_batch_go_on)
{
    struct run run;
    int32_t clean[BATCH][NEW];
    static const int32_t other[] = {21, SPOILT, 30}, third[] = {40, 41, 42, 43};
    const mgl_vm_sequence sequences[BATCH] = {
        {.prompt = prompt, .prompt_count = 3, .max_new = NEW},
        {.prompt = other, .prompt_count = 3, .max_new = NEW},
        {.prompt = third, .prompt_count = 4, .max_new = NEW, .temperature = 1.0f, .seed = 4}};
    open_run(&run, NULL, 0, 0, _i);
    ok(launch(&run, sequences, BATCH), run.err);
    for (int s = 0; s < BATCH; s++) {
        memcpy(clean[s], run.report.output[s], sizeof clean[s]);
        for (int i = 0; i < NEW; i++)
            ck_assert_int_ne(clean[s][i], SPOILT);
    }
    close_run(&run);
    open_run(&run, "model.embed_tokens.weight", SPOILT, NAN, _i);
    ck_assert_int_eq(launch(&run, sequences, BATCH), MGL_BAD_INPUT);
    check_message(&run, "sequence 1", "position 3");
    ck_assert_int_eq(run.report.state[1], MGL_STATE_NOT_A_NUMBER);
    ck_assert_int_eq(run.heard[1], 0);
    for (int s = 0; s < BATCH; s += 2) {
        ck_assert_int_eq(run.report.state[s], MGL_STATE_LENGTH);
        ck_assert_mem_eq(run.report.output[s], clean[s], sizeof clean[s]);
    }
    close_run(&run);
}
END_TEST

/* The changed token first affects the log-probability of the token after it. */
START_TEST(a_score_that_is_no_number_is_rejected)
{
    struct run run;
    static const int32_t text[] = {3, 14, SPOILT, 15, 9};
    const mgl_vm_sequence sequence = {
        .mode = MGL_VM_SCORE, .prompt = text, .prompt_count = 5, .max_new = 1};
    open_run(&run, "model.embed_tokens.weight", SPOILT, NAN, _i);
    ck_assert_int_eq(launch(&run, &sequence, 1), MGL_BAD_INPUT);
    check_message(&run, "", "position 3");
    ck_assert(isfinite(run.report.score[0][2]));
    close_run(&run);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("numbers");
    tcase_add_loop_test(tests, no_token_is_made_up, 0, (int)(sizeof spoilt / sizeof *spoilt));
    tcase_add_loop_test(tests, what_came_before_is_told, 0, 2);
    tcase_add_loop_test(tests, the_others_of_a_batch_go_on, 0, 2);
    tcase_add_loop_test(tests, a_score_that_is_no_number_is_rejected, 0, 2);
    return fixture_main("numbers", tests);
}
