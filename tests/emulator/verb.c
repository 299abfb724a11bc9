/*
 * Runs a verb of the command line on the emulated device in one process. It does what cli/main.c
 * does for a verb: `emulator_verb bench --shape ...`. A campaign starts this program again as its
 * worker processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/runner/runner.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/signals.h"
#include "eval/cublas.h"
#include "tests/emulator/emulator.h"
#include "vm/cuda/cuda.h"

enum { SKIP = 77 };

static mgl_status run_verb(const mgl_cli_verb *verb, int argc, char **argv, mgl_error *err)
{
    const char *operand;
    void *options = mgl_alloc_zero(1, verb->options_size);
    mgl_status status = options ? mgl_cli_parse(verb, argc, argv, &operand, options, err)
                                : mgl_fail_memory(err, verb->options_size);
    if (!status)
        status = mgl_cli_signals_start(verb->name, false, err);
    if (!status)
        status = verb->run(operand, options, err);
    mgl_free(options);
    return status;
}

int main(int argc, char **argv)
{
    static mgl_cublas cublas;
    mgl_error err = {0}, late = {0};
    const mgl_cli_verb *verb = argc > 1 ? mgl_cli_find_verb(argv[1]) : NULL;
    const bool is_worker = argc == 3 && !strcmp(argv[1], MGL_WORKER_FLAG);
    const bool is_compiler = argc == 3 && !strcmp(argv[1], MGL_CUDA_WORKER_FLAG);
    if (!verb && !is_worker && !is_compiler) {
        fprintf(stderr, "usage: emulator_verb VERB ...\n");
        return MGL_USAGE;
    }
    if (!emu_install("verb"))
        return SKIP;
    setenv("MEGALITH_CACHE", MGL_BINARY_DIR "/tests/emulator/kernels", 1);
    emu_fill_cublas(&cublas);
    mgl_cublas_override(&cublas);
    if (is_worker)
        return mgl_worker_main(argv[2]);
    if (is_compiler)
        return mgl_cuda_compile_worker(argv[2]);
    mgl_status status = run_verb(verb, argc - 2, argv + 2, &err);
    if (status)
        mgl_cli_say(verb->name, "%s: %s", err.where, err.message);
    mgl_status written = mgl_cli_output_end(&late);
    return (int)(status ? status : written);
}
