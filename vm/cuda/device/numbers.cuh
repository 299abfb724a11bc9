/*
 * Number formats by dtype: unpacking 16 bytes to f32, rounding, storing; and sums and maxima over a
 * warp (butterfly reductions).
 */
#ifndef MGL_DEVICE_NUMBERS_CUH
#define MGL_DEVICE_NUMBERS_CUH

#include "vm/cuda/device/shared.cuh"

static __device__ __forceinline__ float bf16_float(u32 bits)
{
    return __uint_as_float(bits << 16);
}

/* Rounds to nearest even, like mgl_f32_to_bf16 of the host. */
static __device__ __forceinline__ u16 float_bf16(float value)
{
    u32 u = __float_as_uint(value);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return (u16)((u >> 16) | 0x40);
    return (u16)((u + 0x7FFFu + ((u >> 16) & 1)) >> 16);
}

template <int DTYPE> struct format {
    enum { SIZE = DTYPE == DTYPE_F32 ? 4 : 2, VECTOR = 16 / SIZE };

    static __device__ __forceinline__ void unpack(uint4 raw, float *to)
    {
        const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (DTYPE == DTYPE_F32) {
                to[i] = __uint_as_float(words[i]);
            } else if (DTYPE == DTYPE_BF16) {
                to[(2 * i) % VECTOR] = bf16_float(words[i] & 0xFFFFu);
                to[(2 * i + 1) % VECTOR] = __uint_as_float(words[i] & 0xFFFF0000u);
            } else {
                to[(2 * i) % VECTOR] = f16_float(words[i] & 0xFFFFu);
                to[(2 * i + 1) % VECTOR] = f16_float(words[i] >> 16);
            }
        }
    }

    static __device__ __forceinline__ float load(const u8 *at, long long i)
    {
        if (DTYPE == DTYPE_F32)
            return ((const float *)at)[i];
        u32 bits = ((const u16 *)at)[i];
        return DTYPE == DTYPE_BF16 ? bf16_float(bits) : f16_float(bits);
    }

    /* The value that is read back after store(). */
    static __device__ __forceinline__ float round(float value)
    {
        return DTYPE == DTYPE_F32    ? value
               : DTYPE == DTYPE_BF16 ? bf16_float(float_bf16(value))
                                     : f16_float(float_f16(value));
    }

    static __device__ __forceinline__ void store(u8 *at, long long i, float value)
    {
        if (DTYPE == DTYPE_F32)
            ((float *)at)[i] = value;
        else
            ((u16 *)at)[i] = DTYPE == DTYPE_BF16 ? float_bf16(value) : float_f16(value);
    }
};

typedef format<MGL_WEIGHT> weight_format;
typedef format<MGL_EMBEDDING> embedding_format;
typedef format<MGL_CACHE> cache_format;

static __device__ __forceinline__ float warp_sum(float value)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    return value;
}

static __device__ __forceinline__ float warp_max(float value)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
    return value;
}

#endif
