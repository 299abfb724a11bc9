/*
 * Ten thousand damaged schedules with flag edges and clears, each two ways. The validator says
 * whether it would let them run. explore, which shares no code with it, runs what it accepts in
 * several interleavings, sets of words in use again and again, and must find nothing, nor other
 * tokens than the CPU VM, which must give those of the schedule before the damage.
 *
 * Where all or none are accepted the test says little, and so it does where explore sees nothing:
 * how many were accepted is printed, and of how many that were rejected for their order alone
 * explore sees the fault.
 *
 *   test_damage [base [round]]     one base; and one round of it, whose text is printed
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "damage.h"
#include "validator/validator.h"
#include "vm/cpu/explore.h"

enum { ROUNDS = 1250, INTERLEAVINGS = 8 };

/* Prompts in epochs of four rows and fewer, then single rows: five epochs, so that both sets are
 * used twice and more. */
static const int32_t prompt[] = {3, 1, 40, 7, 22};
static const mgl_vm_sequence sequences[] = {
    {.prompt = prompt, .prompt_count = 5, .max_new = 2},
    {.prompt = prompt + 1, .prompt_count = 1, .max_new = 5},
};
static const mgl_vm_request request = {.sequences = sequences, .count = 2};

/* One head of 16 in a layer; the smallest model with every part of a schedule. */
static const mgl_geometry one_layer = {32, 1, 2, 1, 16, 40, 41, 1e-5f};
static const mgl_geometry two_heads = {32, 1, 2, 2, 16, 24, 41, 1e-5f};

static const struct base {
    const mgl_geometry *model;
    int queues, splits;
    mgl_dtype dtype;
} bases[] = {
    {&one_layer, 2, 1, MGL_F32},  {&one_layer, 3, 1, MGL_BF16}, {&one_layer, 4, 1, MGL_F32},
    {&one_layer, 2, 2, MGL_F32},  {&one_layer, 3, 3, MGL_F32},  {&two_heads, 3, 1, MGL_F32},
    {&two_heads, 4, 2, MGL_BF16}, {&tiny_model, 2, 1, MGL_F32},
};

/* What came of the rounds of a base. */
static struct {
    int unreadable, rejected, accepted;
    int unordered, shown; /* rejected for order, cover or clears alone; those that explore shows */
} counts;

static mgl_graph *graph;
static int tokens[2][8]; /* of each sequence before any damage */

static mgl_vm_report run(mgl_vm *vm)
{
    mgl_error err;
    mgl_vm_report report;
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    return report;
}

static mgl_vm *open_unchecked(const mgl_program *program)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .plain = true, .unchecked = true};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    return vm;
}

/* Keeps the tokens, or compares with those kept. */
static bool same_tokens(const mgl_vm_report *report, bool keep)
{
    bool same = true;
    for (int s = 0; s < request.count; s++) {
        size_t bytes = (size_t)sequences[s].max_new * sizeof(int32_t);
        if (keep)
            memcpy(tokens[s], report->output[s], bytes);
        same = same && report->produced[s] == sequences[s].max_new &&
               !memcmp(tokens[s], report->output[s], bytes);
    }
    return same;
}

static mgl_explore_report explore(const mgl_program *program, const mgl_vm_report *wanted)
{
    mgl_error err;
    mgl_explore_report report;
    mgl_explore_options options = {
        .request = &request, .seed = 1, .seeds = INTERLEAVINGS, .plain = true, .wanted = wanted};
    ok(mgl_explore(program, graph, &options, &report, &err), err);
    return report;
}

/* An accepted schedule: explore finds nothing and the tokens are right. */
static void check_good(const mgl_program *program, const char *what)
{
    mgl_vm *vm = open_unchecked(program);
    mgl_vm_report report = run(vm);
    mgl_explore_report found = explore(program, &report);
    ck_assert_msg(found.finding == MGL_FOUND_NOTHING, "%s: %s", what, found.message);
    ck_assert_msg(same_tokens(&report, false), "%s: other tokens", what);
    mgl_vm_close(vm);
}

/* Whether all faults of a rejected schedule are what explore looks for. (204, how an enter must
 * wait, is a form that the proof asks for: without it all may still be well.) */
static bool is_unordered(const mgl_verdict *verdict)
{
    static const int codes[] = {201, 202, 203, 206, 207, 301, 302, 304, 501, 503, 604};
    bool all = true;
    for (int i = 0; i < verdict->count; i++) {
        bool known = false;
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            known = known || verdict->diagnostics[i].code == codes[c];
        all = all && known;
    }
    return all;
}

/* `reshaped`: a rejected schedule may touch what is not its own, and can not be run. */
static void judge(const mgl_text *text, bool reshaped, const char *what)
{
    mgl_error err;
    mgl_program *program = NULL;
    mgl_verdict verdict = {0};
    if (mgl_schedule_parse(text->bytes, text->length, "damaged.mls", &program, &err)) {
        counts.unreadable++;
        return;
    }
    ok(mgl_validator_check(program, graph, &verdict, &err), err);
    counts.accepted += verdict.accepted;
    counts.rejected += !verdict.accepted;
    if (verdict.accepted) {
        check_good(program, what);
    } else if (!reshaped && is_unordered(&verdict)) {
        counts.unordered++;
        counts.shown += explore(program, NULL).finding != MGL_FOUND_NOTHING;
    }
    mgl_verdict_clear(&verdict);
    mgl_program_free(program);
}

static int only_base = -1, only_round = -1;

/* One or two damages of the base's text, and more until it is another text. */
static void damage_once(const schedule_text *base, const char *before, int index, int round)
{
    uint64_t random = (uint64_t)index * 1000003u + (uint64_t)round;
    schedule_text *damaged = schedule_text_copy(base);
    mgl_text text = {0}, what = {0};
    bool reshaped = false;
    mgl_text_format(&what, "base %d, round %d", index, round);
    for (int i = 0; i <= round % 2 || !strcmp(text.bytes, before); i++) {
        mgl_text_format(&what, ", %s", schedule_text_damage(damaged, &random, &reshaped));
        mgl_text_clear(&text);
        schedule_text_print(damaged, &text);
    }
    if (only_round == round)
        printf("%s\n%s", what.bytes, text.bytes);
    judge(&text, reshaped, what.bytes);
    schedule_text_free(damaged);
    mgl_text_clear(&text);
    mgl_text_clear(&what);
}

static mgl_program *lower(const struct base *base)
{
    return fixture_program(graph, &(fixture_options){.queues = base->queues,
                                                     .dtype = base->dtype,
                                                     .capacity = 8,
                                                     .sequences = 2,
                                                     .rows = 4,
                                                     .splits = base->splits,
                                                     .exchange = 2});
}

/* The base's text; and what it computes, kept. */
static void open_base(const struct base *base, mgl_text *text)
{
    graph = random_graph(base->model, 16, true, base->dtype, 31);
    mgl_program *program = lower(base);
    mgl_vm *vm = open_unchecked(program);
    mgl_vm_report report = run(vm);
    ck_assert(same_tokens(&report, true));
    ck_assert_int_ge(report.epochs, 5);
    mgl_schedule_print(program, text);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

START_TEST(accepted_is_good)
{
    mgl_text text = {0};
    memset(&counts, 0, sizeof counts);
    if (only_base >= 0 && only_base != _i)
        return;
    open_base(&bases[_i], &text);
    schedule_text *base = schedule_text_read(text.bytes);
    judge(&text, false, "the base");
    ck_assert_int_eq(counts.accepted, 1);
    for (int round = 0; round < ROUNDS; round++)
        if (only_round < 0 || only_round == round)
            damage_once(base, text.bytes, _i, round);
    printf("base %d: %d damaged: %d unreadable, %d rejected (%d for order, of which %d shown), %d "
           "accepted\n",
           _i, ROUNDS, counts.unreadable, counts.rejected, counts.unordered, counts.shown,
           counts.accepted - 1);
    if (only_round < 0) {
        ck_assert_int_gt(counts.accepted, ROUNDS / 100);
        ck_assert_int_ge(counts.shown, counts.unordered * 95 / 100);
    }
    schedule_text_free(base);
    mgl_text_clear(&text);
    mgl_graph_free(graph);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("damage");
    if (argc > 1)
        only_base = atoi(argv[1]);
    if (argc > 2)
        only_round = atoi(argv[2]);
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, accepted_is_good, 0, sizeof bases / sizeof *bases);
    return fixture_main("damage", tests);
}
