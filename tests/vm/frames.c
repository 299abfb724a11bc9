/* Reads .nv.info sections of cubins. See frames.h. */
#include "frames.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

/* The entries of .nv.info, as cuobjdump names them: one byte of format and one of attribute. For
 * format SVAL, two bytes of length and the value follow; other formats have a value of two
 * bytes. */
enum { FORMAT_SVAL = 4, FRAME_SIZE = 0x11, REGISTERS = 0x2f };

typedef struct info {
    uint8_t format, attribute;
    uint16_t length;
} info;

/* Values of these two attributes for a function. */
typedef struct entry {
    uint32_t symbol, number;
} entry;

typedef struct image {
    const char *bytes;
    size_t length;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *sections;
} image;

/* The section of that name, or of that type if the name is NULL. */
static const Elf64_Shdr *find_section(const image *e, const char *name, uint32_t type)
{
    const char *names = e->bytes + e->sections[e->head->e_shstrndx].sh_offset;
    for (int i = 0; i < e->head->e_shnum; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (name ? !strcmp(names + s->sh_name, name) : s->sh_type == type)
            return s->sh_offset + s->sh_size <= e->length ? s : NULL;
    }
    return NULL;
}

static const char *name_of(const image *e, const Elf64_Shdr *symbols, uint32_t symbol)
{
    const Elf64_Sym *all = (const void *)(e->bytes + symbols->sh_offset);
    const Elf64_Shdr *names = &e->sections[symbols->sh_link];
    if (symbol >= symbols->sh_size / sizeof *all)
        return "";
    return e->bytes + names->sh_offset + all[symbol].st_name;
}

static int find(const void *cubin, size_t length, const char *function, int attribute)
{
    image e = {cubin, length, cubin, NULL};
    if (length < sizeof *e.head || memcmp(cubin, ELFMAG, SELFMAG))
        return -1;
    e.sections = (const void *)(e.bytes + e.head->e_shoff);
    const Elf64_Shdr *symbols = find_section(&e, NULL, SHT_SYMTAB);
    const Elf64_Shdr *infos = find_section(&e, ".nv.info", 0);
    if (!symbols || !infos)
        return -1;
    const char *at = e.bytes + infos->sh_offset, *end = at + infos->sh_size;
    for (info i; at + sizeof i <= end; at += sizeof i + (i.format == FORMAT_SVAL ? i.length : 0)) {
        entry found;
        memcpy(&i, at, sizeof i);
        if (i.format != FORMAT_SVAL || i.attribute != attribute || i.length != sizeof found)
            continue;
        memcpy(&found, at + sizeof i, sizeof found);
        if (!strcmp(name_of(&e, symbols, found.symbol), function))
            return (int)found.number;
    }
    return -1;
}

int frame_of(const void *cubin, size_t length, const char *function)
{
    return find(cubin, length, function, FRAME_SIZE);
}

int registers_of(const void *cubin, size_t length, const char *function)
{
    return find(cubin, length, function, REGISTERS);
}
