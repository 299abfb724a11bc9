/* Implements assemble.h: runs nvJitLink and parses its error and info logs. */
#include "autotune/kernels/ptx/assemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "vm/cuda/driver.h"

/* ---- logs ------------------------------------------------------------------------------------ */

/* Parses "ptxas application ptx input, line 7; error   : Unknown ..." */
static void read_error(const char *log, mgl_ptx_assembled *out)
{
    const char *at = strstr(log, "line ");
    const char *error = strstr(log, "error");
    out->line = at ? atoi(at + 5) : 0;
    const char *text = error && strchr(error, ':') ? strchr(error, ':') + 1 : log;
    text += strspn(text, " \t\n");
    mgl_format_into(out->message, sizeof out->message, "%.*s", (int)strcspn(text, "\n"), text);
}

/* The number before `word` in one line; -1: none. */
static int64_t number_before(const char *line, size_t length, const char *word)
{
    const char *at = memmem(line, length, word, strlen(word));
    if (!at)
        return -1;
    while (at > line && (at[-1] < '0' || at[-1] > '9'))
        at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return strtoll(at, NULL, 10);
}

static void read_info_line(const char *line, size_t length, mgl_ptx_assembled *out)
{
    int64_t registers = number_before(line, length, " registers");
    int64_t stores = number_before(line, length, " bytes spill stores");
    int64_t loads = number_before(line, length, " bytes spill loads");
    int64_t shared = number_before(line, length, " bytes smem");
    if (registers > out->registers && registers < 1024)
        out->registers = (int)registers;
    out->spill_bytes += (stores > 0 ? stores : 0) + (loads > 0 ? loads : 0);
    if (shared > out->shared_bytes)
        out->shared_bytes = shared;
}

static void read_info(const char *log, mgl_ptx_assembled *out)
{
    while (*log) {
        size_t length = strcspn(log, "\n");
        read_info_line(log, length, out);
        log += length + (log[length] == '\n');
    }
}

/* ---- assembling ------------------------------------------------------------------------------ */

typedef int size_fn(void *link, size_t *bytes);
typedef int text_fn(void *link, char *text);

/* Owned by the caller, 0-terminated; NULL: out of memory. */
static char *read_log(void *link, size_fn *size, text_fn *text)
{
    size_t bytes = 0;
    if (size(link, &bytes))
        bytes = 0;
    char *log = mgl_alloc_zero(bytes + 1, 1);
    if (log && bytes && text(link, log))
        *log = 0;
    return log;
}

static mgl_status take_cubin(const mgl_jitlink *api, void *link, mgl_ptx_assembled *out,
                             mgl_error *err)
{
    if (api->cubin_size(link, &out->cubin_bytes))
        return mgl_fail(err, MGL_DEVICE, "nvJitLink", "the machine code could not be read");
    out->cubin = mgl_alloc(out->cubin_bytes + 1);
    if (!out->cubin)
        return mgl_fail_memory(err, out->cubin_bytes);
    if (api->cubin(link, out->cubin))
        return mgl_fail(err, MGL_DEVICE, "nvJitLink", "the machine code could not be read");
    out->good = true;
    return MGL_OK;
}

static mgl_status run(const mgl_jitlink *api, void *link, const char *ptx, size_t length,
                      mgl_ptx_assembled *out, mgl_error *err)
{
    int result = api->add(link, MGL_JITLINK_PTX, ptx, length, "candidate");
    if (!result)
        result = api->complete(link);
    char *log = result ? read_log(link, api->error_size, api->error_log)
                       : read_log(link, api->info_size, api->info_log);
    if (!log)
        return mgl_fail_memory(err, 1);
    if (result)
        read_error(log, out);
    else
        read_info(log, out);
    mgl_free(log);
    return result ? MGL_OK : take_cubin(api, link, out, err);
}

mgl_status mgl_ptx_assemble(const char *ptx, size_t length, const char *arch,
                            mgl_ptx_assembled *out, mgl_error *err)
{
    const mgl_jitlink *api;
    char option[64];
    const char *options[] = {option, "-verbose"};
    void *link = NULL;
    *out = (mgl_ptx_assembled){0};
    mgl_status status = mgl_jitlink_open(&api, err);
    if (status)
        return status;
    char *copy = mgl_strndup(ptx, length); /* the terminating 0 belongs to the input */
    if (!copy)
        return mgl_fail_memory(err, length);
    snprintf(option, sizeof option, "-arch=%s", arch);
    if (api->create(&link, 2, options))
        status = mgl_fail(err, MGL_BAD_INPUT, arch,
                          "nvJitLink takes no such architecture; sm_80 and sm_90a are some");
    else
        status = run(api, link, copy, length + 1, out, err);
    if (link)
        api->destroy(&link);
    mgl_free(copy);
    if (status)
        mgl_ptx_assembled_clear(out);
    return status;
}

void mgl_ptx_assembled_clear(mgl_ptx_assembled *assembled)
{
    mgl_free(assembled->cubin);
    *assembled = (mgl_ptx_assembled){0};
}
