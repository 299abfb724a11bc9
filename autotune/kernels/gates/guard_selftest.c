/* Self-test of the guard: checks that it rejects all known tricks and accepts clean texts. See
 * guard.h. */
#include "autotune/kernels/gates/guard.h"

#include <stdio.h>
#include <string.h>

#include "autotune/kernels/ptx/scan.h"
#include "base/format.h"

static const mgl_guard_plant plants[] = {
#define MGL_PLANT(name, unit, region, outcome, because, text)                                      \
    {name, unit, MGL_KERNEL_REGION_##region, MGL_OUTCOME_##outcome, because, text},
#include "autotune/kernels/gates/guard.def"
};

static const struct {
    const char *word, *why;
} words[] = {
#define MGL_FORBIDDEN(word, why)        {#word, why},
#define MGL_FORBIDDEN_START(start, why) {#start "_of_mine", why},
#include "autotune/kernels/gates/words.def"
};

static const mgl_guard_ptx modules[] = {
#define MGL_PTX_TRICK(name, what, why, module, body) {name, what, why, module, body},
#define MGL_PTX_CLEAN(name, module, body)            {name, NULL, NULL, module, body},
#include "autotune/kernels/gates/guard_ptx.def"
};

static void miss(mgl_guard_test *test, const char *name, const char *got)
{
    if (test->missed++ >= MGL_GUARD_MISSES)
        return;
    mgl_guard_miss *to = &test->misses[test->missed - 1];
    snprintf(to->name, sizeof to->name, "%s", name);
    mgl_format_into(to->got, sizeof to->got, "%s", got);
}

/* ---- texts of units -------------------------------------------------------------------------- */

/* Builds the unit's text with the planted text in it. */
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
        if (result.verdict.outcome == MGL_OUTCOME_UNMEASURED)
            miss(out, plant->name, "nothing is rejected");
        else if (result.verdict.outcome != plant->outcome ||
                 !strstr(result.verdict.diagnostic, plant->because))
            miss(out, plant->name, result.verdict.diagnostic);
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

/* The name of a unit whose original text does not contain the word: a unit may use the words of
 * its original text. */
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
        miss(out, unit->name, found.count > 0 ? found.list[0].diagnostic : "it was not scanned");
    return MGL_OK;
}

/* ---- compiled PTX ---------------------------------------------------------------------------- */

/* The module resembles the code around a micro-kernel: it contains an atomic, a clock and a store.
 */
enum { MODULE_LINE = 4, BODY_LINE = 15 };
static const char module_text[] = ".version 8.0\n"
                                  ".target sm_90a\n"
                                  ".address_size 64\n"
                                  "%s\n" /* MODULE_LINE */
                                  ".visible .entry planted(.param .u64 planted_param_0)\n"
                                  "{\n"
                                  "\t.reg .pred %%p<2>;\n"
                                  "\t.reg .b32 %%r<8>;\n"
                                  "\t.reg .b64 %%rd<4>;\n"
                                  "\tld.param.u64 %%rd1, [planted_param_0];\n"
                                  "\tatom.global.add.u32 %%r1, [%%rd1], 1;\n"
                                  "\tmov.u64 %%rd3, %%globaltimer;\n"
                                  "\tmov.u32 %%r7, %%tid.x;\n"
                                  "\tst.global.v4.f32 [%%rd1], {%%r1, %%r1, %%r1, %%r1};\n"
                                  "\t%s\n" /* BODY_LINE */
                                  "END:\n"
                                  "\tret;\n"
                                  "}\n";

static mgl_status parse_module(const char *name, const char *module, const char *body, mgl_ptx *out,
                               mgl_error *err)
{
    mgl_text text = {0};
    *out = (mgl_ptx){0};
    mgl_text_format(&text, module_text, module, body);
    mgl_status status = text.failed ? mgl_fail_memory(err, sizeof module_text) : MGL_OK;
    if (!status)
        status = mgl_ptx_parse(text.bytes, text.length, name, out, err);
    mgl_text_clear(&text);
    return status;
}

static void check_finding(const mgl_guard_ptx *m, const mgl_ptx_finding *found, mgl_guard_test *out)
{
    char told[MGL_MAX_DIAGNOSTIC + 1];
    const int line = m->what && strstr(m->module, m->what) ? MODULE_LINE : BODY_LINE;
    const bool refused = found->outcome != MGL_OUTCOME_OK;
    snprintf(told, sizeof told, "%s at line %d: %s: %s", mgl_outcome_name(found->outcome),
             found->line, found->what, found->why);
    if (m->what && !refused)
        miss(out, m->name, "nothing is rejected");
    else if (refused &&
             (!m->what || found->outcome != MGL_OUTCOME_STATIC_FORBIDDEN || found->line != line ||
              strcmp(found->what, m->what) != 0 || strcmp(found->why, m->why) != 0))
        miss(out, m->name, told);
}

static mgl_status scan_module(const mgl_guard_ptx *m, const mgl_ptx *base, mgl_guard_test *out,
                              mgl_error *err)
{
    mgl_ptx ptx;
    mgl_ptx_finding found;
    mgl_status status = parse_module(m->name, m->module, m->body, &ptx, err);
    if (!status)
        status = mgl_ptx_scan(&ptx, base, false, &found, err);
    if (!status) {
        *(m->what ? &out->ptx_tricks : &out->ptx_modules) += 1;
        check_finding(m, &found, out);
        status = mgl_ptx_scan(&ptx, &ptx, true, &found, err);
    }
    if (!status && found.outcome != MGL_OUTCOME_OK)
        miss(out, m->name, "it is rejected although the incumbent does the same");
    mgl_ptx_clear(&ptx);
    return status;
}

mgl_status mgl_guard_try_ptx(const mgl_guard_ptx *list, int count, mgl_guard_test *out,
                             mgl_error *err)
{
    mgl_ptx base;
    mgl_status status = parse_module("the module", "", "", &base, err);
    for (int i = 0; i < count && !status; i++)
        status = scan_module(&list[i], &base, out, err);
    mgl_ptx_clear(&base);
    return status;
}

/* Whether guard_ptx.def contains a trick that this rule rejects. */
static bool has_trick(const mgl_ptx_forbidden *rule)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (modules[i].what && !strncmp(modules[i].what, rule->what, strlen(rule->what)) &&
            !strcmp(modules[i].why, rule->why))
            return true;
    return false;
}

static mgl_status try_modules(mgl_guard_test *out, mgl_error *err)
{
    const mgl_ptx_forbidden *rule;
    for (int i = 0; (rule = mgl_ptx_forbidden_get(i)); i++)
        if (!has_trick(rule))
            miss(out, rule->what, "no trick in PTX is planted for the rule");
    return mgl_guard_try_ptx(modules, (int)(sizeof modules / sizeof *modules), out, err);
}

/* ---- the whole self-test --------------------------------------------------------------------- */

mgl_status mgl_guard_selftest(mgl_guard_test *out, mgl_error *err)
{
    *out = (mgl_guard_test){0};
    mgl_status status = mgl_guard_try(plants, (int)(sizeof plants / sizeof *plants), out, err);
    for (size_t i = 0; i < sizeof words / sizeof *words && !status; i++)
        status = try_word(words[i].word, words[i].why, out, err);
    for (int i = 0; i < mgl_kernel_unit_count() && !status; i++)
        status = try_unit(mgl_kernel_unit_get(i), out, err);
    return status ? status : try_modules(out, err);
}
