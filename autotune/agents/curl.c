/* Implements curl.h: finds the shared library and its symbols. */
#include "autotune/agents/curl.h"

#include "base/system/symbols.h"

#include <dlfcn.h>
#include <stddef.h>

static mgl_curl table;
static bool ready;

static const char *fill(void *library)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, result, symbol, arguments) {symbol, offsetof(mgl_curl, member)},
        MGL_CURL_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    return mgl_symbols_fill(library, symbols, sizeof symbols / sizeof *symbols, &table);
}

mgl_status mgl_curl_open(const mgl_curl **out, mgl_error *err)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    *out = &table;
    if (ready)
        return MGL_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return mgl_fail(err, MGL_USAGE, "libcurl.so.4",
                        "libcurl, which speaks to chat endpoints, was not found: install the "
                        "package libcurl4 (libcurl4t64 on newer systems), or use another proposer");
    const char *missing = fill(library);
    if (!missing && table.global_init(MGL_CURL_GLOBAL_DEFAULT) != 0)
        missing = "curl_global_init that works";
    if (missing) {
        dlclose(library);
        return mgl_fail(err, MGL_USAGE, "libcurl.so.4",
                        "it has no %s: version 7.66 or later is needed", missing);
    }
    ready = true;
    return MGL_OK;
}
