/* Implements the checks of traced launches. See trace_checks.h. */
#include "tests/vm/cuda/trace_checks.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "eval/trace.h"
#include "schedule/variants.h"
#include "vm/cuda/cuda.h"

enum { PROMPT = 40, TOKENS = 5, CAPACITY = 96, FEW_EPOCHS = 3 };

/* Opens a machine that keeps the events of this number of epochs (0: none), and runs a reply. */
static mgl_vm *run_traced(const mgl_program *program, const mgl_graph *graph, int epochs,
                          int32_t *tokens)
{
    mgl_error err;
    mgl_vm *vm;
    int32_t prompt[PROMPT];
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .deadline_ms = 10000, .trace_epochs = epochs};
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = (i * 7 + 3) % graph->geometry.vocab;
    ok(mgl_vm_open(program, graph, &open, &vm, &err), err);
    device_greedy(vm, prompt, PROMPT, tokens, TOKENS);
    return vm;
}

/* Checks that attention recorded its input time in its own event. Returns the total ns that panels
 * waited for activations. */
static uint64_t check_events(mgl_vm *vm, const mgl_trace *trace, int epochs)
{
    mgl_error err;
    mgl_device_event *events;
    const mgl_program *p = trace->program;
    uint64_t waited = 0;
    ok(mgl_cuda_get_trace(vm, &events, &err), err);
    for (int row = 0; row < trace->rows; row++)
        for (int t = 0; t < p->task_count; t++) {
            const mgl_device_event *event =
                &events[(int)(trace->epochs[row] % epochs) * p->task_count + t];
            if (mgl_op_is_attention(p->tasks[t].op) &&
                mgl_trace_list_of(trace, t) == trace->list[row])
                ck_assert_uint_ne(event->input, 0);
            if (mgl_variant_is_panels(p->tasks[t].variant) &&
                mgl_trace_list_of(trace, t) == trace->list[row])
                waited += event->act_tiles;
        }
    mgl_free(events);
    return waited;
}

/* Checks that a row has events of its list's tasks only. */
static void check_row(const mgl_trace *trace, int row)
{
    ck_assert(trace->whole[row]);
    for (int t = 0; t < trace->program->task_count; t++) {
        const mgl_trace_time *time = mgl_trace_at(trace, row, t);
        const bool own = mgl_trace_list_of(trace, t) == trace->list[row];
        if (trace->program->tasks[t].op != MGL_OP_CLEAR || !own)
            ck_assert_msg(time->known == own, "epoch %d of list %d, task %d: %d",
                          (int)trace->epochs[row], trace->list[row], t, time->known);
        ck_assert(time->begin <= time->go && time->go <= time->end);
    }
}

/* Checks the summary of a list: all its epochs, and a critical path through all layers. */
static void check_list(const mgl_trace *trace, int list, int epochs)
{
    mgl_error err;
    mgl_trace_summary summary;
    const mgl_trace_chain *chain = &trace->chains[list];
    ok(mgl_trace_sum_up(trace, list, &summary, &err), err);
    ck_assert_int_eq(summary.epochs, epochs);
    if (epochs > 0) {
        ck_assert_int_gt(chain->count, 2 + 4 * trace->layers);
        ck_assert_int_eq(trace->list[chain->row], list);
    }
    for (int i = 0; i < chain->count; i++)
        ck_assert_int_eq(mgl_trace_list_of(trace, chain->links[i].task), list);
    mgl_trace_summary_clear(&summary);
}

static void check_text(const mgl_trace *trace, bool lists)
{
    mgl_error err;
    mgl_text text = {0};
    mgl_json json = {0};
    ok(mgl_trace_print_lists(trace, &text, &err), err);
    ck_assert_ptr_nonnull(strstr(text.bytes, "first: "));
    ck_assert(lists == (strstr(text.bytes, "second: ") != NULL));
    mgl_text_clear(&text);
    mgl_trace_print_timeline(trace, &text);
    ck_assert(lists == (strstr(text.bytes, "\"cat\":\"second\"") != NULL));
    ok(mgl_json_parse(text.bytes, text.length, 64 << 20, "timeline", &json, &err), err);
    mgl_json_clear(&json);
    mgl_text_clear(&text);
}

/* Checks the kept `epochs` of a launch that has `second_epochs` of the second list first. Returns
 * ns like check_events. */
static uint64_t check_trace(const mgl_program *program, const mgl_graph *graph, int epochs,
                            int second_epochs, const int32_t *plain)
{
    mgl_error err;
    mgl_trace *trace;
    int32_t tokens[TOKENS];
    const int all = second_epochs + TOKENS - 1;
    mgl_vm *vm = run_traced(program, graph, epochs, tokens);
    ck_assert_mem_eq(tokens, plain, sizeof tokens);
    ok(mgl_trace_take(vm, epochs, &trace, &err), err);
    ck_assert_int_eq(trace->lists, 2);
    ck_assert_int_eq(trace->rows, epochs < all ? epochs : all);
    for (int row = 0; row < trace->rows; row++) {
        ck_assert_int_eq(trace->epochs[row], all - trace->rows + row);
        ck_assert_int_eq(trace->list[row], trace->epochs[row] < second_epochs);
        check_row(trace, row);
    }
    const uint64_t waited = check_events(vm, trace, epochs);
    const int of_second = trace->rows - (TOKENS - 1) > 0 ? trace->rows - (TOKENS - 1) : 0;
    check_list(trace, 0, trace->rows - of_second);
    check_list(trace, 1, of_second);
    check_text(trace, of_second > 0);
    mgl_trace_free(trace);
    mgl_vm_close(vm);
    return waited;
}

uint64_t check_traced_lists(const mgl_geometry *geometry, const device_options *wanted)
{
    int32_t plain[TOKENS];
    device_options options = *wanted;
    options.capacity = CAPACITY;
    options.rows = 1;
    mgl_graph *graph = random_graph(geometry, 128, true, MGL_BF16, 3);
    mgl_program *program = device_program(graph, &options);
    const int second_epochs = (PROMPT + options.second_rows - 1) / options.second_rows;
    mgl_vm_close(run_traced(program, graph, 0, plain));
    const uint64_t waited =
        check_trace(program, graph, second_epochs + TOKENS, second_epochs, plain);
    check_trace(program, graph, FEW_EPOCHS, second_epochs, plain);
    mgl_program_free(program);
    mgl_graph_free(graph);
    return waited;
}
