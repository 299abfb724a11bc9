/*
 * Tests of the programs whose keys and values come through the page ring: which programs do, the
 * order of their pages among the tape's pages, and the positions of a chunk in the cache.
 */
#include "tests/vm/cuda/cuda_support.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/schedule.h"
#include "schedule/variant_shapes.h"
#include "schedule/variants.h"
#include "vm/cuda/encode.h"

/* Whether all products are skinny, and attention uses KV rounds or the ring. */
static bool is_plain(const mgl_program *program)
{
    const uint32_t waves = 1u << MGL_VARIANT_KV_ROUNDS, ring = 1u << MGL_VARIANT_RING;
    const uint32_t attention = mgl_cuda_variants(program, MGL_FAMILY_ATTENTION, "sm_90a");
    return mgl_cuda_variants(program, MGL_FAMILY_PRODUCT, "sm_90a") == 1u << MGL_VARIANT_SKINNY &&
           (attention == waves || attention == ring);
}

/* ---- which programs -------------------------------------------------------------------------- */

/* hidden 128, 1 layer, 2:1 heads, ffn 96, vocab 41, by head_dim */
static const mgl_geometry heads_of_64 = {128, 1, 2, 1, 64, 96, 41, 1e-5f};
static const mgl_geometry heads_of_96 = {128, 1, 2, 1, 96, 96, 41, 1e-5f};
static const mgl_geometry heads_of_128 = {128, 1, 2, 1, 128, 96, 41, 1e-5f};
static const mgl_geometry llama_1b = {2048, 16, 32, 8, 64, 8192, 128256, 1e-5f};

static mgl_program *program_of(const mgl_geometry *geometry, const char *target,
                               const device_options *options)
{
    mgl_graph *graph = random_graph(geometry, 32768, true, MGL_BF16, 5);
    mgl_program *program = program_for(graph, target, options);
    mgl_graph_free(graph);
    return program;
}

/* Splits of 256 positions, one more than 8 warps hold in registers, in pages of 512: as many spans
 * as warps. */
static const device_options streamed = {.dtype = MGL_BF16,
                                        .capacity = 512,
                                        .rows = 1,
                                        .splits = 2,
                                        .exchange = MGL_EXCHANGE_FLAGS,
                                        .page_bytes = 16384,
                                        .warps = 8};

START_TEST(past_comes_by_bulk_copies)
{
    static const struct {
        const char *arch;
        bool streams;
    } cases[] = {{"sm_90a", true},      {"sm_90", true},   {"compute_90", true}, {"sm_100a", true},
                 {"sm_120", true},      {"sm_89", false},  {"sm_86", false},     {"sm_80", false},
                 {"compute_80", false}, {"sm90a", false},  {"90", false},        {"sm_", false},
                 {"sm_a90", false},     {"sm_-90", false}, {"", false}};
    mgl_program *program = program_of(&small_model, "sm_90a:2", &streamed);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(mgl_cuda_streams_kv(program, cases[i].arch) == cases[i].streams, "%s",
                      cases[i].arch);
    mgl_program_free(program);
}
END_TEST

/* A schedule for a newer device is not run with a variant that it does not name. */
START_TEST(an_older_device_has_no_ring)
{
    mgl_error err = {0};
    mgl_program *program = program_of(&small_model, "sm_90a:2", &streamed);
    ok(mgl_cuda_check_arch(program, "sm_90", &err), err);
    ck_assert_int_eq(mgl_cuda_check_arch(program, "sm_89", &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, ".ring, which is for sm_90 and newer, and this"));
    mgl_program_free(program);
}
END_TEST

/* The difference from `streamed`, 0: none; and whether the program is plain. */
static const struct {
    device_options with;
    bool plain, streams;
} past_cases[] = {
    {{.dtype = MGL_BF16}, true, true},
    {{.dtype = MGL_F16}, true, true},
    {{.dtype = MGL_F32}, false, false},
    {{.dtype = MGL_BF16, .rows = 2}, false, false},
    {{.dtype = MGL_BF16, .exchange = MGL_EXCHANGE_COUNTERS}, false, false},
    {{.dtype = MGL_BF16, .splits = 1}, true, false},
    {{.dtype = MGL_BF16, .splits = 1, .capacity = 8192}, true, false},
    /* positions of the largest split: 255 and 256, twice */
    {{.dtype = MGL_BF16, .capacity = 510}, true, false},
    {{.dtype = MGL_BF16, .capacity = 511}, true, true},
    {{.dtype = MGL_BF16, .capacity = 765, .splits = 3}, true, false},
    {{.dtype = MGL_BF16, .capacity = 766, .splits = 3}, true, true},
    /* spans of a page beside warps: 8 and 7, 9 and 8, 4 and 4, 1 and 1 */
    {{.dtype = MGL_BF16, .warps = 7}, true, false},
    {{.dtype = MGL_BF16, .page_bytes = 18432}, true, false},
    {{.dtype = MGL_BF16, .page_bytes = 8192, .warps = 4}, true, true},
    {{.dtype = MGL_BF16, .page_bytes = 2048, .warps = 1}, true, true},
};

START_TEST(past_of_plain_programs_comes_through_the_ring)
{
    device_options options = past_cases[_i].with;
    const struct {
        int from, *to;
    } rest[] = {{streamed.capacity, &options.capacity},     {streamed.rows, &options.rows},
                {streamed.splits, &options.splits},         {streamed.exchange, &options.exchange},
                {streamed.page_bytes, &options.page_bytes}, {streamed.warps, &options.warps}};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (*rest[i].to == 0)
            *rest[i].to = rest[i].from;
    mgl_program *program = program_of(&small_model, "sm_90a:2", &options);
    ck_assert_int_eq(is_plain(program), past_cases[_i].plain);
    ck_assert_int_eq(mgl_cuda_streams_kv(program, "sm_90a"), past_cases[_i].streams);
    mgl_program_free(program);
}
END_TEST

/* By head_dim: the positions that a warp attends to at once must fit on a page, and only whole
 * groups of eight chunks are swizzled. */
START_TEST(past_needs_room_on_a_page)
{
    static const struct {
        const mgl_geometry *geometry;
        int page_bytes;
        bool streams, swizzles;
    } cases[] = {{&small_model, 16384, true, false}, {&heads_of_64, 7680, false, false},
                 {&heads_of_64, 8192, true, true},   {&heads_of_96, 5632, false, false},
                 {&heads_of_96, 6144, true, false},  {&heads_of_128, 7680, false, false},
                 {&heads_of_128, 8192, true, true},  {&heads_of_128, 16384, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        device_options options = streamed;
        options.page_bytes = cases[i].page_bytes;
        mgl_program *program = program_of(cases[i].geometry, "sm_90a:2", &options);
        ck_assert(is_plain(program));
        ck_assert_msg(mgl_cuda_streams_kv(program, "sm_90a") == cases[i].streams, "case %zu", i);
        ck_assert_msg(mgl_cuda_swizzles_kv(program, "sm_90a") == cases[i].swizzles, "case %zu", i);
        ck_assert(!mgl_cuda_swizzles_kv(program, "sm_80"));
        mgl_program_free(program);
    }
}
END_TEST

/* Each of a queue's 4 attentions may need a page of keys, one of values, and a repeated page of the
 * tape. */
START_TEST(past_counts_among_the_pages_of_all_epochs)
{
    mgl_program *program = program_of(&small_model, "sm_90a:2", &streamed);
    const int64_t most = UINT32_MAX / ((int64_t)program->limits.capacity + 2);
    program->queues[1].tape_bytes = (most - 4 * 3) * program->exec.page_bytes;
    mgl_variants_choose(program);
    ck_assert(mgl_cuda_streams_kv(program, "sm_90a"));
    program->queues[1].tape_bytes += program->exec.page_bytes;
    mgl_variants_choose(program);
    ck_assert(!mgl_cuda_streams_kv(program, "sm_90a"));
    mgl_program_free(program);
}
END_TEST

/* ---- attention on the tape ------------------------------------------------------------------- */

enum { BASE_SHIFT = 32 };

/* A program and its tables; buffer i is at (i + 1) << BASE_SHIFT. */
typedef struct encoded {
    mgl_program *program;
    mgl_cuda_tables tables;
    int page_blocks;
} encoded;

static const struct {
    const mgl_geometry *geometry; /* NULL: program_apart */
    const char *target;
    device_options options;
    bool shares; /* some queue has two attentions at one place, */
    bool within; /* and some has one within a page */
} past_shapes[] = {
    {&llama_1b, "sm_90a:132", {.dtype = MGL_BF16, .capacity = 8192, .rows = 1}, false, false},
    {&llama_1b,
     "sm_90a:132",
     {.dtype = MGL_BF16, .capacity = 8192, .rows = 1, .page_bytes = 10240},
     false,
     true},
    {&small_model,
     "sm_90a:1",
     {.dtype = MGL_BF16, .capacity = 512, .rows = 1, .splits = 2, .page_bytes = 5632},
     true,
     true},
    {&small_model,
     "sm_90a:3",
     {.dtype = MGL_BF16, .capacity = 512, .rows = 1, .splits = 4, .page_bytes = 2560},
     true,
     true},
    {&small_model,
     "sm_90a:2",
     {.dtype = MGL_BF16, .capacity = 512, .rows = 1, .splits = 1, .page_bytes = 5632},
     false,
     true},
    {NULL, NULL, {0}, true, true},
};
enum { PAST_SHAPES = sizeof past_shapes / sizeof *past_shapes };

/* Attention is on two of four queues, after their whole tape: one has some of qkv, the other
 * nothing. */
static mgl_program *program_apart(void)
{
    mgl_error err;
    mgl_program *program;
    mgl_schedule_config config;
    mgl_target target;
    mgl_graph *graph = random_graph(&small_model, 512, true, MGL_BF16, 5);
    mgl_schedule_config_default(&config);
    config.rows = 1;
    config.splits = 2;
    config.exchange = MGL_EXCHANGE_FLAGS;
    config.page_bytes = 5632;
    for (int i = 0; i < MGL_STEP_COUNT; i++)
        config.queues[i].count = i == MGL_STEP_QKV ? 3 : 2;
    config.queues[MGL_STEP_ATTEND].first = 2;
    ok(mgl_target_parse("sm_90a:4", &target, &err), err);
    ok(mgl_schedule_lower(graph, &target,
                          &(mgl_lower_options){.dtype = MGL_BF16, .capacity = 512, .sequences = 1},
                          &config, &program, &err),
       err);
    ck_assert_int_gt(program->queues[2].tape_pad, 0);
    ck_assert_int_eq(program->queues[3].tape_bytes, 0);
    mgl_graph_free(graph);
    return program;
}

static encoded encode_shape(int shape, bool past)
{
    mgl_error err;
    uint64_t tapes[256] = {0}, buffers[1024];
    encoded e = {.program = past_shapes[shape].geometry
                                ? program_of(past_shapes[shape].geometry, past_shapes[shape].target,
                                             &past_shapes[shape].options)
                                : program_apart()};
    ck_assert_int_le(e.program->buffer_count, 1024);
    ck_assert_int_le(e.program->queue_count, 256);
    for (int i = 0; i < e.program->buffer_count; i++)
        buffers[i] = (uint64_t)(i + 1) << BASE_SHIFT;
    ok(mgl_cuda_check_program(e.program, &err), err);
    ok(mgl_cuda_encode(e.program, &(mgl_cuda_addresses){buffers, tapes, past}, &e.tables, &err),
       err);
    e.page_blocks = e.program->exec.page_bytes / MGL_BLOCK_BYTES;
    return e;
}

static void clear_encoded(encoded *e)
{
    mgl_cuda_tables_clear(&e->tables);
    mgl_program_free(e->program);
}

static const mgl_record *record_at(const encoded *e, unsigned at)
{
    return (const mgl_record *)(const void *)(e->tables.records + at);
}

static const mgl_device_segment *segments_of(const mgl_record *record)
{
    return (const mgl_device_segment *)(const void *)((const char *)record + record->segment_at);
}

static const mgl_device_kv *stops_of(const encoded *e, int queue)
{
    return (const mgl_device_kv *)(const void *)(e->tables.records + e->tables.queues[queue].kv_at);
}

static unsigned end_block(const mgl_device_segment *s)
{
    return s->block + (unsigned)(s->kblocks * s->groups);
}

/* The tape block at which the next task starts, or the tape's end; */
static unsigned next_block(const mgl_program *program, int queue, int task)
{
    const mgl_queue *of = &program->queues[queue];
    for (task++; task < of->tasks.first + of->tasks.count; task++)
        if (program->tasks[task].segments.count > 0)
            return (unsigned)(program->segments[program->tasks[task].segments.first].offset /
                              MGL_BLOCK_BYTES);
    return (unsigned)(of->tape_bytes / MGL_BLOCK_BYTES);
}

/* and whether an attention comes in between. */
static bool attention_between(const mgl_program *program, int queue, int task)
{
    const mgl_queue *of = &program->queues[queue];
    for (task++; task < of->tasks.first + of->tasks.count; task++) {
        if (program->tasks[task].segments.count > 0)
            return false;
        if (mgl_op_is_attention(program->tasks[task].op))
            return true;
    }
    return false;
}

static const mgl_buffer *buffer_at(const mgl_program *program, uint64_t address)
{
    return &program->buffers[(address >> BASE_SHIFT) - 1];
}

static void check_stop(const encoded *e, int queue, int task, int layer, const mgl_device_kv *stop)
{
    const mgl_program *p = e->program;
    const mgl_geometry *m = &p->geometry;
    const mgl_task *t = &p->tasks[task];
    const mgl_region *q = &p->regions[t->in.first], *out = &p->regions[t->out.first];
    const int64_t head = q->ranges[1].lo / ((int64_t)m->heads / m->kv_heads * m->head_dim);
    const uint64_t offset = (uint64_t)(head * p->limits.capacity * m->head_dim) * sizeof(uint16_t);
    char keys[16], values[16];
    snprintf(keys, sizeof keys, "k%d", layer);
    snprintf(values, sizeof values, "v%d", layer);
    ck_assert_uint_eq(stop->stop, next_block(p, queue, task));
    ck_assert_str_eq(buffer_at(p, stop->keys)->name, keys);
    ck_assert_str_eq(buffer_at(p, stop->values)->name, values);
    ck_assert_uint_eq(stop->keys & UINT32_MAX, offset);
    ck_assert_uint_eq(stop->values & UINT32_MAX, offset);
    ck_assert_int_eq(stop->split, t->op == MGL_OP_ATTEND ? 0 : out->ranges[0].lo);
    ck_assert_int_eq(stop->splits,
                     t->op == MGL_OP_ATTEND ? 1 : p->buffers[out->buffer].extents[0].count);
    const mgl_range *rows = &out->ranges[t->op == MGL_OP_ATTEND ? 0 : 1];
    ck_assert_uint_eq(stop->rows, rows->kind != MGL_RANGE_ROW_KIND ? MGL_KV_ALL
                                  : rows->lo == MGL_ROWS_UNSPLIT   ? MGL_KV_UNSPLIT
                                                                   : MGL_KV_SPLIT);
}

/* The layer of an attention: its q is of the buffer l<layer>.qkv. */
static int layer_of(const mgl_program *program, const mgl_task *task)
{
    int layer = -1;
    ck_assert_int_eq(
        sscanf(program->buffers[program->regions[task->in.first].buffer].name, "l%d.qkv", &layer),
        1);
    return layer;
}

START_TEST(the_loader_knows_each_attention)
{
    encoded e = encode_shape(_i, true);
    int shared = 0;
    for (int q = 0; q < e.program->queue_count; q++) {
        const mgl_run *tasks = &e.program->queues[q].tasks;
        const mgl_device_kv *stops = stops_of(&e, q);
        unsigned count = 0;
        ck_assert_uint_eq(e.tables.queues[q].kv_at % 16, 0);
        for (int i = tasks->first; i < tasks->first + tasks->count; i++) {
            if (!mgl_op_is_attention(e.program->tasks[i].op))
                continue;
            ck_assert_uint_lt(count, e.tables.queues[q].kv_count);
            check_stop(&e, q, i, layer_of(e.program, &e.program->tasks[i]), &stops[count]);
            if (count > 0) {
                ck_assert_uint_le(stops[count - 1].stop, stops[count].stop);
                shared += stops[count - 1].stop == stops[count].stop;
            }
            count++;
        }
        ck_assert_uint_eq(e.tables.queues[q].kv_count, count);
    }
    ck_assert_int_eq(shared > 0, past_shapes[_i].shares);
    clear_encoded(&e);
}
END_TEST

/* A page whose rest is loaded again: after the last attention within it. */
START_TEST(attention_stands_before_a_page)
{
    encoded e = encode_shape(_i, true);
    int again = 0;
    for (int q = 0; q < e.program->queue_count; q++) {
        const mgl_device_queue *queue = &e.tables.queues[q];
        const mgl_device_kv *stop = stops_of(&e, q), *end = stop + queue->kv_count;
        unsigned at = queue->first;
        do {
            const mgl_record *r = record_at(&e, at);
            at = r->next;
            if (!mgl_op_is_attention((mgl_op)r->op)) {
                ck_assert_uint_eq(r->kv_again, 0);
                continue;
            }
            const unsigned blocks = (unsigned)e.page_blocks;
            const bool within = stop->stop % blocks != 0;
            const bool another = stop + 1 < end && stop[1].stop == stop->stop;
            ck_assert_uint_eq(r->kv_page, (stop->stop + blocks - 1) / blocks);
            ck_assert_uint_eq(r->kv_again, within && !another);
            again += (int)r->kv_again;
            stop++;
        } while (at != queue->first);
        ck_assert_ptr_eq(stop, end);
    }
    ck_assert_int_eq(again > 0, past_shapes[_i].within);
    clear_encoded(&e);
}
END_TEST

/* Checks the page up to which a segment frees pages: the page where the next segment begins, or the
 * one after it if an attention comes before; the tape's end after the last. Returns whether the
 * attention made a difference. */
static int check_end(const encoded *e, int queue, const mgl_record *r, bool past)
{
    const unsigned blocks = (unsigned)e->page_blocks;
    const mgl_device_segment *s = segments_of(r);
    int i = 0;
    for (; i + 1 < r->segments; i++)
        ck_assert_uint_eq(s[i].end, end_block(&s[i]) / blocks);
    const bool up = past && attention_between(e->program, queue, r->task);
    const unsigned next = next_block(e->program, queue, r->task);
    ck_assert_uint_eq(s[i].end, (next + (up ? blocks - 1 : 0)) / blocks);
    return up && next % blocks != 0;
}

START_TEST(a_segment_before_an_attention_ends_behind_its_page)
{
    for (int past = 0; past < 2; past++) {
        encoded e = encode_shape(_i, past);
        int rounded = 0;
        for (int q = 0; q < e.program->queue_count; q++) {
            unsigned at = e.tables.queues[q].first;
            do {
                const mgl_record *r = record_at(&e, at);
                if (r->segments > 0)
                    rounded += check_end(&e, q, r, past);
                at = r->next;
            } while (at != e.tables.queues[q].first);
        }
        ck_assert_int_eq(rounded > 0, past && past_shapes[_i].within);
        clear_encoded(&e);
    }
}
END_TEST

START_TEST(without_the_ring_no_attention_is_listed)
{
    encoded with = encode_shape(_i, true), without = encode_shape(_i, false);
    size_t bytes = 0;
    for (int q = 0; q < with.program->queue_count; q++) {
        ck_assert_uint_eq(without.tables.queues[q].kv_count, 0);
        ck_assert_uint_eq(without.tables.queues[q].kv_at, 0);
        bytes += with.tables.queues[q].kv_count * sizeof(mgl_device_kv);
    }
    ck_assert_uint_gt(bytes, 0);
    ck_assert_uint_eq(without.tables.record_bytes + bytes, with.tables.record_bytes);
    clear_encoded(&with);
    clear_encoded(&without);
}
END_TEST

/* A page of the ring: blocks [from, to) of the tape, or, if empty, keys or values of the attention
 * with that number. */
typedef struct ring_page {
    unsigned from, to;
    unsigned attention;
} ring_page;

/* The pages of keys and values of an attention in an epoch: few, or none. */
static unsigned pages_of(unsigned epoch, unsigned attention)
{
    return (epoch + attention) % 3 * 2;
}

enum { EPOCHS = 3, MOST_PAGES = 1 << 16 };

/* The pages that the loader copies, in order (device/roles/loader.cuh). Returns their number. */
static unsigned load_pages(const encoded *e, int q, ring_page *pages)
{
    const mgl_device_queue *queue = &e->tables.queues[q];
    const mgl_device_kv *stops = stops_of(e, q);
    const unsigned blocks = (unsigned)e->page_blocks, end = queue->pages * blocks;
    unsigned count = 0;
    for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
        unsigned stop = 0, at = 0;
        while (at < end || stop < queue->kv_count) {
            ck_assert_uint_lt(count + 8, MOST_PAGES);
            if (stop < queue->kv_count && stops[stop].stop == at) {
                for (unsigned i = 0; i < pages_of(epoch, stop); i++)
                    pages[count++] = (ring_page){0, 0, stop};
                stop++;
                continue;
            }
            unsigned to = (at / blocks + 1) * blocks;
            if (stop < queue->kv_count && stops[stop].stop < to)
                to = stops[stop].stop;
            ck_assert_uint_lt(at, to);
            pages[count++] = (ring_page){at, to, 0};
            at = to;
        }
    }
    return count;
}

/* A queue's position in the ring, as the consumers count. */
typedef struct reader {
    const ring_page *pages;
    unsigned base, freed; /* the epoch's page 0, and the first page that is not freed */
    unsigned attention;   /* number of the next */
} reader;

static void read_product(const encoded *e, const mgl_record *r, reader *to)
{
    const unsigned blocks = (unsigned)e->page_blocks;
    const mgl_device_segment *s = segments_of(r);
    ck_assert_uint_eq(to->freed, to->base + s->block / blocks);
    for (int i = 0; i < r->segments; i++) {
        unsigned missing = 0;
        for (unsigned b = s[i].block; b < end_block(&s[i]); b++) {
            const ring_page *page = &to->pages[to->base + b / blocks];
            missing += b < page->from || b >= page->to;
        }
        ck_assert_uint_eq(missing, 0);
    }
    to->freed = to->base + s[r->segments - 1].end;
}

static void read_past(const mgl_record *r, unsigned epoch, reader *to)
{
    const unsigned count = pages_of(epoch, to->attention), first = to->base + r->kv_page;
    ck_assert_uint_eq(to->freed, first);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_uint_eq(to->pages[first + i].to, 0);
        ck_assert_uint_eq(to->pages[first + i].attention, to->attention);
    }
    to->attention++;
    to->freed += count;
    to->base += count + r->kv_again;
}

/* Checks that every block of a task is on the ring page where the task looks for it, and that no
 * page is left. */
START_TEST(the_ring_has_what_records_look_for)
{
    encoded e = encode_shape(_i, true);
    ring_page *pages = mgl_alloc_zero(MOST_PAGES, sizeof *pages);
    for (int q = 0; q < e.program->queue_count; q++) {
        const mgl_device_queue *queue = &e.tables.queues[q];
        const unsigned count = load_pages(&e, q, pages);
        reader at = {.pages = pages};
        for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
            unsigned record = queue->first;
            at.attention = 0;
            do {
                const mgl_record *r = record_at(&e, record);
                if (r->segments > 0)
                    read_product(&e, r, &at);
                else if (mgl_op_is_attention((mgl_op)r->op))
                    read_past(r, epoch, &at);
                record = r->next;
            } while (record != queue->first);
            at.base += queue->pages;
            ck_assert_uint_eq(at.freed, at.base);
        }
        ck_assert_uint_eq(at.freed, count);
    }
    mgl_free(pages);
    clear_encoded(&e);
}
END_TEST

/* ---- chunks of a position -------------------------------------------------------------------- */

static const int swizzled_heads[] = {64, 128};

START_TEST(chunks_of_a_position_change_places)
{
    const int chunks = swizzled_heads[_i] / 8;
    ck_assert(MGL_KV_SWIZZLED(swizzled_heads[_i]));
    for (int value = 0; value < 2; value++)
        for (int position = 0; position < 16; position++) {
            unsigned seen = 0;
            for (int chunk = 0; chunk < chunks; chunk++) {
                const int place = mgl_kv_chunk(value, position, chunk);
                ck_assert_int_ge(place, 0);
                ck_assert_int_lt(place, chunks);
                seen |= 1u << place;
            }
            ck_assert_uint_eq(seen, (1u << chunks) - 1);
        }
}
END_TEST

/* The 16-byte column of 128 bytes of shared memory that a lane reads, as a bit. */
static unsigned column_of(int head_dim, int value, int position, int chunk)
{
    return 1u << (position * head_dim / 8 + mgl_kv_chunk(value, position, chunk)) % 8;
}

/* Lanes that read keys: four chunks of a position and of the next one. */
START_TEST(keys_are_read_from_all_banks)
{
    for (int position = 0; position < 16; position++)
        for (int chunk = 0; chunk < swizzled_heads[_i] / 8; chunk += 4) {
            unsigned columns = 0;
            for (int lane = 0; lane < 8; lane++)
                columns |= column_of(swizzled_heads[_i], 0, position + lane / 4, chunk + lane % 4);
            ck_assert_uint_eq(columns, 0xFF);
        }
}
END_TEST

/* Lanes that read values: two chunks of every second of eight positions. */
START_TEST(values_are_read_from_all_banks)
{
    for (int position = 0; position < 16; position++)
        for (int chunk = 0; chunk < swizzled_heads[_i] / 8; chunk += 2) {
            unsigned columns = 0;
            for (int lane = 0; lane < 8; lane++)
                columns |=
                    column_of(swizzled_heads[_i], 1, position + lane % 4 * 2, chunk + lane / 4);
            ck_assert_uint_eq(columns, 0xFF);
        }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda past");
    tcase_add_test(tests, past_comes_by_bulk_copies);
    tcase_add_test(tests, an_older_device_has_no_ring);
    tcase_add_loop_test(tests, past_of_plain_programs_comes_through_the_ring, 0,
                        sizeof past_cases / sizeof *past_cases);
    tcase_add_test(tests, past_needs_room_on_a_page);
    tcase_add_test(tests, past_counts_among_the_pages_of_all_epochs);
    tcase_add_loop_test(tests, the_loader_knows_each_attention, 0, PAST_SHAPES);
    tcase_add_loop_test(tests, attention_stands_before_a_page, 0, PAST_SHAPES);
    tcase_add_loop_test(tests, a_segment_before_an_attention_ends_behind_its_page, 0, PAST_SHAPES);
    tcase_add_loop_test(tests, without_the_ring_no_attention_is_listed, 0, PAST_SHAPES);
    tcase_add_loop_test(tests, the_ring_has_what_records_look_for, 0, PAST_SHAPES);
    tcase_add_loop_test(tests, chunks_of_a_position_change_places, 0, 2);
    tcase_add_loop_test(tests, keys_are_read_from_all_banks, 0, 2);
    tcase_add_loop_test(tests, values_are_read_from_all_banks, 0, 2);
    return fixture_main("cuda past", tests);
}
