/* Fills a function table with dlsym. See symbols.h. */
#include "base/system/symbols.h"

#include <dlfcn.h>
#include <string.h>

const char *mgl_symbols_fill(void *library, const mgl_symbol *symbols, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *at = dlsym(library, symbols[i].name);
        if (!at)
            return symbols[i].name;
        memcpy((char *)table + symbols[i].offset, &at, sizeof at);
    }
    return NULL;
}
