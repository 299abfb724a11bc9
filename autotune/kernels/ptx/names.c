/* Implements names.h with an open-addressing hash table. */
#include "autotune/kernels/ptx/names.h"

#include "base/checksum.h"
#include "base/memory.h"

/* The position of a name in the table, or the free position for it. */
static size_t find_place(const mgl_ptx_names *names, mgl_ptx_slice text)
{
    size_t at = (size_t)mgl_checksum(text.at, text.length) & (names->table_size - 1);
    while (names->table[at] && mgl_ptx_compare(names->names[names->table[at] - 1].text, text))
        at = (at + 1) & (names->table_size - 1);
    return at;
}

/* Grows the table so that at most half of it is used. */
static bool widen(mgl_ptx_names *names)
{
    if (names->table_size > 2 * names->count)
        return true;
    size_t size = names->table_size ? 2 * names->table_size : 1024;
    uint32_t *table = mgl_alloc_zero(size, sizeof *table);
    if (!table)
        return false;
    mgl_free(names->table);
    names->table = table;
    names->table_size = size;
    for (size_t i = 0; i < names->count; i++)
        table[find_place(names, names->names[i].text)] = (uint32_t)i + 1;
    return true;
}

size_t mgl_ptx_names_find(mgl_ptx_names *names, mgl_ptx_slice text)
{
    if (!widen(names))
        return SIZE_MAX;
    size_t place = find_place(names, text);
    if (names->table[place])
        return names->table[place] - 1;
    if (!mgl_grow((void **)&names->names, &names->capacity, names->count, sizeof *names->names))
        return SIZE_MAX;
    names->names[names->count] = (mgl_ptx_name){.text = text, .id = MGL_PTX_NONE};
    names->table[place] = (uint32_t)++names->count;
    return names->count - 1;
}

bool mgl_ptx_names_save(mgl_ptx_names *names, size_t name)
{
    if (!mgl_grow((void **)&names->undo, &names->undo_capacity, names->undo_count,
                  sizeof *names->undo))
        return false;
    names->undo[names->undo_count++] = (mgl_ptx_undo){name, names->names[name]};
    return true;
}

void mgl_ptx_names_restore(mgl_ptx_names *names, size_t count)
{
    while (names->undo_count > count) {
        const mgl_ptx_undo *undo = &names->undo[--names->undo_count];
        names->names[undo->name] = undo->before;
    }
}

void mgl_ptx_names_clear(mgl_ptx_names *names)
{
    mgl_free(names->names);
    mgl_free(names->undo);
    mgl_free(names->table);
    *names = (mgl_ptx_names){0};
}
