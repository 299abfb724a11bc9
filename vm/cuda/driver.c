/* Opens the CUDA driver, NVRTC and nvJitLink with dlopen, fills their function tables (driver.h),
 * and formats driver errors. */
#include "vm/cuda/driver.h"

#include "base/system/symbols.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mgl_cu driver;
static mgl_nvrtc compiler;
static mgl_jitlink linker;
static bool driver_ready, compiler_ready, linker_ready;
static const mgl_cu *driver_override;
static const mgl_nvrtc *compiler_override;
static const mgl_jitlink *linker_override;

enum { FIRST_LINKED = 13 }; /* NVRTC of CUDA 13.0 supports what device/objects.h needs */

static atomic_int sections; /* open mgl_cu_begin brackets */

void mgl_cu_begin(void)
{
    atomic_fetch_add(&sections, 1);
}

void mgl_cu_end(void)
{
    atomic_fetch_sub(&sections, 1);
}

bool mgl_cu_is_busy(void)
{
    return atomic_load(&sections) > 0;
}

static void path_of(void *function, const char *fallback, char path[256])
{
    Dl_info info;
    bool known = dladdr(function, &info) && info.dli_fname;
    snprintf(path, 256, "%s", known ? info.dli_fname : fallback);
}

static mgl_status load_driver(mgl_error *err)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, symbol, arguments) {symbol, offsetof(mgl_cu, member)},
        MGL_CU_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return mgl_fail(err, MGL_DEVICE, "libcuda.so.1",
                        "no NVIDIA driver on this machine (%s): install one" MGL_HINT_CPU,
                        dlerror());
    const char *missing =
        mgl_symbols_fill(library, symbols, sizeof symbols / sizeof *symbols, &driver);
    if (missing) {
        dlclose(library);
        return mgl_fail(err, MGL_DEVICE, "libcuda.so.1",
                        "the NVIDIA driver is too old: it has no %s; update it to one for CUDA 12",
                        missing);
    }
    path_of(dlsym(library, "cuInit"), "libcuda.so.1", driver.path);
    mgl_status status = mgl_cu_check(&driver, driver.init(0), "starting the driver", err);
    if (status)
        dlclose(library);
    return status;
}

enum { NAMES = 3 };

static void *open_in(const char *folder, const char *below, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s%s", folder, below, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Opens a toolkit library: from CUDA_HOME, else the newest in the loader's path and
 * /usr/local/cuda. On failure NULL, with the loader's message for the first name. */
static void *open_tool(const char *const names[NAMES], char reason[160])
{
    const char *home = getenv("CUDA_HOME");
    void *library = NULL;
    for (int i = 0; i < NAMES && !library && home && home[0]; i++) {
        library = open_in(home, "/lib64/", names[i]);
        library = library ? library : open_in(home, "/lib/", names[i]);
    }
    for (int i = 0; i < NAMES && !library; i++) {
        library = open_in("", "", names[i]);
        if (!library && i == 0)
            snprintf(reason, 160, "%s", dlerror());
        library = library ? library : open_in("/usr/local/cuda", "/lib64/", names[i]);
    }
    return library;
}

/* A toolkit library and the table for its functions. */
typedef struct tool {
    const char *names[NAMES], *title, *what, *package, *oldest;
    const char *entry; /* a symbol that is used to find the library's path */
    const mgl_symbol *symbols;
    size_t count;
    void *table;
    char *path; /* [256] */
} tool;

static mgl_status load_tool(const tool *t, mgl_error *err)
{
    const char *file = t->names[NAMES - 1];
    char reason[160] = "";
    void *library = open_tool(t->names, reason);
    if (!library)
        return mgl_fail(err, MGL_DEVICE, file,
                        "%s, the %s of the CUDA toolkit (12 or 13), was not found (%s): install it "
                        "(package %s), or set CUDA_HOME to the toolkit",
                        t->title, t->what, reason, t->package);
    const char *missing = mgl_symbols_fill(library, t->symbols, t->count, t->table);
    if (missing) {
        dlclose(library);
        return mgl_fail(err, MGL_DEVICE, file,
                        "%s is too old: it has no %s; install the library of CUDA %s or newer",
                        t->title, missing, t->oldest);
    }
    path_of(dlsym(library, t->entry), file, t->path);
    return MGL_OK;
}

static mgl_status load_compiler(mgl_error *err)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, symbol, arguments) {symbol, offsetof(mgl_nvrtc, member)},
        MGL_NVRTC_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    static const tool nvrtc = {.names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                               .title = "NVRTC",
                               .what = "run-time compiler",
                               .package = "cuda-nvrtc",
                               .oldest = "12",
                               .entry = "nvrtcVersion",
                               .symbols = symbols,
                               .count = sizeof symbols / sizeof *symbols,
                               .table = &compiler,
                               .path = compiler.path};
    return load_tool(&nvrtc, err);
}

static mgl_status load_linker(mgl_error *err)
{
    static const mgl_symbol symbols[] = {
#define MGL_X(member, symbol, arguments) {symbol, offsetof(mgl_jitlink, member)},
        MGL_JITLINK_FUNCTIONS(MGL_X)
#undef MGL_X
    };
    static const tool jitlink = {
        .names = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"},
        .title = "nvJitLink",
        .what = "linker",
        .package = "libnvjitlink",
        .oldest = "12.4",
        .entry = "nvJitLinkCreate",
        .symbols = symbols,
        .count = sizeof symbols / sizeof *symbols,
        .table = &linker,
        .path = linker.path};
    return load_tool(&jitlink, err);
}

/* Loads a library, unless it is loaded already. */
static mgl_status load_once(bool *ready, mgl_status (*load)(mgl_error *err), mgl_error *err)
{
    mgl_status status = MGL_OK;
    pthread_mutex_lock(&lock);
    if (!*ready)
        status = load(err);
    *ready = *ready || !status;
    pthread_mutex_unlock(&lock);
    return status;
}

mgl_status mgl_cu_open(const mgl_cu **out, mgl_error *err)
{
    *out = driver_override ? driver_override : &driver;
    if (driver_override)
        return mgl_cu_check(driver_override, driver_override->init(0), "starting the driver", err);
    mgl_cu_begin();
    mgl_status status = load_once(&driver_ready, load_driver, err);
    mgl_cu_end();
    return status;
}

mgl_status mgl_nvrtc_open(const mgl_nvrtc **out, mgl_error *err)
{
    *out = compiler_override ? compiler_override : &compiler;
    return compiler_override ? MGL_OK : load_once(&compiler_ready, load_compiler, err);
}

mgl_status mgl_jitlink_open(const mgl_jitlink **out, mgl_error *err)
{
    *out = linker_override ? linker_override : &linker;
    return linker_override ? MGL_OK : load_once(&linker_ready, load_linker, err);
}

const mgl_jitlink *mgl_jitlink_for(const mgl_nvrtc *nvrtc, mgl_error *err)
{
    const mgl_jitlink *found = NULL;
    unsigned linker_major = 0, linker_minor = 0;
    int major = 0, minor = 0;
    nvrtc->version(&major, &minor);
    if (compiler_override && !linker_override) {
        mgl_fail(err, MGL_DEVICE, "libnvJitLink.so", "the compiler is a test's");
        return NULL;
    }
    if (major < FIRST_LINKED) {
        mgl_fail(err, MGL_DEVICE, "libnvJitLink.so",
                 "kernels are linked from NVRTC 13.0 on, and this is %d.%d: install the toolkit of "
                 "CUDA 13, or kernels of two task lists take longer to compile",
                 major, minor);
        return NULL;
    }
    if (mgl_jitlink_open(&found, err))
        return NULL;
    found->version(&linker_major, &linker_minor);
    if ((int)linker_major > major || ((int)linker_major == major && (int)linker_minor >= minor))
        return found;
    mgl_fail(
        err, MGL_DEVICE, "libnvJitLink.so",
        "nvJitLink %u.%u is older than NVRTC, %d.%d: install the nvJitLink of the same toolkit",
        linker_major, linker_minor, major, minor);
    return NULL;
}

void mgl_cu_override(const mgl_cu *table)
{
    driver_override = table;
}

void mgl_nvrtc_override(const mgl_nvrtc *table)
{
    compiler_override = table;
}

void mgl_jitlink_override(const mgl_jitlink *table)
{
    linker_override = table;
}

mgl_status mgl_cu_check(const mgl_cu *cu, int result, const char *what, mgl_error *err)
{
    const char *name = NULL, *text = NULL;
    if (result == 0)
        return MGL_OK;
    if (cu->error_name(result, &name) || !name)
        name = "unknown error";
    if (cu->error_string(result, &text) || !text)
        text = "no description";
    return mgl_fail(err, MGL_DEVICE, NULL, "%s failed: %s (%d): %s", what, name, result, text);
}
