/* Runs scenarios of keys and values through the page ring. See past.h. */
#include "past.h"

#include "schedule/variant_shapes.h"
#include "second_list.h"
#include "vm/cuda/encode.h"

/* Logits of a program that streams keys and values through the ring from 2 NEAR positions on, with
 * two splits. */
static void check_past(const mgl_geometry *geometry, const device_options *options, int seed)
{
    enum { PROMPT = 70, MORE = 4 };
    device_options wanted = *options;
    wanted.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_graph(geometry, 128, true, options->dtype, 11);
    mgl_program *program = device_program(graph, &wanted);
    ck_assert(mgl_cuda_streams_kv(program, "sm_90a"));
    ck_assert_int_gt(PROMPT, 2 * MGL_KV_REGISTERS(geometry->head_dim, options->warps));
    mgl_program_free(program);
    mgl_graph_free(graph);
    check_logits(geometry, options, seed, PROMPT, MORE);
}

/* Keys and values through the ring, on several pages each, more than the ring has. */
static void past_in_the_ring(void)
{
    check_past(&wide_groups,
               &(device_options){.dtype = MGL_BF16,
                                 .exchange = MGL_EXCHANGE_FLAGS,
                                 .queues = 3,
                                 .splits = 2,
                                 .warps = 2,
                                 .rows = 1,
                                 .page_bytes = 8192,
                                 .ring_pages = 3},
               4);
}

/* The same with three splits that o merges: one is empty, the others exceed what registers hold. */
static void past_in_the_ring_merged_in_o(void)
{
    check_past(&wide_groups,
               &(device_options){.dtype = MGL_BF16,
                                 .exchange = MGL_EXCHANGE_FLAGS,
                                 .queues = 3,
                                 .splits = 3,
                                 .merge = 2,
                                 .share = 40,
                                 .warps = 2,
                                 .rows = 1,
                                 .page_bytes = 8192,
                                 .ring_pages = 3},
               5);
}

/* The same with a second list, whose epochs read the prompt and use the ring differently: its
 * attention reads the same keys and values, swizzled, from activation tiles. */
static void past_in_the_ring_of_two_lists(void)
{
    const device_options options = {.dtype = MGL_BF16,
                                    .exchange = MGL_EXCHANGE_FLAGS,
                                    .queues = 3,
                                    .splits = 2,
                                    .warps = 2,
                                    .rows = 1,
                                    .second_rows = 24,
                                    .page_bytes = 8192,
                                    .ring_pages = 9};
    check_past(&wide_groups, &options, 6);
    ck_assert_int_gt(second_list_shares(&wide_groups, &options), 0);
}

/* Two attentions of a queue between the same two products, in two layers. */
static void past_of_two_heads_in_the_ring(void)
{
    check_past(&paged_heads,
               &(device_options){.dtype = MGL_F16,
                                 .exchange = MGL_EXCHANGE_FLAGS,
                                 .queues = 3,
                                 .splits = 2,
                                 .warps = 1,
                                 .rows = 1,
                                 .page_bytes = 6144},
               5);
}

/* Queues with only attention tasks. */
static void past_of_queues_without_products(void)
{
    check_past(&paged_heads,
               &(device_options){.dtype = MGL_F16,
                                 .exchange = MGL_EXCHANGE_FLAGS,
                                 .queues = 4,
                                 .products = 2,
                                 .splits = 2,
                                 .warps = 1,
                                 .rows = 1,
                                 .page_bytes = 6144},
               5);
}

const emulator_case past_replies[PAST_REPLIES] = {
    {past_in_the_ring, CASE_LONG},
    {past_in_the_ring_merged_in_o, CASE_QUICK},
    {past_in_the_ring_of_two_lists, CASE_QUICK},
    {past_of_two_heads_in_the_ring, CASE_LONG},
    {past_of_queues_without_products, CASE_LONG},
};
