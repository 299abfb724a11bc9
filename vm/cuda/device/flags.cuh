/*
 * What queues exchange: rows of activations in f32 or 16 bits, ordered by counters (plain loads and
 * stores) or flagged: a word of all ones is not written yet. Flag words are loaded and stored
 * relaxed at gpu scope, and L2 keeps them (evict_last): they are read by every queue soon.
 *
 * A value never is all ones: rounding to 16 bits does not make 0xFFFF (NaN becomes 0x7FFF or the
 * like), and an f32 NaN of all ones is stored as 0x7FFFFFFF.
 */
#ifndef MGL_DEVICE_FLAGS_CUH
#define MGL_DEVICE_FLAGS_CUH

#include "vm/cuda/device/numbers.cuh"
#include "vm/cuda/device/watchdog.cuh"

static __device__ __forceinline__ bool is_written(uint4 v)
{
    return v.x != 0xFFFFFFFFu && v.y != 0xFFFFFFFFu && v.z != 0xFFFFFFFFu && v.w != 0xFFFFFFFFu;
}

/* The largest word: all ones if one of them is. Asked of many words, this takes no branches. */
static __device__ __forceinline__ u32 largest(uint4 v)
{
    return max(max(v.x, v.y), max(v.z, v.w));
}

/* Who waits for flagged words, and whether a wait that gives up reports. */
enum {
    EACH_LANE,  /* each lane for itself */
    WHOLE_WARP, /* all lanes as one: look() says the same in each of them */
    QUIETLY     /* each lane, without a report: the call would cost registers. See report_flags */
};

/* Looks until look() finds all words written; look() asks again for those that are not. Every wait
 * for flagged words is this loop. False: the wait gave up, by the watchdog. */
template <int WHO, class LOOK>
static __device__ __forceinline__ bool await_flags(const machine &m, int operand, const LOOK &look)
{
    u64 since = 0;
    for (u32 n = 1; !look(); n++) {
        if (WHO == QUIETLY) {
            if (is_late(n, &since))
                return false;
        } else if (n % POLLS == 0) {
            since = look_at_clock(since, MGL_REPORT_FLAG, task_of(m)->task, m.epoch, (u32)operand,
                                  1, 0);
            if (WHO == WHOLE_WARP ? __any_sync(0xFFFFFFFFu, since == 0) : since == 0)
                return false;
        }
    }
    return true;
}

/* 16 bytes of a flagged region, once they are written. */
static __device__ __forceinline__ uint4 poll_words(const machine &m, const void *at, int operand,
                                                   u64 policy)
{
    uint4 v = load_words(at, policy);
    await_flags<EACH_LANE>(m, operand, [&] {
        const bool written = is_written(v);
        if (!written)
            v = load_words(at, policy);
        return written;
    });
    return v;
}

static __device__ __forceinline__ u32 flag_bits(float value)
{
    u32 bits = __float_as_uint(value);
    return bits == 0xFFFFFFFFu ? 0x7FFFFFFFu : bits;
}

/* Four values of a flagged region in f32, 16 bytes of it. */
static __device__ __forceinline__ void store_four_floats(void *at, const float *x, u64 policy)
{
    store_words(at, make_uint4(flag_bits(x[0]), flag_bits(x[1]), flag_bits(x[2]), flag_bits(x[3])),
                policy);
}

/* Where (row, column) of a region is. */
static __device__ __forceinline__ u8 *plain_element(const view &v, int r, int column)
{
    return v.at + r * v.stride + column * (v.dtype == DTYPE_F32 ? 4 : 2);
}

#if MGL_PANELS
/* The place of the k block that has a column of a paged buffer. */
static __device__ __forceinline__ int page_place(const paged_view &v, int column)
{
    return mgl_tape_place_of_block(v.columns / MGL_PAGE_BLOCK_COLUMNS, MGL_WARPS,
                                   column / MGL_PAGE_BLOCK_COLUMNS);
}
#endif

static __device__ __forceinline__ u8 *element_of(const paged_view &v, int r, int column)
{
#if MGL_PANELS
    if (v.paged)
        return v.at +
               mgl_page_at(v.rows, r, page_place(v, v.first + column), (u32)(v.first + column));
#endif
    return plain_element(v, r, column);
}

/* Bytes from an element of a region that is in no pages to that of the same column so many rows on.
 */
static __device__ __forceinline__ size_t row_step(const view &v, int rows)
{
    return (size_t)(rows * v.stride);
}

/* Bytes from an element to that of the same column so many rows on, a multiple of 8: in pages
 * quarters lie as they do eight rows before. */
static __device__ __forceinline__ size_t element_step(const paged_view &v, int rows)
{
#if MGL_PANELS
    if (v.paged)
        return (size_t)rows * MGL_PAGE_BLOCK_BYTES;
#endif
    return row_step(v, rows);
}

#if !VIEWS_PAGED
static __device__ __forceinline__ u8 *element_of(const view &v, int r, int column)
{
    return plain_element(v, r, column);
}
#endif

/* Writes columns `column` and, if `both`, the next of row r. A flagged region has both. */
template <class VIEW>
static __device__ __forceinline__ void store_pair(const VIEW &v, int r, int column, float first,
                                                  float second, bool both, u64 policy)
{
    u8 *at = element_of(v, r, column);
    const u32 word = pack_pair(v.dtype, first, second);
    if (v.flag) {
        if (v.dtype == DTYPE_F32)
            store_two_words(at, flag_bits(first), flag_bits(second), policy);
        else
            store_word(at, word, policy);
    } else if (v.dtype == DTYPE_F32) {
        ((float *)at)[0] = first;
        if (both)
            ((float *)at)[1] = second;
        delay();
    } else {
        ((u16 *)at)[0] = (u16)word;
        if (both)
            ((u16 *)at)[1] = (u16)(word >> 16);
        delay();
    }
}

/* Element (row, column) of a region that is not flagged, as f32. */
static __device__ __forceinline__ float load_element(const view &v, int r, int column)
{
    const u8 *at = element_of(v, r, column);
    if (v.dtype == DTYPE_F32)
        return *(const float *)at;
    u32 bits = *(const u16 *)at;
    return v.dtype == DTYPE_BF16 ? bf16_float(bits) : f16_float(bits);
}

/* Threads that fetch_row takes for n columns, at least. */
static __device__ __forceinline__ int fetch_threads(const view &v, int n)
{
    return v.flag ? (n + 3) / 4 / (v.dtype == DTYPE_F32 ? 1 : 2) : n;
}

/* Copies columns [column, column + n) of row r to shared memory as f32, by the consumer threads,
 * the first part by thread `base` modulo their number; of a flagged region each 16 bytes once they
 * are written. `index` is the operand's number. The caller needs a barrier behind it. */
static __device__ __forceinline__ void fetch_row(const machine &m, const view &v, int index, int r,
                                                 int column, int n, float *to, int base, u64 policy)
{
    int thread = (thread_of(m) + THREADS - base % THREADS) % THREADS;
    if (!v.flag) {
        for (int i = thread; i < n; i += THREADS)
            to[i] = load_element(v, r, column + i);
        return;
    }
    const u8 *from = element_of(v, r, column);
    int each = v.dtype == DTYPE_F32 ? 4 : 8;
    for (int i = thread * each; i < n; i += THREADS * each) {
        uint4 words = poll_words(m, from + i * (16 / each), index, policy);
        float values[8];
        if (v.dtype == DTYPE_F32)
            format<DTYPE_F32>::unpack(words, values);
        else if (v.dtype == DTYPE_BF16)
            format<DTYPE_BF16>::unpack(words, values);
        else
            format<DTYPE_F16>::unpack(words, values);
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (j < each)
                to[i + j] = values[j];
    }
}

#endif
