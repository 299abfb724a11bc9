/*
 * Makes a template from its text: normalizes line ends, checks UTF-8, keeps the symbol table,
 * and reports error positions. See jinja.h.
 */
#include "importer/chat/jinja.h"

#include "base/memory.h"
#include "base/source.h"
#include "base/utf8.h"
#include "importer/chat/syntax.h"

#include <string.h>

enum { PARSE_MEMORY = 192 << 20 }; /* bytes; more than the tree of the largest template needs */

/* ---- errors ---------------------------------------------------------------------------------- */

mgl_status mgl_jinja_fail(const mgl_jinja *jinja, size_t from, size_t to, mgl_error *err,
                          const char *message)
{
    const char *text = jinja->text;
    mgl_source_text source = {jinja->file, text + jinja->length, text, 1};
    for (const char *at = text; at < text + from; at++)
        if (*at == '\n') {
            source.line = at + 1;
            source.number++;
        }
    return mgl_source_fail(&source, text + from, text + to, message, err);
}

mgl_status mgl_jinja_fail_memory(const mgl_jinja *jinja, mgl_error *err)
{
    if (jinja->memory.full)
        return mgl_fail(err, MGL_BAD_INPUT, jinja->file, "the template is too large");
    return mgl_fail_memory(err, 0);
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *bytes, size_t length)
{
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001B3;
    return hash;
}

/* Returns the slot of a name in the hash table, or the free slot for it. */
static size_t find_place(const mgl_jinja *jinja, const char *bytes, size_t length)
{
    size_t place = (size_t)hash_of(bytes, length) & (jinja->table_size - 1);
    for (; jinja->table[place]; place = (place + 1) & (jinja->table_size - 1)) {
        const mgl_symbol_name *name = &jinja->symbols[jinja->table[place] - 1];
        if (name->length == length && !memcmp(name->bytes, bytes, length))
            break;
    }
    return place;
}

/* Doubles the table; at most half of it is used. */
static bool grow_table(mgl_jinja *jinja)
{
    size_t size = jinja->table_size ? jinja->table_size * 2 : 128;
    uint32_t *table = mgl_alloc_zero(size, sizeof *table);
    if (!table)
        return false;
    mgl_free(jinja->table);
    jinja->table = table;
    jinja->table_size = size;
    for (size_t i = 0; i < jinja->symbol_count; i++) {
        const mgl_symbol_name *name = &jinja->symbols[i];
        table[find_place(jinja, name->bytes, name->length)] = (uint32_t)i + 1;
    }
    return true;
}

uint32_t mgl_jinja_find_symbol(const mgl_jinja *jinja, const char *bytes, size_t length)
{
    return jinja->table[find_place(jinja, bytes, length)] - 1;
}

uint32_t mgl_jinja_symbol(mgl_jinja *jinja, const char *bytes, size_t length)
{
    if (jinja->table_size <= jinja->symbol_count * 2 && !grow_table(jinja))
        return UINT32_MAX;
    size_t place = find_place(jinja, bytes, length);
    if (jinja->table[place])
        return jinja->table[place] - 1;
    void *symbols = jinja->symbols;
    if (!mgl_grow(&symbols, &jinja->symbol_capacity, jinja->symbol_count, sizeof *jinja->symbols))
        return UINT32_MAX;
    jinja->symbols = symbols;
    jinja->symbols[jinja->symbol_count++] = (mgl_symbol_name){bytes, length};
    jinja->table[place] = (uint32_t)jinja->symbol_count;
    return jinja->table[place] - 1;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Converts line ends to \n, and removes one at the end of the text, as Jinja does. */
static size_t normalize(char *text, size_t length)
{
    size_t to = 0;
    for (size_t at = 0; at < length; at++) {
        bool carriage = text[at] == '\r';
        text[to++] = carriage ? '\n' : text[at];
        if (carriage && at + 1 < length && text[at + 1] == '\n')
            at++;
    }
    to -= to && text[to - 1] == '\n';
    text[to] = 0;
    return to;
}

static mgl_status fill(mgl_jinja *jinja, mgl_error *err)
{
    static const char *const names[] = {
#define MGL_X(name) #name,
        MGL_SYMBOLS(MGL_X)
#undef MGL_X
    };
    size_t valid = mgl_utf8_valid(jinja->text, jinja->length);
    if (valid < jinja->length)
        return mgl_jinja_fail(jinja, valid, valid, err, "a byte that is not UTF-8");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mgl_jinja_symbol(jinja, names[i], strlen(names[i])) == UINT32_MAX)
            return mgl_fail_memory(err, 0);
    mgl_status status = mgl_jinja_lex(jinja, err);
    return status ? status : mgl_jinja_read(jinja, err);
}

mgl_status mgl_jinja_parse(const char *text, size_t length, const char *file, mgl_jinja **out,
                           mgl_error *err)
{
    *out = NULL;
    if (length > MGL_JINJA_CAP)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "a template of %zu bytes; %zu are the most accepted", length,
                        MGL_JINJA_CAP);
    mgl_jinja *jinja = mgl_alloc_zero(1, sizeof *jinja);
    if (!jinja)
        return mgl_fail_memory(err, sizeof *jinja);
    jinja->memory.limit = PARSE_MEMORY;
    jinja->file = mgl_strdup(file);
    jinja->text = mgl_strndup(text, length);
    mgl_status status = jinja->file && jinja->text ? MGL_OK : mgl_fail_memory(err, length);
    if (!status) {
        jinja->length = normalize(jinja->text, length);
        status = fill(jinja, err);
    }
    if (status) {
        mgl_jinja_free(jinja);
        return status;
    }
    *out = jinja;
    return MGL_OK;
}

void mgl_jinja_free(mgl_jinja *jinja)
{
    if (!jinja)
        return;
    mgl_arena_clear(&jinja->memory);
    mgl_free(jinja->symbols);
    mgl_free(jinja->table);
    mgl_free(jinja->text);
    mgl_free(jinja->file);
    mgl_free(jinja);
}
