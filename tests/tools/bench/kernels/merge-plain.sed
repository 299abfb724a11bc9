# merge, plainly: one dimension at a time, one split at a time, by a quarter of the lanes, whose sums go down lane by
# lane.
/region: device/,/region: end/ {
    /region: device/ a\
enum { TAKEN = 1 }; /* splits */\
typedef part_words<TAKEN> one_part;\

    s/for (int offset = MERGE_LANES; offset < 32; offset <<= 1)/for (int offset = 16; offset >= MERGE_LANES; offset >>= 1)/
    /void add_groups(/,/^}/ s/__shfl_xor_sync/__shfl_down_sync/
    s/lane_parts/one_part/g
    s/MERGE_AHEAD/TAKEN/g
    s/MERGE_SPLITS/TAKEN/g
    s|(splits + MERGE_GROUPS - 1 - m.lane / MERGE_LANES) / MERGE_GROUPS|m.lane < MERGE_LANES ? splits : 0|
    s| + m.lane / MERGE_LANES \* part.stride0;|;|
    s|MERGE_GROUPS \* part.stride0|part.stride0|
    /^        written =$/,/max(left, 1), all, policy) && written;/ c\
#pragma unroll 1\
        for (int j = 0; j < 4; j++) {\
            merged one;\
            written =\
                merge_splits(m, place, part.flag, part.count[0], max(left, 1), one, policy) && written;\
            all.sum = one.sum;\
#pragma unroll\
            for (int k = 0; k < 4; k++)\
                all.value[k] = k == j ? one.value[k] : all.value[k];\
        }
}
