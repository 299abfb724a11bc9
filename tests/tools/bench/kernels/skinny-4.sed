# vector_loads, loads: a lane's part of a block at once.
/region: device/,/region: end/ {
    /^\/\* A lane's part of a block, word by word\. \*\/$/,/^}$/ c\
/* A lane's part of a block, at once. */\
static __device__ __forceinline__ uint4 four_words(const uint4 *at)\
{\
    return *at;\
}
    s|^static __device__ __forceinline__ const volatile u32 \*words_at|static __device__ __forceinline__ const uint4 *words_at|
    s|return (const volatile u32 \*)(ring_memory|return (const uint4 *)(ring_memory|
}
