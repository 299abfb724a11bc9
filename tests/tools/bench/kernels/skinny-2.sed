# refactor, name, of macros: the words of a lane.
/region: macros/,/region: device/ {
    /region: macros/ a\
enum { WORDS_OF_LANE = 4 }; /* of a block that a lane has */\

}
