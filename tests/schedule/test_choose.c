/*
 * Tests of the choices of lowering for values that the config leaves open, and of explicit values,
 * which must be kept: queues and their roles, flags or counters, rows, stage and ring.
 */
#include "lowering.h"
#include "schedule/variant_shapes.h"

static const shape three_billion = {{3072, 28, 24, 8, 128, 8192, 128256, 1e-5F}, true};
static const shape eight_billion = {{4096, 32, 32, 8, 128, 14336, 128256, 1e-5F}, false};

/* A model with small layers. */
static const shape latent = {{576, 30, 9, 3, 64, 1536, 49152, 1e-5F}, true};

/* For these models, 128 of 132 queues have equal shares of all matrices. */
START_TEST(flags_take_queues_that_divide_the_rows)
{
    static const shape *const large[] = {&billion, &three_billion, &eight_billion};
    mgl_graph *graph = graph_of(large[_i]);
    mgl_schedule_config config = preset();
    for (config.exchange = 1; config.exchange <= 2; config.exchange++) {
        mgl_program *p = lowered(graph, 132, &config, 4096);
        int busy = 0;
        for (int q = 0; q < p->queue_count; q++)
            busy += p->queues[q].tape_bytes > 0;
        ck_assert_int_eq(busy, config.exchange == MGL_EXCHANGE_FLAGS ? 128 : 132);
        mgl_program_free(p);
    }
    mgl_graph_free(graph);
}
END_TEST

/* The queues with attention: the first, the number that also have a tape, and the number with only
 * attention. */
struct attending {
    int first, beside, alone;
};

static struct attending who_attends(const mgl_program *p)
{
    struct attending found = {-1, 0, 0};
    for (int q = 0; q < p->queue_count; q++) {
        bool attends = false;
        for (int i = 0; i < p->queues[q].tasks.count; i++)
            attends |= p->tasks[p->queues[q].tasks.first + i].op == MGL_OP_ATTEND;
        if (attends && found.first < 0)
            found.first = q;
        found.beside += attends && p->queues[q].tape_bytes > 0;
        found.alone += attends && p->queues[q].tape_bytes == 0;
    }
    return found;
}

/* Attention gets separate queues if that is faster than giving them a share of the rows; otherwise
 * the last queues, which may have fewer rows. */
START_TEST(few_heads_have_queues_of_their_own)
{
    static const struct {
        const shape *shape;
        int attend,
            head; /* by config: the first queue of attention, and how many queues the head has */
        struct attending wanted;
    } cases[] = {{&latent, 0, 0, {121, 0, 3}},
                 {&latent, 0, 131, {129, 2, 1}},
                 {&latent, 7, 0, {7, 3, 0}},
                 {&billion, 0, 0, {124, 4, 4}}};
    mgl_graph *graph = graph_of(cases[_i].shape);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.queues[MGL_STEP_ATTEND].first = cases[_i].attend;
    config.queues[MGL_STEP_HEAD].count = cases[_i].head;
    mgl_program *p = lowered(graph, 132, &config, 64);
    const struct attending found = who_attends(p);
    ck_assert_mem_eq(&found, &cases[_i].wanted, sizeof found);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Number of queues with qkv. */
static int queues_with_qkv(const mgl_program *p)
{
    int count = 0;
    for (int q = 0; q < p->queue_count; q++) {
        bool has = false;
        for (int i = 0; i < p->queues[q].tasks.count; i++)
            has |= p->tasks[p->queues[q].tasks.first + i].op == MGL_OP_NORM_LINEAR;
        count += has;
    }
    return count;
}

/* The last 8 queues attend, and 4 of them have products. They have no qkv if attention is not
 * split, or if some rows of one sequence are unsplit. But they have if a row group of qkv exceeds
 * 32 KB (of three_billion in bf16: 48 KB), if the config sets the queues, or if there is a second
 * list. The small layers of `latent` leave queues free for attention. */
START_TEST(queues_of_attention_have_no_qkv)
{
    static const struct {
        const shape *shape;
        bool quantized;
        mgl_schedule_config with; /* the values above 0 */
        int capacity, sequences, wanted;
    } cases[] = {
        {&billion, false, {.splits = 0}, 4096, 1, 124},
        {&billion, false, {.splits = 0}, 4096, 2, 128},
        {&billion, false, {.splits = 0}, 64, 1, 124},
        {&billion, false, {.splits = 1}, 4096, 2, 124},
        {&billion, false, {.splits = 1}, 4096, 1, 124},
        {&billion, false, {.unsplit = 1}, 4096, 1, 128},
        {&billion, false, {.merge = MGL_MERGE_IN_O}, 4096, 1, 128},
        {&billion, false, {.second_rows = 64}, 4096, 1, 128},
        {&billion, false, {.exchange = MGL_EXCHANGE_COUNTERS}, 4096, 1, 132},
        {&billion, false, {.queues[MGL_STEP_QKV].count = 128}, 4096, 1, 128},
        {&billion, false, {.queues[MGL_STEP_QKV].first = 2}, 4096, 1, 128},
        {&billion, false, {.queues[MGL_STEP_ATTEND].first = 100}, 64, 1, 128},
        {&three_billion, false, {.splits = 0}, 4096, 1, 128},
        {&three_billion, true, {.splits = 0}, 4096, 1, 124},
        {&latent, false, {.splits = 0}, 64, 2, 120},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_graph *graph = graph_of(cases[i].shape);
        const mgl_schedule_config *with = &cases[i].with;
        mgl_schedule_config config = preset();
        config.exchange = with->exchange ? with->exchange : MGL_EXCHANGE_FLAGS;
        config.splits = with->splits;
        config.unsplit = with->unsplit;
        config.merge = with->merge;
        config.second_rows = with->second_rows;
        config.rows = with->second_rows ? 1 : config.rows;
        memcpy(config.queues, with->queues, sizeof config.queues);
        for (int t = 0; t < graph->tensor_count && cases[i].quantized; t++)
            if (graph->tensors[t].rank == 2)
                graph->tensors[t].quantized = (mgl_weight_format){.code = MGL_CODE_INT8,
                                                                  .scales = MGL_F32,
                                                                  .group = MGL_GROUP_ALL,
                                                                  .group_rows = 1};
        mgl_program *p = lowered_for(cases[i].sequences, graph, 132, &config, cases[i].capacity);
        ck_assert_msg(queues_with_qkv(p) == cases[i].wanted, "case %zu: %d", i, queues_with_qkv(p));
        mgl_program_free(p);
        mgl_graph_free(graph);
    }
}
END_TEST

/* The queues that merge splits in a layer: the first, the last, the heads of the first task, and
 * whether one of them has other tasks of the layer except clears. */
struct merging {
    int first, last, heads;
    bool beside;
};

/* Whether the task is one of a layer's other tasks. In programs with merges, tasks of attend have
 * the unsplit rows, and do not count. */
static bool is_of_layer(const mgl_program *p, int task)
{
    const mgl_op op = p->tasks[task].op;
    return op != MGL_OP_ATTEND && op != MGL_OP_ENTER && op != MGL_OP_MERGE && op != MGL_OP_CLEAR &&
           op != MGL_OP_HEAD && op != MGL_OP_EMBED && op != MGL_OP_SAMPLE && op != MGL_OP_DRAW;
}

static struct merging who_merges(const mgl_program *p)
{
    struct merging found = {-1, -1, 0, false};
    for (int q = 0; q < p->queue_count; q++) {
        bool merges = false, others = false;
        for (int i = 0; i < p->queues[q].tasks.count; i++) {
            const int task = p->queues[q].tasks.first + i;
            others |= is_of_layer(p, task);
            if (p->tasks[task].op != MGL_OP_MERGE)
                continue;
            merges = true;
            const mgl_range *heads =
                &mgl_task_operand(p, &p->tasks[task], MGL_OPERAND(merge, part))->ranges[2];
            if (found.first < 0)
                found = (struct merging){q, q, (int)(heads->hi - heads->lo), false};
        }
        if (merges) {
            found.last = q;
            found.beside |= others;
        }
    }
    return found;
}

/* Merges get queues without other tasks in the layer if these suffice for two blocks of dimensions
 * per warp. Otherwise merges are on attention's queues: with heads of 128 dimensions, with one
 * queue too few, for several sequences, and if the config names attention's queues. */
START_TEST(merges_have_queues_of_their_own)
{
    static const struct {
        const shape *shape;
        int sequences, queues, attend; /* by config: the first queue of attention */
        struct merging wanted;
    } cases[] = {{&billion, 1, 132, 0, {128, 131, 8, false}},
                 {&latent, 1, 132, 0, {123, 131, 1, false}},
                 {&billion, 1, 131, 0, {0, 112, 4, true}},
                 {&billion, 1, 128, 0, {0, 112, 4, true}},
                 {&billion, 2, 132, 0, {0, 112, 4, true}},
                 {&billion, 1, 132, 4, {4, 116, 4, true}},
                 {&three_billion, 1, 132, 0, {0, 117, 2, true}},
                 {&eight_billion, 1, 132, 0, {0, 120, 2, true}}};
    mgl_graph *graph = graph_of(cases[_i].shape);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.queues[MGL_STEP_ATTEND].first = cases[_i].attend;
    mgl_program *p = lowered_for(cases[_i].sequences, graph, cases[_i].queues, &config, 4096);
    const struct merging found = who_merges(p), *wanted = &cases[_i].wanted;
    ck_assert_int_eq(found.first, wanted->first);
    ck_assert_int_eq(found.last, wanted->last);
    ck_assert_int_eq(found.heads, wanted->heads);
    ck_assert_int_eq(found.beside, wanted->beside);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Kinds of tasks of a queue: residual stream, gate and up, qkv, attention. */
enum { RESIDUAL = 1, FFN = 2, QKV = 4, ATTENTION = 8 };

static unsigned kinds_of(const mgl_program *p, int queue)
{
    unsigned kinds = 0;
    for (int i = 0; i < p->queues[queue].tasks.count; i++)
        switch (p->tasks[p->queues[queue].tasks.first + i].op) {
        case MGL_OP_LINEAR_ADD:
            kinds |= RESIDUAL;
            break;
        case MGL_OP_NORM_SWIGLU:
            kinds |= FFN;
            break;
        case MGL_OP_NORM_LINEAR:
            kinds |= QKV;
            break;
        case MGL_OP_ATTEND:
        case MGL_OP_ATTEND_PAST:
        case MGL_OP_ATTEND_TAIL:
            kinds |= ATTENTION;
            break;
        default:
            break;
        }
    return kinds;
}

/* With small layers, queues specialize: some have the residual stream, the others gate and up, and
 * some of those qkv. Attention splits are beside qkv. For a batch, a small ring, few queues, or a
 * config that names queues, all queues do everything. */
START_TEST(small_layers_have_queues_of_each_role)
{
    static const unsigned roles[4] = {RESIDUAL, FFN, FFN | QKV, ATTENTION};
    static const struct {
        const shape *shape;
        int sequences, capacity, queues;
        int qkv, ring;  /* by config: queues of qkv, pages of the ring */
        int of_each[4]; /* queues of each role */
    } cases[] = {{&latent, 1, 64, 132, 0, 0, {18, 66, 30, 3}},
                 {&latent, 1, 64, 256, 0, 0, {18, 66, 30, 3}},
                 {&latent, 1, 64, 132, 120, 0, {0}},
                 {&latent, 1, 64, 132, 0, 8, {0}}, /* 131,072 bytes per queue; o and down have
                                                      135,168 */
                 {&latent, 1, 4096, 132, 0, 0, {18, 34, 30, 7}}, /* 32 more have a split, 9 merge */
                 {&latent, 2, 64, 132, 0, 0, {0}},
                 {&latent, 1, 64, 66, 0, 0, {0}},
                 {&latent, 1, 64, 16, 0, 0, {0}},
                 {&billion, 1, 64, 132, 0, 0, {0}}};
    mgl_graph *graph = graph_of(cases[_i].shape);
    mgl_schedule_config config = preset();
    int of_each[4] = {0};
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.queues[MGL_STEP_QKV].count = cases[_i].qkv;
    config.ring_pages = cases[_i].ring;
    mgl_program *p =
        lowered_for(cases[_i].sequences, graph, cases[_i].queues, &config, cases[_i].capacity);
    for (int q = 0; q < p->queue_count; q++)
        for (int role = 0; role < 4; role++)
            of_each[role] += kinds_of(p, q) == roles[role];
    if (cases[_i].of_each[0] > 0)
        ck_assert_mem_eq(of_each, cases[_i].of_each, sizeof of_each);
    else
        ck_assert_int_eq(of_each[0], 0);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

static mgl_dtype dtype_of(const mgl_program *p, const char *buffer)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (!strcmp(p->buffers[i].name, buffer))
            return p->buffers[i].dtype;
    ck_abort_msg("there is no buffer %s", buffer);
}

/* Each level of exchange_precision exchanges one more kind of value in 16 bits; q, k and v stay
 * f32. */
START_TEST(exchange_precision_is_what_is_exchanged_in_16_bits)
{
    static const char *const from_level[][2] = {{"l0.h", NULL}, {"l0.att", NULL}, {"l0.x", "l0.y"}};
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.exchange_precision = _i;
    mgl_program *p = lowered(graph, 4, &config, 32);
    for (int level = 1; level <= 3; level++)
        for (int k = 0; k < 2 && from_level[level - 1][k]; k++)
            ck_assert_int_eq(dtype_of(p, from_level[level - 1][k]),
                             config.exchange_precision >= level ? MGL_BF16 : MGL_F32);
    ck_assert_int_eq(dtype_of(p, "x"), config.exchange_precision >= 3 ? MGL_BF16 : MGL_F32);
    ck_assert_int_eq(dtype_of(p, "l0.qkv"), MGL_F32);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(with_flags_the_ring_takes_what_is_there)
{
    /* page bytes; pages with counters, and with flags, in (227 - 24 - 16) KB */
    static const int wanted[][3] = {{16384, 8, 11}, {8192, 8, 23}, {2048, 8, 64}};
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    for (int i = 0; i < 3; i++)
        for (config.exchange = 1; config.exchange <= 2; config.exchange++) {
            config.page_bytes = wanted[i][0];
            mgl_program *p = lowered(graph, 4, &config, 32);
            ck_assert_int_eq(p->exec.ring_pages, wanted[i][config.exchange]);
            mgl_program_free(p);
        }
    mgl_graph_free(graph);
}
END_TEST

/* exchange, splits and bytes of the config; expected bytes in flight while an edge is waited for */
static const struct {
    int exchange, splits, asked, pending_bytes;
} waiting[] = {
    {MGL_EXCHANGE_FLAGS, 2, 0, 49152},     {MGL_EXCHANGE_FLAGS, 1, 0, 32768},
    {MGL_EXCHANGE_COUNTERS, 2, 0, 32768},  {MGL_EXCHANGE_COUNTERS, 1, 0, 32768},
    {MGL_EXCHANGE_FLAGS, 2, 4096, 4096},   {MGL_EXCHANGE_FLAGS, 2, 32768, 32768},
    {MGL_EXCHANGE_FLAGS, 1, 49152, 49152}, {MGL_EXCHANGE_COUNTERS, 2, 65536, 65536},
};

START_TEST(splits_have_more_on_its_way_while_an_edge_is_waited_for)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    config.exchange = waiting[_i].exchange;
    config.splits = waiting[_i].splits;
    config.pending_bytes = waiting[_i].asked;
    mgl_program *p = lowered(graph, 4, &config, 32);
    ck_assert_int_eq(p->exec.pending_bytes, waiting[_i].pending_bytes);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* The number of splits that lowering chooses: some for 4,096 positions, none for 64. */
START_TEST(splits_that_are_chosen_have_more_on_its_way_too)
{
    mgl_graph *graph = graph_of(&billion);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    for (int capacity = 64; capacity <= 4096; capacity += 4032) {
        mgl_program *p = lowered_for(1, graph, 132, &config, capacity);
        ck_assert_int_eq(p->exec.pending_bytes, capacity == 64 ? 32768 : 49152);
        mgl_program_free(p);
    }
    mgl_graph_free(graph);
}
END_TEST

/* exchange, sequences; expected rows and stage bytes. The ffn's values of a row of the 1B model
 * take 16 KB, but for 4 to 8 rows, 18 of 32 parts are in registers. */
static const struct {
    int exchange, sequences, rows, stage_bytes;
} rooms[] = {
    {MGL_EXCHANGE_FLAGS, 1, 1, 16384},       {MGL_EXCHANGE_FLAGS, 3, 3, 3 * 16384},
    {MGL_EXCHANGE_FLAGS, 5, 8, 14 * 4096},   {MGL_EXCHANGE_FLAGS, 8, 8, 14 * 4096},
    {MGL_EXCHANGE_FLAGS, 16, 16, 8 * 16384}, {MGL_EXCHANGE_COUNTERS, 1, 16, 49152},
};

START_TEST(with_flags_rows_have_room_in_the_stage)
{
    mgl_graph *graph = graph_of(&billion);
    mgl_schedule_config config = preset();
    mgl_target target = target_of("sm_90a:132");
    mgl_lower_options options = {
        .dtype = MGL_BF16, .capacity = 1024, .sequences = rooms[_i].sequences};
    mgl_program *p = NULL;
    mgl_error err = {0};
    config.exchange = rooms[_i].exchange;
    if (rooms[_i].sequences > MGL_BATCH_ROWS) /* else there is a second list */
        config.rows = rooms[_i].sequences;
    mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq(p->limits.rows, rooms[_i].rows);
    ck_assert_int_eq(p->exec.stage_bytes, rooms[_i].stage_bytes);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* The default exchange: target, dtype, hidden, first queue of o. */
static const struct {
    const char *target;
    mgl_dtype dtype;
    int hidden, first;
    bool flags;
} automatic[] = {
    {"sm_90a:4", MGL_BF16, 64, 0, true},  {"sm_80:4", MGL_F16, 64, 0, true},
    {"sm_90a:4", MGL_F32, 64, 0, false},  {"cpu:4", MGL_BF16, 64, 0, false},
    {"sm_90a:4", MGL_BF16, 68, 0, false}, {"sm_90a:4", MGL_BF16, 64, 1, false},
    {"sm_120a:1", MGL_BF16, 64, 0, true},
};

START_TEST(flags_where_they_can_be)
{
    shape s = even;
    s.geometry.hidden = automatic[_i].hidden;
    mgl_graph *graph = graph_of(&s);
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.queues[MGL_STEP_O].first = automatic[_i].first;
    mgl_target target = target_of(automatic[_i].target);
    mgl_lower_options options = {.dtype = automatic[_i].dtype, .capacity = 32, .sequences = 1};
    mgl_program *p = NULL;
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &p, NULL), MGL_OK);
    ck_assert_int_eq(has_flags(p), automatic[_i].flags);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* A shape in bf16, the first queue of `o`, and the error message. */
static const struct {
    mgl_geometry geometry;
    int first;
    const char *says;
} no_flags[] = {
    {{68, 1, 4, 2, 16, 96, 41, 1e-5F}, 0, "flags need hidden to be a multiple of 8 in bf16, and "},
    {{64, 1, 4, 2, 16, 92, 41, 1e-5F}, 0, "ffn to be a multiple of 8 in bf16, and it is 92"},
    {{64, 1, 1, 1, 12, 96, 41, 1e-5F}, 0, "heads / kv_heads * head_dim to be a multiple of 8 in"},
    {{64, 1, 4, 1, 6, 96, 41, 1e-5F}, 0, "flags need head_dim to be a multiple of 4"},
    {{64, 1, 4, 2, 16, 96, 41, 1e-5F}, 1, "need the same queues, not [1, 4) and [0, 4)"},
};

START_TEST(flags_that_cannot_be_are_rejected)
{
    shape s = {no_flags[_i].geometry, true};
    mgl_graph *graph = graph_of(&s);
    mgl_schedule_config config = preset();
    mgl_target target = target_of("sm_90a:4");
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 32, .sequences = 1};
    mgl_program *p = NULL;
    mgl_error err = {0};
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.queues[MGL_STEP_O].first = no_flags[_i].first;
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &p, &err),
                     MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "exchange");
    ck_assert_msg(strstr(err.message, no_flags[_i].says) != NULL, "%s", err.message);
    mgl_graph_free(graph);
}
END_TEST

/* On a GPU, a second list with more rows than the first list's maximum exchanges gamma-scaled
 * values, or is rejected: target, dtype, the knob, the ffn's values; the message, or NULL. */
static const struct {
    const char *target;
    mgl_dtype dtype;
    int second_rows, gamma_scaled, ffn;
    const char *says;
} lists[] = {
    {"sm_90a:4", MGL_BF16, 128, 0, 128, NULL},
    {"sm_90a:4", MGL_BF16, 17, MGL_GAMMA_YES, 128, NULL},
    {"sm_90a:4", MGL_BF16, 17, MGL_GAMMA_NO, 128, "is 17: more than 16 rows on a GPU"},
    {"sm_80:4", MGL_BF16, 40, 0, 128, "values; gamma-scaled values need a GPU of sm_90 or newer"},
    {"sm_90a:4", MGL_F16, 40, 0, 128, "values; on a GPU gamma-scaled values are bf16"},
    {"sm_90a:4", MGL_F32, 40, 0, 128, "values; on a GPU gamma-scaled values are bf16"},
    {"sm_90a:4", MGL_BF16, 40, 0, 96, "values; on a GPU gamma-scaled values need hidden, heads x"},
};

START_TEST(many_rows_of_a_gpu_are_gamma_scaled)
{
    shape s = {{64, 1, 4, 2, 16, lists[_i].ffn, 41, 1e-5F}, true};
    mgl_graph *graph = graph_of(&s);
    mgl_schedule_config config = preset();
    mgl_target target = target_of(lists[_i].target);
    mgl_lower_options options = {.dtype = lists[_i].dtype, .capacity = 32, .sequences = 17};
    mgl_program *p = NULL;
    mgl_error err = {0};
    config.second_rows = lists[_i].second_rows;
    config.gamma_scaled = lists[_i].gamma_scaled;
    mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    if (lists[_i].says) {
        ck_assert_int_eq(status, MGL_BAD_INPUT);
        ck_assert_str_eq(err.where, "second_rows");
        ck_assert_msg(strstr(err.message, lists[_i].says) != NULL, "%s", err.message);
        if (!lists[_i].gamma_scaled) { /* the advice would not help */
            config.second_rows = 0;
            mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
            ck_assert_str_eq(err.where, "sequences");
            ck_assert_msg(strstr(err.message, lists[_i].says) != NULL, "%s", err.message);
        }
    } else {
        ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
        ck_assert_int_eq(p->second->limits.rows, lists[_i].second_rows);
        for (int i = 0; i < p->second->task_count; i++)
            ck_assert_int_ne(mgl_op_get(p->second->tasks[i].op)->family, MGL_FAMILY_PRODUCT);
    }
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Checks the rows of the first list, and of the second, if there is one; few < 0: lowering is
 * rejected. */
static void check_lists(const shape *of, const char *target_name, const mgl_lower_options *options,
                        const mgl_schedule_config *config, int first_rows, int second_rows)
{
    mgl_graph *graph = graph_of(of);
    mgl_target target = target_of(target_name);
    mgl_program *p = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_lower(graph, &target, options, config, &p, &err);
    ck_assert_msg(status == (first_rows < 0 ? MGL_BAD_INPUT : MGL_OK), "%s: %s", err.where,
                  err.message);
    if (p) {
        ck_assert_int_eq(p->limits.rows, first_rows);
        ck_assert_int_eq(p->limits.second_rows, second_rows);
        for (int i = 0; i < p->task_count && second_rows > 0; i++)
            if (mgl_op_get(p->tasks[i].op)->family == MGL_FAMILY_PRODUCT)
                ck_assert_int_ne(p->tasks[i].variant, MGL_VARIANT_BY_ROWS);
    }
    mgl_program_free(p);
    mgl_graph_free(graph);
}

/* More sequences than the batch variant supports get a second list by default, if gamma-scaled
 * values are possible: target, dtype, sequences, rows and pages of the config, the ffn's values,
 * and the rows of both lists; -1: rejected. */
static const struct {
    const char *target;
    mgl_dtype dtype;
    int sequences, rows, page_bytes, ffn;
    int first_rows, second_rows;
} unasked[] = {
    {"sm_90a:4", MGL_BF16, 8, 0, 16384, 128, 16, 0},
    {"sm_90a:4", MGL_BF16, 9, 0, 16384, 128, 8, 64},
    {"sm_90a:4", MGL_BF16, 64, 0, 16384, 128, 8, 64},
    {"sm_90a:4", MGL_BF16, 9, 12, 16384, 128, 12, 0}, /* the config sets the rows */
    {"sm_90a:4", MGL_BF16, 16, 0, 512, 128, 16, 0},   /* no panel variant has this page size, */
    {"sm_90a:4", MGL_BF16, 17, 0, 512, 128, -1, 0},   /* so no panel variant fits the list */
    {"sm_90a:4", MGL_BF16, 16, 0, 16384, 96, 16, 0},  /* ffn is not a multiple of a page, */
    {"sm_90a:4", MGL_F32, 16, 0, 16384, 128, 16, 0},  /* these dtypes have no gamma-scaled
                                                         values, */
    {"sm_90a:4", MGL_F16, 16, 0, 16384, 128, 16, 0},
    {"sm_80:4", MGL_BF16, 16, 0, 16384, 128, 16, 0}, /* the target has no bulk copies, */
    {"cpu:4", MGL_BF16, 16, 0, 16384, 128, 16, 0},   /* and a CPU gains nothing from it */
    {"sm_80:4", MGL_BF16, 17, 0, 16384, 128, -1, 0},
};

START_TEST(many_sequences_have_a_second_list_unasked)
{
    shape s = {{64, 1, 4, 2, 16, unasked[_i].ffn, 41, 1e-5F}, true};
    mgl_schedule_config config = preset();
    mgl_lower_options options = {
        .dtype = unasked[_i].dtype, .capacity = 32, .sequences = unasked[_i].sequences};
    config.rows = unasked[_i].rows;
    config.page_bytes = unasked[_i].page_bytes;
    check_lists(&s, unasked[_i].target, &options, &config, unasked[_i].first_rows,
                unasked[_i].second_rows);
}
END_TEST

/* The same for fewer sequences of a model whose products do not all fit the batch variant: the
 * values of an 8B ffn do not fit beside the weights. The first list then has rows of a fast
 * variant. Model, target, the knobs gamma_scaled and exchange_precision, sequences, and the rows of
 * both lists. */
static const struct {
    const shape *model;
    const char *target;
    int gamma_scaled, exchange_precision, sequences;
    int first_rows, second_rows;
} slow[] = {
    {&eight_billion, "sm_90a:132", 0, 1, 2, 2, 0},
    {&eight_billion, "sm_90a:132", 0, 1, 4, 4, 0}, /* the skinny variant */
    {&eight_billion, "sm_90a:132", 0, 1, 5, 2, 64},
    {&eight_billion, "sm_90a:132", 0, 1, 8, 2, 64},
    {&eight_billion, "sm_90a:132", 0, 1, 9, 2, 64},
    {&eight_billion, "sm_90a:132", MGL_GAMMA_NO, 1, 8, 8, 0},
    {&eight_billion, "sm_80:108", 0, 1, 8, 8, 0},
    {&three_billion, "sm_90a:132", 0, 1, 8, 8, 0},
    {&three_billion, "sm_90a:132", 0, 1, 9, 8, 64},
    {&three_billion, "sm_90a:132", 0, 0, 8, 2, 64}, /* f32 takes twice the memory */
};

START_TEST(slow_rows_have_a_second_list_unasked)
{
    mgl_schedule_config config = preset();
    mgl_lower_options options = {
        .dtype = MGL_BF16, .capacity = 1024, .sequences = slow[_i].sequences};
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.rows = 0;
    config.gamma_scaled = slow[_i].gamma_scaled;
    config.exchange_precision = slow[_i].exchange_precision;
    check_lists(slow[_i].model, slow[_i].target, &options, &config, slow[_i].first_rows,
                slow[_i].second_rows);
}
END_TEST

/* A long prompt of one sequence gets a second list by default, unless the reply is so long that it
 * loses more. Model, target, dtype, rows of the config, sequences, tokens of prompt and reply
 * (below 0: the cache has this number of positions), and the rows of both lists. */
static const struct {
    const shape *model;
    const char *target;
    mgl_dtype dtype;
    int rows, sequences, prompt, reply;
    int first_rows, second_rows;
} prompts[] = {
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 0, 0, 1, 0},
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 291, 0, 1, 0},      /* 1.95 GB (1 - 1 / 32) per
                                                                    token, */
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 292, 0, 1, 128},    /* fits 2^39 bytes */
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 640, 7439, 1, 128}, /* (1 - 1 / 32) 640 tokens, */
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 640, 7440, 1, 0},   /* one in 12 */
    {&billion, "sm_90a:132", MGL_BF16, 1, 1, 640, 0, 1, 0},      /* the config sets the rows */
    {&billion, "sm_90a:132", MGL_BF16, 0, 2, 640, 0, 2, 0},
    {&billion, "sm_90a:132", MGL_F16, 0, 1, 640, 0, 1, 0}, /* without gamma-scaled values, */
    {&billion, "sm_80:108", MGL_BF16, 0, 1, 640, 0, 1, 0}, /* and the target has no bulk copies */
    {&eight_billion, "sm_90a:132", MGL_BF16, 0, 1, 40, 0, 1, 0}, /* 13.96 GB */
    {&eight_billion, "sm_90a:132", MGL_BF16, 0, 1, 41, 0, 1, 128},
    {&eight_billion, "sm_90a:132", MGL_BF16, 0, 16, 2048, 128, 2, 64},
    {&even, "sm_90a:4", MGL_BF16, 0, 1, 1 << 30, 0, 16, 0},     /* its ffn is not a multiple of a
                                                                   page */
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 2000, -291, 1, 0}, /* the cache ends earlier */
    {&billion, "sm_90a:132", MGL_BF16, 0, 1, 2000, -292, 1, 128},
};

/* A default second list never prevents a program that is possible without it: knobs; sequences,
 * prompt; rows of the first list, and of the second. */
static const struct {
    int page_bytes, ring_pages, stage_bytes, exchange;
    int sequences, prompt;
    int first_rows, second_rows;
} tight[] = {
    {32768, 5, 0, 0, 5, 0, 5, 0}, /* no memory for the table of more rows */
    {32768, 4, 0, 0, 5, 0, 2, 64},
    {16384, 10, 44032, 0, 1, 100000, 1, 0},
    {16384, 9, 44032, 0, 1, 100000, 1, 128},
    {16384, 0, 0, MGL_EXCHANGE_COUNTERS, 5, 0, 16, 0}, /* no row count is fast with this value */
    {16384, 0, 0, MGL_EXCHANGE_COUNTERS, 1, 100000, 16, 0},
    {0, 0, 0, 0, 5, 0, -1, 0},
};

START_TEST(a_list_that_has_no_room_is_not_made)
{
    const shape wide = {{4096, 1, 32, 8, 128, 14336, 1000, 1e-5F}, false};
    mgl_schedule_config config = preset();
    mgl_lower_options options = {.dtype = MGL_BF16,
                                 .capacity = 4096,
                                 .sequences = tight[_i].sequences,
                                 .prompt = tight[_i].prompt};
    config.rows = 0;
    config.exchange = tight[_i].exchange;
    config.page_bytes = tight[_i].page_bytes;
    config.ring_pages = tight[_i].ring_pages;
    config.stage_bytes = tight[_i].stage_bytes;
    check_lists(&wide, "sm_90a:132", &options, &config, tight[_i].first_rows,
                tight[_i].second_rows);
}
END_TEST

START_TEST(long_prompts_have_a_second_list_unasked)
{
    mgl_schedule_config config = preset();
    mgl_lower_options options = {.dtype = prompts[_i].dtype,
                                 .capacity = 4096,
                                 .sequences = prompts[_i].sequences,
                                 .prompt = prompts[_i].prompt,
                                 .reply = prompts[_i].reply};
    config.exchange = 0;
    config.rows = prompts[_i].rows;
    if (options.reply < 0) {
        options.capacity = -options.reply;
        options.reply = 0;
    }
    check_lists(prompts[_i].model, prompts[_i].target, &options, &config, prompts[_i].first_rows,
                prompts[_i].second_rows);
}
END_TEST

/* With more sequences than rows of the first list, its stage has memory for the rows of the batch
 * variant, and the block reserves more memory for the row table. */
START_TEST(many_sequences_leave_room_for_the_ring)
{
    mgl_graph *graph = graph_of(&billion);
    mgl_schedule_config config = preset();
    mgl_target target = target_of("sm_90a:132");
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 1024, .sequences = 64};
    mgl_program *p = NULL;
    mgl_error err = {0};
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.rows = 0;
    config.second_rows = 64;
    mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_int_eq(p->limits.rows, 8);
    /* the rest after whole pages belongs to the stage too */
    const int room = (int)target.shared_bytes - mgl_shared_reserved(64) - 14 * 4096;
    ck_assert_int_eq(p->exec.ring_pages, room / 16384);
    ck_assert_int_eq(p->exec.stage_bytes,
                     14 * 4096 + room % 16384 / MGL_STAGE_UNIT * MGL_STAGE_UNIT);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(what_the_settings_choose)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    config.rows = 5;
    config.page_bytes = 4096;
    config.ring_pages = 9;
    config.warps = 3;
    config.stage_bytes = 8192;
    mgl_program *p = lowered(graph, 3, &config, 32);
    ck_assert_int_eq(p->limits.rows, 5);
    ck_assert_int_eq(p->limits.sequences, 2);
    ck_assert_int_eq(p->limits.capacity, 32);
    ck_assert_int_eq(p->exec.page_bytes, 4096);
    ck_assert_int_eq(p->exec.ring_pages, 9);
    ck_assert_int_eq(p->exec.warps, 3);
    ck_assert_int_eq(p->exec.stage_bytes, 8192);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Default values fit into the shared memory of every architecture. */
START_TEST(the_default_ring_fits_every_target)
{
    static const char *const names[] = {"cpu:1",      "sm_80:108",   "sm_86:84",   "sm_89:128",
                                        "sm_90a:132", "sm_100a:148", "sm_120a:170"};
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    mgl_target target = target_of(names[_i]);
    mgl_lower_options options = {.dtype = MGL_F32, .capacity = 32, .sequences = 1};
    mgl_program *p = NULL;
    ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &config, &p, NULL), MGL_OK);
    int64_t bytes = (int64_t)p->exec.page_bytes * p->exec.ring_pages + p->exec.stage_bytes;
    ck_assert_int_ge(p->exec.ring_pages, 2);
    ck_assert_int_gt(p->exec.stage_bytes, 0);
    if (target.shared_bytes)
        ck_assert_int_le(bytes + MGL_SHARED_RESERVED, target.shared_bytes);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule choose");
    TCase *cases = tcase_create("choose");
    tcase_add_loop_test(cases, flags_take_queues_that_divide_the_rows, 0, 3);
    tcase_add_loop_test(cases, few_heads_have_queues_of_their_own, 0, 4);
    tcase_add_test(cases, queues_of_attention_have_no_qkv);
    tcase_add_loop_test(cases, merges_have_queues_of_their_own, 0, 8);
    tcase_add_loop_test(cases, small_layers_have_queues_of_each_role, 0, 9);
    tcase_add_loop_test(cases, exchange_precision_is_what_is_exchanged_in_16_bits, 0, 4);
    tcase_add_test(cases, with_flags_the_ring_takes_what_is_there);
    tcase_add_loop_test(cases, splits_have_more_on_its_way_while_an_edge_is_waited_for, 0,
                        (int)(sizeof waiting / sizeof *waiting));
    tcase_add_test(cases, splits_that_are_chosen_have_more_on_its_way_too);
    tcase_add_loop_test(cases, with_flags_rows_have_room_in_the_stage, 0,
                        (int)(sizeof rooms / sizeof *rooms));
    tcase_add_loop_test(cases, flags_where_they_can_be, 0,
                        (int)(sizeof automatic / sizeof *automatic));
    tcase_add_loop_test(cases, flags_that_cannot_be_are_rejected, 0,
                        (int)(sizeof no_flags / sizeof *no_flags));
    tcase_add_loop_test(cases, many_rows_of_a_gpu_are_gamma_scaled, 0,
                        (int)(sizeof lists / sizeof *lists));
    tcase_add_loop_test(cases, a_list_that_has_no_room_is_not_made, 0,
                        (int)(sizeof tight / sizeof *tight));
    tcase_add_loop_test(cases, long_prompts_have_a_second_list_unasked, 0,
                        (int)(sizeof prompts / sizeof *prompts));
    tcase_add_loop_test(cases, slow_rows_have_a_second_list_unasked, 0,
                        (int)(sizeof slow / sizeof *slow));
    tcase_add_loop_test(cases, many_sequences_have_a_second_list_unasked, 0,
                        (int)(sizeof unasked / sizeof *unasked));
    tcase_add_test(cases, many_sequences_leave_room_for_the_ring);
    tcase_add_test(cases, what_the_settings_choose);
    tcase_add_loop_test(cases, the_default_ring_fits_every_target, 0, 7);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
