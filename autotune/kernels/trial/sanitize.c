/* Implements sanitize.h: finds the tool, runs workers under it, and parses its log. The log
 * format is documented in NVIDIA's "Compute Sanitizer", sections Memcheck and Synccheck. */
#include "autotune/kernels/trial/sanitize.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/memory.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LOG = 16 << 20 };

static const char *const names[] = {
#define MGL_X(id, name) name,
    MGL_SANITIZERS(MGL_X)
#undef MGL_X
};

const char *mgl_sanitizer_name(int sanitizer)
{
    return names[sanitizer];
}

/* ---- the tool -------------------------------------------------------------------------------- */

static bool is_in(const char *folder, size_t length, char *path, size_t size)
{
    const int n = snprintf(path, size, "%.*s/compute-sanitizer", (int)length, folder);
    return length > 0 && n > 0 && (size_t)n < size && access(path, X_OK) == 0;
}

static bool is_on_path(char *path, size_t size)
{
    for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
        const size_t length = strcspn(at, ":");
        if (is_in(at, length, path, size))
            return true;
        at += length;
    }
    return false;
}

/* With several toolkits, the last name wins. */
static bool is_in_toolkit(char *path, size_t size)
{
    static const char *const patterns[] = {"/usr/local/cuda/bin", "/usr/local/cuda-*/bin"};
    bool found = false;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !found; i++) {
        glob_t folders;
        if (glob(patterns[i], 0, NULL, &folders) == 0) {
            for (size_t k = folders.gl_pathc; k-- > 0 && !found;)
                found = is_in(folders.gl_pathv[k], strlen(folders.gl_pathv[k]), path, size);
            globfree(&folders);
        }
    }
    return found;
}

static bool is_in_home(char *path, size_t size)
{
    char folder[PATH_MAX];
    const char *home = getenv("CUDA_HOME");
    const int n = home ? snprintf(folder, sizeof folder, "%s/bin", home) : -1;
    return n > 0 && (size_t)n < sizeof folder && is_in(folder, (size_t)n, path, size);
}

bool mgl_sanitizer_find(char *path, size_t size, char why[160])
{
    const char *given = getenv("MEGALITH_SANITIZER");
    why[0] = 0;
    if (given && !strcmp(given, "none")) {
        snprintf(why, 160, "MEGALITH_SANITIZER says none");
    } else if (given && *given) {
        snprintf(path, size, "%s", given);
        if (access(given, X_OK) != 0)
            snprintf(why, 160, "MEGALITH_SANITIZER names no program");
    } else if (!is_on_path(path, size) && !is_in_home(path, size) && !is_in_toolkit(path, size)) {
        snprintf(why, 160,
                 "there is no compute-sanitizer on the PATH, in CUDA_HOME or in /usr/local");
    }
    return !why[0];
}

/* ---- the log --------------------------------------------------------------------------------- */

/* The text of a line after "========= "; NULL: another line. */
static const char *told(const char *line)
{
    static const char mark[] = "=========";
    if (strncmp(line, mark, sizeof mark - 1) != 0)
        return NULL;
    line += sizeof mark - 1;
    return line + strspn(line, " ");
}

static bool begins(const char *line, const char *word)
{
    return !strncmp(line, word, strlen(word));
}

/* The outcome for the first line of a finding; OK: no finding. */
static mgl_outcome outcome_of(const char *line)
{
    static const struct {
        const char *start;
        mgl_outcome outcome;
    } rows[] = {{"Invalid __", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Invalid read", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Invalid write", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Misaligned", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Out-of-range", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Out-of-bounds", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Stack overflow", MGL_OUTCOME_SANITIZER_MEMORY},
                {"Barrier error", MGL_OUTCOME_SANITIZER_SYNC},
                {"Divergent thread", MGL_OUTCOME_SANITIZER_SYNC},
                {"Invalid arguments", MGL_OUTCOME_SANITIZER_SYNC},
                {"Uninitialized", MGL_OUTCOME_SANITIZER_INIT},
                {"Error: Race", MGL_OUTCOME_SANITIZER_RACE},
                {"Race", MGL_OUTCOME_SANITIZER_RACE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (begins(line, rows[i].start))
            return rows[i].outcome;
    return MGL_OUTCOME_OK;
}

/* Quotes the first line of a finding and the next two lines, which contain the position and the
 * thread. */
static void quote(const char *first, char out[MGL_MAX_DIAGNOSTIC + 1])
{
    enum { LINES = 3 };
    size_t length = 0;
    const char *at = first;
    out[0] = 0;
    for (int i = 0; i < LINES && at; i++) {
        const char *line = i == 0 ? at : told(at);
        if (!line || *line == '\n' || !*line)
            break;
        const int n = snprintf(out + length, MGL_MAX_DIAGNOSTIC + 1 - length, "%s%.*s",
                               i ? ", " : "", (int)strcspn(line, "\n"), line);
        length += n > 0 ? (size_t)n : 0;
        if (length >= MGL_MAX_DIAGNOSTIC)
            break;
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
}

void mgl_sanitizer_read(const char *log, mgl_trial_verdict *verdict)
{
    mgl_trial_verdict_set(verdict, MGL_OUTCOME_UNMEASURED, "the tool left no summary");
    for (const char *at = log; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        const char *words = told(at);
        const mgl_outcome outcome = words ? outcome_of(words) : MGL_OUTCOME_OK;
        if (outcome != MGL_OUTCOME_OK) {
            verdict->outcome = outcome;
            quote(words, verdict->diagnostic);
            return;
        }
        if (words && begins(words, "ERROR SUMMARY: 0 errors"))
            verdict->outcome = MGL_OUTCOME_OK;
        else if (words && (begins(words, "ERROR SUMMARY") || begins(words, "Error:") ||
                           begins(words, "Internal")))
            mgl_format_into(verdict->diagnostic, sizeof verdict->diagnostic, "%.*s",
                            (int)strcspn(words, "\n"), words);
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* One candidate under one sanitizer. */
typedef struct run {
    mgl_trial_verdict verdict; /* OK: clean; UNMEASURED: did not complete */
    bool hung;                 /* exceeded the time limit */
} run;

static mgl_status read_log(const char *path, run *out, mgl_error *err)
{
    char *log = NULL;
    size_t length;
    mgl_error why = {0};
    mgl_status status = mgl_file_read(path, MOST_LOG, &log, &length, &why);
    if (status == MGL_NO_MEMORY && err)
        *err = why;
    if (status == MGL_NO_MEMORY)
        return status;
    mgl_sanitizer_read(log ? log : "", &out->verdict);
    mgl_free(log);
    return MGL_OK;
}

static mgl_status run_in(mgl_runner *runner, const char *tool, const char *name, const char *log,
                         bool no_sandbox, const mgl_candidate *candidate, uint64_t seed, run *out,
                         mgl_error *err)
{
    const char *const words[] = {tool,  "--tool",
                                 name,  "--log-file",
                                 log,   "--print-limit",
                                 "5",   "--show-backtrace",
                                 "no",  "--report-api-errors",
                                 "no",  "--target-processes",
                                 "all", NULL};
    const mgl_runner_tool how = {words, no_sandbox};
    mgl_runner_under under;
    mgl_status status = runner->under(runner, &how, candidate, seed, &under, err);
    if (!status)
        status = read_log(log, out, err);
    /* without a finding, an incomplete run is no evidence */
    const bool silent =
        out->verdict.outcome == MGL_OUTCOME_OK || out->verdict.outcome == MGL_OUTCOME_UNMEASURED;
    if (!status && !under.done && silent) {
        out->hung = under.hung;
        mgl_trial_verdict_set(&out->verdict, MGL_OUTCOME_UNMEASURED, "%s", under.why);
    }
    return status;
}

static mgl_status run_once(mgl_runner *runner, const char *tool, const char *name, bool no_sandbox,
                           const mgl_candidate *candidate, uint64_t seed, run *out, mgl_error *err)
{
    char folder[PATH_MAX], log[PATH_MAX + 8];
    const char *temporary = getenv("TMPDIR");
    *out = (run){.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    snprintf(folder, sizeof folder, "%s/megalith-sanitizer-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        mgl_trial_verdict_set(&out->verdict, MGL_OUTCOME_UNMEASURED,
                              "there is no folder for its log");
        return MGL_OK;
    }
    snprintf(log, sizeof log, "%s/log", folder);
    mgl_status status = run_in(runner, tool, name, log, no_sandbox, candidate, seed, out, err);
    unlink(log);
    rmdir(folder);
    return status;
}

/* ---- the gate -------------------------------------------------------------------------------- */

/* State of the tools in this process. No lock is needed: a trial uses one thread, and trials run
 * one after another. */
static struct {
    char skipped[160]; /* why the tool does not work here; "": no failure so far */
    bool works;        /* at least one run of the tool was complete */
    bool no_sandbox;   /* it works only without the sandbox */
    char tool[PATH_MAX];
} known[MGL_SANITIZER_COUNT];

static void skip(int sanitizer, const char *why, mgl_sanitizer_end *out)
{
    mgl_format_into(known[sanitizer].skipped, sizeof known[sanitizer].skipped, "%s", why);
    memcpy(out->skipped, known[sanitizer].skipped, sizeof out->skipped);
}

/* Runs in the sandbox; repeats without the sandbox if the tool does not work in it. */
static mgl_status try_run(mgl_runner *runner, const char *tool, int sanitizer, bool no_sandbox,
                          const mgl_candidate *candidate, uint64_t seed, run *out, mgl_error *err)
{
    const bool without = no_sandbox || known[sanitizer].no_sandbox;
    mgl_status status =
        run_once(runner, tool, names[sanitizer], without, candidate, seed, out, err);
    known[sanitizer].works |= !status && out->verdict.outcome != MGL_OUTCOME_UNMEASURED;
    if (status || without || known[sanitizer].works || out->hung)
        return status;
    run again;
    status = run_once(runner, tool, names[sanitizer], true, candidate, seed, &again, err);
    if (status || again.verdict.outcome == MGL_OUTCOME_UNMEASURED)
        return status;
    known[sanitizer].works = known[sanitizer].no_sandbox = true;
    *out = again;
    return MGL_OK;
}

static mgl_status check_with(mgl_runner *runner, const char *tool, int sanitizer,
                             const mgl_candidate *incumbent, const mgl_candidate *candidate,
                             uint64_t seed, bool no_sandbox, mgl_sanitizer_end *out,
                             mgl_trial_verdict *verdict, mgl_error *err)
{
    run mine, other;
    char why[160];
    mgl_status status = try_run(runner, tool, sanitizer, no_sandbox, candidate, seed, &mine, err);
    out->no_sandbox = no_sandbox || known[sanitizer].no_sandbox;
    out->ran = !status && mine.verdict.outcome == MGL_OUTCOME_OK;
    if (status || out->ran)
        return status;
    if (mine.hung && !known[sanitizer].works) { /* the tool has never worked here, so the incumbent
                                                 * would hang too */
        skip(sanitizer, mine.verdict.diagnostic, out);
        return MGL_OK;
    }
    status = try_run(runner, tool, sanitizer, no_sandbox, incumbent, seed, &other, err);
    out->no_sandbox = no_sandbox || known[sanitizer].no_sandbox;
    if (status)
        return status;
    if (other.verdict.outcome != MGL_OUTCOME_OK || mine.verdict.outcome == MGL_OUTCOME_UNMEASURED) {
        mgl_format_into(why, sizeof why, "%s%s",
                        other.verdict.outcome == MGL_OUTCOME_OK ? "of the candidate alone: "
                        : other.verdict.outcome == MGL_OUTCOME_UNMEASURED
                            ? ""
                            : "the incumbent is not clean: ",
                        other.verdict.outcome == MGL_OUTCOME_OK ? mine.verdict.diagnostic
                                                                : other.verdict.diagnostic);
        if (other.verdict.outcome == MGL_OUTCOME_OK)
            memcpy(out->skipped, why, sizeof out->skipped);
        else
            skip(sanitizer, why, out);
        return MGL_OK;
    }
    out->ran = out->found = true;
    mgl_trial_verdict_set(verdict, mine.verdict.outcome, "%s: %s", names[sanitizer],
                          mine.verdict.diagnostic);
    return MGL_OK;
}

/* Forgets the findings about a different tool. */
static void forget_another(int sanitizer, const char *tool)
{
    if (strcmp(known[sanitizer].tool, tool) != 0) {
        known[sanitizer].works = known[sanitizer].no_sandbox = false;
        known[sanitizer].skipped[0] = 0;
    }
    snprintf(known[sanitizer].tool, sizeof known[sanitizer].tool, "%s", tool);
}

mgl_status mgl_sanitize(mgl_runner *runner, const mgl_candidate *incumbent,
                        const mgl_candidate *candidate, uint64_t seed, bool no_sandbox,
                        mgl_sanitizer_ends *out, mgl_trial_verdict *verdict, mgl_error *err)
{
    char tool[PATH_MAX] = "", why[160];
    const double start = mgl_clock_s();
    const bool found = mgl_sanitizer_find(tool, sizeof tool, why);
    mgl_status status = MGL_OK;
    *out = (mgl_sanitizer_ends){0};
    for (int s = 0; s < MGL_SANITIZER_COUNT && !status; s++) {
        mgl_sanitizer_end *end = &out->of[s];
        forget_another(s, tool);
        if (!found || !runner->under)
            mgl_format_into(end->skipped, sizeof end->skipped, "%s",
                            found ? "the runner executes nothing" : why);
        else if (known[s].skipped[0])
            memcpy(end->skipped, known[s].skipped, sizeof end->skipped);
        else
            status = check_with(runner, tool, s, incumbent, candidate, seed, no_sandbox, end,
                                verdict, err);
        if (end->found)
            break;
    }
    out->seconds = mgl_clock_s() - start;
    return status;
}

void mgl_sanitizer_tell(const mgl_sanitizer_ends *ends, char *out, size_t size)
{
    size_t length = 0;
    out[0] = 0;
    for (int s = 0; s < MGL_SANITIZER_COUNT; s++) {
        const mgl_sanitizer_end *e = &ends->of[s];
        if (!e->ran && !e->skipped[0])
            continue;
        const int n =
            snprintf(out + length, size - length, "%s%s %s%s%s%s", length ? ", " : "", names[s],
                     e->found ? "found"
                     : e->ran ? "ok"
                              : "skipped",
                     e->ran ? "" : ": ", e->ran ? "" : e->skipped,
                     e->ran && e->no_sandbox ? " (without the sandbox)" : "");
        length += n > 0 ? (size_t)n : 0;
        if (length >= size)
            return;
    }
}
