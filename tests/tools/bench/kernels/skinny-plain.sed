# The skinny products, plainly: one block of one row group at a time, in four words, and the
# activations from shared memory each time.
s/MOST_HELD = 32,/MOST_HELD = 0, /
s/MOST_LOADED = 16,/MOST_LOADED = 1, /
s/MOST_GROUPS = 4 /MOST_GROUPS = 1 /
/region: device/,/region: end/ {
    s|^                w\[u\]\[i\] =$|                w[u][i] = four_words(|
    s|^                    \*(const uint4 \*)(ring_memory() +$|                    (const volatile u32 *)(ring_memory() +|
    s|^\( *MGL_BLOCK_BYTES\)));$|\1)));|
    /region: device/ a\
/* A lane's part of a block, word by word. */\
static __device__ __forceinline__ uint4 four_words(const volatile u32 *at)\
{\
    return make_uint4(at[0], at[1], at[2], at[3]);\
}\

}
