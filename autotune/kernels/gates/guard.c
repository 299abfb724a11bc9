/*
 * Implements the reports of guard.h. The scanner stops at its first fault. To find more, the guard
 * removes the faulty words from a copy and scans the copy again. A line is reported once. The
 * search ends if nothing can be removed without changing the meaning of the words around it.
 */
#include "autotune/kernels/gates/guard.h"

#include <string.h>

#include "autotune/agents/extract.h"
#include "autotune/kernels/gates/fixups.h"
#include "autotune/kernels/gates/launch.h"
#include "autotune/kernels/gates/scan.h"
#include "base/format.h"
#include "base/memory.h"

const mgl_kernel_unit *mgl_guard_find_unit(const char *text, size_t length)
{
    for (int i = 0; i < mgl_kernel_unit_count(); i++) {
        size_t own_length;
        const mgl_kernel_unit *unit = mgl_kernel_unit_get(i);
        const char *own = mgl_kernel_unit_text(unit, &own_length);
        if (!mgl_kernel_regions_compare(own, own_length, text, length, MGL_KERNEL_REGION_ANY, NULL))
            return unit;
    }
    return NULL;
}

mgl_status mgl_guard_take_text(const mgl_kernel_unit *unit, mgl_kernel_region region,
                               const char *answer, size_t length, mgl_text *out, mgl_error *err)
{
    mgl_text piece = {0};
    mgl_fixups mended = {0};
    const char *from = NULL;
    size_t bytes = 0, own_length;
    if (!mgl_guard_find_unit(answer, length) &&
        mgl_extract(answer, length, "cuda", 0, &from, &bytes) == MGL_OUTCOME_OK)
        mgl_fixups_apply(from, bytes, &piece, &mended);
    else
        mgl_text_append(&piece, answer, length);
    mgl_status status = piece.failed ? mgl_fail_memory(err, length) : MGL_OK;
    if (!status && region != MGL_KERNEL_REGION_ANY) {
        const char *own = mgl_kernel_unit_text(unit, &own_length);
        status =
            mgl_kernel_region_replace(own, own_length, region, piece.bytes, piece.length, out, err);
    } else if (!status) {
        mgl_text_append(out, piece.bytes, piece.length);
    }
    mgl_text_clear(&piece);
    return !status && out->failed ? mgl_fail_memory(err, length) : status;
}

/* ---- findings -------------------------------------------------------------------------------- */

static bool has_line(const mgl_guard_findings *f, int line)
{
    for (int i = 0; i < f->count; i++)
        if (f->list[i].line == line)
            return true;
    return false;
}

static void add(mgl_guard_findings *f, mgl_outcome outcome, int line, const char *what)
{
    if (f->count == MGL_GUARD_FINDINGS)
        return;
    mgl_trial_verdict *to = &f->list[f->count++];
    to->line = line;
    mgl_trial_verdict_set(to, outcome, "%s", what);
}

/* Sorts by line (insertion sort, few elements). */
static void sort(mgl_guard_findings *f)
{
    for (int i = 1; i < f->count; i++)
        for (int k = i; k > 0 && f->list[k].line < f->list[k - 1].line; k--) {
            const mgl_trial_verdict moved = f->list[k];
            f->list[k] = f->list[k - 1];
            f->list[k - 1] = moved;
        }
}

/* ---- removing words -------------------------------------------------------------------------- */

/* A copy of a text, and its tokens. */
typedef struct copy {
    char *text; /* (length) */
    size_t length;
    mgl_tokens tokens;
    mgl_scan_fault fault; /* fault of the lexer: the text after the fault has no tokens */
} copy;

static mgl_status read_words(copy *c, mgl_error *err)
{
    mgl_tokens_clear(&c->tokens);
    c->fault = (mgl_scan_fault){0};
    return mgl_lex(c->text, c->length, &c->tokens, &c->fault, err);
}

/* Number of brackets that a token opens; negative: closes. */
static int opens(const mgl_token *t)
{
    if (t->kind != MGL_TOKEN_MARK || t->length != 1)
        return 0;
    return strchr("([{", t->text[0]) ? 1 : strchr(")]}", t->text[0]) ? -1 : 0;
}

static size_t first_of_line(const copy *c, int line)
{
    size_t at = 0;
    while (at < c->tokens.count && c->tokens.list[at].line < line)
        at++;
    return at;
}

/* The tokens [first, end) of a line, and of an asm statement that continues after it. False:
 * they are not a whole directive or statement, so their removal would change the meaning of
 * other tokens. */
static bool find_span(const copy *c, int line, bool is_asm, size_t *first, size_t *end)
{
    static const char *const conditions[] = {"if", "ifdef", "ifndef", "elif", "else", "endif"};
    const mgl_token *list = c->tokens.list;
    size_t at = *first = first_of_line(c, line);
    int depth = 0;
    while (at < c->tokens.count && (list[at].line == line || (is_asm && depth > 0)))
        depth += opens(&list[at++]);
    at += is_asm && at < c->tokens.count && mgl_token_is(&list[at], ";");
    *end = at;
    if (at == *first || depth != 0 || !list[*first].starts)
        return false;
    if (at < c->tokens.count && !list[at].starts && list[at].line > list[at - 1].line)
        return false; /* continued by a backslash */
    if (!mgl_token_is(&list[*first], "#"))
        return mgl_token_is(&list[at - 1], ";");
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (at - *first > 1 && mgl_token_is(&list[*first + 1], conditions[i]))
            return false;
    return true;
}

static void blank(const copy *c, const mgl_token *t, char with)
{
    memset(c->text + (t->text - c->text), with, (size_t)t->length);
}

/* Replaces the word that the diagnostic names by an unknown word. False: the diagnostic names no
 * word, or the word was already replaced. */
static bool rename_word(const copy *c, int line, const char *what)
{
    const char *end = *what == '`' ? strchr(what + 1, '`') : NULL;
    const mgl_token *list = c->tokens.list;
    if (!end || strspn(what + 1, "q") == (size_t)(end - what - 1))
        return false;
    for (size_t i = first_of_line(c, line); i < c->tokens.count && list[i].line == line; i++)
        if (list[i].kind == MGL_TOKEN_WORD && list[i].length == end - what - 1 &&
            !memcmp(list[i].text, what + 1, (size_t)list[i].length)) {
            blank(c, &list[i], 'q');
            return true;
        }
    return false;
}

/* Removes the rejected word, or else the whole statement or directive. False: impossible. */
static bool take_out(const copy *c, const mgl_scan_fault *fault)
{
    size_t first, end;
    if (c->fault.line)
        return false;
    if (rename_word(c, fault->line, fault->what))
        return true;
    if (!find_span(c, fault->line, !strncmp(fault->what, "asm: ", 5), &first, &end))
        return false;
    for (size_t i = first; i < end; i++)
        blank(c, &c->tokens.list[i], ' ');
    return true;
}

/* Whether the fault may be an effect of earlier removals: the tokens no longer form
 * declarations. */
static bool is_of_form(const mgl_scan_fault *fault)
{
    return fault->what[0] == '`' && strchr("(){}[];", fault->what[1]) && fault->what[2] == '`';
}

/* ---- the whole guard ------------------------------------------------------------------------- */

/* Finds the declared amount of shared memory in bytes. False: the launch region cannot be read. */
static bool find_shared(const char *text, size_t length, int64_t *out)
{
    mgl_kernel_launch launch;
    int64_t chosen[MGL_KERNEL_VALUES];
    *out = 0;
    if (mgl_kernel_launch_read(text, length, &launch, NULL) ||
        mgl_kernel_launch_choose(&launch, NULL, 0, chosen, NULL))
        return false;
    mgl_kernel_launch_needs(&launch, MGL_KERNEL_NEED_SHARED, chosen, NULL, out);
    return true;
}

/* A second fault in the same line is an effect of the removal, and not a finding. */
static mgl_status scan_again(const mgl_kernel_unit *unit, copy *c, int64_t shared,
                             mgl_guard_findings *out, mgl_error *err)
{
    enum { MOST_SCANS = 4 * MGL_GUARD_FINDINGS };
    mgl_scan_fault fault;
    mgl_status status = MGL_OK;
    for (int i = 0; i < MOST_SCANS && !status; i++) {
        status = mgl_kernel_scan(unit, c->text, c->length, shared, &fault, err);
        out->whole = !status && !fault.line;
        if (status || out->whole || out->count == MGL_GUARD_FINDINGS ||
            (i > 0 && is_of_form(&fault)))
            break;
        if (!has_line(out, fault.line))
            add(out, MGL_OUTCOME_STATIC_FORBIDDEN, fault.line, fault.what);
        status = read_words(c, err);
        if (!status && !take_out(c, &fault))
            break;
    }
    return status;
}

static mgl_status scan_copy(const mgl_kernel_unit *unit, const char *text, size_t length,
                            mgl_guard_findings *out, mgl_error *err)
{
    copy c = {.text = mgl_alloc_zero(length + 1, 1), .length = length};
    int64_t shared;
    if (!c.text)
        return mgl_fail_memory(err, length);
    memcpy(c.text, text, length);
    mgl_status status =
        find_shared(text, length, &shared) ? scan_again(unit, &c, shared, out, err) : MGL_OK;
    mgl_tokens_clear(&c.tokens);
    mgl_free(c.text);
    return status;
}

/* The message of a diagnostic "<CODE> at <file>:<line>: <what>". */
static const char *words_of(const mgl_kernel_result *result)
{
    const char *at = strstr(result->verdict.diagnostic, ": ");
    return at ? at + 2 : result->verdict.diagnostic;
}

mgl_status mgl_guard_scan(const mgl_kernel_unit *unit, const char *text, size_t length,
                          mgl_guard_findings *out, mgl_error *err)
{
    const mgl_kernel_candidate candidate = {
        .unit = unit, .text = text, .length = length, .region = MGL_KERNEL_REGION_ANY};
    const mgl_kernel_options options = {.no_compile = true};
    mgl_kernel_result result;
    *out = (mgl_guard_findings){0};
    mgl_status status = mgl_kernel_verify(&candidate, &options, &result, err);
    if (status)
        return status;
    const bool own = result.verdict.outcome == MGL_OUTCOME_DUPLICATE;
    const bool scanned =
        result.verdict.outcome == MGL_OUTCOME_STATIC_FORBIDDEN && result.verdict.line > 0;
    if (result.verdict.outcome == MGL_OUTCOME_UNMEASURED)
        out->whole = true;
    else if (!own && !scanned)
        add(out, result.verdict.outcome, result.verdict.line, words_of(&result));
    if (own || scanned || result.verdict.outcome == MGL_OUTCOME_REGION_VIOLATION)
        status = scan_copy(unit, text, length, out, err);
    mgl_kernel_result_clear(&result);
    sort(out);
    return status;
}

void mgl_guard_put_findings(mgl_json_out *out, const mgl_guard_findings *findings)
{
    mgl_json_out_bool(out, "clean", findings->count == 0);
    mgl_json_out_bool(out, "whole", findings->whole);
    mgl_json_out_array(out, "findings");
    for (int i = 0; i < findings->count; i++) {
        const mgl_trial_verdict *f = &findings->list[i];
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "code", mgl_outcome_name(f->outcome));
        mgl_json_out_int(out, "line", f->line);
        mgl_json_out_string(out, "message", f->diagnostic);
        mgl_json_out_string(out, "hint", mgl_outcome_kernel_hint(f->outcome));
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}
