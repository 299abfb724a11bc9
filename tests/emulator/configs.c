/* Runs programs of random configs in the emulator. See configs.h. */
#include "configs.h"

#include <stdio.h>

#include "models.h"
#include "schedule/variant_shapes.h"

enum { SHARED_BYTES = 227 * 1024 };

static const mgl_geometry tailed = {456, 1, 6, 2, 72, 1000, 210, 1e-5f};
static const mgl_geometry wide_ffn = {256, 1, 4, 2, 64, 2080, 150, 1e-5f};
static const mgl_geometry *const geometries[] = {
    &even_model,  &uneven_model, &even_heads, &idle_warps, &grouped_heads,
    &large_group, &long_heads,   &tailed,     &wide_ffn,   &small_model,
    &multi_query, &narrow_heads, &tiny_model};

static uint64_t drawn; /* the state of xorshift64 (Marsaglia 2003) */

static int draw(int end)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (int)(drawn % (uint64_t)end);
}

#define DRAW_OF(list) list[draw((int)(sizeof list / sizeof *list))]

/* Draws the ring, pages and warps: any combination that fits a block's shared memory. */
static void draw_stream(device_options *o)
{
    static const int pages[] = {2048, 2560, 4096, 8192, 8704, 16384, 32768, 65536};
    static const int rings[] = {2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 40, 63, 64};
    static const int warps[] = {1, 2, 3, 4, 5, 7, 8, 8, 12, 15, 16};
    static const int stages[] = {8192, 32768, 49152, 65536, 98304};
    static const int bytes[] = {2048, 4096, 32768, 65536, 1048576};
    o->warps = DRAW_OF(warps);
    do {
        o->page_bytes = DRAW_OF(pages);
        o->ring_pages = DRAW_OF(rings);
        o->stage_bytes = DRAW_OF(stages);
    } while (o->page_bytes * o->ring_pages + o->stage_bytes + MGL_SHARED_RESERVED > SHARED_BYTES);
    o->flight_bytes = DRAW_OF(bytes);
    o->pending_bytes = DRAW_OF(bytes);
    o->prefetch_bytes = DRAW_OF(bytes);
}

static device_options draw_options(void)
{
    device_options o = {0};
    draw_stream(&o);
    o.dtype = draw(6) == 0 ? MGL_F32 : draw(4) == 0 ? MGL_F16 : MGL_BF16;
    o.exchange = draw(4) == 0 ? MGL_EXCHANGE_COUNTERS : MGL_EXCHANGE_FLAGS;
    o.exchange_precision = draw(4);
    o.queues = draw(4) == 0 ? 9 + draw(12) : 2 + draw(7); /* up to 20 queues, so that queues may
                                                             have roles */
    o.splits = o.queues > 8 ? 1 : 1 + draw(4);
    o.merge = o.splits > 1 ? draw(3) : 0;
    o.share = draw(3) == 0 ? 1 + draw(24) : 0;
    o.rows = draw(3) == 0 ? 1 : 1 + draw(draw(2) ? 8 : 16);
    o.arch = draw(8) == 0 ? "compute_80" : NULL;
    if (o.rows < MGL_MAX_ROWS && draw(3) == 0)
        o.second_rows = o.rows + 1 + draw(MGL_MAX_ROWS - o.rows);
    o.unsplit = draw(2) ? 2 + draw(24) : 0;
    return o;
}

void check_config(int number)
{
    drawn = ((uint64_t)number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (int i = 0; i < 10; i++)
        draw(2); /* the hash makes neighboring seeds unrelated */
    const int which = draw((int)(sizeof geometries / sizeof *geometries));
    static const unsigned families[] = {MGL_EXTRA_NONE, MGL_EXTRA_QKV_BIAS, MGL_EXTRA_QK_NORM,
                                        ALL_EXTRAS};
    device_options o = draw_options();
    o.extras = families[number % 4];
    o.variants = number % 2 ? (uint32_t)number : 0;
    o.penalties = number % 3 == 2;
    printf("config %d: model %d, page %d, ring %d, warps %d, stage %d, flight %d, pending %d, "
           "prefetch %d, dtype %d, exchange %d, narrow %d, queues %d, splits %d, merge %d, share "
           "%d, unsplit %d, "
           "rows %d, second_rows %d%s\n",
           number, which, o.page_bytes, o.ring_pages, o.warps, o.stage_bytes, o.flight_bytes,
           o.pending_bytes, o.prefetch_bytes, (int)o.dtype, o.exchange, o.exchange_precision,
           o.queues, o.splits, o.merge, o.share, o.unsplit, o.rows, o.second_rows,
           o.arch ? ", by cp.async" : "");
    fflush(stdout);
    if (o.rows + o.second_rows >= 6 && draw(2))
        check_ragged(geometries[which], &o, 9);
    else
        check_logits(geometries[which], &o, number, 19, 5);
}
