/*
 * Fuzz target of moves. The bytes must be rejected with a position, or give a list that is equal
 * after printing and reading, with the same print.
 */
#include "schedule/moves/moves.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static mgl_text print(const mgl_moves *moves)
{
    mgl_text text = {0};
    mgl_moves_print(moves, &text);
    require(!text.failed);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_moves moves, again;
    mgl_error err = {0};
    if (mgl_moves_parse((const char *)data, size, "fuzz", &moves, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0] && !moves.moves);
        return 0;
    }
    mgl_text text = print(&moves);
    require(mgl_moves_parse(text.bytes, text.length, "again", &again, &err) == MGL_OK);
    mgl_text second = print(&again);
    require(moves.count == again.count && text.length == second.length);
    require(text.length == 0 || !memcmp(text.bytes, second.bytes, text.length));
    mgl_text_clear(&text);
    mgl_text_clear(&second);
    mgl_moves_clear(&moves);
    mgl_moves_clear(&again);
    return 0;
}
