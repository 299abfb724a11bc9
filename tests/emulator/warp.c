/* What the lanes of a warp do together: votes, shuffles, reductions, and mma.m16n8k16. */
#include <string.h>

#include "base/dtype.h"
#include "state.h"

/* ---- mma --------------------------------------------------------------------------------------
 */

enum { M = 16, N = 8, K = 16 };

static float element(uint32_t word, int half, bool bf16)
{
    uint16_t bits = (uint16_t)(word >> 16 * half);
    return bf16 ? mgl_bf16_to_f32(bits) : mgl_f16_to_f32(bits);
}

/* Fragments as PTX ISA 9.7.14.5.8 deals them: lane 4 g + t has, of A, rows g and g + 8 and columns
 * 2 t and 2 t + 8 (two each), of B the same of K in column g, of D columns 2 t and 2 t + 1 of rows
 * g, g + 8. */
static void gather(const emu_warp *warp, bool bf16, float a[M][K], float b[K][N])
{
    for (int lane = 0; lane < EMU_LANES; lane++) {
        const emu_lane *l = &warp->lanes[lane];
        int g = lane / 4, t = lane % 4;
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < 4; i++)
                a[g + i % 2 * 8][t * 2 + i / 2 * 8 + half] = element(l->a[i], half, bf16);
            for (int i = 0; i < 2; i++)
                b[t * 2 + i * 8 + half][g] = element(l->b[i], half, bf16);
        }
    }
}

/* What lane `lane` has as its i-th element of D. */
static float *element_of(float d[M][N], int lane, int i)
{
    return &d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

/* A row of D or B, as one value of the compiler's: products are what the emulator does most. */
typedef float row_of_n __attribute__((vector_size(N * sizeof(float))));

/* Each sum in the order of k. */
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

/* ---- values -----------------------------------------------------------------------------------
 */

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

/* ---- meetings ---------------------------------------------------------------------------------
 */

/* What all lanes came for; where they came for different things, the launch fails. */
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
    bool whole = kind == EMU_SHUFFLE || kind == EMU_MMA_BF16 || kind == EMU_MMA_F16;
    if (whole && warp->live < EMU_LANES)
        emu_problem("a shuffle or an mma of a warp that has lost lanes");
    else if (kind == EMU_SHUFFLE)
        shuffle(warp);
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
