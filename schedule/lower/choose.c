/*
 * The choices of lowering: all that a ScheduleConfig leaves open (0), fitted to model and target.
 *
 * Queues that divide the rows. All queues draw from one memory, so a step takes as long as the
 * largest share times the queues that have one; 128 of 132 queues that all have the same are faster
 * than 132 of which some have a row group more. With flags one number of queues is chosen for all
 * steps, since the residual stays with its owner; where layers are small, queues have roles
 * instead.
 */
#include "schedule/lower/choose.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "schedule/lower/roles.h"
#include "schedule/lower/staged.h"
#include "schedule/pages.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"

enum {
    COUNTER_RING_PAGES = 8,   /* 128 KB of landed and coming weights with the default page */
    WIDE_STAGE_BYTES = 49152, /* where a block has 160 KB of shared memory or more */
    SMALL_STAGE_BYTES = 24576,
    LEAST_STAGE_BYTES = 16384,
    LEAST_RING_PAGES = 4, /* beside a large stage */
    WHOLE_KV_BYTES =
        256 * 1024, /* of a kv head: up to here one queue reads faster than many merge */
    SPLIT_PENDING_BYTES =
        49152, /* on their way while an edge is waited for: keys and values are among them */
    FEW_SPLITS = 16,
    SPLIT_POSITIONS =
        344, /* of all sequences: with fewer, merging a split takes more than it saves */
    MOST_AUTO_SPLITS = 32,
    PROMPT_EPOCH = 4, /* steps of one row that an epoch of the most rows takes as long as */
    PROMPT_LOSS = 12  /* a second list costs at most one in so many tokens of a reply */
};

/* Bytes of weights that a prompt has to save, an eighth of a second of an H200's memory: the kernel
 * of two lists takes several times as long to compile. */
#define PROMPT_BYTES 0x1p39

int64_t mgl_row_groups(int64_t rows)
{
    return (rows + MGL_ROW_GROUP - 1) / MGL_ROW_GROUP;
}

int64_t mgl_step_groups(const mgl_geometry *m, mgl_step step)
{
    switch (step) {
    case MGL_STEP_QKV: /* of q, k and v one after the other */
        return mgl_row_groups((int64_t)m->heads * m->head_dim) +
               2 * mgl_row_groups((int64_t)m->kv_heads * m->head_dim);
    case MGL_STEP_O:
    case MGL_STEP_DOWN:
        return mgl_row_groups(m->hidden);
    case MGL_STEP_GATE_UP:
        return mgl_row_groups(m->ffn);
    case MGL_STEP_HEAD:
        return mgl_row_groups(m->vocab);
    case MGL_STEP_ATTEND:
    case MGL_STEP_COUNT:
        break;
    }
    return 0;
}

int mgl_merged_heads(const mgl_geometry *m, const mgl_exec *exec, bool flags, mgl_dtype dtype)
{
    int granule = MGL_GRANULE_BYTES / (int)mgl_dtype_size(dtype);
    int heads = exec->warps / ((m->head_dim + MGL_MERGE_DIMS - 1) / MGL_MERGE_DIMS);
    int group = m->heads / m->kv_heads;
    heads = heads < 1 ? 1 : heads < group ? heads : group;
    return flags && heads * m->head_dim % granule ? group : heads;
}

int64_t mgl_step_columns(const mgl_geometry *m, mgl_step step)
{
    switch (step) {
    case MGL_STEP_QKV:
    case MGL_STEP_HEAD:
        return m->hidden;
    case MGL_STEP_O:
        return (int64_t)m->heads * m->head_dim;
    case MGL_STEP_DOWN:
        return m->ffn;
    case MGL_STEP_GATE_UP:
        return 2 * (int64_t)m->hidden;
    case MGL_STEP_ATTEND:
    case MGL_STEP_COUNT:
        break;
    }
    return 0;
}

/* How often a step comes in an epoch. */
static int64_t step_times(const mgl_geometry *m, mgl_step step)
{
    return step == MGL_STEP_HEAD ? 1 : m->layers;
}

/* ---- queues --------------------------------------------------------------------------------- */

/* Whether what the sequences may have of keys and values is so little that one queue a kv head goes
 * through it. */
static bool is_little(const mgl_geometry *m, const mgl_lower_options *options)
{
    int64_t position = 2 * m->head_dim * (int64_t)mgl_dtype_size(options->dtype);
    return position * options->capacity * options->sequences <= WHOLE_KV_BYTES;
}

/* Whether attention may have queues of its own: it takes one a kv head, and the config names none.
 */
static bool may_stand_apart(const mgl_geometry *m, const mgl_lower_options *options,
                            const mgl_schedule_config *config)
{
    return config->queues[MGL_STEP_ATTEND].first == 0 &&
           config->queues[MGL_STEP_ATTEND].count == 0 &&
           (config->splits == 0 ? is_little(m, options) : config->splits == 1);
}

/* What an epoch takes on n queues, in weights that the memory delivers meanwhile: the largest share
 * of each step, as if all queues that have one had as much. A row group takes a queue some time
 * however few its columns are; and where attention could have queues of its own (`apart`), those
 * that do it beside the rest, while the others wait for them, are late with the next step. */
static int64_t epoch_cost(const mgl_geometry *m, int n, int all, bool apart)
{
    enum { LEAST_WEIGHTS = 800000 /* 0.35 us */, LATE_WEIGHTS = 3000000 /* 1.3 us */ };
    int64_t cost = apart && all - n < m->kv_heads ? (int64_t)m->layers * LATE_WEIGHTS : 0;
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int64_t groups = mgl_step_groups(m, (mgl_step)i), busy = groups < n ? groups : n;
        int64_t weights = MGL_ROW_GROUP * mgl_step_columns(m, (mgl_step)i) * busy;
        cost += (groups + n - 1) / n * step_times(m, (mgl_step)i) *
                (weights > LEAST_WEIGHTS ? weights : LEAST_WEIGHTS);
    }
    return cost;
}

/* The cheapest number of queues above three quarters of all; of equals the largest. */
static int choose_queues(const mgl_geometry *m, int all, bool apart)
{
    int best = all;
    for (int n = all - 1; n > all * 3 / 4 && n > 0; n--)
        if (epoch_cost(m, n, all, apart) < epoch_cost(m, best, all, apart))
            best = n;
    return best;
}

/* Gives each step its queues; those that the config leaves open are [first, first + most). */
static void deal_queues(const mgl_target *target, const mgl_schedule_config *config, int most,
                        mgl_choices *out)
{
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int first = config->queues[i].first, count = config->queues[i].count;
        int rest = target->queues - first;
        out->queues[i].first = first;
        out->queues[i].count = count ? count : rest < most ? rest : most;
    }
}

/* ---- queues of their own -------------------------------------------------------------------- */

/* Whether the config leaves open which queues do the steps of a layer. */
static bool are_open(const mgl_schedule_config *config)
{
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if (i != MGL_STEP_HEAD && (config->queues[i].first != 0 || config->queues[i].count != 0))
            return false;
    return true;
}

static void give(mgl_choices *out, mgl_step step, int64_t first, int64_t count)
{
    out->queues[step].first = (int)first;
    out->queues[step].count = (int)count;
}

/* Gives queues roles where that takes no more slots, with flags and for one sequence; whether it
 * did. */
static bool give_roles(const mgl_geometry *m, const mgl_target *target,
                       const mgl_lower_options *options, const mgl_schedule_config *config,
                       mgl_choices *out)
{
    int64_t ring = (int64_t)out->exec.ring_pages * out->exec.page_bytes;
    if (!out->flags || options->sequences > 1 || !are_open(config))
        return false;
    const mgl_roles roles = mgl_roles_choose(m, target->queues - m->kv_heads,
                                             ring / (int64_t)mgl_dtype_size(options->dtype));
    const int shared =
        mgl_roles_slots(m, out->queues[MGL_STEP_O].count, out->queues[MGL_STEP_GATE_UP].count,
                        out->queues[MGL_STEP_QKV].count);
    if (roles.slots == 0 || roles.slots > shared)
        return false;
    give(out, MGL_STEP_O, 0, roles.residual);
    give(out, MGL_STEP_DOWN, 0, roles.residual);
    give(out, MGL_STEP_GATE_UP, roles.residual, roles.ffn);
    give(out, MGL_STEP_QKV, roles.residual, roles.qkv);
    return true;
}

/* The first queue behind those of a layer's products. */
static int end_of_layer(const mgl_choices *choices)
{
    int end = 0;
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int this_end = choices->queues[i].first + choices->queues[i].count;
        if (i != MGL_STEP_ATTEND && i != MGL_STEP_HEAD && this_end > end)
            end = this_end;
    }
    return end;
}

/* The first queue behind those of all products. */
static int end_of_products(const mgl_choices *choices)
{
    const int end = end_of_layer(choices);
    const int head = choices->queues[MGL_STEP_HEAD].first + choices->queues[MGL_STEP_HEAD].count;
    return head > end ? head : end;
}

/* Attention that needs no more queues than the others leave gets the first of those: they wait for
 * it, and are then all as early. Else it gets the last queues, of which some may be left as well.
 * With fewer queues than heads it stays where it is. */
static void place_attention(const mgl_geometry *m, const mgl_target *target, mgl_choices *out)
{
    const int heads = (int)m->kv_heads, used = end_of_products(out);
    if (target->queues - used >= heads)
        give(out, MGL_STEP_ATTEND, used, heads);
    else if (target->queues >= heads)
        give(out, MGL_STEP_ATTEND, target->queues - heads, heads);
}

/* Splits of attention beside roles: queues without o and down, which wait for them, and without
 * qkv, which they wait for. */
static void place_splits(const mgl_target *target, mgl_choices *out)
{
    const int first = out->queues[MGL_STEP_QKV].first + out->queues[MGL_STEP_QKV].count;
    if (first < target->queues)
        give(out, MGL_STEP_ATTEND, first, target->queues - first);
}

/* Heads that a task merges where `queues` of them do nothing else in a layer: few enough for its
 * warps to have all at once, each up to two blocks of a head (instructions/merge/merge.cuh); 0: too
 * few queues. */
static int heads_apart(const mgl_geometry *m, const mgl_exec *exec, int queues, mgl_dtype dtype)
{
    const int granule = MGL_GRANULE_BYTES / (int)mgl_dtype_size(dtype);
    const int each = (m->head_dim + 2 * MGL_MERGE_DIMS - 1) / (2 * MGL_MERGE_DIMS); /* warps */
    if (queues < 1)
        return 0;
    int heads = (m->heads + queues - 1) / queues;
    while (heads < m->heads && heads * m->head_dim % granule)
        heads++;
    return heads * each <= exec->warps ? heads : 0;
}

/* Merges, of a result of `dtype`, go to the queues that attention has; or, for one sequence with
 * flags, to the last of those that have none of a layer's products, where there are enough of
 * these: a queue that merges is late with its share of o, and all others wait for that. Attention
 * that has more queues than tasks leaves them alone. */
static void place_merges(const mgl_geometry *m, const mgl_target *target,
                         const mgl_lower_options *options, const mgl_schedule_config *config,
                         mgl_dtype dtype, mgl_choices *out)
{
    const int all = target->queues, attends = m->kv_heads * out->splits;
    int *first = &out->queues[MGL_STEP_ATTEND].first, *count = &out->queues[MGL_STEP_ATTEND].count;
    out->merge.first = *first;
    out->merge.count = *count;
    out->merged_heads = mgl_merged_heads(m, &out->exec, out->flags, dtype);
    if (!out->flags || options->sequences > 1 || out->splits == 1 || out->merges_in_o ||
        config->queues[MGL_STEP_ATTEND].first || config->queues[MGL_STEP_ATTEND].count)
        return;
    const int apart = heads_apart(m, &out->exec, all - end_of_layer(out), dtype);
    if (apart == 0)
        return;
    out->merged_heads = apart;
    out->merge.count = (m->heads + apart - 1) / apart;
    out->merge.first = all - out->merge.count;
    if (*first + *count > out->merge.first && out->merge.first - *first >= attends)
        *count = out->merge.first - *first;
}

/* ---- flags ---------------------------------------------------------------------------------- */

/* Is each share of each exchanged vector whole granules? */
static mgl_status check_widths(const mgl_geometry *m, mgl_dtype dtype, mgl_error *err)
{
    int unit = MGL_GRANULE_BYTES / (int)mgl_dtype_size(dtype);
    int64_t group = (int64_t)m->heads / m->kv_heads * m->head_dim;
    const struct {
        const char *name;
        int64_t width;
        int unit;
    } widths[] = {
        {"hidden", m->hidden, unit},
        {"ffn", m->ffn, unit},
        {"heads / kv_heads * head_dim", group, unit},
        {"head_dim", m->head_dim, MGL_GRANULE_BYTES / 4}}; /* q, k, v and partials are f32 */
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].width % widths[i].unit)
            return mgl_fail(err, MGL_BAD_INPUT, "exchange",
                            "flags need %s to be a multiple of %d in %s, and it is %lld",
                            widths[i].name, widths[i].unit, mgl_dtype_name(dtype),
                            (long long)widths[i].width);
    return MGL_OK;
}

/* Can the program have flags, with the queues in `choices`? */
static mgl_status check_flags(const mgl_geometry *m, mgl_dtype dtype, const mgl_choices *choices,
                              mgl_error *err)
{
    int o = choices->queues[MGL_STEP_O].first, down = choices->queues[MGL_STEP_DOWN].first;
    int o_count = choices->queues[MGL_STEP_O].count;
    int down_count = choices->queues[MGL_STEP_DOWN].count;
    if (o != down || o_count != down_count)
        return mgl_fail(err, MGL_BAD_INPUT, "exchange",
                        "with flags the residual stays with its queue: `o` and `down` need the "
                        "same queues, not [%d, %d) and [%d, %d)",
                        o, o + o_count, down, down + down_count);
    return check_widths(m, dtype, err);
}

static bool is_gpu(const mgl_target *target)
{
    return !strncmp(target->arch, "sm_", 3) || !strncmp(target->arch, "compute_", 8);
}

/* Flags or counters, and the queues that go with them. */
static mgl_status choose_exchange(const mgl_graph *graph, const mgl_target *target,
                                  const mgl_lower_options *options,
                                  const mgl_schedule_config *config, mgl_choices *out,
                                  mgl_error *err)
{
    const mgl_geometry *m = &graph->geometry;
    const mgl_dtype dtype = options->dtype;
    bool automatic = config->exchange == 0, asked = config->exchange == MGL_EXCHANGE_FLAGS;
    deal_queues(target, config,
                choose_queues(m, target->queues, may_stand_apart(m, options, config)), out);
    if (asked || (automatic && is_gpu(target) && dtype != MGL_F32)) {
        mgl_status status = check_flags(m, dtype, out, asked ? err : NULL);
        out->flags = !status;
        if (out->flags || asked)
            return status;
    }
    deal_queues(target, config, target->queues, out);
    return MGL_OK;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* Splits that the positions are worth. Of a few, each has what registers hold, and kernels of one
 * row are the same for all these capacities; beyond, splits are longer and come through the ring.
 */
static int64_t useful_splits(const mgl_geometry *m, const mgl_lower_options *options, int warps)
{
    const int64_t positions = (int64_t)options->capacity * options->sequences;
    const int64_t held = MGL_KV_REGISTERS(m->head_dim, warps);
    if (options->sequences == 1 && held > 0 && positions <= FEW_SPLITS * held)
        return (positions + held - 1) / held;
    return (positions + SPLIT_POSITIONS - 1) / SPLIT_POSITIONS;
}

/* Splits of attention. One queue a kv head costs an edge less, so it is taken as long as the keys
 * and values that the sequences may have are few; beyond that, as many as they are worth, and as
 * the queues can run at once. */
static int choose_splits(const mgl_geometry *m, const mgl_lower_options *options, int warps,
                         int queues)
{
    int64_t worth = useful_splits(m, options, warps);
    int splits = queues / m->kv_heads;
    if (is_little(m, options))
        return 1;
    if (splits > worth)
        splits = (int)worth;
    if (splits > MOST_AUTO_SPLITS)
        splits = MOST_AUTO_SPLITS;
    return splits < 1 ? 1 : splits;
}

/* Positions for which one more split is used. Each split that is used is read by every task that
 * merges it: where that is o on all queues, a split has what registers hold, which takes it no
 * longer than fewer. */
static int choose_share(const mgl_geometry *m, const mgl_schedule_config *config,
                        const mgl_choices *choices)
{
    const int held = MGL_KV_REGISTERS(m->head_dim, config->warps);
    if (choices->splits == 1 || config->share > 0)
        return choices->splits == 1 ? 0 : config->share;
    return choices->merges_in_o && held > 0 ? held : 0;
}

/* Rows that the first list is laid out for: those that it is told to have, where a second list has
 * the others; else the sequences, and where these are more than it may have, as many as go the
 * batch way. */
static int rows_for(const mgl_lower_options *options, const mgl_schedule_config *config)
{
    if (config->many > 0 && config->rows > 0 && config->rows < options->sequences)
        return config->rows;
    return options->sequences <= MGL_MAX_ROWS ? options->sequences : MGL_BATCH_ROWS;
}

/* With flags as many rows as have room in the stage. */
static int choose_rows(const mgl_geometry *m, const mgl_lower_options *options,
                       const mgl_schedule_config *config, const mgl_choices *choices)
{
    const int least = rows_for(options, config);
    int rows = MGL_MAX_ROWS;
    for (int i = 0; i < MGL_STAGED_INPUTS && choices->flags; i++) {
        mgl_staged in = mgl_staged_input(m, options->dtype, config->narrow, i);
        while (rows > least && mgl_staged_bytes(&in, options->dtype, choices->exec.warps, rows) >
                                   choices->exec.stage_bytes)
            rows--;
    }
    return rows;
}

/* Room for `rows` rows of the widest input of a product, or of the widest of which they fit in
 * `most` bytes. What is left over is better spent on the ring. */
static int row_stage(const mgl_geometry *m, mgl_dtype dtype, const mgl_schedule_config *config,
                     int rows, int64_t most)
{
    int64_t bytes = LEAST_STAGE_BYTES;
    for (int i = 0; i < MGL_STAGED_INPUTS; i++) {
        mgl_staged in = mgl_staged_input(m, dtype, config->narrow, i);
        int64_t wanted = (mgl_staged_bytes(&in, dtype, config->warps, rows) + 1023) / 1024 * 1024;
        if (wanted > bytes && wanted <= most)
            bytes = wanted;
    }
    return (int)bytes;
}

/* The stream's shape: what the config leaves open is fitted to the target's shared memory. */
static mgl_exec choose_exec(const mgl_geometry *m, const mgl_target *target, mgl_dtype dtype,
                            const mgl_schedule_config *config, int rows, int splits, bool flags)
{
    mgl_exec exec = {config->page_bytes,    config->ring_pages,   config->warps,
                     config->stage_bytes,   config->flight_bytes, config->pending_bytes,
                     config->prefetch_bytes};
    int64_t shared = target->shared_bytes, reserved = mgl_shared_reserved(config->many);
    if (exec.stage_bytes == 0 && flags) {
        int64_t most = shared == 0
                           ? WIDE_STAGE_BYTES
                           : shared - reserved - LEAST_RING_PAGES * (int64_t)exec.page_bytes;
        exec.stage_bytes = row_stage(m, dtype, config, rows,
                                     most < MGL_MAX_STAGE_BYTES ? most : MGL_MAX_STAGE_BYTES);
    }
    if (exec.stage_bytes == 0)
        exec.stage_bytes =
            shared == 0 || shared >= 160 * 1024 ? WIDE_STAGE_BYTES : SMALL_STAGE_BYTES;
    if (exec.ring_pages == 0) {
        int most = flags ? MGL_MAX_PAGES : COUNTER_RING_PAGES;
        int64_t fit = (shared - reserved - exec.stage_bytes) / exec.page_bytes;
        exec.ring_pages = shared == 0 || fit > most ? most : (int)fit;
        if (exec.ring_pages < 2)
            exec.ring_pages = 2;
    }
    if (exec.pending_bytes == 0)
        exec.pending_bytes = flags && splits > 1 ? SPLIT_PENDING_BYTES : MGL_PENDING_BYTES;
    return exec;
}

/* Whether every product of a list that is laid out for so many rows goes the skinny or the batch
 * way with as many: what is left is several times as slow. */
static bool has_fast_rows(const mgl_geometry *m, const mgl_target *target, mgl_dtype dtype,
                          const mgl_schedule_config *config, int rows)
{
    mgl_dimensions d;
    mgl_program list = {.target = *target,
                        .geometry = *m,
                        .exec = choose_exec(m, target, dtype, config, rows, 1, true)};
    mgl_program_set_dtype(&list, dtype);
    mgl_dimensions_of_program(&list, &d);
    d.of[MGL_DIMENSION_ROWS] = rows;
    for (int i = 0; i < MGL_STAGED_INPUTS; i++) {
        const mgl_staged in = mgl_staged_input(m, dtype, config->narrow, i);
        mgl_dimensions_of_input(&list, in.columns, in.parts, &d);
        d.of[MGL_DIMENSION_FEWEST] = 1;
        if (mgl_variant_fits(MGL_VARIANT_SKINNY, &d))
            continue;
        d.of[MGL_DIMENSION_FEWEST] = MGL_BATCH_LEAST;
        if (rows < MGL_BATCH_LEAST || in.wide != (in.parts == 2) ||
            !mgl_variant_fits(MGL_VARIANT_BATCH, &d))
            return false;
    }
    return true;
}

/* Whether the second list exchanges weighed values: where it is told to, and in epochs of more rows
 * than the first list may have, which a GPU takes no other way, and which on a CPU are read in
 * fewer bytes. */
static bool is_gamma_scaled(const mgl_schedule_config *config, mgl_dtype dtype, bool gpu)
{
    if (config->many == 0 || config->weighed != 0)
        return config->many > 0 && config->weighed == MGL_GAMMA_YES;
    return config->many > MGL_MAX_ROWS && (gpu || dtype == MGL_BF16);
}

/* Can a GPU have the weighed values that the config asks for, or that so many rows take? Its
 * products take them in pages of bf16 (ops.def says why not of f16), which bulk copies bring. */
static mgl_status check_gamma_scaled(const mgl_geometry *m, const mgl_target *target,
                                     mgl_dtype dtype, const mgl_schedule_config *config,
                                     mgl_error *err)
{
    const int64_t attended = (int64_t)m->heads * m->head_dim;
    const bool asked = config->weighed == MGL_GAMMA_YES;
    const char *where = asked ? "weighed" : "many";
    const char *lead = asked ? "" : "more than 16 rows on a GPU exchange weighed values; ";
    _Static_assert(MGL_MAX_ROWS == 16, "the lead says how many rows");
    if (mgl_arch_number(target->arch) < mgl_variant_get(MGL_VARIANT_PANELS)->arch)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "%sweighed values need a GPU of sm_%d or newer, and the target is %s", lead,
                        mgl_variant_get(MGL_VARIANT_PANELS)->arch, target->arch);
    if (dtype != MGL_BF16)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "%son a GPU weighed values are bf16, and here they would be %s", lead,
                        mgl_dtype_name(dtype));
    if (m->hidden % MGL_PAGE_COLUMNS || attended % MGL_PAGE_COLUMNS || m->ffn % MGL_PAGE_COLUMNS)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "%son a GPU weighed values need hidden, heads x head_dim and ffn to be "
                        "multiples of %d, and they are %d, %lld and %d",
                        lead, MGL_PAGE_COLUMNS, m->hidden, (long long)attended, m->ffn);
    return MGL_OK;
}

/* A number of sequences that there are no rows for: `most` of one list or two. */
static mgl_status fail_sequences(const mgl_graph *graph, const mgl_target *target,
                                 const mgl_lower_options *options,
                                 const mgl_schedule_config *config, int most, mgl_error *err)
{
    char advice[400] = "";
    mgl_error why;
    if (options->sequences > MGL_MAX_ROWS && is_gpu(target) &&
        check_gamma_scaled(&graph->geometry, target, options->dtype, config, &why))
        snprintf(advice, sizeof advice, "; %.380s", why.message);
    else if (options->sequences > MGL_MAX_ROWS)
        snprintf(advice, sizeof advice, "; with the knob `many` at as many it has up to %d",
                 MGL_MAX_SEQUENCES);
    return mgl_fail(err, MGL_BAD_INPUT, "sequences",
                    "is %d; a launch has %s%d, as many as the config has rows%s",
                    options->sequences, mgl_up_to((size_t)most), most, advice);
}

/* The most sequences that the rows of the config's one list or two allow. */
static int most_sequences(const mgl_schedule_config *config)
{
    const int most = config->rows > 0 ? config->rows : MGL_MAX_ROWS;
    if (config->many <= most)
        return most;
    return config->many < MGL_MAX_SEQUENCES ? config->many : MGL_MAX_SEQUENCES;
}

static mgl_status check_config(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *config,
                               mgl_error *err)
{
    if (target->queues < 1 || target->queues > MGL_MAX_QUEUES)
        return mgl_fail(err, MGL_BAD_INPUT, "target", "%d queues: a program has 1 to %d",
                        target->queues, MGL_MAX_QUEUES);
    if (options->capacity < 1 || options->capacity > graph->max_positions ||
        options->capacity > MGL_MAX_CAPACITY)
        return mgl_fail(err, MGL_BAD_INPUT, "capacity", "is %d; this model has %s%d positions (%s)",
                        options->capacity, mgl_up_to((size_t)graph->max_positions),
                        graph->max_positions, mgl_graph_limit_key(graph));
    if (config->page_bytes < MGL_BLOCK_BYTES || config->page_bytes % MGL_BLOCK_BYTES)
        return mgl_fail(err, MGL_BAD_INPUT, "page_bytes", "%d: a multiple of %d is needed",
                        config->page_bytes, MGL_BLOCK_BYTES);
    if (config->many > MGL_MAX_ROWS && config->weighed == MGL_GAMMA_NO && is_gpu(target))
        return mgl_fail(err, MGL_BAD_INPUT, "many",
                        "is %d: more than %d rows on a GPU exchange weighed values, and `weighed` "
                        "is %d",
                        config->many, MGL_MAX_ROWS, MGL_GAMMA_NO);
    if (is_gpu(target) && is_gamma_scaled(config, options->dtype, true)) {
        mgl_status status =
            check_gamma_scaled(&graph->geometry, target, options->dtype, config, err);
        if (status)
            return status;
    }
    const int most = most_sequences(config);
    if (options->sequences < 1 || options->sequences > most)
        return fail_sequences(graph, target, options, config, most, err);
    for (int i = 0; i < MGL_STEP_COUNT; i++) {
        int first = config->queues[i].first, count = config->queues[i].count;
        if (first < 0 || count < 0 || first >= target->queues || count > target->queues - first)
            return mgl_fail(err, MGL_BAD_INPUT, mgl_step_name((mgl_step)i),
                            "queues [%d, %d) are not within the target's %d queues", first,
                            first + count, target->queues);
    }
    return MGL_OK;
}

/* What the ring leaves of shared memory, where the config leaves that open: trays of activations,
 * which panels wait for more than for weights, are in the stage too. */
static int spare_stage(const mgl_target *target, const mgl_schedule_config *config,
                       const mgl_exec *exec)
{
    const int64_t spare = target->shared_bytes - mgl_shared_reserved(config->many) -
                          exec->stage_bytes - (int64_t)exec->ring_pages * exec->page_bytes;
    const int64_t most = MGL_MAX_STAGE_BYTES - exec->stage_bytes;
    if (config->stage_bytes > 0 || spare <= 0)
        return 0;
    return (int)((spare < most ? spare : most) / MGL_STAGE_UNIT * MGL_STAGE_UNIT);
}

/* The second list is for epochs that the first has too few rows for. */
static mgl_status choose_second(const mgl_target *target, mgl_dtype dtype,
                                const mgl_schedule_config *config, mgl_choices *out, mgl_error *err)
{
    out->many = config->many;
    out->weighed = is_gamma_scaled(config, dtype, is_gpu(target));
    const bool panels = out->many > 0 && out->weighed && is_gpu(target);
    out->warpgroups = panels ? config->warpgroups : MGL_WARPGROUPS_NO;
    if (config->warpgroups == MGL_WARPGROUPS_YES && !panels)
        return mgl_fail(err, MGL_BAD_INPUT, "warpgroups",
                        "multiply weighed values of a second list on a GPU, and here are none: see "
                        "the knobs many and weighed");
    if (panels)
        out->exec.stage_bytes += spare_stage(target, config, &out->exec);
    if (out->many == 0 || out->many > out->rows)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, "many",
                    "is %d; the second list needs more rows than the first, which has %d",
                    out->many, out->rows);
}

/* Whether lowering may give the program a second list: the config neither asks for one nor rules it
 * out, it can be lowered for one sequence, and weighed values may be had. */
static bool may_have_second(const mgl_graph *graph, const mgl_target *target,
                            const mgl_lower_options *options, const mgl_schedule_config *config)
{
    mgl_lower_options one = *options;
    one.sequences = 1;
    return config->many == 0 && config->rows == 0 && config->weighed != MGL_GAMMA_NO &&
           is_gpu(target) && !check_config(graph, target, &one, config, NULL) &&
           !check_gamma_scaled(&graph->geometry, target, options->dtype, config, NULL);
}

/* Whether queues exchange flagged words, without which no row of the first list is fast. */
static bool has_flags(const mgl_graph *graph, const mgl_target *target,
                      const mgl_lower_options *options, const mgl_schedule_config *config)
{
    mgl_choices choices = {0};
    return !choose_exchange(graph, target, options, config, &choices, NULL) && choices.flags;
}

/* Whether a block has room for what the config says of ring and stage, beside more rows. */
static bool has_room(const mgl_geometry *m, const mgl_target *target,
                     const mgl_lower_options *options, const mgl_schedule_config *config)
{
    const mgl_exec exec =
        choose_exec(m, target, options->dtype, config, rows_for(options, config), 1, true);
    return target->shared_bytes == 0 || mgl_shared_reserved(config->many) + exec.stage_bytes +
                                                (int64_t)exec.ring_pages * exec.page_bytes <=
                                            target->shared_bytes;
}

/* A list for replies: whose first list is as long as all of its rows are fast. */
static void fill_sequences(const mgl_geometry *m, const mgl_target *target,
                           const mgl_lower_options *options, mgl_schedule_config *config)
{
    config->many = MGL_MAX_SEQUENCES;
    config->rows = MGL_BATCH_LEAST - 1;
    if (options->sequences > MGL_BATCH_ROWS &&
        has_fast_rows(m, target, options->dtype, config, MGL_BATCH_ROWS))
        config->rows = MGL_BATCH_ROWS;
    else if (!has_fast_rows(m, target, options->dtype, config, config->rows))
        config->rows = 1;
}

/* Values of all matrices that an epoch streams whose logits nobody wants. */
static int64_t streamed_values(const mgl_geometry *m)
{
    int64_t layer = 0;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if (i != MGL_STEP_HEAD)
            layer += mgl_step_groups(m, (mgl_step)i) * mgl_step_columns(m, (mgl_step)i);
    return layer * MGL_ROW_GROUP * m->layers;
}

/* Whether a list of its own saves the prompt of one sequence time that is worth a kernel, and more
 * than the reply loses by it. One list reads the prompt in epochs of few rows, each of which takes
 * about as long as a token of the reply; PROMPT_EPOCH such times go by in an epoch of the most. */
static bool is_long_prompt(const mgl_geometry *m, const mgl_target *target,
                           const mgl_lower_options *options, const mgl_schedule_config *config)
{
    const int prompt = options->prompt < options->capacity ? options->prompt : options->capacity;
    if (options->sequences != 1 || prompt <= 0)
        return false;
    const mgl_choices single = {.flags = true,
                                .exec = choose_exec(m, target, options->dtype, config, 1, 1, true)};
    const double few = (double)prompt / choose_rows(m, options, config, &single),
                 many = (double)prompt * PROMPT_EPOCH / MGL_MAX_SECOND_ROWS,
                 bytes = (double)streamed_values(m) * (double)mgl_dtype_size(options->dtype);
    return (few - many) * bytes >= PROMPT_BYTES &&
           few - many > (double)options->reply / PROMPT_LOSS;
}

void mgl_schedule_fill_second(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, mgl_schedule_config *config)
{
    const mgl_geometry *m = &graph->geometry;
    const int sequences = options->sequences;
    mgl_schedule_config filled = *config;
    if (!may_have_second(graph, target, options, config) ||
        (sequences <= MGL_BATCH_ROWS && !has_flags(graph, target, options, config)))
        return;
    if (is_long_prompt(m, target, options, config)) {
        filled.many = MGL_MAX_SECOND_ROWS;
        filled.rows = 1;
    } else if (sequences > MGL_BATCH_ROWS ||
               (sequences >= MGL_BATCH_LEAST &&
                !has_fast_rows(m, target, options->dtype, config, sequences))) {
        fill_sequences(m, target, options, &filled);
    }
    if (has_room(m, target, options, &filled))
        *config = filled;
}

int mgl_schedule_fit_sequences(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *config)
{
    mgl_schedule_config filled = *config;
    mgl_schedule_fill_second(graph, target, options, &filled);
    const int most = most_sequences(&filled);
    return options->sequences < most ? options->sequences : most;
}

mgl_status mgl_schedule_choose(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *asked,
                               mgl_choices *out, mgl_error *err)
{
    mgl_schedule_config filled = *asked;
    mgl_schedule_fill_second(graph, target, options, &filled);
    const mgl_schedule_config *config = &filled;
    memset(out, 0, sizeof *out);
    mgl_status status = check_config(graph, target, options, config, err);
    if (!status)
        status = choose_exchange(graph, target, options, config, out, err);
    if (status)
        return status;
    out->narrow = config->narrow;
    out->splits = config->splits;
    if (out->splits == 0)
        out->splits = choose_splits(&graph->geometry, options, config->warps,
                                    out->queues[MGL_STEP_ATTEND].count);
    out->merges_in_o = out->splits > 1 && config->merge == MGL_MERGE_IN_O;
    out->share = choose_share(&graph->geometry, config, out);
    out->exec = choose_exec(&graph->geometry, target, options->dtype, config,
                            rows_for(options, config), out->splits, out->flags);
    if (may_stand_apart(&graph->geometry, options, config)) {
        give_roles(&graph->geometry, target, options, config, out);
        place_attention(&graph->geometry, target, out);
    } else if (out->splits > 1 && give_roles(&graph->geometry, target, options, config, out)) {
        place_splits(target, out);
    }
    place_merges(&graph->geometry, target, options, config,
                 out->flags && out->narrow >= MGL_EXCHANGE_ATTENTION ? options->dtype : MGL_F32,
                 out);
    out->rows = config->rows;
    if (out->rows == 0)
        out->rows = choose_rows(&graph->geometry, options, config, out);
    return choose_second(target, options->dtype, config, out, err);
}
