/*
 * megalith VERB ...: finds the verb, reads its flags by its table, lets it work, and turns what
 * happened into the exit code and the one message (or, with --json, the one object) of the
 * contract.
 */
#include "cli/cli.h"
#include "cli/json_out.h"

#include "base/memory.h"
#include "vm/cuda/cuda.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const mgl_cli_verb *const mgl_cli_verbs[MGL_CLI_VERB_COUNT] = {
#define MGL_X(name) &mgl_cli_##name##_verb,
    MGL_CLI_VERBS(MGL_X)
#undef MGL_X
};

/* Statuses 0 to 6 and 130 are exit codes. A file that can not be read or written is input that can
 * not be used; a machine with too little memory is like a device with too little. */
static int exit_code(mgl_status status)
{
    if (status == MGL_SYSTEM)
        return 2;
    return status == MGL_NO_MEMORY ? 4 : (int)status;
}

static int report(const char *verb, mgl_status status, bool json, const mgl_error *err)
{
    if (status && err->message[0]) {
        fprintf(stderr, "megalith%s%s: %s%s%s\n", verb ? " " : "", verb ? verb : "", err->where,
                err->where[0] ? ": " : "", err->message);
        if (json) {
            mgl_json_out out = {0};
            mgl_json_out_begin(&out, "megalith.error/1");
            mgl_json_out_int(&out, "exit", exit_code(status));
            mgl_json_out_string(&out, "where", err->where);
            mgl_json_out_string(&out, "message", err->message);
            mgl_json_out_end(&out);
        }
    }
    mgl_error late = {0};
    mgl_status written = mgl_cli_output_end(&late);
    if (written && late.message[0])
        fprintf(stderr, "megalith: %s: %s\n", late.where, late.message);
    /* A reply that ended because its text could not be written is no interruption by the user. */
    return exit_code(status && status != MGL_INTERRUPTED ? status : written ? written : status);
}

static bool stands_among(const char *word, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], word))
            return true;
    return false;
}

static int run_verb(const mgl_cli_verb *verb, int argc, char **argv)
{
    mgl_error err = {0};
    const char *operand = NULL;
    if (stands_among("--help", argc, argv) || stands_among("-h", argc, argv)) {
        mgl_cli_print_verb_help(verb);
        return report(NULL, MGL_OK, false, &err);
    }
    void *options = mgl_alloc_zero(1, verb->options_size);
    bool json = false;
    mgl_status status = options ? mgl_cli_parse(verb, argc, argv, &operand, options, &err)
                                : mgl_fail_memory(&err, verb->options_size);
    if (options) /* behind an error, flags were not read to the end */
        json = mgl_cli_wants_json(verb, options) ||
               (status && mgl_cli_has_json(verb) && stands_among("--json", argc, argv));
    if (!status)
        status = verb->run(operand, options, &err);
    mgl_free(options);
    return report(verb->name, status, json, &err);
}

/* A program started without one of its streams must not write an answer into the next file that it
 * opens. Opened for reading, so that writing there still fails. */
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
    mgl_cuda_compile_use_child("/proc/self/exe");
    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a failed write says more than a signal */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        mgl_fail(&err, MGL_USAGE, NULL, "a verb is missing; 'megalith --help' lists them");
        return report(NULL, MGL_USAGE, false, &err);
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        mgl_cli_print_help();
        return report(NULL, MGL_OK, false, &err);
    }
    if (!strcmp(argv[1], "--version")) {
        mgl_cli_printf("megalith %s\n", mgl_version());
        return report(NULL, MGL_OK, false, &err);
    }
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++)
        if (!strcmp(argv[1], mgl_cli_verbs[i]->name))
            return run_verb(mgl_cli_verbs[i], argc - 2, argv + 2);
    mgl_fail(&err, MGL_USAGE, argv[1], "unknown verb; 'megalith --help' lists them");
    return report(NULL, MGL_USAGE, stands_among("--json", argc, argv), &err);
}
