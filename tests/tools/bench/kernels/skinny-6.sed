# thread_chunk, size: as many blocks at once, of as many row groups as fit; activations stay.
/region: macros/,/region: device/ {
    /region: macros/ a\
enum { CHUNK = TUNE_CHUNK }; /* pairs of blocks that a lane loads at once */\

    s/MOST_HELD = 0, /MOST_HELD = 32,/
    s/MOST_LOADED = 1, /MOST_LOADED = 2 * CHUNK,/
    s/MOST_GROUPS = 1 /MOST_GROUPS = 4 /
}
