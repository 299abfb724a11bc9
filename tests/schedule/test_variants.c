/*
 * Tests of the table of kernel variants and of the variants that lowering chooses. The choices are
 * compared with independent rules in plain C, for the shapes of the benchmark, for the test models,
 * and for shapes that no fast variant fits.
 */
#include "lowering.h"

#include <stdio.h>

#include "eval/synthetic.h"
#include "schedule/expression.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} terms[] = {
#define MGL_TERM(name, text, what) {#name, text},
#include "schedule/variants.def"
};
enum { TERMS = sizeof terms / sizeof *terms };

/* Parses an expression that may use the first `count` terms. */
static mgl_expression checked(const char *text, const mgl_expression_term *parsed_terms, int count)
{
    const char *names[MGL_DIMENSION_COUNT];
    mgl_expression e;
    mgl_error err = {0};
    for (int i = 0; i < MGL_DIMENSION_COUNT; i++)
        names[i] = mgl_dimension_name((mgl_dimension)i);
    const mgl_expression_names all = {names, MGL_DIMENSION_COUNT, parsed_terms, count};
    mgl_status status = mgl_expression_parse_terms(text, &all, &e, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", text, err.message);
    return e;
}

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !strchr("abcdefghijklmnopqrstuvwxyz_", at[-1])) &&
            !(at[length] && strchr("abcdefghijklmnopqrstuvwxyz_", at[length])))
            return true;
    return false;
}

START_TEST(every_expression_of_the_table_is_one)
{
    mgl_expression_term all[TERMS];
    bool used[TERMS] = {false};
    for (int i = 0; i < TERMS; i++) {
        all[i] = (mgl_expression_term){terms[i].name, checked(terms[i].text, all, i)};
        for (int k = 0; k < i; k++)
            used[k] |= has_word(terms[i].text, terms[k].name);
        for (int k = 0; k < MGL_DIMENSION_COUNT; k++)
            ck_assert_str_ne(terms[i].name, mgl_dimension_name((mgl_dimension)k));
    }
    for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
        const mgl_variant_info *info = mgl_variant_get((mgl_variant)v);
        checked(info->when, all, TERMS);
        for (int i = 0; i < info->need_count; i++) {
            checked(info->needs[i].text, all, TERMS);
            for (int k = 0; k < TERMS; k++)
                used[k] |= has_word(info->needs[i].text, terms[k].name);
        }
    }
    for (int k = 0; k < TERMS; k++)
        ck_assert_msg(used[k], "%s", terms[k].name);
#define MGL_NEED(id, what, limit) checked(limit, all, TERMS);
#include "schedule/variants.def"
}
END_TEST

START_TEST(every_op_has_general)
{
    for (int op = 0; op < MGL_OP_COUNT; op++)
        ck_assert(mgl_op_has_variant((mgl_op)op, MGL_VARIANT_GENERAL));
}
END_TEST

START_TEST(names_are_found_and_no_others)
{
    mgl_variant found;
    for (int v = 0; v < MGL_VARIANT_COUNT; v++) {
        const char *name = mgl_variant_get((mgl_variant)v)->name;
        ck_assert(mgl_variant_parse(name, strlen(name), &found));
        ck_assert_int_eq(found, v);
        ck_assert(!mgl_variant_parse(name, strlen(name) - 1, &found));
    }
    ck_assert(!mgl_variant_parse("", 0, &found));
}
END_TEST

/* ---- independent rules ----------------------------------------------------------------------- */

/* Properties of a product that determine its variant. */
struct product {
    bool flag, low, wide; /* wide: its input is f32 */
    int columns, kblocks;
};

static struct product product_of(const mgl_program *p, const mgl_task *task)
{
    const mgl_region *x = mgl_task_operand(p, task, MGL_PRODUCT_INPUT);
    const bool wide = p->buffers[x->buffer].dtype == MGL_F32;
    struct product out = {x->flag, task->op != MGL_OP_LINEAR_ADD || wide, wide,
                          (int)(x->ranges[1].hi - x->ranges[1].lo), 0};
    out.kblocks = (out.columns + 31) / 32;
    return out;
}

static bool ring_suits(const mgl_program *p)
{
    const int blocks = p->exec.page_bytes / 512;
    return p->exec.ring_pages * blocks >= 4 * p->exec.warps && blocks >= p->exec.warps;
}

static bool is_skinny(const mgl_program *p, const struct product *x, int count)
{
    const mgl_geometry *m = &p->geometry;
    const int parts = count * (x->low ? 2 : 1);
    return ring_suits(p) && x->flag && parts <= 4 &&
           parts * x->kblocks * 64 <= p->exec.stage_bytes &&
           (x->kblocks == (m->hidden + 31) / 32 ||
            x->kblocks == (m->heads * m->head_dim + 31) / 32 || x->kblocks == (m->ffn + 31) / 32);
}

static bool batch_fits(const mgl_program *p, int kblocks, bool low)
{
    const int warps = p->exec.warps, run = (kblocks + warps - 1) / warps, parts = low ? 2 : 1;
    const int most = 16 / parts + (low ? 0 : 2), held = run < most ? run : most;
    const int bytes = (run - held) * parts * 512 + (low ? run * 128 : 0);
    return kblocks % run == 0 && bytes * (kblocks / run) <= p->exec.stage_bytes;
}

static bool is_batch(const mgl_program *p, const struct product *x, int count)
{
    const mgl_geometry *m = &p->geometry;
    const int hidden = (m->hidden + 31) / 32, wide = (m->heads * m->head_dim + 31) / 32;
    const bool width = x->kblocks == wide || x->kblocks == (x->low ? hidden : (m->ffn + 31) / 32);
    return ring_suits(p) && x->flag && x->columns % 32 == 0 && !is_skinny(p, x, count) &&
           count >= 3 && count <= 8 && width && x->low == x->wide &&
           batch_fits(p, x->kblocks, x->low);
}

static mgl_variant expected_product(const mgl_program *p, const mgl_task *task)
{
    const struct product x = product_of(p, task);
    const int rows = p->limits.rows;
    int skinny = 0, batch = 0;
    if (p->weight_dtype == MGL_F32)
        return MGL_VARIANT_GENERAL;
    for (int count = 1; count <= rows; count++) {
        skinny += is_skinny(p, &x, count);
        batch += is_batch(p, &x, count);
    }
    const int fast = skinny + batch;
    return skinny == rows ? MGL_VARIANT_SKINNY
           : fast == rows ? MGL_VARIANT_BATCH
           : fast > 0     ? MGL_VARIANT_BY_ROWS
                          : MGL_VARIANT_GENERAL;
}

/* For each number of rows of an epoch: the chosen variant, and the variant by the old rule. */
static void check_row_ranges(const mgl_program *p, const mgl_task *task, const char *what)
{
    const struct product x = product_of(p, task);
    mgl_dimensions d;
    mgl_dimensions_of_program(p, &d);
    const mgl_row_ranges row_ranges = mgl_variant_row_ranges(p, task, &d);
    const bool any = task->variant != MGL_VARIANT_GENERAL;
    for (int count = 1; count <= p->limits.rows; count++) {
        const bool skinny = count <= row_ranges.skinny;
        const bool batch = !skinny && count >= 3 && count <= row_ranges.batch;
        ck_assert_msg(skinny == (any && is_skinny(p, &x, count)), "%s: %d rows", what, count);
        ck_assert_msg(batch == (any && is_batch(p, &x, count)), "%s: %d rows", what, count);
    }
}

static bool is_flagged(const mgl_program *p, const mgl_task *task, int operand)
{
    if (operand == MGL_NO_OPERAND)
        return true;
    const mgl_region *region = mgl_task_operand(p, task, operand);
    return region->flag && p->buffers[region->buffer].dtype == MGL_F32;
}

static bool is_plain_attention(const mgl_program *p, const mgl_task *task)
{
    const mgl_attention_operands *o = mgl_op_attention(task->op);
    return is_flagged(p, task, o->q) && is_flagged(p, task, o->k) && is_flagged(p, task, o->v) &&
           is_flagged(p, task, mgl_op_get(task->op)->in_count);
}

static bool is_tiled(const mgl_program *p)
{
    return p->kv_dtype != MGL_F32 && p->geometry.head_dim % 16 == 0 && p->geometry.head_dim <= 128;
}

/* Programs of one row with flags. */
static bool is_plain(const mgl_program *p)
{
    bool plain = p->limits.rows == 1 && p->weight_dtype != MGL_F32 && is_tiled(p) &&
                 ring_suits(p) && p->geometry.heads / p->geometry.kv_heads <= 4;
    for (int i = 0; i < p->task_count && plain; i++) {
        const mgl_task *task = &p->tasks[i];
        if (task->segments.count > 0) {
            const struct product x = product_of(p, task);
            plain = is_skinny(p, &x, 1);
        } else if (mgl_op_is_attention(task->op)) {
            plain = is_plain_attention(p, task);
        }
    }
    return plain;
}

/* Whether keys and values are read through the ring: the split exceeds the registers, and pages
 * have space for a warp's span. */
static bool streams(const mgl_program *p)
{
    const int head_dim = p->geometry.head_dim, span = head_dim <= 64 ? 64 : 32;
    int64_t split = 0;
    for (int i = 0; i < p->task_count; i++) {
        const mgl_task *task = &p->tasks[i];
        if (task->op != MGL_OP_ATTEND_PAST)
            continue;
        const int64_t splits = p->buffers[mgl_task_result(p, task)->buffer].extents[0].count;
        split = (p->limits.capacity + splits - 1) / splits;
    }
    const int run = p->exec.page_bytes / (2 * head_dim * span) * span;
    return mgl_arch_number(p->target.arch) >= 90 && is_plain(p) &&
           split > p->exec.warps * span / 2 - 1 && run > 0 && run / span <= p->exec.warps;
}

static mgl_variant expected_attention(const mgl_program *p, const mgl_task *task)
{
    const int tiles = p->geometry.head_dim <= 64 ? 2 : 1;
    if (!is_tiled(p))
        return MGL_VARIANT_GENERAL;
    if (streams(p))
        return MGL_VARIANT_RING;
    if (p->limits.rows == 1 && p->geometry.heads / p->geometry.kv_heads <= 4 &&
        is_plain_attention(p, task))
        return MGL_VARIANT_KV_ROUNDS;
    if (p->limits.sequences > 1 && p->geometry.head_dim / 2 % 32 == 0 &&
        p->exec.warps * 4 * tiles * 64 <= 4096)
        return MGL_VARIANT_SHORT;
    return MGL_VARIANT_TILES;
}

static mgl_variant expected(const mgl_program *p, const mgl_task *task)
{
    if (mgl_arch_number(p->target.arch) == 0)
        return MGL_VARIANT_GENERAL;
    if (task->segments.count > 0)
        return expected_product(p, task);
    return mgl_op_is_attention(task->op) ? expected_attention(p, task) : MGL_VARIANT_GENERAL;
}

static int named[MGL_VARIANT_COUNT]; /* number of tasks with each variant */

/* A variant gives the same answer for each task, whatever tasks were asked before. */
static void check_next(const mgl_program *p, const mgl_task *task, const mgl_dimensions *d,
                       mgl_variant_met *met)
{
    for (int v = 0; v < MGL_VARIANT_COUNT; v++)
        ck_assert_int_eq(mgl_variant_takes_next(p, task, (mgl_variant)v, d, met, NULL),
                         mgl_variant_takes_task(p, task, (mgl_variant)v, d, NULL));
}

static void check_names(const mgl_program *p, const char *what)
{
    mgl_dimensions d;
    mgl_variant_met met = {0};
    mgl_dimensions_of_program(p, &d);
    ck_assert(mgl_variants_are_chosen(p));
    for (int i = 0; i < p->task_count; i++) {
        const mgl_task *task = &p->tasks[i];
        const mgl_variant wanted = expected(p, task);
        ck_assert_msg(task->variant == wanted, "%s: task %d, %s.%s and not %s", what, i,
                      mgl_op_get(task->op)->name, mgl_variant_get(task->variant)->name,
                      mgl_variant_get(wanted)->name);
        named[wanted]++;
        check_next(p, task, &d, &met);
        if (task->segments.count > 0)
            check_row_ranges(p, task, what);
    }
}

/* The options for each shape: every value of a column alone, with the first value of the other
 * columns. */
static const char *const targets[] = {"sm_90a:12", "sm_80:12", "sm_86:7", "cpu:3"};
static const mgl_dtype dtypes[] = {MGL_BF16, MGL_F16, MGL_F32};
static const int capacities[] = {64, 3000, 20000}, batches[] = {1, 2, 4, 8, 9, 16};
static const int rows[] = {0, 1, 2, 3, 4, 8, 16}, splits[] = {0, 1, 2};

static void check_config(const mgl_graph *graph, const char *target_name, mgl_dtype dtype,
                         int capacity, int batch, const mgl_schedule_config *config)
{
    char what[200];
    mgl_program *p;
    mgl_target target = target_of(target_name);
    mgl_lower_options options = {.dtype = dtype, .capacity = capacity, .sequences = batch};
    snprintf(what, sizeof what, "%s, %s, capacity %d, batch %d, rows %d, splits %d, narrow %d",
             target_name, mgl_dtype_name(dtype), capacity, batch, config->rows, config->splits,
             config->exchange_precision);
    if (mgl_schedule_lower(graph, &target, &options, config, &p, NULL))
        return;      /* more sequences than rows, or widths that flags do not allow */
    if (p->second) { /* rows without a fast variant, as requested here */
        mgl_schedule_config single = *config;
        single.rows = batch;
        mgl_program_free(p);
        ck_assert_int_eq(mgl_schedule_lower(graph, &target, &options, &single, &p, NULL), MGL_OK);
    }
    check_names(p, what);
    mgl_program_free(p);
}

static void check_graph(const mgl_graph *graph)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            /* else there is a second list */
            config.rows = rows[r] == 0 && batches[b] > MGL_BATCH_ROWS ? batches[b] : rows[r];
            check_config(graph, targets[0], MGL_BF16, 64, batches[b], &config);
        }
    for (int row = 0; row <= 1; row++)
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
                    config.rows = row;
                    check_config(graph, targets[t], dtypes[d], capacities[c], 1, &config);
                }
    for (int kind = 0; kind < 24; kind++) {
        mgl_schedule_config_default(&config);
        config.rows = kind % 2 ? 1 : 4;
        config.splits = splits[kind % 3];
        config.exchange_precision = kind % 4;
        config.warps = kind < 12 ? 8 : 16;
        config.exchange = kind % 12 == 11 ? MGL_EXCHANGE_COUNTERS : 0;
        config.stage_bytes = kind % 8 < 4 ? 0 : 8192;
        config.page_bytes = kind % 5 == 4 ? 2048 : 16384;
        check_config(graph, targets[0], MGL_BF16, 9000, kind % 2 ? 1 : 3, &config);
    }
}

static const char *const shapes[] = {"llama-1b", "llama-3b", "llama-8b", "smollm2-135m"};

START_TEST(shapes_have_the_variants_that_the_kernel_chose)
{
    mgl_config config;
    ck_assert_int_eq(mgl_synthetic_find_shape(shapes[_i], &config, NULL), MGL_OK);
    mgl_graph *graph = open_graph(&config);
    check_graph(graph);
    mgl_graph_free(graph);
}
END_TEST

static const char *const models[] = {"tales-5m", "llama3-rope", "llama-linear-rope"};

START_TEST(models_have_the_variants_that_the_kernel_chose)
{
    char path[1024];
    mgl_config config;
    mgl_error err;
    snprintf(path, sizeof path, "%s/tests/models/%s", MGL_SOURCE_DIR, models[_i]);
    mgl_status status = mgl_synthetic_read_config(path, &config, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_graph *graph = open_graph(&config);
    check_graph(graph);
    mgl_graph_free(graph);
}
END_TEST

/* hidden, layers, heads, kv_heads, head_dim, ffn, vocab: widths that are not whole blocks, heads
 * that tensor cores do not support, groups of more than 4, runs of unequal length. */
static const mgl_geometry odd[] = {
    {72, 2, 3, 1, 32, 504, 1213, 1e-5f},   {128, 2, 4, 4, 128, 512, 913, 1e-5f},
    {96, 2, 6, 2, 64, 80, 911, 1e-5f},     {64, 2, 8, 1, 8, 160, 65, 1e-5f},
    {160, 2, 2, 1, 256, 320, 1213, 1e-5f}, {576, 2, 9, 3, 64, 1536, 300, 1e-5f},
    {2080, 2, 10, 1, 80, 4160, 99, 1e-5f}, {8192, 2, 64, 8, 128, 28672, 99, 1e-5f},
};

START_TEST(odd_shapes_have_the_variants_that_the_kernel_chose)
{
    mgl_config config;
    ck_assert_int_eq(mgl_synthetic_find_shape("llama-1b", &config, NULL), MGL_OK);
    config.geometry = odd[_i];
    mgl_graph *graph = open_graph(&config);
    check_graph(graph);
    mgl_graph_free(graph);
}
END_TEST

/* Products of gamma-scaled values on a GPU are all panels if ring and stage have enough memory;
 * attention then shares rows if the stage has memory for the partial results of each warp. */
START_TEST(gamma_scaled_values_are_multiplied_by_panels)
{
    static const struct {
        int page_bytes, ring_pages, stage_bytes, warps;
        bool fit, shares;
    } cases[] = {{16384, 0, 0, 8, true, true},         {16384, 5, 2048, 8, true, false},
                 {16384, 4, 65536, 8, false, true},    {8192, 9, 1024, 8, true, false},
                 {8192, 8, 1024, 8, false, false},     {16384, 5, 0, 7, false, true},
                 {16384, 5, 15 * 1024, 8, true, false}};
    mgl_config model;
    mgl_schedule_config config;
    mgl_program *p;
    mgl_error err;
    const mgl_target target = target_of("sm_90a:12");
    const mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 64, .sequences = 1};
    ck_assert_int_eq(mgl_synthetic_find_shape("llama-1b", &model, NULL), MGL_OK);
    mgl_graph *graph = open_graph(&model);
    mgl_schedule_config_default(&config);
    config.rows = 1;
    config.second_rows = 16;
    config.gamma_scaled = MGL_GAMMA_YES;
    config.warpgroups = MGL_WARPGROUPS_NO;
    config.page_bytes = cases[_i].page_bytes;
    config.ring_pages = cases[_i].ring_pages;
    config.stage_bytes = cases[_i].stage_bytes;
    config.warps = cases[_i].warps;
    const mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    for (int t = 0; t < p->second->task_count; t++) {
        const mgl_task *task = &p->second->tasks[t];
        if (mgl_op_get(task->op)->step == MGL_STEP_ATTEND) {
            ck_assert_int_eq(task->op == MGL_OP_ATTEND_ROWS, cases[_i].shares);
            ck_assert_int_eq(task->variant == MGL_VARIANT_FLASH, cases[_i].shares);
            named[task->variant]++;
        }
        if (mgl_op_get(task->op)->family != MGL_FAMILY_PANEL)
            continue;
        ck_assert_int_eq(task->variant == MGL_VARIANT_PANELS, cases[_i].fit);
        named[task->variant]++;
    }
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* The number of products of gamma-scaled values with a variant; -1: others have another variant. */
static int panels_by(const mgl_program *second, mgl_variant variant)
{
    int count = 0, others = 0;
    for (int t = 0; t < second->task_count; t++)
        if (mgl_op_get(second->tasks[t].op)->family == MGL_FAMILY_PANEL) {
            count += second->tasks[t].variant == variant;
            others += second->tasks[t].variant != variant;
        }
    return others > 0 ? -1 : count;
}

/* The same for warpgroups: only on sm_90a, four warps each, and all products of a list. By default
 * they are used if possible, otherwise teams. */
START_TEST(gamma_scaled_values_are_multiplied_by_warpgroups)
{
    static const struct {
        const char *target;
        int second_rows, warps, gamma_scaled;
        const char *says; /* NULL: it is lowered */
    } cases[] = {{"sm_90a:12", 16, 8, MGL_GAMMA_YES, NULL},
                 {"sm_90a:12", 128, 8, 0, NULL},
                 {"sm_90a:12", 64, 4, 0, NULL},
                 {"sm_90a:12", 64, 6, 0, "finds 2 warps beside whole warpgroups"},
                 {"sm_100a:12", 64, 8, 0, "instructions of sm_90a"},
                 {"sm_90a:12", 16, 8, MGL_GAMMA_NO, "see the knobs second_rows and gamma_scaled"},
                 {"sm_90a:12", 0, 8, 0, "see the knobs second_rows and gamma_scaled"},
                 {"cpu:2", 64, 8, 0, "on a GPU"}};
    mgl_config model;
    mgl_schedule_config config;
    mgl_program *p;
    mgl_error err;
    const mgl_target target = target_of(cases[_i].target);
    const mgl_lower_options options = {.dtype = MGL_BF16, .capacity = 64, .sequences = 1};
    ck_assert_int_eq(mgl_synthetic_find_shape("llama-1b", &model, NULL), MGL_OK);
    mgl_graph *graph = open_graph(&model);
    mgl_schedule_config_default(&config);
    config.rows = 1;
    config.second_rows = cases[_i].second_rows;
    config.warps = cases[_i].warps;
    config.gamma_scaled = cases[_i].gamma_scaled;
    config.warpgroups = MGL_WARPGROUPS_YES;
    mgl_status status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    if (cases[_i].says) {
        ck_assert_int_eq(status, MGL_BAD_INPUT);
        ck_assert_msg(strstr(err.message, cases[_i].says), "%s", err.message);
    } else {
        ck_assert_msg(!status, "%s: %s", err.where, err.message);
        ck_assert_int_gt(panels_by(p->second, MGL_VARIANT_WARPGROUPS), 0);
        named[MGL_VARIANT_WARPGROUPS]++;
        const int used = mgl_shared_reserved(config.second_rows) + p->exec.stage_bytes +
                         p->exec.ring_pages * p->exec.page_bytes;
        ck_assert_int_le(used, p->target.shared_bytes); /* and at most a unit is left */
        ck_assert_int_gt(used + MGL_STAGE_UNIT, p->target.shared_bytes);
        mgl_program_free(p);
    }
    config.warpgroups = 0;
    status = mgl_schedule_lower(graph, &target, &options, &config, &p, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    if (p->second && strcmp(cases[_i].target, "cpu:2") && cases[_i].gamma_scaled != MGL_GAMMA_NO)
        ck_assert_int_gt(
            panels_by(p->second, cases[_i].says ? MGL_VARIANT_PANELS : MGL_VARIANT_WARPGROUPS), 0);
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

/* Each variant occurred in a test above. (The suite does not fork.) */
START_TEST(every_variant_was_named)
{
    for (int v = 0; v < MGL_VARIANT_COUNT; v++)
        ck_assert_msg(named[v] > 0, "%s", mgl_variant_get((mgl_variant)v)->name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule variants");
    TCase *cases = tcase_create("variants");
    tcase_add_test(cases, every_expression_of_the_table_is_one);
    tcase_add_test(cases, every_op_has_general);
    tcase_add_test(cases, names_are_found_and_no_others);
    tcase_add_loop_test(cases, shapes_have_the_variants_that_the_kernel_chose, 0,
                        sizeof shapes / sizeof *shapes);
    tcase_add_loop_test(cases, models_have_the_variants_that_the_kernel_chose, 0,
                        sizeof models / sizeof *models);
    tcase_add_loop_test(cases, odd_shapes_have_the_variants_that_the_kernel_chose, 0,
                        sizeof odd / sizeof *odd);
    tcase_add_loop_test(cases, gamma_scaled_values_are_multiplied_by_panels, 0, 7);
    tcase_add_loop_test(cases, gamma_scaled_values_are_multiplied_by_warpgroups, 0, 8);
    tcase_add_test(cases, every_variant_was_named);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* `named` accumulates over tests */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
