# refactor, name, of device: uses that name.
/region: device/,/region: end/ {
    s|^    return make_uint4(at\[0\], at\[1\], at\[2\], at\[3\]);|    u32 words[WORDS_OF_LANE];\
#pragma unroll\
    for (int i = 0; i < WORDS_OF_LANE; i++)\
        words[i] = at[i];\
    return make_uint4(words[0], words[1], words[2], words[3]);|
}
