/*
 * Shared code of the subcommands of `megalith kernel` for the proposal loop: flags of the kernel
 * store, the profile of a text, the model client that answers prompts, and printing of results.
 */
#ifndef MGL_CLI_KERNEL_LOOP_H
#define MGL_CLI_KERNEL_LOOP_H

#include "api/cancel.h"
#include "autotune/kernels/methods/profile.h"
#include "autotune/kernels/sessions/kernel_store.h"
#include "cli/kernel/kernel.h"
#include "cli/signals.h"

#define MGL_CLI_FOLDER_OPTION(X)                                                                   \
    X(text, folder, "--folder", "DIR", 0, 0,                                                       \
      "folder of all kernel sessions (kernels in XDG_DATA_HOME)")

/* Options of subcommands that read a kernel session or move a branch. */
#define MGL_CLI_PLACE_OPTIONS(X)                                                                   \
    MGL_CLI_FOLDER_OPTION(X)                                                                       \
    X(text, transformations, "--transformations", "DIR", 0, 0,                                     \
      "folder of your own transformations (transformations in XDG_DATA_HOME)")
#define MGL_CLI_ARCH_OPTION(X) X(text, arch, "--arch", "A", 0, 0, "sm_80, sm_90a, sm_100a (sm_90a)")

/* Options of subcommands that pass texts through the gates. */
#define MGL_CLI_BENCH_OPTIONS(X)                                                                   \
    MGL_CLI_PLACE_OPTIONS(X)                                                                       \
    MGL_CLI_ARCH_OPTION(X)                                                                         \
    X(flag, scan_only, "--scan-only", NULL, 0, 0, "stop before the compiler")                      \
    X(text, device, "--device", "none|cuda|cuda:N", 0, 0,                                          \
      "device that checks what passes the compiler (none)")                                        \
    X(flag, no_sandbox, "--no-sandbox", NULL, 0, 0, "run texts without a sandbox")

/* Options of subcommands that give a proposer the profile of a text. */
#define MGL_CLI_PROFILE_OPTIONS(X)                                                                 \
    X(file, ncu, "--ncu", "F.csv", 0, 0, "output of `ncu --csv` for the text to change")           \
    X(text, kernel, "--kernel", "NAME", 0, 0,                                                      \
      "read only rows of kernels whose name contains this (all)")                                  \
    X(file, trace, "--trace", "F.json", 0, 0,                                                      \
      "output of `megalith trace MODEL --json` for the text to change")

#define MGL_CLI_ASK_OPTIONS(X)                                                                     \
    X(text, proposer, "--proposer", "scripted:F|chat|external", 0, 0,                              \
      "source of answers; external: answers come by `kernel submit` (external)")                   \
    X(text, chat_url, "--chat-url", "URL", 0, 0,                                                   \
      "endpoint of chat, compatible with OpenAI: https://HOST/v1/chat/completions")                \
    X(text, chat_model, "--chat-model", "NAME", 0, 0, "model of the endpoint of chat")             \
    X(file, chat_key, "--chat-key-file", "FILE", 0, 0,                                             \
      "file with the endpoint's key, readable by its owner only (MEGALITH_CHAT_KEY)")

/* Initializer of mgl_kernel_store_options from a verb's options with MGL_CLI_BENCH_OPTIONS. */
#define MGL_CLI_BENCH(o)                                                                           \
    {                                                                                              \
        .folder = (o)->folder.value, .transformations = (o)->transformations.value,                \
        .arch = (o)->arch.value, .no_compile = (o)->scan_only.given, .device = (o)->device.value,  \
        .no_sandbox = (o)->no_sandbox.given, .abort = mgl_cancel_flag(mgl_cli_cancel())            \
    }

/* Initializer of mgl_kernel_store_options from a verb's options with MGL_CLI_PLACE_OPTIONS.
 * `reading`: nothing is created or locked. */
#define MGL_CLI_PLACE(o, reading)                                                                  \
    {                                                                                              \
        .folder = (o)->folder.value, .transformations = (o)->transformations.value,                \
        .reads = (reading), .abort = mgl_cancel_flag(mgl_cli_cancel())                             \
    }

/* The meaning of NAME, for help. */
#define MGL_CLI_PLACE_NOTES                                                                        \
    "NAME is a branch, the id of a version, at least the first eight digits of the id, or "        \
    "`original`, which is the unit's original text. A branch without versions is also at "         \
    "`original`."

typedef struct mgl_cli_ask {
    const char *proposer, *url, *model, *key_file;
} mgl_cli_ask;
#define MGL_CLI_ASK(o)                                                                             \
    {                                                                                              \
        .proposer = (o)->proposer.value, .url = (o)->chat_url.value,                               \
        .model = (o)->chat_model.value, .key_file = (o)->chat_key.value                            \
    }
typedef struct mgl_cli_profile {
    const char *ncu, *kernel, *trace; /* NULL: not given */
} mgl_cli_profile;
#define MGL_CLI_PROFILE(o)                                                                         \
    {                                                                                              \
        .ncu = (o)->ncu.value, .kernel = (o)->kernel.value, .trace = (o)->trace.value              \
    }
/* Reads the profile of a unit's text. Reports a file without a known metric. */
mgl_status mgl_cli_profile_read(const mgl_cli_profile *files, const mgl_kernel_unit *unit,
                                mgl_profile *out, mgl_error *err);

/* Opens the model client. *out is NULL for the proposer "external". */
mgl_status mgl_cli_model_client_open(const mgl_cli_ask *how, mgl_model_client **out,
                                     mgl_error *err);

/* Prints the result of an answer or of a run, as lines or as JSON, and sets the exit code. */
void mgl_cli_tell_end(const mgl_kernel_store *bench, const mgl_work_end *end, bool json);

#endif
