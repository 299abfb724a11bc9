/*
 * Hash table with open addressing and linear probing, at most half full. The hash is FNV-1a with a
 * final mix, so that names that differ only in the last digit spread.
 */
#include "schedule/text/names.h"

#include "base/memory.h"

#include <string.h>

static uint64_t hash_of(const char *name, size_t length)
{
    uint64_t h = 0xCBF29CE484222325U;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)name[i]) * 0x100000001B3U;
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15U;
    return h ^ (h >> 29);
}

/* The entry of the name, or the free entry for it. The table has a free entry. */
static mgl_name_entry *locate(const mgl_names *names, const char *name, size_t length,
                              uint64_t hash)
{
    for (size_t i = hash & (names->capacity - 1);; i = (i + 1) & (names->capacity - 1)) {
        mgl_name_entry *entry = &names->entries[i];
        if (!entry->name ||
            (entry->hash == hash && entry->length == length && !memcmp(entry->name, name, length)))
            return entry;
    }
}

static bool make_room(mgl_names *names)
{
    if ((names->count + 1) * 2 <= names->capacity)
        return true;
    mgl_names grown = {.capacity = names->capacity ? names->capacity * 2 : 64,
                       .count = names->count};
    grown.entries = mgl_alloc_zero(grown.capacity, sizeof *grown.entries);
    if (!grown.entries)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const mgl_name_entry *entry = &names->entries[i];
        if (entry->name)
            *locate(&grown, entry->name, entry->length, entry->hash) = *entry;
    }
    mgl_free(names->entries);
    *names = grown;
    return true;
}

int mgl_names_find(const mgl_names *names, const char *name, size_t length)
{
    if (!names->capacity)
        return -1;
    const mgl_name_entry *entry = locate(names, name, length, hash_of(name, length));
    return entry->name ? entry->index : -1;
}

bool mgl_names_add(mgl_names *names, const char *name, int index)
{
    if (!make_room(names))
        return false;
    mgl_name_entry entry = {.name = name, .length = strlen(name), .index = index};
    entry.hash = hash_of(name, entry.length);
    *locate(names, name, entry.length, entry.hash) = entry;
    names->count++;
    return true;
}

void mgl_names_clear(mgl_names *names)
{
    mgl_free(names->entries);
    *names = (mgl_names){0};
}
