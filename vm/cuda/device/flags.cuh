/*
 * Exchange of activations between queues: rows in f32 or 16 bits. An exchange is ordered by
 * counters (plain loads and stores), or it is flagged: each word validates itself, and a word of
 * all ones is not written yet. Flag words are loaded and stored relaxed at gpu scope. L2 keeps them
 * (evict_last), because every queue reads them soon. Consumers, epilogue and ops call these
 * functions.
 *
 * No value is all ones: rounding to 16 bits does not give 0xFFFF (NaN becomes 0x7FFF or similar),
 * and an f32 NaN of all ones is stored as 0x7FFFFFFF.
 */
#ifndef MGL_DEVICE_FLAGS_CUH
#define MGL_DEVICE_FLAGS_CUH

#include "vm/cuda/device/numbers.cuh"
#include "vm/cuda/device/watchdog.cuh"

static __device__ __forceinline__ bool is_written(uint4 v)
{
    return v.x != 0xFFFFFFFFu && v.y != 0xFFFFFFFFu && v.z != 0xFFFFFFFFu && v.w != 0xFFFFFFFFu;
}

/* The largest word, which is all ones if a word is. For many words this test needs no branches. */
static __device__ __forceinline__ u32 largest(uint4 v)
{
    return max(max(v.x, v.y), max(v.z, v.w));
}

/* How await_flags waits for flagged words, and whether a wait that gives up reports. */
enum {
    EACH_LANE,  /* each lane for itself */
    WHOLE_WARP, /* all lanes together: look() returns the same value in each lane */
    QUIETLY     /* each lane for itself, without a report: the call would cost registers. See
                   report_flags */
};

/* Polls until look() finds all words written; look() loads again the words that are not. Every wait
 * for flagged words is this loop. Returns false if the wait gave up (watchdog). */
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

/* Returns 16 bytes of a flagged region as soon as they are written. */
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

/* Stores four f32 values, 16 bytes, to a flagged region. */
static __device__ __forceinline__ void store_four_floats(void *at, const float *x, u64 policy)
{
    store_words(at, make_uint4(flag_bits(x[0]), flag_bits(x[1]), flag_bits(x[2]), flag_bits(x[3])),
                policy);
}

/* Address of (row, column) of a region that is not paged. */
static __device__ __forceinline__ u8 *plain_element(const view &v, int r, int column)
{
    return v.at + r * v.stride + column * (v.dtype == DTYPE_F32 ? 4 : 2);
}

#if MGL_PANELS
/* The place of the k block that contains a column of a paged buffer. */
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

/* Bytes from an element of a region that is not paged to the element `rows` rows below. */
static __device__ __forceinline__ size_t row_step(const view &v, int rows)
{
    return (size_t)(rows * v.stride);
}

/* Bytes from an element to the element `rows` rows below, `rows` being a multiple of 8: in pages,
 * the quarters of a row are swizzled like those of the row eight rows above. */
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

/* Writes columns `column` and, if `both`, `column + 1` of row r. In a flagged region `both` is
 * always true. */
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

/* The number of threads that fetch_row uses for n columns. */
static __device__ __forceinline__ int fetch_threads(const view &v, int n)
{
    return v.flag ? (n + 3) / 4 / (v.dtype == DTYPE_F32 ? 1 : 2) : n;
}

/* Copies columns [column, column + n) of row r to shared memory as f32, by the consumer threads.
 * Thread `base` modulo the thread count copies the first part. In a flagged region each 16 bytes
 * are polled until they are written. `index` is the operand's number. The caller needs a barrier
 * afterwards. */
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
