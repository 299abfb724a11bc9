/* Counts what each step of a tokenizer produces. See growth.h. */
#include "importer/tokenizer/growth.h"

#include "base/memory.h"

#include <stdint.h>
#include <string.h>

mgl_status mgl_growth_open(mgl_growth *growth, size_t steps, mgl_error *err)
{
    growth->steps = steps;
    growth->made = mgl_alloc_zero(steps ? steps : 1, sizeof *growth->made);
    return growth->made ? MGL_OK : mgl_fail_memory(err, steps * sizeof *growth->made);
}

void mgl_growth_clear(mgl_growth *growth)
{
    mgl_free(growth->made);
    *growth = (mgl_growth){0};
}

void mgl_growth_begin(mgl_growth *growth)
{
    growth->limit = MGL_GROWTH_FREE;
    memset(growth->made, 0, growth->steps * sizeof *growth->made);
}

void mgl_growth_add(mgl_growth *growth, size_t bytes)
{
    size_t more;
    if (!mgl_mul(bytes, MGL_GROWTH_FACTOR, &more) || !mgl_add(growth->limit, more, &growth->limit))
        growth->limit = SIZE_MAX;
}

mgl_status mgl_growth_take(mgl_growth *growth, size_t step, size_t bytes, const char *part,
                           const char *file, mgl_error *err)
{
    if (bytes <= growth->limit - growth->made[step]) {
        growth->made[step] += bytes;
        return MGL_OK;
    }
    return mgl_fail(err, MGL_BAD_INPUT, file,
                    "the %s makes more than %d times the bytes of this text, which no tokenizer "
                    "needs; look for steps that replace a text by a longer one of the same kind",
                    part, MGL_GROWTH_FACTOR);
}
