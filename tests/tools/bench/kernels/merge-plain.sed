# merge, plainly: one dimension at a time, one block of a head at a time, one split at a time, by a quarter of the lanes,
# whose sums go down lane by lane.
/region: device/,/region: end/ {
    /region: device/ a\
enum { TAKEN = 1 }; /* splits */\

    s/for (int offset = MERGE_LANES; offset < 32; offset <<= 1)/for (int offset = 16; offset >= MERGE_LANES; offset >>= 1)/
    /void add_groups(/,/^}/ s/__shfl_xor_sync/__shfl_down_sync/
    s/MERGE_AHEAD/TAKEN/g
    s/MERGE_SPLITS/TAKEN/g
    s|(splits + MERGE_GROUPS - 1 - m.lane / MERGE_LANES) / MERGE_GROUPS|m.lane < MERGE_LANES ? splits : 0|
    s| + m.lane / MERGE_LANES \* part.stride0;|;|
    s|MERGE_GROUPS \* part.stride0|part.stride0|
    /^        written = merge_splits(.*, all, policy) && written;$/ c\
#pragma unroll 1\
        for (int j = 0; j < 4; j++) {\
            merged_blocks<BLOCKS> one;\
            written = merge_splits(m, place, part.flag, part.count[0], one, policy) && written;\
            all.sum = one.sum;\
            all.value[0][j] = one.value[0][j];\
        }
    /^    const int blocks = /,/^        return merge_heads<MERGE_WIDE>(m);/ d
}
