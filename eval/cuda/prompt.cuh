/*
 * Prefill kernels of the baseline, for the consecutive rows of one sequence's prompt. prompt_attend
 * is FlashAttention-2 on tensor cores (Dao, "FlashAttention-2: Faster attention with better
 * parallelism and work partitioning", 2023). prompt_silu is the activation between the products,
 * eight columns per thread.
 *
 * A block has MGL_PROMPT_ROWS rows of one head. It processes the positions before them in tiles,
 * with register double buffering: while the tile in shared memory is multiplied, the next tile is
 * loaded to registers. A warp keeps its rows' queries, softmax state and weighted sums in
 * registers. Shared memory holds keys as rows, and values as pairs of neighboring positions, as the
 * operands of mma.m16n8k16 require. Rows are padded to avoid bank conflicts.
 */
#ifndef MGL_EVAL_CUDA_PROMPT_CUH
#define MGL_EVAL_CUDA_PROMPT_CUH

#include "eval/cuda/number.cuh"

enum {
    PROMPT_TILES = MGL_PROMPT_TILES(MGL_HEAD_DIM), /* 16-row tiles per warp */
    PROMPT_THREADS = MGL_PROMPT_THREADS(MGL_HEAD_DIM),
    PROMPT_KEYS = MGL_HEAD_DIM <= 16    ? 128
                  : MGL_HEAD_DIM <= 128 ? 64
                                        : 32, /* positions per tile */
    PROMPT_CHUNKS = MGL_HEAD_DIM / 8,         /* 16-byte chunks of a key or a value */
    PROMPT_ITEMS = PROMPT_KEYS / 2 * PROMPT_CHUNKS / PROMPT_THREADS, /* loads per thread */
    PROMPT_KEY_WORDS = MGL_HEAD_DIM / 2 + 4,                         /* words of a padded key */
    PROMPT_PAIR_WORDS = MGL_HEAD_DIM + 8,                            /* of two padded values */
    PROMPT_ACROSS = PROMPT_KEYS / 8,  /* 8-column products over the tile's keys */
    PROMPT_DEPTH = MGL_HEAD_DIM / 16, /* 16-term products over a query's dimensions */
    PROMPT_COLUMNS = MGL_HEAD_DIM / 8 /* 8-column products over a value's dimensions */
};

/* A thread's loads of a tile: per item, a chunk of two neighboring positions. */
struct prompt_fetch {
    uint4 key[PROMPT_ITEMS][2], value[PROMPT_ITEMS][2];
};

/* A warp's rows. Of each 16 rows a lane holds two: lane / 4 and lane / 4 + 8. */
struct prompt_rows {
    u32 query[PROMPT_TILES][PROMPT_DEPTH][4];
    float sum[PROMPT_TILES][PROMPT_COLUMNS][4]; /* weighted sums of values */
    float maximum[PROMPT_TILES][2];             /* maximum scores */
    float weight[PROMPT_TILES][2];              /* sum of the weights of the lane's own
                                                   positions */
};

/* c += a b on tensor cores: 16 x 16 by 16 x 8. Fragment layout: mma.m16n8k16 in the PTX ISA. */
static __device__ __forceinline__ void prompt_mma(float *c, const u32 *a, u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ u32 prompt_pack(float low, float high)
{
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

static __device__ __forceinline__ float prompt_power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Loads the tile of positions from `base` on; zeros from `end` on. */
static __device__ __forceinline__ void prompt_get(prompt_fetch *f, const uint4 *keys,
                                                  const uint4 *values, int base, int end)
{
    const uint4 none = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < PROMPT_ITEMS; i++) {
        int item = i * PROMPT_THREADS + (int)threadIdx.x;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int position = base + item / PROMPT_CHUNKS * 2 + j;
            long long at = (long long)position * PROMPT_CHUNKS + item % PROMPT_CHUNKS;
            f->key[i][j] = position < end ? keys[at] : none;
            f->value[i][j] = position < end ? values[at] : none;
        }
    }
}

/* Interleaves four dimensions of two values. */
static __device__ __forceinline__ uint4 prompt_pair(u32 first, u32 next, u32 first2, u32 next2)
{
    return make_uint4(__byte_perm(first, next, 0x5410), __byte_perm(first, next, 0x7632),
                      __byte_perm(first2, next2, 0x5410), __byte_perm(first2, next2, 0x7632));
}

static __device__ __forceinline__ void prompt_put(const prompt_fetch *f, uint4 *keys, uint4 *values)
{
#pragma unroll
    for (int i = 0; i < PROMPT_ITEMS; i++) {
        int item = i * PROMPT_THREADS + (int)threadIdx.x;
        int pair = item / PROMPT_CHUNKS, chunk = item % PROMPT_CHUNKS;
        uint4 first = f->value[i][0], next = f->value[i][1];
        uint4 *to = values + pair * (PROMPT_PAIR_WORDS / 4) + 2 * chunk;
        keys[2 * pair * (PROMPT_KEY_WORDS / 4) + chunk] = f->key[i][0];
        keys[(2 * pair + 1) * (PROMPT_KEY_WORDS / 4) + chunk] = f->key[i][1];
        to[0] = prompt_pair(first.x, next.x, first.y, next.y);
        to[1] = prompt_pair(first.z, next.z, first.w, next.w);
    }
}

/* Loads the warp's queries. `first` is the warp's first row of the prompt; rows past the end repeat
 * the last row. */
static __device__ __forceinline__ void prompt_load(prompt_rows *r, const mgl_block_prompt_attend *b,
                                                   int head, int first)
{
    int lane = threadIdx.x % 32, width = (b->kv_heads * MGL_GROUP + 2 * b->kv_heads);
#pragma unroll
    for (int m = 0; m < PROMPT_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = min(first + m * 16 + half * 8 + lane / 4, b->rows - 1);
            const u32 *from = (const u32 *)b->qkv +
                              ((long long)row * width + head) * (MGL_HEAD_DIM / 2) + lane % 4;
            r->maximum[m][half] = -1e30f; /* less than any score, and finite */
            r->weight[m][half] = 0;
#pragma unroll
            for (int d = 0; d < PROMPT_DEPTH; d++) {
                r->query[m][d][half] = from[8 * d];
                r->query[m][d][half + 2] = from[8 * d + 4];
            }
        }
#pragma unroll
    for (int m = 0; m < PROMPT_TILES; m++)
#pragma unroll
        for (int c = 0; c < PROMPT_COLUMNS; c++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                r->sum[m][c][i] = 0;
}

/* Multiplies the queries by the tile's keys. */
static __device__ __forceinline__ void prompt_score(float (*score)[PROMPT_ACROSS][4],
                                                    const prompt_rows *r, const u32 *keys)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < PROMPT_ACROSS; n++) {
        const u32 *key = keys + (n * 8 + lane / 4) * PROMPT_KEY_WORDS + lane % 4;
#pragma unroll
        for (int m = 0; m < PROMPT_TILES; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                score[m][n][i] = 0;
#pragma unroll
        for (int d = 0; d < PROMPT_DEPTH; d++)
#pragma unroll
            for (int m = 0; m < PROMPT_TILES; m++)
                prompt_mma(score[m][n], r->query[m][d], key[8 * d], key[8 * d + 4]);
    }
}

/* Causal mask. The warp's first row sees `seen` positions of the tile, and each following row one
 * more. */
static __device__ __forceinline__ void prompt_mask(float (*score)[PROMPT_ACROSS][4], int seen)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < PROMPT_TILES; m++)
#pragma unroll
        for (int n = 0; n < PROMPT_ACROSS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int key = n * 8 + lane % 4 * 2 + i % 2, row = m * 16 + i / 2 * 8 + lane / 4;
                score[m][n][i] = key < seen + row ? score[m][n][i] : -1e30f;
            }
}

/* Online softmax step: updates the state with a tile's scores of 16 rows, and converts the scores
 * to bf16 weights in the operand layout of the following mma. A score times `scale` is an exponent
 * of 2. */
static __device__ __forceinline__ void prompt_soften(prompt_rows *r, int m,
                                                     float (*score)[PROMPT_ACROSS][4], float scale,
                                                     u32 (*weights)[4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float maximum = r->maximum[m][half], sum = 0;
#pragma unroll
        for (int n = 0; n < PROMPT_ACROSS; n++)
            maximum = fmaxf(maximum, fmaxf(score[m][n][2 * half], score[m][n][2 * half + 1]));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 2));
        float keep = prompt_power((r->maximum[m][half] - maximum) * scale);
        float shift = -maximum * scale;
        r->maximum[m][half] = maximum;
#pragma unroll
        for (int n = 0; n < PROMPT_ACROSS; n++) {
            float low = prompt_power(fmaf(score[m][n][2 * half], scale, shift));
            float high = prompt_power(fmaf(score[m][n][2 * half + 1], scale, shift));
            sum += low + high;
            weights[n / 2][n % 2 * 2 + half] = prompt_pack(low, high);
        }
        r->weight[m][half] = r->weight[m][half] * keep + sum;
#pragma unroll
        for (int c = 0; c < PROMPT_COLUMNS; c++) {
            r->sum[m][c][2 * half] *= keep;
            r->sum[m][c][2 * half + 1] *= keep;
        }
    }
}

/* Processes a tile; `seen` as in prompt_mask. */
static __device__ __forceinline__ void prompt_tile(prompt_rows *r, const u32 *keys,
                                                   const u32 *values, float scale, int seen)
{
    int lane = threadIdx.x % 32;
    float score[PROMPT_TILES][PROMPT_ACROSS][4];
    u32 weights[PROMPT_TILES][PROMPT_ACROSS / 2][4];
    prompt_score(score, r, keys);
    if (seen < PROMPT_KEYS)
        prompt_mask(score, seen);
#pragma unroll
    for (int m = 0; m < PROMPT_TILES; m++)
        prompt_soften(r, m, score, scale, weights[m]);
#pragma unroll
    for (int k = 0; k < PROMPT_ACROSS / 2; k++) {
        const u32 *pair = values + (k * 8 + lane % 4) * PROMPT_PAIR_WORDS + lane / 4;
#pragma unroll
        for (int c = 0; c < PROMPT_COLUMNS; c++)
#pragma unroll
            for (int m = 0; m < PROMPT_TILES; m++)
                prompt_mma(r->sum[m][c], weights[m][k], pair[8 * c],
                           pair[4 * PROMPT_PAIR_WORDS + 8 * c]);
    }
}

static __device__ __forceinline__ void
prompt_write(const prompt_rows *r, const mgl_block_prompt_attend *b, int head, int first)
{
    int lane = threadIdx.x % 32, heads = b->kv_heads * MGL_GROUP;
#pragma unroll
    for (int m = 0; m < PROMPT_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = first + m * 16 + half * 8 + lane / 4;
            float sum = r->weight[m][half];
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
            u32 *to =
                (u32 *)b->out + ((long long)row * heads + head) * (MGL_HEAD_DIM / 2) + lane % 4;
            if (row >= b->rows)
                continue;
#pragma unroll
            for (int c = 0; c < PROMPT_COLUMNS; c++)
                to[4 * c] =
                    prompt_pack(r->sum[m][c][2 * half] / sum, r->sum[m][c][2 * half + 1] / sum);
        }
}

/* Grid (rows, head); blocks with the most positions start first. */
extern "C" __global__ void __launch_bounds__(PROMPT_THREADS)
    prompt_attend(mgl_block_prompt_attend b)
{
    __shared__ uint4 keys[PROMPT_KEYS * PROMPT_KEY_WORDS / 4];
    __shared__ uint4 values[PROMPT_KEYS / 2 * PROMPT_PAIR_WORDS / 4];
    int block = (int)gridDim.x - 1 - (int)blockIdx.x, head = blockIdx.y;
    int first = block * MGL_PROMPT_ROWS + (int)threadIdx.x / 32 * PROMPT_TILES * 16;
    int end = b.context + min((block + 1) * MGL_PROMPT_ROWS, b.rows);
    long long cache = (long long)(head / MGL_GROUP) * b.capacity * PROMPT_CHUNKS;
    const uint4 *key = (const uint4 *)b.keys + cache, *value = (const uint4 *)b.values + cache;
    prompt_rows rows;
    prompt_fetch next;
    prompt_get(&next, key, value, 0, end);
    prompt_load(&rows, &b, head, first);
    for (int base = 0; base < end; base += PROMPT_KEYS) {
        __syncthreads(); /* all warps have multiplied the previous tile */
        prompt_put(&next, keys, values);
        __syncthreads();
        prompt_get(&next, key, value, base + PROMPT_KEYS, end);
        int seen = b.context + first + 1 - base;
        if (seen + PROMPT_TILES * 16 > 1) /* the warp's last row sees at least one position */
            prompt_tile(&rows, (const u32 *)keys, (const u32 *)values, b.scale, seen);
    }
    prompt_write(&rows, &b, head, first);
}

/* silu(gate) up for two columns from `column` on. */
static __device__ __forceinline__ u32 prompt_activate(const mgl_block_silu *b, u32 gate, u32 up,
                                                      int column)
{
    const float *bias = (const float *)b->bias;
    float value[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float g = from_bf16(gate >> 16 * i & 0xFFFF) + (bias ? bias[column + i] : 0);
        float u = from_bf16(up >> 16 * i & 0xFFFF) + (bias ? bias[b->ffn + column + i] : 0);
        value[i] = g / (1 + __expf(-g)) * u;
    }
    return prompt_pack(value[0], value[1]);
}

/* SwiGLU, one thread per eight columns of a row. */
extern "C" __global__ void prompt_silu(mgl_block_silu b)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x, chunks = b.ffn / 8;
    if (index >= b.sequences * chunks)
        return;
    int row = index / chunks, column = index % chunks * 8;
    const uint4 *from = (const uint4 *)b.gate_up + (long long)row * 2 * chunks + column / 8;
    uint4 gate = from[0], up = from[chunks];
    ((uint4 *)b.out)[index] = make_uint4(prompt_activate(&b, gate.x, up.x, column),
                                         prompt_activate(&b, gate.y, up.y, column + 2),
                                         prompt_activate(&b, gate.z, up.z, column + 4),
                                         prompt_activate(&b, gate.w, up.w, column + 6));
}

#endif
