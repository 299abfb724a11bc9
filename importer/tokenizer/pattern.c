/* Searches literals directly, and regular expressions with PCRE2. See pattern.h. */
#include "importer/tokenizer/pattern.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Limits of one search: steps, nested groups, KiB of heap, and bytes of the JIT stack. A pattern
 * that exceeds them is an error instead of a hang. */
#define MATCH_LIMIT     10000000
#define STEPS_A_BYTE    64
#define DEPTH_LIMIT     1000000
#define HEAP_LIMIT_KIB  (256 * 1024)
#define JIT_STACK_START (32 * 1024)
#define JIT_STACK_MOST  (8 * 1024 * 1024)

struct mgl_pattern {
    char *needle; /* a literal; NULL for an expression */
    size_t needle_length;
    pcre2_general_context *general;
    pcre2_code *code;
    const char *file; /* for messages; not owned */
};

struct mgl_matcher {
    pcre2_general_context *general;
    pcre2_match_data *data; /* the match itself, without its groups */
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* NULL: JIT code uses its small default stack */
};

static void *seam_alloc(PCRE2_SIZE bytes, void *unused)
{
    (void)unused;
    return mgl_alloc(bytes);
}

static void seam_free(void *memory, void *unused)
{
    (void)unused;
    mgl_free(memory);
}

void mgl_pattern_free(mgl_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    pcre2_general_context_free(pattern->general);
    mgl_free(pattern->needle);
    mgl_free(pattern);
}

void mgl_matcher_free(mgl_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_jit_stack_free(matcher->stack);
    pcre2_match_context_free(matcher->context);
    pcre2_match_data_free(matcher->data);
    pcre2_general_context_free(matcher->general);
    mgl_free(matcher);
}

mgl_status mgl_matcher_new(mgl_matcher **out, mgl_error *err)
{
    *out = NULL;
    mgl_matcher *matcher = mgl_alloc_zero(1, sizeof *matcher);
    if (!matcher)
        return mgl_fail_memory(err, sizeof *matcher);
    matcher->general = pcre2_general_context_create(seam_alloc, seam_free, NULL);
    if (matcher->general) {
        matcher->data = pcre2_match_data_create(1, matcher->general);
        matcher->context = pcre2_match_context_create(matcher->general);
        matcher->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MOST, matcher->general);
    }
    if (!matcher->general || !matcher->data || !matcher->context) {
        mgl_matcher_free(matcher);
        return mgl_fail_memory(err, sizeof *matcher);
    }
    if (matcher->stack)
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    pcre2_set_depth_limit(matcher->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(matcher->context, HEAP_LIMIT_KIB);
    *out = matcher;
    return MGL_OK;
}

mgl_status mgl_pattern_literal(const char *text, mgl_pattern **out, mgl_error *err)
{
    *out = NULL;
    mgl_pattern *pattern = mgl_alloc_zero(1, sizeof *pattern);
    if (pattern)
        pattern->needle = mgl_strdup(text);
    if (!pattern || !pattern->needle) {
        mgl_pattern_free(pattern);
        return mgl_fail_memory(err, strlen(text));
    }
    pattern->needle_length = strlen(text);
    *out = pattern;
    return MGL_OK;
}

/* Compiles PCRE2's syntax into pattern->code; messages quote `shown`. */
static mgl_status compile(mgl_pattern *pattern, const char *pcre, const char *shown, mgl_error *err)
{
    int code;
    PCRE2_SIZE offset;
    pcre2_compile_context *options = pcre2_compile_context_create(pattern->general);
    if (!options)
        return mgl_fail_memory(err, sizeof *pattern);
    pcre2_set_newline(options, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(options, PCRE2_BSR_UNICODE);
    pcre2_set_parens_nest_limit(options, 250);
    pattern->code = pcre2_compile((PCRE2_SPTR)pcre, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                  &code, &offset, options);
    pcre2_compile_context_free(options);
    if (pattern->code)
        return MGL_OK;
    PCRE2_UCHAR reason[160] = "";
    pcre2_get_error_message(code, reason, sizeof reason);
    if (code == PCRE2_ERROR_NOMEMORY || code == 121) /* 121: "no memory" during compilation */
        return mgl_fail_memory(err, strlen(pcre));
    return mgl_fail(err, MGL_BAD_INPUT, pattern->file,
                    "the pattern \"%.80s\" cannot be compiled: %s", shown, (const char *)reason);
}

static mgl_status make_regex(const char *pcre, const char *shown, const char *file,
                             mgl_pattern **out, mgl_error *err)
{
    *out = NULL;
    mgl_pattern *pattern = mgl_alloc_zero(1, sizeof *pattern);
    if (!pattern)
        return mgl_fail_memory(err, sizeof *pattern);
    pattern->file = file;
    pattern->general = pcre2_general_context_create(seam_alloc, seam_free, NULL);
    mgl_status status =
        pattern->general ? compile(pattern, pcre, shown, err) : mgl_fail_memory(err, 64);
    if (status) {
        mgl_pattern_free(pattern);
        return status;
    }
    /* Without a JIT compiler for this architecture, the interpreter is used, which is slower. */
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
    *out = pattern;
    return MGL_OK;
}

mgl_status mgl_pattern_pcre(const char *pcre, const char *file, mgl_pattern **out, mgl_error *err)
{
    return make_regex(pcre, pcre, file, out, err);
}

mgl_status mgl_pattern_regex(const char *onig, const char *file, mgl_pattern **out, mgl_error *err)
{
    *out = NULL;
    mgl_text pcre = {0};
    mgl_status status = mgl_onig_translate(onig, file, &pcre, err);
    if (!status)
        status = make_regex(pcre.bytes ? pcre.bytes : "", onig, file, out, err);
    mgl_text_clear(&pcre);
    return status;
}

/* Searches once from `from`; the match is in the matcher. */
static mgl_status search(const mgl_pattern *pattern, mgl_matcher *matcher, const char *text,
                         size_t length, size_t from, uint32_t options, bool *found, mgl_error *err)
{
    size_t steps;
    if (!mgl_mul(length, STEPS_A_BYTE, &steps) || !mgl_add(steps, MATCH_LIMIT, &steps) ||
        steps > UINT32_MAX)
        steps = UINT32_MAX;
    pcre2_set_match_limit(matcher->context, (uint32_t)steps);
    options |= PCRE2_NO_UTF_CHECK;
    int got = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, options, matcher->data,
                          matcher->context);
    if (got == PCRE2_ERROR_JIT_STACKLIMIT)
        got = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, options | PCRE2_NO_JIT,
                          matcher->data, matcher->context);
    *found = got >= 0;
    if (got >= 0 || got == PCRE2_ERROR_NOMATCH)
        return MGL_OK;
    if (got == PCRE2_ERROR_NOMEMORY)
        return mgl_fail_memory(err, length);
    PCRE2_UCHAR reason[160] = "";
    pcre2_get_error_message(got, reason, sizeof reason);
    return mgl_fail(err, MGL_BAD_INPUT, pattern->file,
                    "a pattern of the tokenizer needs too much work on this text (%s); use a "
                    "shorter text",
                    (const char *)reason);
}

static mgl_status find(const mgl_pattern *pattern, mgl_matcher *matcher, mgl_pattern_scan *scan,
                       bool *found, mgl_error *err)
{
    const char *text = scan->text + scan->from;
    if (pattern->needle) {
        const char *at = pattern->needle_length ? memmem(text, scan->length - scan->from,
                                                         pattern->needle, pattern->needle_length)
                                                : text;
        *found = at;
        if (at) {
            scan->start = (size_t)(at - scan->text);
            scan->end = scan->start + pattern->needle_length;
        }
        return MGL_OK;
    }
    mgl_status status =
        search(pattern, matcher, scan->text, scan->length, scan->from, 0, found, err);
    if (status || !*found)
        return status;
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(matcher->data);
    scan->start = offsets[0];
    scan->end = offsets[1];
    if (scan->start > scan->end) /* \K within a lookahead */
        return mgl_fail(err, MGL_BAD_INPUT, pattern->file,
                        "a pattern of the tokenizer matches backwards");
    return MGL_OK;
}

mgl_status mgl_pattern_next(const mgl_pattern *pattern, mgl_matcher *matcher,
                            mgl_pattern_scan *scan, bool *found, mgl_error *err)
{
    for (;;) {
        *found = false;
        if (scan->from > scan->length)
            return MGL_OK;
        mgl_status status = find(pattern, matcher, scan, found, err);
        if (status || !*found)
            return status;
        bool empty = scan->start == scan->end;
        if (!(empty && scan->matched && scan->last_end == scan->end))
            break;
        scan->from += scan->from < scan->length ? mgl_utf8_size(scan->text[scan->from]) : 1;
    }
    scan->from = scan->last_end = scan->end;
    scan->matched = true;
    return MGL_OK;
}

mgl_status mgl_pattern_at_start(const mgl_pattern *pattern, mgl_matcher *matcher, const char *text,
                                size_t length, bool *matches, mgl_error *err)
{
    return search(pattern, matcher, text, length, 0, PCRE2_ANCHORED, matches, err);
}
