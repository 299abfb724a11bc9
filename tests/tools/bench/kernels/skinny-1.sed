# refactor, split: where a lane's part of a block is, and loading it.
/region: device/,/region: end/ {
    /^\/\* A lane's part of a block, word by word\. \*\/$/,/^}$/ c\
/* Where a lane's part of a block is in the ring. */\
static __device__ __forceinline__ const volatile u32 *words_at(u32 at)\
{\
    return (const volatile u32 *)(ring_memory() + within_ring(at));\
}\
\
/* A lane's part of a block, word by word. */\
static __device__ __forceinline__ uint4 four_words(const volatile u32 *at)\
{\
    return make_uint4(at[0], at[1], at[2], at[3]);\
}
    /= four_words($/,/MGL_BLOCK_BYTES)));$/ c\
                w[u][i] = four_words(\
                    words_at(st.at + (u * KB + mgl_tape_place(P, 0, FROM + i) - START) *\
                                         MGL_BLOCK_BYTES));
}
