/*
 * The instructions of the kernel's inline assembly. Each is a function named ptx_ and the
 * instruction's name, with its operands and immediates in order (rewrite.h). A new instruction
 * needs a new function here.
 *
 * Memory instructions check alignment and report their accesses to the engine. Cache hints and
 * prefetches only check that the memory exists. Fences order nothing, because the emulator executes
 * in order, except the fence for bulk copies, which then see earlier stores (views.c).
 */
#ifndef MGL_TESTS_EMULATOR_DEVICE_PTX_H
#define MGL_TESTS_EMULATOR_DEVICE_PTX_H

#include "device/cuda.h"

typedef unsigned long long emu_policy; /* cache policy of L2; ignored */

/* The operand written as `_`. */
static const int _ = 0;

template <class T> static inline volatile T *emu_global(const volatile void *at, size_t bytes)
{
    if ((uintptr_t)at % bytes != 0)
        emu_fail("an access of %zu bytes at %p", bytes, (const void *)at);
    return (volatile T *)at;
}

template <class T> static inline volatile T *emu_shared(unsigned at, size_t bytes)
{
    if (at % bytes != 0 || at + bytes > emu_self->shared_bytes)
        emu_fail("an access of %zu bytes at %u of shared memory", bytes, at);
    return (volatile T *)(emu_self->shared + at);
}

/* Checks that the memory exists. */
static inline void emu_touch(const void *at, size_t bytes)
{
    (void)*(const volatile unsigned char *)at;
    (void)((const volatile unsigned char *)at)[bytes - 1];
}

/* ---- loads and stores ------------------------------------------------------------------------ */

static inline void ptx_ld_acquire_gpu_global_u32(unsigned &value, const void *at)
{
    volatile unsigned *word = emu_global<unsigned>(at, 4);
    emu_look(at, *word);
    value = *word;
}

static inline void ptx_ld_relaxed_gpu_global_u32(unsigned &value, const void *at)
{
    value = *emu_global<unsigned>(at, 4);
}

static inline void ptx_ld_relaxed_sys_global_s32(int &value, const void *at)
{
    value = *emu_global<int>(at, 4);
}

static inline void ptx_st_relaxed_sys_global_s32(void *at, int value)
{
    *emu_global<int>(at, 4) = value;
}

static inline void ptx_ld_global_v4_u32(unsigned &x, unsigned &y, unsigned &z, unsigned &w,
                                        const void *at)
{
    volatile unsigned *words = emu_global<unsigned>(at, 16);
    x = words[0];
    y = words[1];
    z = words[2];
    w = words[3];
}

static inline void ptx_ld_shared_v4_u32(unsigned &x, unsigned &y, unsigned &z, unsigned &w,
                                        unsigned at)
{
    volatile unsigned *words = emu_shared<unsigned>(at, 16);
    x = words[0];
    y = words[1];
    z = words[2];
    w = words[3];
}

/* Reads 16 bytes of a flagged region; a word of all ones is a poll. */
static inline void ptx_ld_relaxed_gpu_global_L2__cache_hint_v4_u32(unsigned &x, unsigned &y,
                                                                   unsigned &z, unsigned &w,
                                                                   const void *at, emu_policy)
{
    volatile unsigned *words = emu_global<unsigned>(at, 16);
    bool missing = false;
    for (int i = 0; i < 4; i++)
        missing = missing || words[i] == 0xFFFFFFFFu;
    if (missing)
        emu_look(at, words[0] + 3ull * words[1] + 5ull * words[2] + 7ull * words[3]);
    x = words[0];
    y = words[1];
    z = words[2];
    w = words[3];
}

static inline void ptx_ld_relaxed_gpu_global_L2__cache_hint_v2_u32(unsigned &x, unsigned &y,
                                                                   const void *at, emu_policy)
{
    volatile unsigned *words = emu_global<unsigned>(at, 8);
    if (words[0] == 0xFFFFFFFFu || words[1] == 0xFFFFFFFFu)
        emu_look(at, words[0] + 3ull * words[1]);
    x = words[0];
    y = words[1];
}

static inline void ptx_st_relaxed_gpu_global_L2__cache_hint_u32(void *at, unsigned value,
                                                                emu_policy)
{
    volatile unsigned *word = emu_global<unsigned>(at, 4);
    emu_check_reset(at, *word, value);
    *word = value;
    emu_wrote(at);
}

/* Only single words are written atomically. */
static inline void ptx_st_relaxed_gpu_global_L2__cache_hint_v2_u32(void *at, unsigned x, unsigned y,
                                                                   emu_policy)
{
    volatile unsigned *words = emu_global<unsigned>(at, 8);
    emu_check_reset(at, words[0], x);
    emu_check_reset(at, words[1], y);
    words[0] = x;
    emu_pause();
    words[1] = y;
    emu_wrote(at);
}

static inline void ptx_st_relaxed_gpu_global_L2__cache_hint_v4_u32(void *at, unsigned x, unsigned y,
                                                                   unsigned z, unsigned w,
                                                                   emu_policy policy)
{
    (void)emu_global<unsigned>(at, 16);
    ptx_st_relaxed_gpu_global_L2__cache_hint_v2_u32(at, x, y, policy);
    ptx_st_relaxed_gpu_global_L2__cache_hint_v2_u32((unsigned char *)at + 8, z, w, policy);
}

static inline void ptx_red_relaxed_gpu_global_add_u32(void *at, unsigned value)
{
    *emu_global<unsigned>(at, 4) += value;
    emu_wrote(at);
}

static inline void ptx_ld_acquire_cta_shared_u32(unsigned &value, unsigned at)
{
    volatile unsigned *word = emu_shared<unsigned>(at, 4);
    emu_look(word, *word);
    value = *word;
}

static inline void ptx_atom_shared_add_u32(unsigned &before, unsigned at, unsigned value)
{
    volatile unsigned *word = emu_shared<unsigned>(at, 4);
    before = *word;
    *word = before + value;
    emu_wrote(word);
}

static inline void ptx_red_shared_add_u32(unsigned at, unsigned value)
{
    volatile unsigned *word = emu_shared<unsigned>(at, 4);
    *word = *word + value;
    emu_wrote(word);
}

static inline void ptx_st_release_cta_shared_u32(unsigned at, unsigned value)
{
    volatile unsigned *word = emu_shared<unsigned>(at, 4);
    *word = value;
    emu_wrote(word);
}

static inline void ptx_createpolicy_fractional_L2__evict_first_b64(emu_policy &policy, double)
{
    policy = 1;
}

static inline void ptx_createpolicy_fractional_L2__evict_last_b64(emu_policy &policy, double)
{
    policy = 2;
}

/* ---- fences, barriers, the clock ------------------------------------------------------------- */

static inline void ptx_fence_acq_rel_gpu()
{
    emu_pause();
}

static inline void ptx_fence_mbarrier_init_release_cluster() {}

static inline void ptx_fence_proxy_async_shared__cta() {}

static inline void ptx_fence_proxy_async_global()
{
    emu_fence_async();
}

static inline void ptx_bar_sync(int barrier, int threads)
{
    emu_bar_sync(barrier, threads);
}

static inline unsigned long long ptx_globaltimer()
{
    return emu_clock_ns();
}

static inline unsigned ptx_clock()
{
    return (unsigned)emu_clock_ns();
}

static inline void ptx_nanosleep_u32(unsigned ns)
{
    emu_sleep(ns);
}

static inline void ptx_mov_u64(unsigned long long &to, unsigned long long from)
{
    to = from;
}

static inline unsigned ptx_laneid()
{
    return emu_self->thread % 32;
}

static inline unsigned ptx_tid_x()
{
    return emu_self->thread;
}

template <class T> static inline void ptx_mov_u32(T &to, unsigned from)
{
    to = (T)from;
}

static inline void ptx_selp_u32(unsigned &to, unsigned yes, unsigned no, bool which)
{
    to = which ? yes : no;
}

static inline uint64_t *emu_barrier(unsigned at)
{
    return (uint64_t *)emu_shared<uint64_t>(at, 8);
}

static inline void ptx_mbarrier_init_shared_b64(unsigned at, int arrivals)
{
    emu_barrier_init(emu_barrier(at), arrivals);
}

static inline void ptx_mbarrier_test_wait_parity_shared_b64(bool &passed, unsigned at,
                                                            unsigned parity)
{
    passed = emu_barrier_passed(emu_barrier(at), parity);
}

/* The maximum sleep time is ignored. */
static inline void ptx_mbarrier_try_wait_parity_shared__cta_b64(bool &passed, unsigned at,
                                                                unsigned parity, unsigned)
{
    passed = emu_barrier_passed(emu_barrier(at), parity);
}

static inline void ptx_mbarrier_arrive_shared_b64(unsigned long long &state, unsigned at,
                                                  int times = 1)
{
    state = *emu_barrier(at);
    emu_barrier_arrive(emu_barrier(at), times, 0);
}

static inline void ptx_mbarrier_arrive_expect_tx_shared__cta_b64(int, unsigned at, int bytes)
{
    emu_barrier_arrive(emu_barrier(at), 1, bytes);
}

/* ---- copies to shared memory ----------------------------------------------------------------- */

static inline void
ptx_cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes_L2__cache_hint(
    unsigned to, const void *from, int bytes, unsigned barrier, emu_policy)
{
    unsigned char *first = (unsigned char *)emu_shared<unsigned char>(to, 16);
    (void)emu_shared<unsigned char>(to + (unsigned)bytes - 16, 16);
    emu_copy_bulk(first, from, bytes, emu_barrier(barrier));
}

static inline void ptx_cp_async_cg_shared_global(unsigned to, const void *from, int)
{
    emu_copy_16((void *)emu_shared<unsigned char>(to, 16), from);
}

static inline void ptx_cp_async_commit_group()
{
    emu_copy_group();
}

static inline void ptx_cp_async_wait_group(int count)
{
    emu_copy_wait_groups(count);
}

static inline void ptx_cp_async_wait_all()
{
    emu_copy_wait();
}

static inline void ptx_cp_async_mbarrier_arrive_noinc_shared_b64(unsigned barrier)
{
    emu_copy_arrive(emu_barrier(barrier));
}

static inline void ptx_cp_async_bulk_prefetch_L2_global(const void *from, int bytes)
{
    emu_touch(from, (size_t)bytes);
}

static inline void ptx_prefetch_global_L2(const void *from)
{
    emu_touch(from, 1);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static inline void ptx_cvt_f32_f16(float &to, unsigned short from)
{
    to = emu_f16_to_f32(from);
}

static inline void ptx_cvt_rn_f16_f32(unsigned short &to, float from)
{
    to = emu_f32_to_f16(from);
}

/* The first operand is the high half. */
static inline void ptx_cvt_rn_f16x2_f32(unsigned &to, float high, float low)
{
    to = (unsigned)emu_f32_to_f16(high) << 16 | emu_f32_to_f16(low);
}

static inline unsigned emu_bf16(float value)
{
    unsigned bits = __float_as_uint(value);
    return value != value ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

static inline void ptx_cvt_rn_bf16x2_f32(unsigned &to, float high, float low)
{
    to = emu_bf16(high) << 16 | emu_bf16(low);
}

/* On a GPU, the fast instructions have an error of a few units in the last place. Here they are
 * exact. */
static inline void ptx_rcp_approx_ftz_f32(float &to, float value)
{
    to = 1.0f / value;
}

static inline void ptx_ex2_approx_ftz_f32(float &to, float value)
{
    to = exp2f(value);
}

/* Transposes an 8 x 8 matrix of 16-bit elements; each lane has two neighbors of a row. */
static inline void ptx_movmatrix_sync_aligned_m8n8_trans_b16(unsigned &to, unsigned word)
{
    const int lane = (int)(emu_self->thread % 32), column = lane / 4, row = lane % 4 * 2;
    const unsigned upper = __shfl_sync(0xFFFFFFFFu, word, row * 4 + column / 2);
    const unsigned lower = __shfl_sync(0xFFFFFFFFu, word, (row + 1) * 4 + column / 2);
    const int shift = column % 2 * 16;
    to = (upper >> shift & 0xFFFFu) | (lower >> shift) << 16;
}

/* Loads four 8 x 8 matrices of 16-bit elements: lane l has the address of row l % 8 of matrix l /
 * 8. */
static inline void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned &w0, unsigned &w1,
                                                                unsigned &w2, unsigned &w3,
                                                                unsigned at)
{
    const int lane = (int)(emu_self->thread % 32);
    unsigned words[4];
    (void)emu_shared<uint64_t>(at, 16);
    for (int i = 0; i < 4; i++) {
        const unsigned row = __shfl_sync(0xFFFFFFFFu, at, i * 8 + lane / 4);
        words[i] = *emu_shared<unsigned>(row + (unsigned)(lane % 4 * 4), 4);
    }
    w0 = words[0];
    w1 = words[1];
    w2 = words[2];
    w3 = words[3];
}

static inline void ptx_setp_ne_u32(bool &to, unsigned a, unsigned b)
{
    to = a != b;
}

/* The operands of wgmma with weights in registers, and N columns: N / 2 sums, four words, the
 * descriptor of the other matrix, and 1, 1, 1, 0. */
template <int N, class... REST> static inline void emu_wgmma(REST &&...rest)
{
    float *sums[N / 2];
    unsigned words[4];
    unsigned long long descriptor = 0;
    int at = 0;
    auto take = [&](auto &&value) {
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, float>)
            sums[at] = &value;
        else if (at < N / 2 + 4)
            words[at - N / 2] = (unsigned)value;
        else if (at == N / 2 + 4)
            descriptor = (unsigned long long)value;
        at++;
    };
    (take(rest), ...);
    float d[N / 2];
    for (int i = 0; i < N / 2; i++)
        d[i] = *sums[i];
    emu_warpgroup_multiply(d, words, descriptor, N);
    for (int i = 0; i < N / 2; i++)
        *sums[i] = d[i];
}

template <class... REST>
static inline void ptx_wgmma_mma_async_sync_aligned_m64n16k16_f32_bf16_bf16(REST &&...rest)
{
    emu_wgmma<16>(rest...);
}

template <class... REST>
static inline void ptx_wgmma_mma_async_sync_aligned_m64n32k16_f32_bf16_bf16(REST &&...rest)
{
    emu_wgmma<32>(rest...);
}

template <class... REST>
static inline void ptx_wgmma_mma_async_sync_aligned_m64n64k16_f32_bf16_bf16(REST &&...rest)
{
    emu_wgmma<64>(rest...);
}

static inline void ptx_wgmma_fence_sync_aligned()
{
    emu_warpgroup_fence();
}

static inline void ptx_wgmma_commit_group_sync_aligned()
{
    emu_warpgroup_commit();
}

static inline void ptx_wgmma_wait_group_sync_aligned(int)
{
    emu_warpgroup_wait();
}

/* d = a b + c */
static inline void emu_multiply(emu_meeting kind, float &d0, float &d1, float &d2, float &d3,
                                const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4])
{
    float d[4] = {c[0], c[1], c[2], c[3]};
    emu_mma(kind, d, a, b);
    d0 = d[0];
    d1 = d[1];
    d2 = d[2];
    d3 = d[3];
}

static inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(
    float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
    unsigned b0, unsigned b1, float c0, float c1, float c2, float c3)
{
    emu_multiply(EMU_MMA_BF16, d0, d1, d2, d3, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3});
}

static inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(
    float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
    unsigned b0, unsigned b1, float c0, float c1, float c2, float c3)
{
    emu_multiply(EMU_MMA_F16, d0, d1, d2, d3, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3});
}

/* The sums are integers: their bits are in the floats of emu_mma. */
static inline void ptx_mma_sync_aligned_m16n8k32_row_col_s32_u8_s8_s32(
    int &d0, int &d1, int &d2, int &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
    unsigned b0, unsigned b1, int c0, int c1, int c2, int c3)
{
    float d[4];
    emu_multiply(EMU_MMA_U8_S8, d[0], d[1], d[2], d[3], {a0, a1, a2, a3}, {b0, b1},
                 {__int_as_float(c0), __int_as_float(c1), __int_as_float(c2), __int_as_float(c3)});
    d0 = __float_as_int(d[0]);
    d1 = __float_as_int(d[1]);
    d2 = __float_as_int(d[2]);
    d3 = __float_as_int(d[3]);
}

/* Bit i of the result is bit 4 a + 2 b + c of the table, for bits i of a, b and c. */
static inline void ptx_lop3_b32(unsigned &to, unsigned a, unsigned b, unsigned c, int table)
{
    to = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            to |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
}

/* The bits of an e4m3 number, shifted, are an f16 number that is 2^8 times smaller. */
static inline float emu_e4m3_of(unsigned bits)
{
    return emu_f16_to_f32((uint16_t)((bits & 0x80) << 8 | (bits & 0x7F) << 7)) * 256.0f;
}

static inline void ptx_cvt_rn_f16x2_e4m3x2(unsigned &to, unsigned short from)
{
    ptx_cvt_rn_f16x2_f32(to, emu_e4m3_of(from >> 8), emu_e4m3_of(from & 0xFFu));
}

#endif
