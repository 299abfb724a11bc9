/*
 * Runs build/megalith as a user does: with arguments and standard input, and captures both output
 * streams. Uses nothing of the library except the JSON reader.
 */
#ifndef MGL_TESTS_CLI_COMMAND_H
#define MGL_TESTS_CLI_COMMAND_H

#include "base/json.h"
#include "tests/time_limit.h"

#include <stddef.h>
#include <sys/types.h>

/* The folder of a fixture: MGL_TEST_MODELS, else tests/models of the source. Static storage, until
 * the next call but three. */
const char *model_path(const char *name);

typedef struct command_result {
    int code;  /* exit code; 128 + n when signal n ended it */
    char *out; /* standard output, 0-terminated */
    char *err; /* standard error */
    size_t out_length;
} command_result;

/* Runs the program with `line` split at blanks; 'single quotes' hold blanks together. `input`:
 * standard input, or NULL for an empty one. Release with command_clear. */
command_result command_run(const char *line, const char *input);
/* The same, with a printf format. */
command_result command_runf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Only the exit code. */
int command_code(const char *format, ...) __attribute__((format(printf, 1, 2)));
void command_clear(command_result *result);

/* A command in progress. */
typedef struct command {
    pid_t pid;
    int out, err; /* read ends of the pipes */
} command;
command command_start(const char *line);
/* The same, with its own standard input, and a signal to ignore, or 0. */
command command_start_with(const char *line, int input, int ignored);
/* Waits until standard output has `bytes` bytes; 0 if the program ended before. */
int command_await(command *running, size_t bytes);
/* Waits until the program handles Ctrl-C: until it has blocked the signal for its signal thread. */
void command_await_handler(const command *running);
command_result command_end(command *running);

/* Maximum seconds between a signal and the end of the program. The documented limit is 0.2 s; the
 * tests allow 2 s, because the machine may have other work. */
#define COMMAND_ENDS_S time_limit(2)

/* The only JSON object on standard output, which must have this schema; otherwise the test
 * fails. */
mgl_json command_json(const command_result *result, const char *schema);
double json_number(const mgl_json *json, const char *path); /* "timing.load_s" */
const char *json_string(const mgl_json *json, const char *path);
const cJSON *json_at(const mgl_json *json, const char *path);

/* A file of a fixture. U+0000 in texts is masked, as it is by command_json; scratch_json unmasks
 * it. */
mgl_json model_json(const char *model, const char *file);
const char *scratch_json(const char *name, const cJSON *json);

/* A fresh folder that is removed at exit; a file in it with that content. Paths are static storage
 * of the module, one for each call. */
const char *scratch_folder(void);
const char *scratch_file(const char *name, const char *content);
/* NAME.db in the folder, for a store of campaigns. Valid until the next call. */
const char *scratch_store(const char *name);
/* A folder of that name in the scratch folder, with links to the files of a fixture. */
const char *scratch_model(const char *name, const char *as);

#endif
