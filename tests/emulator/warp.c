/*
 * Emulates the collective operations of a warp: votes, shuffles, reductions, mma.m16n8k16,
 * mma.m16n8k32, and a warp's part of wgmma.m64nNk16.
 */
#include <string.h>

#include "base/dtype.h"
#include "state.h"

/* ---- mma ------------------------------------------------------------------------------------- */

enum { M = 16, N = 8, K = 16 };

static float element(uint32_t word, int half, bool bf16)
{
    uint16_t bits = (uint16_t)(word >> 16 * half);
    return bf16 ? mgl_bf16_to_f32(bits) : mgl_f16_to_f32(bits);
}

/* The fragment layout of PTX ISA 9.7.14.5.8: lane 4 g + t has, of A, rows g and g + 8 and columns 2
 * t and 2 t + 8 (two each); of B, the same k in column g; of D, columns 2 t and 2 t + 1 of rows g
 * and g + 8. */
static void gather_rows(const emu_warp *warp, bool bf16, float a[M][K])
{
    for (int lane = 0; lane < EMU_LANES; lane++)
        for (int i = 0; i < 8; i++)
            a[lane / 4 + i / 2 % 2 * 8][lane % 4 * 2 + i / 4 * 8 + i % 2] =
                element(warp->lanes[lane].a[i / 2], i % 2, bf16);
}

static void gather(const emu_warp *warp, bool bf16, float a[M][K], float b[K][N])
{
    gather_rows(warp, bf16, a);
    for (int lane = 0; lane < EMU_LANES; lane++)
        for (int i = 0; i < 4; i++)
            b[lane % 4 * 2 + i / 2 * 8 + i % 2][lane / 4] =
                element(warp->lanes[lane].b[i / 2], i % 2, bf16);
}

/* The index in D of lane `lane`'s i-th element. */
static float *element_of(float d[M][N], int lane, int i)
{
    return &d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

/* A row of D or B as one vector of the compiler: products take most of the emulator's time. */
typedef float row_of_n __attribute__((vector_size(N * sizeof(float))));

/* Adds each sum in the order of k. */
static void multiply(emu_warp *warp, bool bf16)
{
    float a[M][K], b[K][N], d[M][N];
    row_of_n columns[K], sum;
    gather(warp, bf16, a, b);
    memcpy(columns, b, sizeof columns);
    for (int i = 0; i < M * N; i++)
        *element_of(d, i / 4, i % 4) = warp->lanes[i / 4].d[i % 4];
    for (int row = 0; row < M; row++) {
        memcpy(&sum, d[row], sizeof sum);
        for (int k = 0; k < K; k++)
            sum += a[row][k] * columns[k];
        memcpy(d[row], &sum, sizeof sum);
    }
    for (int i = 0; i < M * N; i++)
        warp->lanes[i / 4].d[i % 4] = *element_of(d, i / 4, i % 4);
}

enum { BYTES_K = 32 };

/* mma.m16n8k32 with unsigned bytes in A and signed bytes in B. Lane 4 g + t has rows g and g + 8 of
 * A and column g of B, at k = 4 t to 4 t + 3 and 4 t + 16 to 4 t + 19. The layout of D is the same
 * as above. */
static void multiply_bytes(emu_warp *warp)
{
    uint8_t a[M][BYTES_K];
    int8_t b[N][BYTES_K];
    for (int lane = 0; lane < EMU_LANES; lane++) {
        const emu_lane *l = &warp->lanes[lane];
        for (int i = 0; i < 4; i++)
            memcpy(&a[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16], &l->a[i], sizeof l->a[i]);
        for (int i = 0; i < 2; i++)
            memcpy(&b[lane / 4][lane % 4 * 4 + i * 16], &l->b[i], sizeof l->b[i]);
    }
    for (int i = 0; i < M * N; i++) {
        const int lane = i / 4, row = lane / 4 + i % 4 / 2 * 8, column = lane % 4 * 2 + i % 2;
        int32_t sum;
        memcpy(&sum, &warp->lanes[lane].d[i % 4], sizeof sum);
        for (int k = 0; k < BYTES_K; k++)
            sum += a[row][k] * b[column][k];
        memcpy(&warp->lanes[lane].d[i % 4], &sum, sizeof sum);
    }
}

/* ---- wgmma ------------------------------------------------------------------------------------
 *
 * B lies column by column, 16 k of 64 bytes of a column; eight columns are an atom. Bits 4 and 5 of
 * an address are swizzled by bits 7 and 8.
 */

enum { MOST_COLUMNS = 64 };

/* The operand's element at k and column, in the block's shared memory. */
static const uint16_t *operand_at(const emu_warp *warp, uint64_t descriptor, int k, int column)
{
    const size_t start = (size_t)(descriptor & 0x3FFF) << 4;
    const size_t stride = (size_t)(descriptor >> 32 & 0x3FFF) << 4;
    size_t at = start + (size_t)(column / 8) * stride + (size_t)(column % 8) * 64 + (size_t)k * 2;
    at ^= (at >> 7 & 3) << 4;
    if (descriptor >> 62 != 2 || at + 2 > emu.shared_bytes)
        emu_fail("a descriptor of wgmma, 0x%llx", (unsigned long long)descriptor);
    return (const uint16_t *)(warp->block->shared + at);
}

static uint64_t sum_of(const emu_warp *warp, uint64_t descriptor, int columns)
{
    uint64_t sum = 1469598103934665603u;
    for (int column = 0; column < columns; column++)
        for (int k = 0; k < K; k++)
            sum = (sum ^ *operand_at(warp, descriptor, k, column)) * 1099511628211u;
    return sum;
}

/* Adds each sum in the order of k. */
static void multiply_warpgroup(emu_warp *warp)
{
    const emu_lane *first = &warp->lanes[0];
    const uint64_t descriptor = first->value;
    const int columns = first->argument;
    float a[M][K], b[K];
    for (int i = 0; i < EMU_LANES; i++)
        if (warp->lanes[i].value != descriptor || warp->lanes[i].argument != columns)
            emu_fail("lanes have different descriptors of wgmma");
    if (!warp->fenced || warp->product_count == EMU_MOST_PRODUCTS)
        emu_fail("wgmma %s", warp->fenced ? "too often without a wait" : "without its fence");
    warp->products[warp->product_count++] =
        (emu_operand){descriptor, columns, sum_of(warp, descriptor, columns)};
    warp->multiplied = (warp->multiplied ^ descriptor ^ (uint64_t)columns << 48) * 1099511628211u;
    gather_rows(warp, true, a);
    for (int column = 0; column < columns; column++) {
        for (int k = 0; k < K; k++)
            b[k] = mgl_bf16_to_f32(*operand_at(warp, descriptor, k, column));
        for (int row = 0; row < M; row++) {
            float *d = &warp->lanes[row % 8 * 4 + column % 8 / 2]
                            .d[column / 8 * 4 + row / 8 * 2 + column % 2];
            for (int k = 0; k < K; k++)
                *d += a[row][k] * b[k];
        }
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void shuffle(emu_warp *warp)
{
    uint64_t values[EMU_LANES];
    for (int i = 0; i < EMU_LANES; i++)
        values[i] = warp->lanes[i].value;
    for (int i = 0; i < EMU_LANES; i++)
        warp->lanes[i].value = values[warp->lanes[i].argument & (EMU_LANES - 1)];
}

static uint64_t combine(emu_meeting kind, uint64_t all, uint64_t one, int lane)
{
    switch (kind) {
    case EMU_BALLOT:
        return all | (uint64_t)(one != 0) << lane;
    case EMU_ALL:
        return all && one;
    case EMU_ANY:
        return all || one;
    case EMU_MAX:
        return all > one ? all : one;
    case EMU_MIN:
        return all < one ? all : one;
    case EMU_MIN_SIGNED:
        return (int64_t)all < (int64_t)one ? all : one;
    case EMU_ADD:
        return all + one;
    default:
        return 0;
    }
}

static uint64_t neutral(emu_meeting kind)
{
    return kind == EMU_ALL          ? 1
           : kind == EMU_MIN        ? UINT64_MAX
           : kind == EMU_MIN_SIGNED ? INT64_MAX
                                    : 0;
}

static void reduce(emu_warp *warp, emu_meeting kind)
{
    uint64_t all = neutral(kind);
    for (int i = 0; i < EMU_LANES; i++)
        if (warp->lanes[i].state == EMU_MEETING)
            all = combine(kind, all, warp->lanes[i].value, i);
    for (int i = 0; i < EMU_LANES; i++)
        warp->lanes[i].value = all;
}

/* ---- meetings -------------------------------------------------------------------------------- */

/* The operation that all lanes request. If lanes request different operations, the launch fails. */
static emu_meeting kind_of(const emu_warp *warp)
{
    int kind = -1;
    for (int i = 0; i < EMU_LANES; i++) {
        const emu_lane *lane = &warp->lanes[i];
        if (lane->state != EMU_MEETING)
            continue;
        if (kind >= 0 && kind != (int)lane->meeting)
            emu_problem("lanes of a warp meet for different things");
        kind = (int)lane->meeting;
    }
    return (emu_meeting)kind;
}

void emu_conclude(emu_warp *warp)
{
    emu_meeting kind = kind_of(warp);
    const bool whole = kind == EMU_SHUFFLE || kind == EMU_MMA_BF16 || kind == EMU_MMA_F16 ||
                       kind == EMU_MMA_U8_S8 || kind == EMU_WARPGROUP;
    if (whole && warp->live < EMU_LANES)
        emu_problem("a shuffle or an mma of a warp that has lost lanes");
    else if (kind == EMU_SHUFFLE)
        shuffle(warp);
    else if (kind == EMU_WARPGROUP)
        multiply_warpgroup(warp);
    else if (kind == EMU_MMA_U8_S8)
        multiply_bytes(warp);
    else if (whole)
        multiply(warp, kind == EMU_MMA_BF16);
    else
        reduce(warp, kind);
    warp->meeting = 0;
    warp->turns--;
    for (int i = 0; i < EMU_LANES; i++)
        if (warp->lanes[i].state == EMU_MEETING)
            emu_make_ready(&warp->lanes[i]);
}

static void meet(emu_lane *lane, emu_meeting kind)
{
    lane->meeting = kind;
    lane->state = EMU_MEETING;
    if (++lane->warp->meeting < lane->warp->live) {
        emu_leave();
        return;
    }
    emu_conclude(lane->warp);
    if (lane->warp->turns <= 0 || emu.failed)
        emu_leave();
}

uint64_t emu_meet(emu_meeting kind, uint64_t value, int argument)
{
    emu_lane *lane = emu.current;
    lane->value = value;
    lane->argument = argument;
    meet(lane, kind);
    return lane->value;
}

void emu_mma(emu_meeting kind, float *d, const uint32_t *a, const uint32_t *b)
{
    emu_lane *lane = emu.current;
    lane->d = d;
    lane->a = a;
    lane->b = b;
    meet(lane, kind);
}

/* ---- warpgroups ------------------------------------------------------------------------------ */

void emu_warpgroup_multiply(float *d, const uint32_t *a, uint64_t descriptor, int columns)
{
    emu_lane *lane = emu.current;
    lane->d = d;
    lane->a = a;
    lane->value = descriptor;
    lane->argument = columns;
    meet(lane, EMU_WARPGROUP);
}

static bool is_first(void)
{
    return emu.current->number == 0;
}

void emu_warpgroup_fence(void)
{
    emu.current->warp->fenced |= is_first();
}

void emu_warpgroup_commit(void)
{
    if (is_first())
        emu.current->warp->committed = emu.current->warp->product_count;
}

/* Checks that the warps of a warpgroup execute the same products in the same order between the same
 * waits. */
static void compare_with_others(emu_warp *warp)
{
    emu_warp *first = warp - warp->number % EMU_WARPS_OF_GROUP;
    warp->multiplied_at[warp->waits % EMU_MOST_AHEAD] = warp->multiplied;
    for (int i = 0; i < EMU_WARPS_OF_GROUP; i++)
        if (first[i].waits > warp->waits && first[i].waits - warp->waits <= EMU_MOST_AHEAD &&
            first[i].multiplied_at[warp->waits % EMU_MOST_AHEAD] != warp->multiplied)
            emu_problem("warps of a warpgroup have multiplied different things");
    warp->waits++;
}

/* After the switch, other warps have run. */
void emu_warpgroup_wait(void)
{
    emu_warp *warp = emu.current->warp;
    emu_pause();
    if (!is_first())
        return;
    if (warp->committed < warp->product_count)
        emu_problem("wgmma waited for before it was committed");
    for (int i = 0; i < warp->product_count; i++) {
        const emu_operand *o = &warp->products[i];
        if (sum_of(warp, o->descriptor, o->columns) != o->sum)
            emu_problem("what wgmma reads has changed before it was waited for");
    }
    compare_with_others(warp);
    warp->product_count = warp->committed = 0;
    warp->fenced = false;
}
