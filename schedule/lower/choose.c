/*
 * Implements choose.h: chooses every value that a ScheduleConfig leaves open (0), for the model and
 * the target. The queues of each step are chosen by queues.c.
 */
#include "schedule/lower/choose.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "schedule/lower/queues.h"
#include "schedule/lower/staged.h"
#include "schedule/pages.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"

enum {
    COUNTER_RING_PAGES = 8,   /* 128 KB of weights, loaded and in flight, with the default page
                                 size */
    WIDE_STAGE_BYTES = 49152, /* for blocks with at least 160 KB of shared memory */
    SMALL_STAGE_BYTES = 24576,
    LEAST_STAGE_BYTES = 16384,
    LEAST_RING_PAGES = 4, /* besides a large stage */
    SPLIT_PENDING_BYTES =
        49152, /* bytes in flight while the queue waits for an edge, including keys and values */
    FEW_SPLITS = 16,
    SPLIT_POSITIONS = 344, /* positions of all sequences for each split; a smaller split costs more
                              than it saves */
    MOST_AUTO_SPLITS = 32,
    UNSPLIT_KV_BYTES = 128 * 1024, /* KV bytes of a kv head, over all rows of an epoch, up to which
                                      one task is faster than splits and their merge */
    PROMPT_EPOCH = 4, /* an epoch of the maximum rows takes as long as this many one-row epochs, if
                         the weights have 16 bits */
    PROMPT_LOSS = 12  /* a second list slows each token of a reply by at most 1 / PROMPT_LOSS */
};

/* Minimum bytes of weights that a second list must save on a prompt: an eighth of a second of an
 * H200's memory bandwidth. The kernel with two lists takes several times as long to compile. */
#define PROMPT_BYTES 0x1p39

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

/* ---- flags ---------------------------------------------------------------------------------- */

/* Checks that each share of each exchanged vector is a whole number of granules. */
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

/* Checks that the program can use flags with the queues in `choices`. */
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

/* Chooses flags or counters, and the queues for that choice. */
static mgl_status choose_exchange(const mgl_graph *graph, const mgl_target *target,
                                  const mgl_lower_options *options,
                                  const mgl_schedule_config *config, mgl_choices *out,
                                  mgl_error *err)
{
    const mgl_geometry *m = &graph->geometry;
    const mgl_dtype dtype = options->dtype;
    bool automatic = config->exchange == 0, asked = config->exchange == MGL_EXCHANGE_FLAGS;
    mgl_queues_deal(m, target, options, config, out);
    if (asked || (automatic && is_gpu(target) && dtype != MGL_F32)) {
        mgl_status status = check_flags(m, dtype, out, asked ? err : NULL);
        out->flags = !status;
        if (out->flags || asked)
            return status;
    }
    mgl_queues_deal_all(target, config, out);
    return MGL_OK;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* Number of splits that pays off for the capacity. For few positions each split has the
 * positions that registers hold, and one-row kernels are the same for all these capacities. For
 * more positions the splits are longer and come through the ring. */
static int64_t useful_splits(const mgl_geometry *m, const mgl_lower_options *options, int warps)
{
    const int64_t positions = (int64_t)options->capacity * options->sequences;
    const int64_t held = MGL_KV_REGISTERS(m->head_dim, warps);
    if (options->sequences == 1 && held > 0 && positions <= FEW_SPLITS * held)
        return (positions + held - 1) / held;
    return (positions + SPLIT_POSITIONS - 1) / SPLIT_POSITIONS;
}

/* Number of attention splits. One queue for each kv head saves an edge, so it is used while the
 * keys and values of all sequences are few. Otherwise the number is limited by the positions and
 * by the queues that can run at once. */
static int choose_splits(const mgl_geometry *m, const mgl_lower_options *options, int warps,
                         int queues)
{
    int64_t useful = useful_splits(m, options, warps);
    int splits = queues / m->kv_heads;
    if (mgl_queues_suffice(m, options))
        return 1;
    if (splits > useful)
        splits = (int)useful;
    if (splits > MOST_AUTO_SPLITS)
        splits = MOST_AUTO_SPLITS;
    return splits < 1 ? 1 : splits;
}

/* Positions for each further split in use. Every merging task reads each split in use. If o
 * merges, on all its queues, a split has as many positions as registers hold, which is as fast
 * as fewer positions. */
static int choose_share(const mgl_geometry *m, const mgl_schedule_config *config,
                        const mgl_choices *choices)
{
    const int held = MGL_KV_REGISTERS(m->head_dim, config->warps);
    if (choices->splits == 1 || config->share > 0)
        return choices->splits == 1 ? 0 : config->share;
    return choices->merges_in_o && held > 0 ? held : 0;
}

/* Positions of a sequence up to which its attention is not split; 0: the program has no unsplit
 * rows. A queue reads the keys and values of a kv head for all rows of an epoch, row after row, so
 * the limit is divided by the number of rows. If the knob is open, only a GPU with flags has
 * unsplit rows. */
static int choose_unsplit(const mgl_geometry *m, const mgl_target *target,
                          const mgl_lower_options *options, const mgl_schedule_config *config,
                          const mgl_choices *choices)
{
    const int64_t bytes = 2 * (int64_t)m->head_dim * (int64_t)mgl_dtype_size(options->dtype);
    if (choices->splits == 1 || choices->merges_in_o || config->unsplit == 1)
        return 0;
    if (config->unsplit > 1)
        return config->unsplit;
    const int positions = (int)(UNSPLIT_KV_BYTES / (bytes * choices->rows));
    return choices->flags && strcmp(target->arch, "cpu") && positions > 1 ? positions : 0;
}

/* Rows that the first list is sized for: the configured rows if a second list serves more
 * sequences. Else the number of sequences; if that exceeds MGL_MAX_ROWS, the maximum rows of the
 * batch variant. */
static int rows_for(const mgl_lower_options *options, const mgl_schedule_config *config)
{
    if (config->second_rows > 0 && config->rows > 0 && config->rows < options->sequences)
        return config->rows;
    return options->sequences <= MGL_MAX_ROWS ? options->sequences : MGL_BATCH_ROWS;
}

/* With flags: as many rows as the stage can hold. */
static int choose_rows(const mgl_geometry *m, const mgl_lower_options *options,
                       const mgl_schedule_config *config, const mgl_choices *choices)
{
    const int least = rows_for(options, config);
    int rows = MGL_MAX_ROWS;
    for (int i = 0; i < MGL_STAGED_INPUTS && choices->flags; i++) {
        mgl_staged in = mgl_staged_input(m, options->dtype, config->exchange_precision, i);
        while (rows > least && mgl_staged_bytes(&in, options->dtype, choices->exec.warps, rows) >
                                   choices->exec.stage_bytes)
            rows--;
    }
    return rows;
}

/* Stage bytes for `rows` rows of the widest product input, or of the widest input that fits in
 * `most` bytes. The remaining memory is more useful in the ring. */
static int row_stage(const mgl_geometry *m, mgl_dtype dtype, const mgl_schedule_config *config,
                     int rows, int64_t most)
{
    int64_t bytes = LEAST_STAGE_BYTES;
    for (int i = 0; i < MGL_STAGED_INPUTS; i++) {
        mgl_staged in = mgl_staged_input(m, dtype, config->exchange_precision, i);
        int64_t wanted = (mgl_staged_bytes(&in, dtype, config->warps, rows) + 1023) / 1024 * 1024;
        if (wanted > bytes && wanted <= most)
            bytes = wanted;
    }
    return (int)bytes;
}

/* The stream's shape, but for pending_bytes. Open values are fitted to the target's shared memory.
 */
static mgl_exec choose_exec(const mgl_geometry *m, const mgl_target *target, mgl_dtype dtype,
                            const mgl_schedule_config *config, int rows, bool flags)
{
    mgl_exec exec = {config->page_bytes,    config->ring_pages,   config->warps,
                     config->stage_bytes,   config->flight_bytes, config->pending_bytes,
                     config->prefetch_bytes};
    int64_t shared = target->shared_bytes, reserved = mgl_shared_reserved(config->second_rows);
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
    return exec;
}

/* Whether every product of a list of `rows` rows can use the skinny or batch variant with all
 * rows. Other variants are several times slower. */
static bool has_fast_rows(const mgl_geometry *m, const mgl_target *target, mgl_dtype dtype,
                          const mgl_schedule_config *config, int rows)
{
    mgl_dimensions d;
    mgl_program list = {.target = *target,
                        .geometry = *m,
                        .exec = choose_exec(m, target, dtype, config, rows, true)};
    mgl_program_set_dtype(&list, dtype);
    mgl_dimensions_of_program(&list, &d);
    d.of[MGL_DIMENSION_ROWS] = rows;
    for (int i = 0; i < MGL_STAGED_INPUTS; i++) {
        const mgl_staged in = mgl_staged_input(m, dtype, config->exchange_precision, i);
        mgl_dimensions_of_input(&list, in.columns, in.parts, &d);
        d.of[MGL_DIMENSION_FEWEST] = 1;
        if (mgl_variant_fits(MGL_VARIANT_SKINNY, &d))
            continue;
        d.of[MGL_DIMENSION_FEWEST] = MGL_BATCH_LEAST(0);
        if (rows < MGL_BATCH_LEAST(0) || in.wide != (in.parts == 2) ||
            !mgl_variant_fits(MGL_VARIANT_BATCH, &d))
            return false;
    }
    return true;
}

/* Whether the second list exchanges gamma_scaled values: if configured, or if its epochs have
 * more rows than the first list may have. In that case a GPU requires it, and on a CPU bf16
 * values need fewer bytes. */
static bool is_gamma_scaled(const mgl_schedule_config *config, mgl_dtype dtype, bool gpu)
{
    if (config->second_rows == 0 || config->gamma_scaled != 0)
        return config->second_rows > 0 && config->gamma_scaled == MGL_GAMMA_YES;
    return config->second_rows > MGL_MAX_ROWS && (gpu || dtype == MGL_BF16);
}

/* Checks that a GPU supports the gamma_scaled values that the config asks for or that the rows
 * require. Its products take them in bf16 pages (for f16 see ops.def), loaded by bulk copies. */
static mgl_status check_gamma_scaled(const mgl_geometry *m, const mgl_target *target,
                                     mgl_dtype dtype, const mgl_schedule_config *config,
                                     mgl_error *err)
{
    const int64_t attended = (int64_t)m->heads * m->head_dim;
    const bool asked = config->gamma_scaled == MGL_GAMMA_YES;
    const char *where = asked ? "gamma_scaled" : "second_rows";
    const char *lead = asked ? "" : "more than 16 rows on a GPU exchange gamma-scaled values; ";
    _Static_assert(MGL_MAX_ROWS == 16, "the lead says how many rows");
    if (mgl_arch_number(target->arch) < mgl_variant_get(MGL_VARIANT_PANELS)->arch)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "%sgamma-scaled values need a GPU of sm_%d or newer, and the target is %s",
                        lead, mgl_variant_get(MGL_VARIANT_PANELS)->arch, target->arch);
    if (dtype != MGL_BF16)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "%son a GPU gamma-scaled values are bf16, but the model's are %s", lead,
                        mgl_dtype_name(dtype));
    if (m->hidden % MGL_PAGE_COLUMNS || attended % MGL_PAGE_COLUMNS || m->ffn % MGL_PAGE_COLUMNS)
        return mgl_fail(
            err, MGL_BAD_INPUT, where,
            "%son a GPU gamma-scaled values need hidden, heads x head_dim and ffn to be "
            "multiples of %d, and they are %d, %lld and %d",
            lead, MGL_PAGE_COLUMNS, m->hidden, (long long)attended, m->ffn);
    return MGL_OK;
}

/* Fails for a number of sequences above `most`, the limit of one list or two. */
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
        snprintf(advice, sizeof advice, "; the knob `second_rows` allows up to %d",
                 MGL_MAX_SEQUENCES);
    return mgl_fail(err, MGL_BAD_INPUT, "sequences",
                    "is %d; a launch has %s%d, as many as the config has rows%s",
                    options->sequences, mgl_up_to((size_t)most), most, advice);
}

/* Maximum sequences for the rows of the config's one list or two. */
static int most_sequences(const mgl_schedule_config *config)
{
    const int most = config->rows > 0 ? config->rows : MGL_MAX_ROWS;
    if (config->second_rows <= most)
        return most;
    return config->second_rows < MGL_MAX_SEQUENCES ? config->second_rows : MGL_MAX_SEQUENCES;
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
    if (config->second_rows > MGL_MAX_ROWS && config->gamma_scaled == MGL_GAMMA_NO &&
        is_gpu(target))
        return mgl_fail(
            err, MGL_BAD_INPUT, "second_rows",
            "is %d: more than %d rows on a GPU exchange gamma-scaled values, and `gamma_scaled` "
            "is %d",
            config->second_rows, MGL_MAX_ROWS, MGL_GAMMA_NO);
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

/* Shared memory left by the ring, if the config leaves the stage open. The stage also holds
 * activation tiles, and panels wait for these more than for weights. */
static int spare_stage(const mgl_target *target, const mgl_schedule_config *config,
                       const mgl_exec *exec)
{
    const int64_t spare = target->shared_bytes - mgl_shared_reserved(config->second_rows) -
                          exec->stage_bytes - (int64_t)exec->ring_pages * exec->page_bytes;
    const int64_t most = MGL_MAX_STAGE_BYTES - exec->stage_bytes;
    if (config->stage_bytes > 0 || spare <= 0)
        return 0;
    return (int)((spare < most ? spare : most) / MGL_STAGE_UNIT * MGL_STAGE_UNIT);
}

/* Chooses the second list, for epochs with more rows than the first list has. */
static mgl_status choose_second(const mgl_target *target, mgl_dtype dtype,
                                const mgl_schedule_config *config, mgl_choices *out, mgl_error *err)
{
    out->second_rows = config->second_rows;
    out->gamma_scaled = is_gamma_scaled(config, dtype, is_gpu(target));
    const bool panels = out->second_rows > 0 && out->gamma_scaled && is_gpu(target);
    out->warpgroups = panels ? config->warpgroups : MGL_WARPGROUPS_NO;
    if (config->warpgroups == MGL_WARPGROUPS_YES && !panels)
        return mgl_fail(err, MGL_BAD_INPUT, "warpgroups",
                        "warpgroups multiply gamma-scaled values of a second list on a GPU, and "
                        "this program has "
                        "none: see the knobs second_rows and gamma_scaled");
    if (panels)
        out->exec.stage_bytes += spare_stage(target, config, &out->exec);
    if (out->second_rows == 0 || out->second_rows > out->rows)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, "second_rows",
                    "is %d; the second list needs more rows than the first, which has %d",
                    out->second_rows, out->rows);
}

/* Whether lowering may add a second list: the config neither requests nor forbids one, the model
 * can be lowered for one sequence, and gamma_scaled values are available. */
static bool may_have_second(const mgl_graph *graph, const mgl_target *target,
                            const mgl_lower_options *options, const mgl_schedule_config *config)
{
    mgl_lower_options one = *options;
    one.sequences = 1;
    return config->second_rows == 0 && config->rows == 0 && config->gamma_scaled != MGL_GAMMA_NO &&
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

/* Whether a block has enough shared memory for the config's ring and stage and the larger row
 * table. */
static bool has_room(const mgl_geometry *m, const mgl_target *target,
                     const mgl_lower_options *options, const mgl_schedule_config *config)
{
    const mgl_exec exec =
        choose_exec(m, target, options->dtype, config, rows_for(options, config), true);
    return target->shared_bytes == 0 || mgl_shared_reserved(config->second_rows) +
                                                exec.stage_bytes +
                                                (int64_t)exec.ring_pages * exec.page_bytes <=
                                            target->shared_bytes;
}

/* Sets the two lists of a config for replies of many sequences. The first list has only fast
 * rows. */
static void fill_sequences(const mgl_geometry *m, const mgl_target *target,
                           const mgl_lower_options *options, mgl_schedule_config *config)
{
    config->second_rows = MGL_MAX_SEQUENCES;
    config->rows = MGL_BATCH_LEAST(0) - 1;
    if (options->sequences > MGL_BATCH_ROWS &&
        has_fast_rows(m, target, options->dtype, config, MGL_BATCH_ROWS))
        config->rows = MGL_BATCH_ROWS;
    else if (!has_fast_rows(m, target, options->dtype, config, config->rows))
        config->rows = 1;
}

/* Values of all matrices that an epoch without logits streams. */
static int64_t streamed_values(const mgl_geometry *m)
{
    int64_t layer = 0;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        if (i != MGL_STEP_HEAD)
            layer += mgl_step_groups(m, (mgl_step)i) * mgl_step_columns(m, (mgl_step)i);
    return layer * MGL_ROW_GROUP * m->layers;
}

/* Whether a second list saves enough time on the prompt of one sequence to justify its kernel,
 * and more than the reply loses. A single list reads the prompt in epochs of few rows, each
 * about as long as a token of the reply. An epoch of the maximum rows takes PROMPT_EPOCH such
 * times. */
static bool is_long_prompt(const mgl_geometry *m, const mgl_target *target,
                           const mgl_lower_options *options, const mgl_schedule_config *config)
{
    const int prompt = options->prompt < options->capacity ? options->prompt : options->capacity;
    if (options->sequences != 1 || prompt <= 0)
        return false;
    const mgl_choices single = {.flags = true,
                                .exec = choose_exec(m, target, options->dtype, config, 1, true)};
    const double first = (double)prompt / choose_rows(m, options, config, &single),
                 second = (double)prompt * PROMPT_EPOCH / MGL_MAX_SECOND_ROWS,
                 bytes = (double)streamed_values(m) * (double)mgl_dtype_size(options->dtype);
    return (first - second) * bytes >= PROMPT_BYTES &&
           first - second > (double)options->reply / PROMPT_LOSS;
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
        filled.second_rows = MGL_MAX_SECOND_ROWS;
        filled.rows = 1;
    } else if (sequences > MGL_BATCH_ROWS ||
               (sequences >= MGL_BATCH_LEAST(0) &&
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

/* Whether a weight is quantized. A queue then streams fewer bytes between two edges, so fewer bytes
 * are in flight while the queue waits for an edge. */
static bool has_quantized(const mgl_graph *graph)
{
    for (int i = 0; i < graph->tensor_count; i++)
        if (mgl_tensor_is_quantized(&graph->tensors[i]))
            return true;
    return false;
}

/* Whether warp teams are faster than warpgroups in a second list of `rows` rows: with weights of 4
 * bits in epochs of few rows, converting the weights takes longer than the products. A warpgroup
 * does both one after the other. */
static bool are_warp_teams_faster(const mgl_graph *graph, int rows)
{
    if (rows > MGL_SMALL_N_ROWS)
        return false;
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        if (node->kind != MGL_NODE_LINEAR)
            continue;
        const mgl_tensor *weights = &graph->tensors[node->tensor];
        if (mgl_tensor_is_quantized(weights) &&
            mgl_weight_code_get(weights->quantized.code)->bits < 8)
            return true;
    }
    return false;
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
    out->exchange_precision = config->exchange_precision;
    out->splits = config->splits;
    if (out->splits == 0)
        out->splits = choose_splits(&graph->geometry, options, config->warps,
                                    out->queues[MGL_STEP_ATTEND].count);
    out->merges_in_o = out->splits > 1 && config->merge == MGL_MERGE_IN_O;
    out->share = choose_share(&graph->geometry, config, out);
    out->exec = choose_exec(&graph->geometry, target, options->dtype, config,
                            rows_for(options, config), out->flags);
    if (out->exec.pending_bytes == 0)
        out->exec.pending_bytes = out->flags && out->splits > 1 && !has_quantized(graph)
                                      ? SPLIT_PENDING_BYTES
                                      : MGL_PENDING_BYTES;
    mgl_queues_place(
        &graph->geometry, target, options, config,
        out->flags && out->exchange_precision >= MGL_EXCHANGE_ATTENTION ? options->dtype : MGL_F32,
        out);
    out->rows = config->rows;
    if (out->rows == 0)
        out->rows = choose_rows(&graph->geometry, options, config, out);
    out->unsplit = choose_unsplit(&graph->geometry, target, options, config, out);
    if (out->unsplit > 0)
        mgl_queues_place_unsplit(&graph->geometry, target, out);
    mgl_queues_spare(graph, target, options, config, out);
    status = choose_second(target, options->dtype, config, out, err);
    if (out->warpgroups == 0 && are_warp_teams_faster(graph, out->second_rows))
        out->warpgroups = MGL_WARPGROUPS_NO;
    return status;
}
