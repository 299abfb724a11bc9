/*
 * The part of CUDA C++ that the kernel uses, for a host C++ compiler. The emulator puts this header
 * before the kernel's first source. Instructions are in ptx.h. Features that are missing here do
 * not compile, and the error names them.
 */
#ifndef MGL_TESTS_EMULATOR_DEVICE_CUDA_H
#define MGL_TESTS_EMULATOR_DEVICE_CUDA_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/engine.h"

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__   static_shared_memory_is_not_modelled

/* Dynamic shared memory, with the name that the kernel declares. */
#define block_memory (emu_self->shared)

struct emu_index {
    unsigned x;
};
#define threadIdx (emu_index{emu_self->thread})
#define blockIdx  (emu_index{emu_self->block})

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

template <class A, class B>
static inline typename std::common_type<A, B>::type min(A first, B second)
{
    typename std::common_type<A, B>::type a = first, b = second;
    return a < b ? a : b;
}

template <class A, class B>
static inline typename std::common_type<A, B>::type max(A first, B second)
{
    typename std::common_type<A, B>::type a = first, b = second;
    return a > b ? a : b;
}

template <class To, class From> static inline To emu_bits(From from)
{
    To to;
    static_assert(sizeof to == sizeof from, "the same bits");
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline unsigned __float_as_uint(float value)
{
    return emu_bits<unsigned>(value);
}

static inline int __float_as_int(float value)
{
    return emu_bits<int>(value);
}

/* Saturating conversion; NaN gives 0. */
static inline unsigned __float2uint_rz(float value)
{
    return value >= 0x1p32f ? ~0u : value >= 1.0f ? (unsigned)value : 0;
}

/* Rounds to nearest, ties to even; saturates; NaN gives 0. */
static inline int __float2int_rn(float value)
{
    return value >= 0x1p31f    ? 0x7FFFFFFF
           : value <= -0x1p31f ? -0x7FFFFFFF - 1
           : value == value    ? (int)__builtin_rintf(value)
                               : 0;
}

static inline float __uint_as_float(unsigned bits)
{
    return emu_bits<float>(bits);
}

static inline float __int_as_float(int bits)
{
    return emu_bits<float>(bits);
}

static inline int __ffs(int value)
{
    return __builtin_ffs(value);
}

static inline int __popc(unsigned value)
{
    return __builtin_popcount(value);
}

static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((uint64_t)x * y >> 32);
}

static inline int __clz(int value)
{
    return value == 0 ? 32 : __builtin_clz((unsigned)value);
}

/* Byte i of the result is byte number (selector >> 4 i) & 7 of y : x. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

/* On a GPU, the fast functions have an error of a few units in the last place. Here they are
 * exact. */
static inline float __fmul_rn(float x, float y)
{
    return x * y;
}

static inline float __fadd_rn(float x, float y)
{
    return x + y;
}

static inline float rsqrtf(float value)
{
    return 1.0f / sqrtf(value);
}

static inline float __fdividef(float numerator, float denominator)
{
    return numerator / denominator;
}

/* ---- warp-level functions -------------------------------------------------------------------- */

static inline uint64_t emu_meet_all(unsigned mask, emu_meeting kind, uint64_t value,
                                    int argument = 0)
{
    if (mask != 0xFFFFFFFFu)
        emu_fail("a warp's mask of 0x%x: only whole warps are modelled", mask);
    return emu_meet(kind, value, argument);
}

static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu)
{
    emu_meet_all(mask, EMU_SYNC, 0);
}

/* The value of lane `source` of the group of `width` lanes. */
template <class T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    uint64_t bits = 0;
    if (width != 32)
        source = (int)(emu_self->thread % 32) / width * width + source % width;
    static_assert(sizeof value <= sizeof bits, "a word");
    memcpy(&bits, &value, sizeof value);
    bits = emu_meet_all(mask, EMU_SHUFFLE, bits, source);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int distance)
{
    return __shfl_sync(mask, value, (int)(emu_self->thread % 32) ^ distance);
}

/* If the partner lane is in another group of `width` lanes, a lane keeps its value. */
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, int distance, int width = 32)
{
    const int lane = (int)(emu_self->thread % 32);
    return __shfl_sync(mask, value, lane % width + distance < width ? lane + distance : lane);
}

static inline int __all_sync(unsigned mask, int value)
{
    return (int)emu_meet_all(mask, EMU_ALL, value != 0);
}

static inline int __any_sync(unsigned mask, int value)
{
    return (int)emu_meet_all(mask, EMU_ANY, value != 0);
}

static inline unsigned __ballot_sync(unsigned mask, int value)
{
    return (unsigned)emu_meet_all(mask, EMU_BALLOT, value != 0);
}

static inline unsigned __reduce_max_sync(unsigned mask, unsigned value)
{
    return (unsigned)emu_meet_all(mask, EMU_MAX, value);
}

static inline unsigned __reduce_add_sync(unsigned mask, unsigned value)
{
    return (unsigned)emu_meet_all(mask, EMU_ADD, value);
}

static inline unsigned __reduce_min_sync(unsigned mask, unsigned value)
{
    return (unsigned)emu_meet_all(mask, EMU_MIN, value);
}

static inline int __reduce_min_sync(unsigned mask, int value)
{
    return (int)emu_meet_all(mask, EMU_MIN_SIGNED, (uint64_t)(int64_t)value);
}

/* A macro, because the kernel's headers, which define the number of warps, come later. */
#define __syncthreads() emu_bar_sync(0, (MGL_WARPS + MGL_OTHER_WARPS) * 32)

/* ---- memory ---------------------------------------------------------------------------------- */

static inline size_t __cvta_generic_to_shared(const void *at)
{
    size_t offset = (size_t)((const unsigned char *)at - emu_self->shared);
    if (offset >= emu_self->shared_bytes)
        emu_fail("%p is no address of shared memory", at);
    return offset;
}

static inline unsigned atomicCAS(unsigned *at, unsigned expected, unsigned value)
{
    unsigned old = *at;
    if (old == expected)
        *at = value;
    emu_wrote(at);
    return old;
}

template <class T> static inline T atomicAdd(T *at, T value)
{
    T old = *at;
    *at = old + value;
    emu_wrote(at);
    return old;
}

#endif
