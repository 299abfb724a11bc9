/* The list of reasons against a checkpoint. See reasons.h. */
#include "importer/reasons.h"

#include "base/format.h"
#include "base/memory.h"

#include <stdarg.h>

void mgl_reasons_add(mgl_reasons *reasons, const char *where, const char *format, ...)
{
    char message[1024], place[256];
    va_list args;
    va_start(args, format);
    mgl_format_list(message, sizeof message, format, args);
    va_end(args);
    mgl_format_into(place, sizeof place, "%s", where);
    mgl_reason reason = {0};
    void *items = reasons->items;
    if (!reasons->failed) {
        reason = (mgl_reason){.where = mgl_strdup(place), .message = mgl_strdup(message)};
        reasons->failed = !reason.where || !reason.message ||
                          !mgl_grow(&items, &reasons->capacity, reasons->count, sizeof reason);
        reasons->items = items;
    }
    if (reasons->failed) {
        mgl_free(reason.where);
        mgl_free(reason.message);
        return;
    }
    reasons->items[reasons->count++] = reason;
}

void mgl_reasons_clear(mgl_reasons *reasons)
{
    for (size_t i = 0; i < reasons->count; i++) {
        mgl_free(reasons->items[i].where);
        mgl_free(reasons->items[i].message);
    }
    mgl_free(reasons->items);
    *reasons = (mgl_reasons){0};
}

mgl_status mgl_reasons_take(mgl_reasons *reasons, mgl_status status, const mgl_error *cause,
                            mgl_error *err)
{
    if (status == MGL_BAD_INPUT) {
        mgl_reasons_add(reasons, cause->where, "%s", cause->message);
        return MGL_OK;
    }
    if (status && err)
        *err = *cause;
    return status;
}

mgl_status mgl_reasons_fail(const mgl_reasons *reasons, mgl_error *err)
{
    if (reasons->failed)
        return mgl_fail_memory(err, reasons->capacity * sizeof *reasons->items);
    if (!reasons->count)
        return MGL_OK;
    const mgl_reason *first = &reasons->items[0];
    if (reasons->count == 1)
        return mgl_fail(err, MGL_BAD_INPUT, first->where, "%s", first->message);
    return mgl_fail(err, MGL_BAD_INPUT, first->where,
                    "%s (and %zu more reason%s, which `megalith info` lists)", first->message,
                    reasons->count - 1, mgl_plural(reasons->count - 1));
}
