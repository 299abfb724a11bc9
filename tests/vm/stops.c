/* Checks replies that a stop string ends. See stops.h. */
#include "stops.h"

#include "fixture.h"

#include <string.h>

enum { COUNT = 3, PROMPT = 5, MOST = 12, MORE = 4 };

/* The number of the token that ends each sequence, from 1, 0: none; and the delivered tokens. */
struct listener {
    int ends[COUNT];
    int looked[COUNT], heard[COUNT];
    int32_t tokens[COUNT][MOST];
};

static bool is_end(void *user, int sequence, int32_t token)
{
    struct listener *l = user;
    (void)token;
    return ++l->looked[sequence] == l->ends[sequence];
}

static bool hear(void *user, int sequence, int32_t token)
{
    struct listener *l = user;
    l->tokens[sequence][l->heard[sequence]++] = token;
    return true;
}

static mgl_vm_report run(mgl_vm *vm, const mgl_vm_sequence *sequences, int count,
                         struct listener *l)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_request request = {.sequences = sequences, .count = count, .user = l};
    request.is_stop = l ? is_end : NULL;
    request.on_token = l ? hear : NULL;
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    return report;
}

static void check_reply(const mgl_vm_report *report, const struct listener *l, int s,
                        const int32_t *wanted)
{
    const int end = l->ends[s] ? l->ends[s] : MOST;
    ck_assert_int_eq(report->state[s], l->ends[s] ? MGL_STATE_STOPPED : MGL_STATE_LENGTH);
    ck_assert_int_eq(report->produced[s], end);
    ck_assert_int_eq(report->written[s], PROMPT + s + end - 1);
    ck_assert_int_eq(l->looked[s], end);
    ck_assert_int_eq(l->heard[s], end);
    ck_assert_mem_eq(report->output[s], wanted, (size_t)end * sizeof *wanted);
    ck_assert_mem_eq(l->tokens[s], wanted, (size_t)end * sizeof *wanted);
}

/* Requests a continuation of the first reply and another token. */
static void check_rest(mgl_vm *vm, mgl_vm *fresh, const int32_t *prompt, const int32_t *reply,
                       int length)
{
    int32_t talk[PROMPT + MOST + 1], wanted[MORE];
    memcpy(talk, prompt, PROMPT * sizeof *talk);
    memcpy(talk + PROMPT, reply, (size_t)length * sizeof *talk);
    talk[PROMPT + length] = 7;
    mgl_vm_sequence next = {.prompt = talk, .prompt_count = PROMPT + length + 1, .max_new = MORE};
    memcpy(wanted, run(fresh, &next, 1, NULL).output[0], sizeof wanted);
    next.reuse = true;
    mgl_vm_report report = run(vm, &next, 1, NULL);
    ck_assert_int_eq(report.reused[0], PROMPT + length - 1);
    ck_assert_mem_eq(report.output[0], wanted, sizeof wanted);
}

void check_stops(mgl_vm *vm, mgl_vm *fresh, int count)
{
    static const int ends[][COUNT] = {{4, 0, 9}, {1, 2, 0}, {MOST, 1, 1}};
    static const int32_t prompt[PROMPT + COUNT] = {3, 1, 4, 1, 5, 9, 2, 6};
    int32_t wanted[COUNT][MOST];
    mgl_vm_sequence sequences[COUNT];
    for (int s = 0; s < count; s++)
        sequences[s] = (mgl_vm_sequence){.prompt = prompt,
                                         .prompt_count = PROMPT + s,
                                         .max_new = MOST,
                                         .temperature = s == 1 ? 0.9f : 0.0f,
                                         .seed = 5};
    mgl_vm_report report = run(vm, sequences, count, NULL);
    for (int s = 0; s < count; s++)
        memcpy(wanted[s], report.output[s], sizeof wanted[s]);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct listener l = {0};
        memcpy(l.ends, ends[i], sizeof l.ends);
        report = run(vm, sequences, count, &l);
        for (int s = 0; s < count; s++)
            check_reply(&report, &l, s, wanted[s]);
        check_rest(vm, fresh, prompt, wanted[0], l.ends[0]);
    }
}
