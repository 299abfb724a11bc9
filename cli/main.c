/*
 * megalith VERB ...: finds the verb, parses its flags by its table and runs it. Converts the status
 * to the exit code and prints the one error message or, with --json, the one error object. Also the
 * entry point of worker processes: of campaigns, and of kernel compilation.
 */
#include "cli/chat_key.h"
#include "cli/hints.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include "autotune/kernels/gates/overlay.h"
#include "autotune/runner/runner.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "vm/cuda/cuda.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Statuses 0 to 6 and 130 are exit codes. A file that cannot be read or written (MGL_SYSTEM) is bad
 * input. Too little memory on the host has the code of a device error. */
static int exit_code(mgl_status status)
{
    if (status == MGL_SYSTEM)
        return 2;
    return status == MGL_NO_MEMORY ? 4 : (int)status;
}

static void report_error(const char *verb, mgl_status status, bool json, const mgl_error *err)
{
    mgl_cli_say(verb, "%s%s%s", err->where, err->where[0] ? ": " : "", err->message);
    if (!json)
        return;
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.error/1");
    mgl_json_out_int(&out, "exit", exit_code(status));
    mgl_json_out_string(&out, "where", err->where);
    mgl_json_out_string(&out, "message", err->message);
    mgl_cli_end_json(&out);
}

/* Ends a verb: prints the error and returns the exit code. A signal that came before the last
 * output takes precedence. */
static int report(const char *verb, mgl_status status, bool json, const mgl_error *err)
{
    mgl_cli_stop_bar();
    if (!mgl_cli_signals_tell() && status && err->message[0])
        report_error(verb, status, json, err);
    mgl_error late = {0};
    mgl_status written = mgl_cli_output_end(&late);
    int code = mgl_cli_signals_end();
    if (code)
        return code;
    if (written && late.message[0])
        mgl_cli_say(NULL, "%s: %s", late.where, late.message);
    if (written == MGL_NO_MEMORY)
        return exit_code(written); /* the same code is in the object printed instead */
    /* A reply that ended because standard output was closed is not an interruption by the user. */
    if (!status && !written)
        return mgl_cli_end_code();
    return exit_code(status && status != MGL_INTERRUPTED ? status : written ? written : status);
}

/* ---- help ------------------------------------------------------------------------------------ */

static bool is_help_flag(const char *word)
{
    return !strcmp(word, MGL_CLI_HELP_FLAG) || !strcmp(word, MGL_CLI_HELP_SHORT);
}

static bool asks_for_help(const char *word)
{
    return !strcmp(word, "help") || is_help_flag(word);
}

static bool asks_for_version(const char *word)
{
    return !strcmp(word, MGL_CLI_VERSION_FLAG) || !strcmp(word, MGL_CLI_VERSION_SHORT);
}

static int help_verb(const mgl_cli_verb *verb)
{
    mgl_error none = {0};
    mgl_cli_print_verb_help(verb);
    return report(NULL, MGL_OK, false, &none);
}

/* Returns the verb that these words name ("campaign list"); NULL: unknown. */
static const mgl_cli_verb *find_words(int argc, char **argv)
{
    const mgl_cli_verb *verb = argc > 0 ? mgl_cli_find_verb(argv[0]) : NULL;
    for (int i = 1; i < argc && verb; i++)
        verb = mgl_cli_find_word(verb, argv[i]);
    return verb;
}

/* "help", "help VERB": `argv` are the words after "help". */
static int help(int argc, char **argv)
{
    mgl_error err = {0};
    const mgl_cli_verb *verb = find_words(argc, argv);
    if (verb)
        return help_verb(verb);
    if (argc > 1)
        mgl_fail(&err, MGL_USAGE, argv[1], "help shows one verb at a time: 'megalith help VERB'");
    else if (argc == 1 && !asks_for_help(argv[0]))
        mgl_cli_fail_verb(argv[0], &err);
    else
        mgl_cli_print_help();
    return report(NULL, err.code, false, &err);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static bool stands_among(const char *word, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], word))
            return true;
    return false;
}

/* Uses the promoted micro-kernels. Leaves out those made for another version of the kernel, and
 * prints which. */
static mgl_status use_overlay(const mgl_cli_verb *verb, mgl_error *err)
{
    static mgl_overlay overlay; /* used until the program ends */
    mgl_status status = mgl_overlay_read(NULL, &overlay, err);
    for (int i = 0; i < overlay.count && !status; i++)
        if (overlay.entries[i].stale)
            mgl_cli_say(verb->name,
                        "the promoted micro-kernel %s is ignored: it was made from another text "
                        "than this program has",
                        overlay.entries[i].unit->name);
    if (!status && overlay.source_count > 0)
        status = mgl_overlay_use(&overlay, err);
    return status;
}

static mgl_status do_verb(const mgl_cli_verb *verb, const char *operand, const void *options,
                          bool json, mgl_error *err)
{
    mgl_status status = mgl_cli_signals_start(verb->name, json, err);
    if (!status && verb->overlaid)
        status = use_overlay(verb, err);
    if (status)
        return status;
    if (mgl_cli_knows(verb, "--quiet") && !mgl_cli_has_flag(verb, options, "--quiet"))
        mgl_cli_start_bar();
    return verb->run(operand, options, err);
}

static int run_verb(const mgl_cli_verb *verb, int argc, char **argv)
{
    mgl_error err = {0};
    const char *operand = NULL;
    if (stands_among(MGL_CLI_HELP_FLAG, argc, argv) || stands_among(MGL_CLI_HELP_SHORT, argc, argv))
        return help_verb(verb);
    void *options = mgl_alloc_zero(1, verb->options_size);
    bool json = false;
    mgl_status status = options ? mgl_cli_parse(verb, argc, argv, &operand, options, &err)
                                : mgl_fail_memory(&err, verb->options_size);
    if (status) /* the parser stopped before the last flag */
        json = mgl_cli_knows(verb, "--json") && stands_among("--json", argc, argv);
    else
        json = mgl_cli_has_flag(verb, options, "--json");
    if (!status)
        status = mgl_cli_check_device(verb, options, &err);
    if (!status)
        status = mgl_cli_check_dtype(verb, options, &err);
    if (!status)
        status = do_verb(verb, operand, options, json, &err);
    if (status)
        mgl_cli_advise_device(verb, &err);
    mgl_free(options);
    return report(verb->name, status, json, &err);
}

/* Runs a verb with subcommands. The next word names the subcommand. */
static int run_word(const mgl_cli_verb *verb, int argc, char **argv)
{
    mgl_error err = {0};
    const mgl_cli_verb *word = argc > 0 ? mgl_cli_find_word(verb, argv[0]) : NULL;
    if (word && word->words)
        return run_word(word, argc - 1, argv + 1);
    if (word)
        return run_verb(word, argc - 1, argv + 1);
    if (argc > 0 && asks_for_help(argv[0]))
        return help_verb(verb);
    mgl_fail(&err, MGL_USAGE, argc > 0 ? argv[0] : NULL,
             "%s; 'megalith %s --help' lists the words after '%s'",
             argc > 0 ? "unknown" : "a word is missing", verb->name, verb->name);
    return report(NULL, MGL_USAGE, stands_among("--json", argc, argv), &err);
}

/* Opens missing standard streams, so that an answer is not written to the next file that is opened.
 * They are opened for reading, so that writes fail. */
static void hold_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
            _exit(2);
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    if (argc == 3 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG))
        return mgl_cuda_compile_worker(argv[2]);
    if (argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG))
        return mgl_worker_main(argv[2]);
    mgl_cli_take_key();
    mgl_cuda_compile_use_child("/proc/self/exe");
    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a failed write reports more than a signal */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        mgl_fail(&err, MGL_USAGE, NULL, "a verb is missing; 'megalith --help' lists them");
        return report(NULL, MGL_USAGE, false, &err);
    }
    if (asks_for_version(argv[1])) {
        mgl_cli_printf("megalith %s\n", mgl_version());
        return report(NULL, MGL_OK, false, &err);
    }
    if (asks_for_help(argv[1]))
        return help(argc - 2, argv + 2);
    const mgl_cli_verb *verb = mgl_cli_find_verb(argv[1]);
    if (verb && verb->words)
        return run_word(verb, argc - 2, argv + 2);
    if (verb)
        return run_verb(verb, argc - 2, argv + 2);
    mgl_cli_fail_verb(argv[1], &err);
    return report(NULL, MGL_USAGE, stands_among("--json", argc, argv), &err);
}
