/* Implements libpq.h: loads libpq.so.5 and fills the table of its functions. */
#include "autotune/store/libpq.h"

#include "base/system/symbols.h"

#include <dlfcn.h>
#include <stddef.h>

static mgl_libpq table;
static bool ready;

static const char *fill(void *library)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, result, symbol, arguments) {symbol, offsetof(mgl_libpq, member)},
        MGL_LIBPQ_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    return mgl_symbols_fill(library, symbols, sizeof symbols / sizeof *symbols, &table);
}

mgl_status mgl_libpq_open(const mgl_libpq **out, mgl_error *err)
{
    *out = &table;
    if (ready)
        return MGL_OK;
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return mgl_fail(err, MGL_USAGE, "libpq.so.5",
                        "libpq, which speaks to PostgreSQL servers, was not found: install the "
                        "package libpq5, or take a file as --store");
    const char *missing = fill(library);
    if (missing) {
        dlclose(library);
        return mgl_fail(err, MGL_USAGE, "libpq.so.5",
                        "it has no %s: version 9.3 or later is needed", missing);
    }
    ready = true;
    return MGL_OK;
}
