/* Implements the fix-ups: one scan that replaces byte sequences, and the final line end. */
#include "autotune/kernels/gates/fixups.h"

#include <string.h>

const char *mgl_fixup_name(mgl_fixup fixup)
{
    static const char *const names[] = {
#define MGL_X(id, name, what) name,
        MGL_FIXUPS(MGL_X)
#undef MGL_X
    };
    return names[fixup];
}

/* Byte sequences that are replaced everywhere. */
static const struct {
    const char *from, *to;
    mgl_fixup fixup;
} replaced[] = {{"\r\n", "\n", MGL_FIXUP_LINE_ENDS},
                {"\xC2\xA0", " ", MGL_FIXUP_SPACES},
                {"\xE2\x80\xAF", " ", MGL_FIXUP_SPACES},
                {"\xE2\x80\x8B", "", MGL_FIXUP_SPACES},
                {"\xE2\x81\xA0", "", MGL_FIXUP_SPACES}};

/* The number of bytes to replace at `at`, and the row of the replacement; 0: none. */
static size_t find_replaced(const char *at, size_t length, size_t *row)
{
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        size_t bytes = strlen(replaced[i].from);
        *row = i;
        if (length >= bytes && !memcmp(at, replaced[i].from, bytes))
            return bytes;
    }
    return 0;
}

void mgl_fixups_apply(const char *text, size_t length, mgl_text *out, mgl_fixups *used)
{
    const char *at = text, *end = text + length;
    size_t row = 0, start = out->length;
    *used = (mgl_fixups){0};
    if (length >= 3 && !memcmp(at, "\xEF\xBB\xBF", 3)) {
        at += 3;
        used->uses[MGL_FIXUP_MARK]++;
    }
    for (const char *kept = at; at <= end;) {
        size_t bytes = at < end ? find_replaced(at, (size_t)(end - at), &row) : 0;
        if (at < end && !bytes) {
            at++;
            continue;
        }
        mgl_text_append(out, kept, (size_t)(at - kept));
        if (at == end)
            break;
        mgl_text_put(out, replaced[row].to);
        used->uses[replaced[row].fixup]++;
        kept = at += bytes;
    }
    if (out->length > start && !out->failed && out->bytes[out->length - 1] != '\n') {
        mgl_text_put(out, "\n");
        used->uses[MGL_FIXUP_LAST_LINE]++;
    }
}
