/* merge: the weighted mean of all splits' partials, split 0 first. Operands part; y.
 *
 * A warp has 32 dimensions of a row's head at a time, four in a lane; four groups of lanes have the splits
 * in turn, MERGE_AHEAD of which a lane asks for at once. */
#include "vm/cuda/device/attention_parts.cuh"

enum { MERGE_LANES = 8, MERGE_GROUPS = 4, MERGE_AHEAD = 4 };

/* What is merged so far: four dimensions of the weighted sum, max and sum. */
struct merged {
    float max, sum, value[4];
};

/* Partials as they are in memory: four dimensions, and max and sum. */
struct part_words {
    uint4 value[MERGE_AHEAD], weight[MERGE_AHEAD];
};

/* What a partial relative to maximum `max` weighs, `top` being the largest: an empty one nothing. */
static __device__ __forceinline__ float part_weight(float max, float top)
{
    return max == -INFINITY ? 0.0f : expf(max - top);
}

/* Makes all relative to maximum `top`. */
static __device__ __forceinline__ void raise(merged &all, float top)
{
    float keep = part_weight(all.max, top);
    all.max = top;
    all.sum *= keep;
    for (int j = 0; j < 4; j++)
        all.value[j] *= keep;
}

/* Adds the first n partials. */
static __device__ __forceinline__ void add_parts(merged &all, const part_words &parts, int n)
{
    float top = all.max;
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++)
        top = i < n ? fmaxf(top, __uint_as_float(parts.weight[i].x)) : top;
    raise(all, top);
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++) {
        if (i >= n)
            continue;
        float weight = part_weight(__uint_as_float(parts.weight[i].x), top), value[4];
        format<DTYPE_F32>::unpack(parts.value[i], value);
        all.sum += __uint_as_float(parts.weight[i].y) * weight;
        for (int j = 0; j < 4; j++)
            all.value[j] += value[j] * weight;
    }
}

/* Asks for the n splits' words. False when some are not written. */
static __device__ __forceinline__ bool load_parts(const float *from, long long stride, int n, int d,
                                                  part_words &to, u64 policy)
{
    bool written = true;
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++)
        if (i < n) {
            to.value[i] = load_words(from + i * stride + min(d, HEAD_DIM - 4), policy);
            to.weight[i] = load_words(from + i * stride + HEAD_DIM, policy);
        }
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++)
        if (i < n)
            written = written && is_written(to.value[i]) && is_written(to.weight[i]);
    return written;
}

/* The same where the region is not flagged: of head_dim + 2 floats, which may not lie at multiples of 16
 * bytes. */
static __device__ __forceinline__ void load_floats(const float *from, long long stride, int n,
                                                   int d, part_words &to)
{
#pragma unroll
    for (int i = 0; i < MERGE_AHEAD; i++)
        if (i < n) {
            const u32 *at = (const u32 *)from + i * stride;
            int last = HEAD_DIM - 1;
            to.value[i] = make_uint4(at[min(d, last)], at[min(d + 1, last)], at[min(d + 2, last)],
                                     at[min(d + 3, last)]);
            to.weight[i] = make_uint4(at[HEAD_DIM], at[HEAD_DIM + 1], 0, 0);
        }
}

/* Takes n partials, `stride` apart, from dimension d on, once they are written. False when the wait for
 * that gave up. */
static __device__ __forceinline__ bool take_parts(const machine &m, bool flag, const float *from,
                                                  long long stride, int n, int d, part_words &to,
                                                  u64 policy, u64 *since)
{
    if (!flag)
        load_floats(from, stride, n, d, to);
    for (u32 polls = 1; flag && !load_parts(from, stride, n, d, to, policy); polls++)
        if (is_late(m, polls, since))
            return false;
    return true;
}

/* Merges with what the lanes `offset` away have. */
static __device__ __forceinline__ void merge_lanes(merged &all, int offset)
{
    float other = __shfl_xor_sync(0xFFFFFFFFu, all.max, offset);
    raise(all, fmaxf(all.max, other));
    all.sum += __shfl_xor_sync(0xFFFFFFFFu, all.sum, offset);
    for (int j = 0; j < 4; j++)
        all.value[j] += __shfl_xor_sync(0xFFFFFFFFu, all.value[j], offset);
}

/* Dimensions d to d + 3 of row r's head, of all splits. */
static __device__ __forceinline__ bool merge_splits(const machine &m, int r, int head, int d,
                                                    merged &all, u64 policy, u64 *since)
{
    const mgl_device_operand &part = operand(m, 0);
    const float *from = (const float *)address_of(m, part) + (long long)r * part.stride1 +
                        (long long)head * part.stride2;
    bool written = true;
    all = {-INFINITY, 0.0f, {0.0f, 0.0f, 0.0f, 0.0f}};
    for (int first = 0; first < part.count[0]; first += MERGE_GROUPS * MERGE_AHEAD) {
        int split = first + m.lane / MERGE_LANES, left = part.count[0] - split;
        part_words parts = part_words();
        left = left > 0 ? (left + MERGE_GROUPS - 1) / MERGE_GROUPS : 0;
        written = take_parts(m, part.flag, from + split * part.stride0, MERGE_GROUPS * part.stride0,
                             left, d, parts, policy, since) &&
                  written;
        add_parts(all, parts, left);
    }
    merge_lanes(all, MERGE_LANES);
    merge_lanes(all, 2 * MERGE_LANES);
    return written;
}

static __device__ __forceinline__ void consume_merge(machine &m)
{
    const view y = view_of(m, operand(m, 1));
    const u64 policy = keep_policy();
    const int heads = operand(m, 1).count[1] / HEAD_DIM;
    const int blocks = (HEAD_DIM + 4 * MERGE_LANES - 1) / (4 * MERGE_LANES);
    bool written = true;
    u64 since = 0;
    for (int unit = m.warp; unit < rows_of(m) * heads * blocks; unit += MGL_WARPS) {
        int r = unit / blocks / heads, head = unit / blocks % heads;
        int d = (unit % blocks * MERGE_LANES + m.lane % MERGE_LANES) * 4;
        merged all;
        written = merge_splits(m, r, head, d, all, policy, &since) && written;
        float inverse = reciprocal(all.sum);
        if (m.lane >= MERGE_LANES)
            continue;
        for (int j = 0; j < 4; j += 2)
            if (d + j < HEAD_DIM)
                store_pair(y, r, head * HEAD_DIM + d + j, all.value[j] * inverse,
                           all.value[j + 1] * inverse, true, policy);
    }
    if (!written) /* here, where a call costs no registers of worth */
        look_at_clock(m.launch, since, MGL_REPORT_FLAG, task_of(m)->task, m.epoch, 0, 1, 0);
}
