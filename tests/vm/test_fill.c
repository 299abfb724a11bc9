/*
 * Tests of prompts that are only read into the cache (MGL_VM_FILL): nothing is produced, a reply
 * that continues there has the tokens of an undivided request, however the prompt is cut, and other
 * sequences of the launch are not affected.
 */
#include "fixture.h"

#include <string.h>

enum { PROMPT = 30, NEW = 8, CAPACITY = 48 };

static int32_t prompt[PROMPT];
static mgl_graph *graph;
static mgl_program *program;
static mgl_vm *vm;

/* One list with one row or four rows an epoch, and two lists; two sequences. */
static const fixture_options programs[] = {
    {.rows = 2, .capacity = CAPACITY, .sequences = 2, .queues = 2},
    {.rows = 4, .capacity = CAPACITY, .sequences = 2, .queues = 3},
    {.rows = 2, .second_rows = 8, .capacity = CAPACITY, .sequences = 2, .queues = 2},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static void open_program(int i)
{
    for (int k = 0; k < PROMPT; k++)
        prompt[k] = (7 * k + 3) % small_model.vocab;
    graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 21);
    program = fixture_program(graph, &programs[i]);
    vm = fixture_vm(program, graph, false);
}

static void close_program(void)
{
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

static mgl_vm_report run_one(mgl_vm_sequence sequence)
{
    mgl_error err;
    mgl_vm_report report;
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    return report;
}

START_TEST(a_reply_continues_behind_a_read_prompt)
{
    int32_t wanted[NEW];
    open_program(_i);
    mgl_vm_report report =
        run_one((mgl_vm_sequence){.prompt = prompt, .prompt_count = PROMPT, .max_new = NEW});
    memcpy(wanted, report.output[0], sizeof wanted);
    for (int cut = 1; cut < PROMPT; cut++) {
        report =
            run_one((mgl_vm_sequence){.mode = MGL_VM_FILL, .prompt = prompt, .prompt_count = cut});
        ck_assert_int_eq(report.produced[0], 0);
        ck_assert_int_eq(report.state[0], MGL_STATE_LENGTH);
        ck_assert_int_eq(report.written[0], cut);
        report = run_one((mgl_vm_sequence){
            .prompt = prompt + cut, .prompt_count = PROMPT - cut, .start = cut, .max_new = NEW});
        ck_assert_mem_eq(report.output[0], wanted, sizeof wanted);
    }
    close_program();
}
END_TEST

/* A read prompt fills the cache for requests that reuse it, and reuses the cache itself. */
START_TEST(a_read_prompt_is_reused)
{
    int32_t wanted[NEW];
    open_program(_i);
    mgl_vm_report report =
        run_one((mgl_vm_sequence){.prompt = prompt, .prompt_count = PROMPT, .max_new = NEW});
    memcpy(wanted, report.output[0], sizeof wanted);
    prompt[0] ^= 1; /* nothing of the reply is reused */
    run_one((mgl_vm_sequence){.mode = MGL_VM_FILL, .prompt = prompt, .prompt_count = 1});
    prompt[0] ^= 1;
    for (int end = 10; end < PROMPT; end += 9) {
        report = run_one((mgl_vm_sequence){
            .mode = MGL_VM_FILL, .prompt = prompt, .prompt_count = end, .reuse = true});
        ck_assert_int_eq(report.reused[0], end == 10 ? 0 : end - 9);
    }
    report = run_one(
        (mgl_vm_sequence){.prompt = prompt, .prompt_count = PROMPT, .max_new = NEW, .reuse = true});
    ck_assert_int_eq(report.reused[0], 28);
    ck_assert_mem_eq(report.output[0], wanted, sizeof wanted);
    close_program();
}
END_TEST

/* One sequence is read, the other generates: the reply is as alone. */
START_TEST(a_neighbor_is_not_affected)
{
    mgl_error err;
    int32_t wanted[NEW];
    mgl_vm_report report;
    open_program(_i);
    report = run_one((mgl_vm_sequence){.prompt = prompt + 5, .prompt_count = 9, .max_new = NEW});
    memcpy(wanted, report.output[0], sizeof wanted);
    for (int first = 0; first < 2; first++) {
        mgl_vm_sequence two[2];
        two[first] =
            (mgl_vm_sequence){.mode = MGL_VM_FILL, .prompt = prompt, .prompt_count = PROMPT};
        two[1 - first] = (mgl_vm_sequence){.prompt = prompt + 5, .prompt_count = 9, .max_new = NEW};
        ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = two, .count = 2}, &report, &err), err);
        ck_assert_int_eq(report.produced[first], 0);
        ck_assert_int_eq(report.written[first], PROMPT);
        ck_assert_mem_eq(report.output[1 - first], wanted, sizeof wanted);
    }
    close_program();
}
END_TEST

/* A prompt may fill the whole cache. */
START_TEST(a_full_cache)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t ids[CAPACITY + 1] = {0};
    open_program(_i);
    mgl_vm_sequence sequence = {.mode = MGL_VM_FILL, .prompt = ids, .prompt_count = CAPACITY};
    report = run_one(sequence);
    ck_assert_int_eq(report.written[0], CAPACITY);
    sequence.prompt_count++;
    ck_assert_int_eq(
        mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
        MGL_BAD_INPUT);
    sequence.prompt_count = 0;
    ck_assert_int_eq(
        mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err),
        MGL_BAD_INPUT);
    close_program();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fill");
    tcase_add_loop_test(tests, a_reply_continues_behind_a_read_prompt, 0, PROGRAMS);
    tcase_add_loop_test(tests, a_read_prompt_is_reused, 0, PROGRAMS);
    tcase_add_loop_test(tests, a_neighbor_is_not_affected, 0, PROGRAMS);
    tcase_add_loop_test(tests, a_full_cache, 0, PROGRAMS);
    return fixture_main("fill", tests);
}
