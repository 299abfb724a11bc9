/* Opens libedit at run time and finds its functions. See libedit.h. */
#include "cli/libedit.h"

#include "base/system/symbols.h"

#include <dlfcn.h>

static mgl_libedit table;
static bool ready;

static const char *fill(void *library)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, result, symbol, arguments) {symbol, offsetof(mgl_libedit, member)},
        MGL_LIBEDIT_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    return mgl_symbols_fill(library, symbols, sizeof symbols / sizeof *symbols, &table);
}

const mgl_libedit *mgl_libedit_find(void)
{
    static const char *const names[] = {"libedit.so.2", "libedit.so.0"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !ready; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        ready = library && !fill(library);
        if (library && !ready)
            dlclose(library);
    }
    return ready ? &table : NULL;
}
