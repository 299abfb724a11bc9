# merge with all dimensions at once, and still one split at a time, by a quarter of the lanes.
/region: device/,/region: end/ {
    /region: device/ a\
enum { TAKEN = 1 }; /* splits */\

    s/MERGE_AHEAD/TAKEN/g
    s/MERGE_SPLITS/TAKEN/g
    s|(splits + MERGE_GROUPS - 1 - m.lane / MERGE_LANES) / MERGE_GROUPS|m.lane < MERGE_LANES ? splits : 0|
    s| + m.lane / MERGE_LANES \* part.stride0;|;|
    s|MERGE_GROUPS \* part.stride0|part.stride0|
}
