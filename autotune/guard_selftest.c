/* Whether the guard still refuses what it has to, and nothing else: see guard.h. */
#include "autotune/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"

static const mgl_guard_plant plants[] = {
#define MGL_PLANT(name, unit, region, outcome, because, text)                                      \
    {name, unit, MGL_KERNEL_REGION_##region, MGL_OUTCOME_##outcome, because, text},
#include "autotune/guard.def"
};

static const struct {
    const char *word, *why;
} words[] = {
#define MGL_FORBIDDEN(word, why)        {#word, why},
#define MGL_FORBIDDEN_START(start, why) {#start "_of_mine", why},
#include "autotune/kernel/words.def"
};

static void miss(mgl_guard_test *test, const char *name, const char *got)
{
    if (test->missed++ >= MGL_GUARD_MISSES)
        return;
    mgl_guard_miss *to = &test->misses[test->missed - 1];
    snprintf(to->name, sizeof to->name, "%s", name);
    mgl_format_into(to->got, sizeof to->got, "%s", got);
}

/* The unit's text with the plant in it. */
static mgl_status put_plant(const mgl_kernel_unit *unit, const mgl_guard_plant *plant,
                            mgl_text *out, mgl_error *err)
{
    size_t length, at = 0;
    mgl_kernel_regions regions;
    const char *own = mgl_kernel_unit_text(unit, &length);
    mgl_status status = mgl_kernel_regions_find(own, length, &regions, err);
    if (status)
        return status;
    if (plant->region != MGL_KERNEL_REGION_ANY)
        at = regions.of[plant->region].first;
    mgl_text_append(out, own, at);
    mgl_text_put(out, plant->text);
    mgl_text_append(out, own + at, length - at);
    return out->failed ? mgl_fail_memory(err, length) : MGL_OK;
}

static mgl_status try_one(const mgl_guard_plant *plant, mgl_guard_test *out, mgl_error *err)
{
    const mgl_kernel_unit *unit = mgl_kernel_unit_find(plant->unit);
    const mgl_kernel_options options = {.no_compile = true};
    mgl_text text = {0};
    mgl_kernel_result result = {0};
    mgl_status status = put_plant(unit, plant, &text, err);
    const mgl_kernel_candidate candidate = {
        .unit = unit, .text = text.bytes, .length = text.length, .region = MGL_KERNEL_REGION_ANY};
    if (!status)
        status = mgl_kernel_verify(&candidate, &options, &result, err);
    if (!status) {
        out->tricks++;
        if (result.outcome == MGL_OUTCOME_UNMEASURED)
            miss(out, plant->name, "nothing is refused");
        else if (result.outcome != plant->outcome || !strstr(result.diagnostic, plant->because))
            miss(out, plant->name, result.diagnostic);
    }
    mgl_kernel_result_clear(&result);
    mgl_text_clear(&text);
    return status;
}

mgl_status mgl_guard_try(const mgl_guard_plant *tricks, int count, mgl_guard_test *out,
                         mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < count && !status; i++)
        status = try_one(&tricks[i], out, err);
    return status;
}

/* A unit may have what its own text has: a word is planted where it does not stand. */
static const char *unit_without(const char *word)
{
    size_t length;
    for (int i = 0; i < mgl_kernel_unit_count(); i++)
        if (!strstr(mgl_kernel_unit_text(mgl_kernel_unit_get(i), &length), word))
            return mgl_kernel_unit_get(i)->name;
    return NULL;
}

static mgl_status try_word(const char *word, const char *why, mgl_guard_test *out, mgl_error *err)
{
    char text[200];
    const mgl_guard_plant plant = {.name = word,
                                   .unit = unit_without(word),
                                   .region = MGL_KERNEL_REGION_DEVICE,
                                   .outcome = MGL_OUTCOME_STATIC_FORBIDDEN,
                                   .because = why,
                                   .text = text};
    snprintf(text, sizeof text,
             "static __device__ int planted_of_mine(int x)\n{\n    return x + %s;\n}\n", word);
    if (plant.unit)
        return try_one(&plant, out, err);
    miss(out, word, "each unit has the word");
    return MGL_OK;
}

static mgl_status try_unit(const mgl_kernel_unit *unit, mgl_guard_test *out, mgl_error *err)
{
    size_t length;
    mgl_guard_findings found;
    const char *text = mgl_kernel_unit_text(unit, &length);
    mgl_status status = mgl_guard_scan(unit, text, length, &found, err);
    if (status)
        return status;
    out->units++;
    if (found.count > 0 || !found.whole)
        miss(out, unit->name, found.count > 0 ? found.list[0].what : "it was not scanned");
    return MGL_OK;
}

mgl_status mgl_guard_selftest(mgl_guard_test *out, mgl_error *err)
{
    *out = (mgl_guard_test){0};
    mgl_status status = mgl_guard_try(plants, (int)(sizeof plants / sizeof *plants), out, err);
    for (size_t i = 0; i < sizeof words / sizeof *words && !status; i++)
        status = try_word(words[i].word, words[i].why, out, err);
    for (int i = 0; i < mgl_kernel_unit_count() && !status; i++)
        status = try_unit(mgl_kernel_unit_get(i), out, err);
    return status;
}
