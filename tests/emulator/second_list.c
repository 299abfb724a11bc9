/*
 * Runs programs with two task lists in the emulator: alternating lists; products by panels, by warp
 * teams and by warpgroups; attention that shares rows; traces.
 */
#include "second_list.h"

#include "schedule/variant_shapes.h"

#include <stdlib.h>
#include <string.h>

#include "tests/emulator/emulator.h"
#include "tests/vm/cuda/trace_checks.h"

static const mgl_geometry few_columns = {128, 1, 4, 2, 32, 192, 75, 1e-5f};

int second_list_shares(const mgl_geometry *geometry, const device_options *wanted)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_graph(geometry, 128, true, MGL_BF16, 5);
    mgl_program *program = device_program(graph, &options);
    int tasks = 0;
    for (int t = 0; t < program->second->task_count; t++)
        tasks += program->second->tasks[t].variant == MGL_VARIANT_FLASH;
    mgl_program_free(program);
    mgl_graph_free(graph);
    return tasks;
}

/* Two lists: prompts of one and several sequences by the second, generated tokens by the first. */
static void two_lists(void)
{
    check_ragged(&small_model,
                 &(device_options){.dtype = MGL_F32,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 1,
                                   .second_rows = 8},
                 9);
}

static void two_lists_of_four_rows_and_more(void)
{
    check_ragged(&grouped_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 3,
                                   .splits = 1,
                                   .rows = 4,
                                   .second_rows = 16},
                 9);
}

static void two_lists_with_splits(void)
{
    check_ragged(&grouped_heads,
                 &(device_options){.dtype = MGL_BF16,
                                   .exchange = MGL_EXCHANGE_FLAGS,
                                   .queues = 5,
                                   .splits = 2,
                                   .rows = 1,
                                   .second_rows = 16},
                 9);
}

static void two_lists_with_counters(void)
{
    check_ragged(&small_model,
                 &(device_options){.dtype = MGL_F32,
                                   .exchange = MGL_EXCHANGE_COUNTERS,
                                   .queues = 5,
                                   .splits = 1,
                                   .rows = 4,
                                   .second_rows = 8},
                 9);
}

/* Logits of each list: after a prompt, and after one more token. */
static void logits_of_two_lists(void)
{
    const device_options f32 = {.dtype = MGL_F32,
                                .exchange = MGL_EXCHANGE_FLAGS,
                                .queues = 3,
                                .rows = 1,
                                .second_rows = 16};
    device_options bf16 = f32;
    bf16.dtype = MGL_BF16;
    check_logits(&small_model, &f32, 0, 19, 5);
    check_logits(&even_model, &bf16, 1, 19, 5);
    check_logits(&small_model, &f32, 2, 16, 1);
}

/* Products of the second list as panels: more and fewer row groups than warps of a team, pieces
 * that end before a page, pages that row groups share, and teams that share k blocks. */
const device_options second_list_options = {.dtype = MGL_BF16,
                                            .exchange = MGL_EXCHANGE_FLAGS,
                                            .gamma_scaled = MGL_GAMMA_YES,
                                            .warpgroups = MGL_WARPGROUPS_NO,
                                            .queues = 3,
                                            .rows = 1,
                                            .second_rows = 16,
                                            .page_bytes = 8192,
                                            .ring_pages = 9};

static void logits_of_panels(void)
{
    check_logits(&even_model, &second_list_options, 1, 19, 5);
}

/* Epochs with more rows than the first list allows: prompts of one epoch, and of one and a part. */
static void logits_of_second_rows(void)
{
    static const int rows[] = {17, 40, 64, 80, 128};
    device_options options = second_list_options;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        options.second_rows = rows[i];
        check_logits(&few_columns, &options, (int)i, rows[i] < 88 ? rows[i] : 88, 5);
    }
}

/* The same by warpgroups: row counts for one, two and four instructions of 16 columns or more, and
 * for two of the largest. */
static void logits_of_warpgroups(void)
{
    static const int rows[] = {16, 17, 40, 128};
    device_options options = second_list_options;
    options.warpgroups = MGL_WARPGROUPS_YES;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        options.second_rows = rows[i];
        options.warps = i % 2 ? 8 : 4;
        check_logits(&few_columns, &options, (int)i, rows[i] < 88 ? rows[i] : 88, 5);
    }
}

/* First, pages with a power of 2 of blocks; then two sizes with other numbers of blocks. A page of
 * 3,072 bytes holds pieces of two row groups. */
static void logits_of_warpgroups_by_pages(void)
{
    device_options options = second_list_options;
    options.warpgroups = MGL_WARPGROUPS_YES;
    check_logits(&even_model, &options, 1, 19, 5);
    options.second_rows = 128;
    options.warps = 8;
    static const int pages[][2] = {{3072, 24}, {12288, 7}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        options.page_bytes = pages[i][0];
        options.ring_pages = pages[i][1];
        check_logits(&even_model, &options, 1, 40, 3);
    }
}

/* Tasks of several panels: some warps write partial sums while others still compute them. */
static void logits_of_second_rows_in_several_panels(void)
{
    device_options options = second_list_options;
    options.second_rows = 40;
    check_logits(&even_model, &options, 1, 45, 3);
    options.warpgroups = MGL_WARPGROUPS_YES;
    check_logits(&even_model, &options, 1, 45, 3);
}

struct scaled_case {
    const mgl_geometry *geometry;
    int rows, prompt, warps, queues;
    mgl_weight_format format;
};

static void check_scaled(const struct scaled_case *c, int seed, int warpgroups)
{
    device_options options = second_list_options;
    options.second_rows = c->rows;
    options.warpgroups = warpgroups;
    options.warps = c->warps;
    options.queues = c->queues;
    options.scaled = c->format;
    check_logits(c->geometry, &options, seed, c->prompt, 3);
}

/* Scaled weights: groups with zero points, row factors, blocks, minimums, groups of half a part, a
 * last group with fewer columns; epochs of few rows, which have no small-M panels. */
static void logits_of_scaled_panels(void)
{
    static const struct scaled_case cases[] = {
        {&even_model, 16, 19, 8, 3, {MGL_CODE_INT4, MGL_F16, 128, 1, true}},
        {&few_columns, 40, 40, 2, 5, {MGL_CODE_INT8, MGL_F32, 0, 1, false}},
        {&even_model, 128, 88, 8, 16, {MGL_CODE_E4M3, MGL_F32, 128, 128, false}},
        {&even_model, 40, 45, 4, 3, {MGL_CODE_UINT4, MGL_BF16, 32, 1, false}},
        {&even_model, 32, 31, 10, 2, {MGL_CODE_INT8, MGL_F32, 16, 1, true}},
        {&even_model, 20, 31, 8, 40, {MGL_CODE_INT4, MGL_F32, 96, 1, false}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_scaled(&cases[i], (int)i, MGL_WARPGROUPS_NO);
}

/* The same by warpgroups: one warpgroup, and two that share k blocks. */
static void logits_of_scaled_warpgroups(void)
{
    static const struct scaled_case cases[] = {
        {&even_model, 16, 19, 4, 3, {MGL_CODE_INT4, MGL_F16, 128, 1, true}},
        {&even_model, 128, 88, 8, 16, {MGL_CODE_INT8, MGL_F32, 0, 1, false}},
        {&even_model, 40, 45, 8, 40, {MGL_CODE_E4M3, MGL_F32, 128, 128, false}},
        {&even_model, 128, 80, 8, 3, {MGL_CODE_UINT4, MGL_BF16, 32, 1, false}},
        {&even_model, 20, 31, 8, 40, {MGL_CODE_INT8, MGL_F32, 16, 1, true}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_scaled(&cases[i], (int)i, MGL_WARPGROUPS_YES);
}

struct small_m_case {
    const mgl_geometry *geometry;
    int second_rows, prompt, queues, warps, page_bytes, ring_pages;
};

static void check_small_m(const struct small_m_case *c, int seed)
{
    device_options options = second_list_options;
    options.second_rows = c->second_rows;
    options.queues = c->queues;
    options.warps = c->warps;
    options.page_bytes = c->page_bytes;
    options.ring_pages = c->ring_pages;
    check_logits(c->geometry, &options, seed, c->prompt, 3);
}

/* Small-M panels, of one tile of rows and of two: pages of one and of eight row groups; tasks of
 * several panels and of one row group; k blocks that are no multiple of the warps; ten warps, of
 * which two have no rows of the outputs. */
static void logits_of_small_m_panels(void)
{
    static const struct small_m_case cases[] = {
        {&even_model, 32, 31, 2, 8, 16384, 7},   {&even_model, 16, 19, 2, 8, 4096, 17},
        {&even_model, 20, 40, 40, 8, 32768, 4},  {&even_model, 12, 9, 3, 4, 16384, 7},
        {&uneven_model, 24, 50, 5, 8, 12288, 8}, {&uneven_model, 16, 15, 3, 6, 8192, 9},
        {&few_columns, 20, 40, 5, 2, 4096, 12},  {&even_model, 12, 12, 4, 8, 16384, 7},
        {&even_model, 32, 31, 5, 10, 8192, 20},  {&even_model, 16, 19, 7, 10, 8192, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_small_m(&cases[i], (int)i);
}

/* The same for 33 to 64 rows, in tasks of few row groups: fewer rows than the maximum, and the
 * maximum; one to four row groups on a page; fewer k blocks than warps. */
static void logits_of_small_m_panels_of_second_rows(void)
{
    static const struct small_m_case cases[] = {
        {&even_model, 40, 40, 40, 8, 16384, 7}, {&even_model, 64, 64, 20, 8, 16384, 7},
        {&even_model, 40, 40, 16, 8, 12288, 8}, {&few_columns, 40, 40, 8, 8, 8192, 9},
        {&even_model, 64, 50, 16, 8, 4096, 20}, {&even_model, 64, 60, 24, 8, 32768, 4},
        {&even_model, 40, 40, 20, 4, 16384, 7}, {&even_model, 40, 40, 16, 10, 8192, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_small_m(&cases[i], (int)i);
}

/* Tasks of few row groups, with warps and with warpgroups. */
static void logits_of_small_tasks(void)
{
    static const struct small_m_case c = {&even_model, 40, 40, 40, 8, 16384, 7};
    device_options options = second_list_options;
    check_small_m(&c, 0);
    options.second_rows = 128;
    options.queues = 40;
    options.warps = 8;
    options.page_bytes = 16384;
    options.ring_pages = 7;
    options.warpgroups = MGL_WARPGROUPS_YES;
    check_logits(&even_model, &options, 1, 88, 3);
}

static mgl_status read_zeros(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                             void *to, mgl_error *err)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    (void)row;
    (void)err;
    memset(to, 0, (size_t)(count * t->cols) * mgl_dtype_size(t->dtype));
    return MGL_OK;
}

/* All logits are equal, in all lanes, columns and queues: the lowest token must win for every
 * kernel variant. */
static void equal_logits(void)
{
    static const int ways[][2] = {
        {16, MGL_WARPGROUPS_NO}, {40, MGL_WARPGROUPS_NO}, {40, MGL_WARPGROUPS_YES}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int32_t prompt[40] = {0}, token = -1;
        device_options options = second_list_options;
        options.second_rows = ways[i][0];
        options.warpgroups = ways[i][1];
        options.warps = 8;
        mgl_graph *graph = random_graph(&even_model, 64, false, MGL_BF16, 5);
        graph->read = read_zeros;
        mgl_program *program = device_program(graph, &options);
        mgl_vm *vm = device_vm(program, graph, &options);
        device_greedy(vm, prompt, ways[i][0], &token, 1);
        ck_assert_int_eq(token, 0);
        mgl_vm_close(vm);
        mgl_program_free(program);
        mgl_graph_free(graph);
    }
}

/* More sequences than rows of the first list, and than lanes of a warp: in epochs with and without
 * additional prompt rows. */
static void neighbors_of_20(void)
{
    device_options options = second_list_options;
    options.second_rows = 40;
    check_neighbors(&few_columns, &options, 20);
}

static void neighbors_of_64(void)
{
    device_options options = second_list_options;
    options.second_rows = 64;
    check_neighbors(&few_columns, &options, 64);
}

static void neighbors_of_40_in_128_rows(void)
{
    device_options options = second_list_options;
    options.second_rows = 128;
    options.queues = 5;
    options.warps = 8; /* with this many rows and warps, sample has the least memory */
    check_neighbors(&few_columns, &options, 40);
}

/* With warpgroups, and enough columns that a warp has several tiles of logits. */
static void neighbors_by_warpgroups(void)
{
    device_options options = second_list_options;
    options.second_rows = 40;
    options.warps = 4;
    options.warpgroups = MGL_WARPGROUPS_YES;
    check_neighbors(&few_columns, &options, 40);
}

/* Checks that a reply's logits equal those of the first call. */
bool second_list_has_logits(mgl_vm *vm, const int32_t *prompt, int count, float *logits, bool first)
{
    mgl_error err;
    mgl_vm_report report;
    float now[300];
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = 1};
    const mgl_vm_request request = {.sequences = &sequence, .count = 1};
    if (mgl_vm_run(vm, &request, &report, &err) || mgl_vm_get_logits(vm, now, &err))
        return false;
    if (first)
        memcpy(logits, now, sizeof now);
    return !memcmp(logits, now, sizeof now);
}

/* Without its proxy fence, a copy of activations reads the old memory. Small-M panels, for epochs
 * of few rows, copy no activations. */
static void fences_by(int warpgroups, int rows)
{
    device_options options = second_list_options;
    options.warpgroups = warpgroups;
    int32_t prompt[CHECK_CAPACITY];
    float logits[300];
    options.second_rows = rows;
    options.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_graph(&even_model, 128, true, MGL_BF16, 5);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    fill_prompt(prompt, rows, even_model.vocab, 3);
    ck_assert(second_list_has_logits(vm, prompt, rows, logits, true));
    fill_prompt(prompt, rows, even_model.vocab, 4);
    ck_assert(!second_list_has_logits(vm, prompt, rows, logits,
                                      false)); /* the old contents that copies then read */
    fill_prompt(prompt, rows, even_model.vocab, 3);
    emu_forget_fences(true);
    const bool right = second_list_has_logits(vm, prompt, rows, logits, false);
    emu_forget_fences(false);
    ck_assert_int_eq(right, rows <= MGL_SMALL_M_ROWS);
    ck_assert(second_list_has_logits(vm, prompt, rows, logits, false));
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* Removes the waits of all panels of a list. */
static void forget_waits(mgl_program *list)
{
    int kept = 0;
    for (int t = 0; t < list->task_count; t++) {
        mgl_run *waits = &list->tasks[t].waits;
        if (mgl_op_get(list->tasks[t].op)->family == MGL_FAMILY_PANEL)
            waits->count = 0;
        for (int i = 0; i < waits->count; i++)
            list->waits[kept + i] = list->waits[waits->first + i];
        waits->first = kept;
        kept += waits->count;
    }
    list->wait_count = kept;
}

/* On one queue no wait is needed: tasks may begin before the controller has seen that earlier tasks
 * have ended. */
static void panels_that_wait_for_nothing(void)
{
    enum { ROWS = 20, SEEDS = 8 };
    device_options options = second_list_options;
    int32_t prompt[CHECK_CAPACITY];
    float logits[300];
    options.queues = 1;
    options.warps = 4;
    options.second_rows = ROWS;
    options.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_graph(&few_columns, 128, true, MGL_BF16, 5);
    mgl_program *program = device_program(graph, &options);
    forget_waits(program->second);
    mgl_vm *vm = device_vm(program, graph, &options);
    fill_prompt(prompt, ROWS, few_columns.vocab, 3);
    for (int seed = 1; seed <= SEEDS; seed++) {
        emu_seed((uint64_t)seed);
        ck_assert(second_list_has_logits(vm, prompt, ROWS, logits, seed == 1));
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

static void fences_of_panels(void)
{
    fences_by(MGL_WARPGROUPS_NO, 38);
    fences_by(MGL_WARPGROUPS_NO, 14);
}

static void fences_of_warpgroups(void)
{
    fences_by(MGL_WARPGROUPS_YES, 38);
    fences_by(MGL_WARPGROUPS_YES, 30);
}

/* Alternating lists: sequences that share epochs with prompts, and alone. */
static void batch_by(int warpgroups)
{
    device_options options = second_list_options;
    options.warpgroups = warpgroups;
    options.queues = 7;
    options.rows = 4;
    options.second_rows = 11;
    options.warps = 4;
    options.splits = 1;
    check_ragged(&even_model, &options, 7);
}

static void batch_of_panels(void)
{
    batch_by(MGL_WARPGROUPS_NO);
}

static void batch_of_warpgroups(void)
{
    batch_by(MGL_WARPGROUPS_YES);
}

static void delays_of_warpgroups(void)
{
    device_options options = second_list_options;
    options.warpgroups = MGL_WARPGROUPS_YES;
    options.second_rows = 40;
    check_delays(&few_columns, &options, 3, 3);
}

static void delays_of_panels(void)
{
    device_options options = second_list_options;
    options.second_rows = 9;
    check_delays(&even_model, &options, 2, 3);
}

static void delays_of_second_rows(void)
{
    device_options options = second_list_options;
    options.second_rows = 40;
    check_delays(&few_columns, &options, 3, 3);
}

static void watchdog_of_second_rows(void)
{
    enum { SECONDS = 60 };
    device_options options = second_list_options;
    options.second_rows = 40;
    emu_expect_deadlock(true);
    check_deadlock_of_panels(&few_columns, &options, "second.l0.qkv", SECONDS);
    emu_expect_deadlock(false);
}

static void talk_of_two_lists(void)
{
    check_talk(&small_model,
               &(device_options){.queues = 3, .splits = 2, .rows = 1, .second_rows = 8}, 4);
}

static void ended_replies_of_two_lists(void)
{
    const device_options options = {.queues = 3, .rows = 1, .second_rows = 8, .sequences = 3};
    check_device_stops(&small_model, &options);
    check_device_likely(&odd_model, &options);
}

static void delays_of_two_lists(void)
{
    check_delays(&grouped_heads,
                 &(device_options){.dtype = MGL_BF16, .queues = 3, .rows = 1, .second_rows = 8}, 3,
                 4);
}

/* If both lists have the same row limits, a CPU has the same epochs. */
static void epochs_of_two_lists(void)
{
    check_two_lists(&small_model,
                    &(device_options){
                        .exchange = MGL_EXCHANGE_FLAGS, .queues = 3, .rows = 1, .second_rows = 16},
                    12);
    check_two_lists(
        &odd_model,
        &(device_options){.queues = 5, .rows = 4, .second_rows = 8, .extras = ALL_EXTRAS}, 12);
}

/* A queue with only attention has few tasks; padding records fill its list. */
static void two_lists_with_attention_apart(void)
{
    check_two_lists(&grouped_heads,
                    &(device_options){.exchange = MGL_EXCHANGE_FLAGS,
                                      .queues = 4,
                                      .products = 2,
                                      .splits = 1,
                                      .rows = 4,
                                      .second_rows = 16},
                    9);
    check_two_lists(&tiny_model, &(device_options){.queues = 9, .rows = 3, .second_rows = 9}, 9);
}

static void exchanged_programs_of_two_lists(void)
{
    const device_options from = {.dtype = MGL_F32,
                                 .exchange = MGL_EXCHANGE_FLAGS,
                                 .capacity = 64,
                                 .queues = 3,
                                 .rows = 1,
                                 .second_rows = 8};
    device_options to = from;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 3);
    to.queues = 4;
    check_exchange(graph, &from, &to, 2, 5);
    mgl_graph_free(graph);
}

static void watchdog_of_two_lists(void)
{
    enum { SECONDS = 60 };
    emu_expect_deadlock(true);
    check_deadlock_of_second("second.l0.qkv", SECONDS);
    emu_expect_deadlock(false);
}

/* Some earlier cases again, with slow warps in panels, in attention that shares rows, and between
 * lists. */
static void uneven_panels(void)
{
    emu_uneven(true);
    logits_of_panels();
    delays_of_panels();
    delays_of_second_rows();
}

static void uneven_rows(void)
{
    emu_uneven(true);
    logits_of_rows_by_few_warps();
    delays_of_rows();
}

static void uneven_lists(void)
{
    emu_uneven(true);
    two_lists_with_splits();
}

/* Events of both lists: with attention on separate, padded queues, and with panels. */
static void traces_of_two_lists(void)
{
    check_traced_lists(&grouped_heads, &(device_options){.dtype = MGL_BF16,
                                                         .exchange = MGL_EXCHANGE_FLAGS,
                                                         .queues = 4,
                                                         .products = 2,
                                                         .splits = 1,
                                                         .second_rows = 16});
}

/* Enough columns that a task has more activation tiles than buffers, so that the task waits for
 * some. */
static void traces_of_panels(void)
{
    device_options options = second_list_options;
    options.second_rows = 128;
    options.stage_bytes = 8192;
    ck_assert_uint_gt(check_traced_lists(&even_model, &options), 0);
    options.warpgroups = MGL_WARPGROUPS_YES;
    ck_assert_uint_gt(check_traced_lists(&even_model, &options), 0);
}

/* A machine with two lists reads prompts into the cache of a machine with one list. */
static void prompts_for_an_owner(void)
{
    check_owner(
        &small_model,
        &(device_options){
            .exchange = MGL_EXCHANGE_FLAGS, .queues = 3, .splits = 1, .rows = 1, .second_rows = 8},
        3);
}

static void prompts_for_an_owner_with_splits(void)
{
    check_owner(&grouped_heads,
                &(device_options){.exchange = MGL_EXCHANGE_COUNTERS,
                                  .queues = 5,
                                  .splits = 2,
                                  .rows = 1,
                                  .second_rows = 16,
                                  .delay_seed = 3},
                3);
}

const emulator_case second_list_replies[SECOND_LIST_REPLIES] = {
    {prompts_for_an_owner, CASE_QUICK},
    {prompts_for_an_owner_with_splits, CASE_LONG},
    {logits_of_panels, CASE_QUICK},
    {fences_of_panels, CASE_LONG},
    {batch_of_panels, CASE_LONG},
    {delays_of_panels, CASE_LONG},
    {uneven_panels, CASE_LONG},
    {logits_of_rows, CASE_LONG},
    {batch_of_rows, CASE_LONG},
    {logits_of_rows_by_few_warps, CASE_QUICK},
    {delays_of_rows, CASE_LONG},
    {uneven_rows, CASE_LONG},
    {logits_of_rows_in_small_act_tiles, CASE_LONG},
    {delays_of_rows_in_small_act_tiles, CASE_LONG},
    {fences_of_rows, CASE_QUICK},
    {batch_of_rows_apart, CASE_LONG},
    {two_lists, CASE_LONG},
    {two_lists_of_four_rows_and_more, CASE_QUICK},
    {two_lists_with_splits, CASE_LONG},
    {uneven_lists, CASE_LONG},
    {two_lists_with_counters, CASE_LONG},
    {logits_of_two_lists, CASE_LONG},
    {talk_of_two_lists, CASE_LONG},
    {delays_of_two_lists, CASE_LONG},
    {epochs_of_two_lists, CASE_QUICK},
    {two_lists_with_attention_apart, CASE_LONG},
    {exchanged_programs_of_two_lists, CASE_QUICK},
    {watchdog_of_two_lists, CASE_QUICK},
    {ended_replies_of_two_lists, CASE_LONG},
};

const emulator_case second_list_rows[SECOND_LIST_ROWS] = {
    {logits_of_second_rows, CASE_QUICK},
    {neighbors_of_20, CASE_QUICK},
    {neighbors_of_64, CASE_LONG},
    {neighbors_of_40_in_128_rows, CASE_LONG},
    {delays_of_second_rows, CASE_LONG},
    {watchdog_of_second_rows, CASE_QUICK},
    {traces_of_two_lists, CASE_QUICK},
    {traces_of_panels, CASE_LONG},
    {logits_of_second_rows_in_several_panels, CASE_LONG},
    {logits_of_warpgroups, CASE_QUICK},
    {logits_of_scaled_panels, CASE_LONG},
    {logits_of_scaled_warpgroups, CASE_LONG},
    {logits_of_small_m_panels, CASE_LONG},
    {logits_of_small_m_panels_of_second_rows, CASE_LONG},
    {equal_logits, CASE_QUICK},
    {neighbors_by_warpgroups, CASE_QUICK},
    {fences_of_warpgroups, CASE_LONG},
    {batch_of_warpgroups, CASE_LONG},
    {delays_of_warpgroups, CASE_LONG},
    {neighbors_of_rows, CASE_LONG},
    {panels_that_wait_for_nothing, CASE_QUICK},
    {neighbors_of_decode_rows, CASE_LONG},
    {decode_rows_are_as_others, CASE_LONG},
    {logits_of_warpgroups_by_pages, CASE_LONG},
    {logits_of_small_tasks, CASE_QUICK},
};
