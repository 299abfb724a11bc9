/*
 * Runs programs in the emulator whose second list has attention that shares rows among tasks:
 * logits, batches, decode rows, fences and delays. second_list.c lists these cases.
 */
#include "second_list.h"

#include "schedule/variant_shapes.h"

#include <stdlib.h>
#include <string.h>

#include "tests/emulator/emulator.h"

static const mgl_geometry three_heads = {384, 1, 6, 2, 64, 256, 75, 1e-5f};
static const mgl_geometry long_rows = {256, 1, 2, 1, 128, 256, 75, 1e-5f};

/* A program whose attention shares rows among `count` tasks. */
static device_options rows_options(const mgl_geometry *geometry, int queues, int second_rows,
                                   int count)
{
    device_options options = second_list_options;
    options.queues = queues;
    options.second_rows = second_rows;
    options.splits = 1;
    ck_assert_int_eq(second_list_shares(geometry, &options), count);
    options.capacity = CHECK_CAPACITY;
    return options;
}

/* Prompts whose epochs begin at other positions, and shares that do not divide the rows: three
 * query heads per kv head, so that a row spans two tiles; one task per head with three units of a
 * prompt; and long heads. */
void logits_of_rows(void)
{
    const device_options thirds = rows_options(&three_heads, 7, 11, 3 * 2);
    const device_options whole = rows_options(&three_heads, 3, 16, 2);
    const device_options longer = rows_options(&long_rows, 5, 13, 5);
    check_logits(&three_heads, &thirds, 1, 33, 4);
    check_logits(&three_heads, &whole, 1, 40, 2);
    check_logits(&long_rows, &longer, 1, 30, 3);
}

/* Sequences of different lengths in an epoch have the tokens of the sequences alone. */
void batch_of_rows(void)
{
    device_options options = rows_options(&three_heads, 9, 11, 4 * 2);
    options.rows = 4;
    check_ragged(&three_heads, &options, 7);
    options.extras = MGL_EXTRA_QK_NORM;
    check_ragged(&three_heads, &options, 7);
}

/* A task with one row of each sequence, unit by unit, in KV tiles of 16 positions and of 64. */
void neighbors_of_rows(void)
{
    device_options options = rows_options(&three_heads, 5, 40, 2 * 2);
    check_neighbors(&three_heads, &options, 20);
    options.warpgroups = MGL_WARPGROUPS_YES;
    options.warps = 4;
    check_neighbors(&three_heads, &options, 20);
    options.warpgroups = MGL_WARPGROUPS_NO;
    options.warps = 2;
    options.page_bytes = 4096;
    options.ring_pages = 6;
    options.stage_bytes = 13312;
    check_neighbors(&three_heads, &options, 20);
}

/* Decode rows of many sequences with few cached positions, each computed by one warp; also with
 * normed heads and long heads. */
void neighbors_of_decode_rows(void)
{
    device_options options = rows_options(&three_heads, 9, 32, 4 * 2);
    options.warps = 8;
    options.page_bytes = 16384;
    check_neighbors(&three_heads, &options, 20);
    options.extras = MGL_EXTRA_QK_NORM;
    check_neighbors(&three_heads, &options, 11);
    options = rows_options(&long_rows, 5, 32, 5);
    options.warps = 8;
    options.page_bytes = 16384;
    check_neighbors(&long_rows, &options, 11);
}

/* The log-probabilities of the tokens of sequence 0. */
enum { DECODE_ROW_TOKENS = 40 };

struct heard_of_one {
    mgl_vm_likelihood of[DECODE_ROW_TOKENS];
    int count;
};

static void hear_one(void *user, int sequence, const mgl_vm_likelihood *likelihood)
{
    struct heard_of_one *heard = user;
    if (sequence == 0 && heard->count < DECODE_ROW_TOKENS)
        heard->of[heard->count++] = *likelihood;
}

/* The log-probabilities of a reply beside another sequence that has a prompt of one or two rows per
 * epoch. */
static void hear_beside(mgl_vm *vm, mgl_vm_sequence other, struct heard_of_one *heard)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[5];
    fill_prompt(prompt, 5, three_heads.vocab, 7);
    const mgl_vm_sequence sequences[] = {
        {.prompt = prompt, .prompt_count = 5, .max_new = DECODE_ROW_TOKENS}, other};
    const mgl_vm_request request = {
        .sequences = sequences, .count = 2, .on_likelihood = hear_one, .likely = 1, .user = heard};
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_OK);
    ck_assert_int_eq(heard->count, DECODE_ROW_TOKENS);
}

/* A decode row with several KV tiles has the same bits as a row whose task also has prompt rows. */
void decode_rows_are_as_others(void)
{
    enum { PROMPT = 90 }; /* two rows per epoch */
    device_options options = rows_options(&three_heads, 2, 3, 2);
    struct heard_of_one alone = {0}, beside = {0};
    int32_t prompt[PROMPT];
    options.warps = 8;
    options.page_bytes = 16384;
    options.sequences = 2;
    fill_prompt(prompt, PROMPT, three_heads.vocab, 3);
    mgl_graph *graph = random_graph(&three_heads, 128, true, MGL_BF16, 5);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    hear_beside(vm, (mgl_vm_sequence){.prompt = prompt, .prompt_count = 1, .max_new = PROMPT},
                &alone);
    hear_beside(vm,
                (mgl_vm_sequence){.prompt = prompt, .prompt_count = PROMPT, .mode = MGL_VM_SCORE},
                &beside);
    for (int i = 0; i < DECODE_ROW_TOKENS; i++) {
        ck_assert_int_eq(alone.of[i].token, beside.of[i].token);
        ck_assert_mem_eq(&alone.of[i].logprob, &beside.of[i].logprob, sizeof alone.of[i].logprob);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* Two warps have several KV tiles each. */
void logits_of_rows_by_few_warps(void)
{
    device_options options = rows_options(&three_heads, 5, 16, 2 * 2);
    options.warps = 2;
    check_logits(&three_heads, &options, 1, 60, 3);
}

/* KV tiles of 16 positions; a unit needs more tiles than there are buffers: three of short heads,
 * and one of long heads. */
void logits_of_rows_in_small_act_tiles(void)
{
    device_options options = rows_options(&three_heads, 5, 16, 2 * 2);
    options.warps = 2;
    options.page_bytes = 4096;
    options.ring_pages = 6;
    options.stage_bytes = 4096;
    check_logits(&three_heads, &options, 1, 80, 3);
    check_logits(&long_rows, &options, 1, 80, 3);
}

/* The same for several sequences, with delays, and with tokens of the first list between
 * prompts. */
void delays_of_rows_in_small_act_tiles(void)
{
    device_options options = rows_options(&three_heads, 5, 16, 2 * 2);
    options.warps = 2;
    options.page_bytes = 4096;
    options.ring_pages = 6;
    options.stage_bytes = 4096;
    check_delays(&three_heads, &options, 2, 3);
    options.rows = 4;
    check_ragged(&three_heads, &options, 7);
}

/* The last queue of the second list that has row attention and no panels (whose copies have fences
 * too); -1: none. Its share of the rows includes the last row. */
static int queue_of_rows(const mgl_program *second)
{
    for (int q = second->queue_count - 1; q >= 0; q--) {
        const mgl_run *tasks = &second->queues[q].tasks;
        bool rows = false, panels = false;
        for (int t = tasks->first; t < tasks->first + tasks->count; t++) {
            const mgl_family family = mgl_op_get(second->tasks[t].op)->family;
            rows |= family == MGL_FAMILY_ATTEND_ROWS;
            panels |= family == MGL_FAMILY_PANEL;
        }
        if (rows && !panels)
            return q;
    }
    return -1;
}

/* Without its proxy fence, a copy of keys and values reads those of the previous launch. */
void fences_of_rows(void)
{
    enum { PROMPT = 40 }; /* three epochs */
    device_options options = rows_options(&three_heads, 7, 16, 3 * 2);
    int32_t prompt[PROMPT];
    float logits[300];
    options.products = 3;
    mgl_graph *graph = random_graph(&three_heads, 128, true, MGL_BF16, 5);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    const int queue = queue_of_rows(program->second);
    ck_assert_int_ge(queue, 0);
    fill_prompt(prompt, PROMPT, three_heads.vocab, 3);
    ck_assert(second_list_has_logits(vm, prompt, PROMPT, logits, true));
    fill_prompt(prompt, PROMPT, three_heads.vocab, 4);
    ck_assert(!second_list_has_logits(vm, prompt, PROMPT, logits, false)); /* the old contents that
                                                                              copies then read */
    fill_prompt(prompt, PROMPT, three_heads.vocab, 3);
    emu_forget_fences_of(queue);
    ck_assert(!second_list_has_logits(vm, prompt, PROMPT, logits, false));
    emu_forget_fences_of(-1);
    ck_assert(second_list_has_logits(vm, prompt, PROMPT, logits, false));
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* Alternating lists on queues with only attention: KV tiles are freed before the first list's pages
 * overwrite them. */
void batch_of_rows_apart(void)
{
    device_options options = rows_options(&three_heads, 7, 11, 3 * 2);
    options.rows = 4;
    options.products = 3;
    check_ragged(&three_heads, &options, 30);
    check_delays(&three_heads, &options, 2, 3);
}

void delays_of_rows(void)
{
    const device_options options = rows_options(&long_rows, 3, 9, 3);
    check_delays(&long_rows, &options, 2, 3);
}
