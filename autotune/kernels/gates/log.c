/* Parses the compiler's log: see compile.h. A line of NVRTC is "file(line): error: message". A
 * line of ptxas is "ptxas ...; error : message" for an instruction, or "ptxas info : Used 168
 * registers, ..." for counts. */
#include "autotune/kernels/gates/compile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "vm/cuda/sources.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* An error in the log. */
typedef struct entry {
    const char *file; /* (file_length) */
    size_t file_length;
    int line;
    const char *what; /* (what_length) */
    size_t what_length;
} entry;

/* Parses "file(12): error: what" or "file(12): catastrophic error: what". False: another line. */
static bool read_entry(const char *line, size_t length, entry *out)
{
    const char *end = line + length, *error = NULL;
    for (const char *c = line; c + 8 < end && !error; c++)
        if (!memcmp(c, "error", 5) && (c[5] == ':' || c[5] == ' '))
            error = c;
    const char *open = memchr(line, '(', length),
               *close = open ? memchr(open, ')', (size_t)(end - open)) : NULL;
    if (!error || !close || close > error)
        return false;
    const char *what = memchr(error, ':', (size_t)(end - error));
    if (!what)
        return false;
    for (what++; what < end && *what == ' '; what++)
        ;
    *out = (entry){.file = line,
                   .file_length = (size_t)(open - line),
                   .line = (int)strtol(open + 1, NULL, 10),
                   .what = what,
                   .what_length = (size_t)(end - what)};
    return true;
}

static bool is_source(const entry *e)
{
    for (int i = 0; i < mgl_cuda_source_count; i++)
        if (mgl_text_is(e->file, e->file_length, mgl_cuda_sources[i].name))
            return true;
    return false;
}

static bool says(const char *text, size_t length, const char *words)
{
    const size_t n = strlen(words);
    for (size_t i = 0; i + n <= length; i++)
        if (!memcmp(text + i, words, n))
            return true;
    return false;
}

/* The outcome of the first row whose words occur in the message. */
static mgl_outcome classify(const char *what, size_t length)
{
    static const struct {
        const char *words;
        mgl_outcome outcome;
    } rows[] = {{"asm", MGL_OUTCOME_COMPILE_ASM},
                {"is undefined", MGL_OUTCOME_COMPILE_UNDEFINED},
                {"has no member", MGL_OUTCOME_COMPILE_UNDEFINED},
                {"not declared", MGL_OUTCOME_COMPILE_UNDEFINED},
                {"could not open source file", MGL_OUTCOME_COMPILE_UNDEFINED},
                {"cannot open source file", MGL_OUTCOME_COMPILE_UNDEFINED},
                {"name followed by \"::\" must be", MGL_OUTCOME_COMPILE_UNDEFINED},
                {"expected a", MGL_OUTCOME_COMPILE_SYNTAX},
                {"expected an", MGL_OUTCOME_COMPILE_SYNTAX},
                {"expected", MGL_OUTCOME_COMPILE_SYNTAX},
                {"unrecognized token", MGL_OUTCOME_COMPILE_SYNTAX},
                {"missing", MGL_OUTCOME_COMPILE_SYNTAX},
                {"unexpected", MGL_OUTCOME_COMPILE_SYNTAX},
                {"extra text", MGL_OUTCOME_COMPILE_SYNTAX},
                {"improper", MGL_OUTCOME_COMPILE_SYNTAX},
                {"invalid", MGL_OUTCOME_COMPILE_SYNTAX},
                {"type", MGL_OUTCOME_COMPILE_TYPE},
                {"no instance", MGL_OUTCOME_COMPILE_TYPE},
                {"no suitable", MGL_OUTCOME_COMPILE_TYPE},
                {"no operator", MGL_OUTCOME_COMPILE_TYPE},
                {"argument", MGL_OUTCOME_COMPILE_TYPE},
                {"initialize", MGL_OUTCOME_COMPILE_TYPE},
                {"const", MGL_OUTCOME_COMPILE_TYPE},
                {"lvalue", MGL_OUTCOME_COMPILE_TYPE},
                {"convert", MGL_OUTCOME_COMPILE_TYPE},
                {"must have", MGL_OUTCOME_COMPILE_TYPE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (says(what, length, rows[i].words))
            return rows[i].outcome;
    return MGL_OUTCOME_COMPILE_OTHER;
}

static void tell(const entry *e, const char *file, mgl_trial_verdict *verdict)
{
    const mgl_outcome outcome =
        is_source(e) ? classify(e->what, e->what_length) : MGL_OUTCOME_COMPILE_OTHER;
    const bool own = mgl_text_is(e->file, e->file_length, file);
    const int shown = e->what_length > 180 ? 180 : (int)e->what_length;
    verdict->line = own ? e->line : 0;
    if (own)
        mgl_trial_verdict_set(verdict, outcome, "%.*s", shown, e->what);
    else if (!is_source(e))
        mgl_trial_verdict_set(verdict, outcome, "an error outside of the kernel's sources");
    else
        mgl_trial_verdict_set(verdict, outcome, "%.*s:%d: %.*s", (int)e->file_length, e->file,
                              e->line, shown, e->what);
}

/* Parses "ptxas application ptx input, line 12; error   : what". The line number refers to
 * generated PTX and is dropped. */
static bool read_ptxas(const char *line, size_t length, mgl_trial_verdict *verdict)
{
    const char *end = line + length, *error = NULL;
    if (length < 5 || memcmp(line, "ptxas", 5) != 0)
        return false;
    for (const char *c = line; c + 5 < end && !error; c++)
        if (!memcmp(c, "error", 5) || !memcmp(c, "fatal", 5))
            error = c;
    const char *what = error ? memchr(error, ':', (size_t)(end - error)) : NULL;
    if (!what)
        return false;
    mgl_trial_verdict_set(verdict, MGL_OUTCOME_COMPILE_ASM, "ptxas: %.*s", (int)(end - what - 1),
                          what + 1);
    return true;
}

void mgl_kernel_log_error(const char *log, const char *file, mgl_trial_verdict *verdict)
{
    verdict->line = 0;
    for (const char *at = log; *at;) {
        const size_t length = strcspn(at, "\n");
        entry e;
        if (read_ptxas(at, length, verdict))
            return;
        if (read_entry(at, length, &e)) {
            tell(&e, file, verdict);
            return;
        }
        at += length + (at[length] == '\n');
    }
    mgl_trial_verdict_set(verdict, MGL_OUTCOME_COMPILE_OTHER, "the compiler does not say why");
}

/* ---- resources ------------------------------------------------------------------------------- */

/* The number before `words` in a line; -1: none. */
static int64_t number_before(const char *line, size_t length, const char *words)
{
    const size_t n = strlen(words);
    for (size_t i = 0; i + n <= length; i++) {
        if (memcmp(line + i, words, n) != 0 || i == 0 || line[i - 1] != ' ')
            continue;
        size_t from = i - 1;
        while (from > 0 && isdigit((unsigned char)line[from - 1]))
            from--;
        if (from < i - 1)
            return strtoll(line + from, NULL, 10);
    }
    return -1;
}

static void add(int64_t *to, int64_t number)
{
    if (number > 0)
        *to += number;
}

bool mgl_kernel_log_resources(const char *log, mgl_kernel_resources *out)
{
    bool any = false;
    *out = (mgl_kernel_resources){0};
    for (const char *at = log; *at;) {
        const size_t length = strcspn(at, "\n");
        const int64_t registers = number_before(at, length, "registers");
        any = any || registers >= 0;
        out->registers = registers > out->registers ? registers : out->registers;
        add(&out->spill_stores, number_before(at, length, "bytes spill stores"));
        add(&out->spill_loads, number_before(at, length, "bytes spill loads"));
        add(&out->frame, number_before(at, length, "bytes stack frame"));
        add(&out->shared, number_before(at, length, "bytes smem"));
        add(&out->global, number_before(at, length, "bytes gmem"));
        add(&out->constant, number_before(at, length, "bytes cmem[3]"));
        at += length + (at[length] == '\n');
    }
    return any;
}
