/* Runs programs with pipes and a time limit, and checks their output. See command.h. */
#include "command.h"

#include "base/file.h"
#include "base/memory.h"
#include "tests/time_limit.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* cJSON strings cannot contain U+0000: for comparisons, this control character replaces it. */
#define ZERO "\\u001f"

enum { MAX_ARGUMENTS = 64, MAX_LINE = 8192, RING = 8 };

/* Returned paths: the last RING of them stay valid. */
static char *ring_path(void)
{
    static char paths[RING][1024];
    static int next;
    next = (next + 1) % RING;
    return paths[next];
}

const char *model_path(const char *name)
{
    const char *root = getenv("MGL_TEST_MODELS");
    char *path = ring_path();
    snprintf(path, 1024, "%s/%s", root ? root : MGL_SOURCE_DIR "/tests/models", name);
    return path;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Path of the program: in $MGL_TEST_TOOLS if set, else in the build folder. */
static char *program_path(void)
{
    static char path[1024];
    const char *tools = getenv("MGL_TEST_TOOLS");
    snprintf(path, sizeof path, "%s/megalith", tools ? tools : MGL_BINARY_DIR);
    return path;
}

/* Splits the line in place. */
static void split(char *line, char **argv)
{
    int count = 1;
    char *to = line;
    argv[0] = program_path();
    while (*line) {
        while (*line == ' ')
            line++;
        if (!*line)
            break;
        ck_assert_int_lt(count, MAX_ARGUMENTS - 1);
        argv[count++] = to;
        for (bool quoted = false; *line && (quoted || *line != ' '); line++) {
            if (*line == '\'')
                quoted = !quoted;
            else
                *to++ = *line;
        }
        if (*line)
            line++;
        *to++ = 0;
    }
    argv[count] = NULL;
}

/* The process that started the tests may have ignored a signal. */
static void set_signals(int ignored)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], numbers[i] == ignored ? SIG_IGN : SIG_DFL);
}

command command_start_with(const char *line, int input, int ignored)
{
    static char copy[MAX_LINE];
    char *argv[MAX_ARGUMENTS];
    int out[2], err[2];
    command running;
    ck_assert_uint_lt(strlen(line), sizeof copy);
    strcpy(copy, line);
    split(copy, argv);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
    running = (command){.pid = fork(), .out = out[0], .err = err[0]};
    ck_assert_int_ge(running.pid, 0);
    if (running.pid == 0) {
        set_signals(ignored);
        dup2(input, 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execv(argv[0], argv);
        dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(99);
    }
    close(out[1]);
    close(err[1]);
    return running;
}

static void append(char **text, size_t *length, const char *bytes, size_t count)
{
    *text = realloc(*text, *length + count + 1);
    ck_assert_ptr_nonnull(*text);
    memcpy(*text + *length, bytes, count);
    *length += count;
    (*text)[*length] = 0;
}

/* Reads both streams to their ends at once, so that neither can block the program. */
command_result command_end(command *running)
{
    command_result result = {0};
    struct pollfd ends[2] = {{.fd = running->out, .events = POLLIN},
                             {.fd = running->err, .events = POLLIN}};
    size_t err_length = 0;
    char block[65536];
    append(&result.out, &result.out_length, "", 0);
    append(&result.err, &err_length, "", 0);
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        ck_assert_int_ge(poll(ends, 2, -1), 1);
        for (int i = 0; i < 2; i++) {
            if (ends[i].fd < 0 || !ends[i].revents)
                continue;
            ssize_t n = read(ends[i].fd, block, sizeof block);
            if (n <= 0) {
                close(ends[i].fd);
                ends[i].fd = -1;
            } else if (i == 0) {
                append(&result.out, &result.out_length, block, (size_t)n);
            } else {
                append(&result.err, &err_length, block, (size_t)n);
            }
        }
    }
    int status;
    ck_assert_int_eq(waitpid(running->pid, &status, 0), running->pid);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

command command_start(const char *line)
{
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    command running = command_start_with(line, input, 0);
    close(input);
    return running;
}

int command_await(command *running, size_t bytes)
{
    char byte;
    for (; bytes; bytes--)
        if (read(running->out, &byte, 1) != 1)
            return 0;
    return 1;
}

void command_await_handler(const command *running)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)running->pid);
    for (int tries = 0; tries < time_limit(10000); tries++) {
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        unsigned long long blocked = 0;
        bool itself = false;
        while (fgets(line, sizeof line, file)) {
            itself |= !strcmp(line, "Name:\tmegalith\n");
            if (!strncmp(line, "SigBlk:", 7))
                blocked = strtoull(line + 7, NULL, 16);
        }
        fclose(file);
        if (itself && blocked >> (SIGINT - 1) & 1)
            return;
        usleep(1000);
    }
    ck_abort_msg("the program does not wait for SIGINT");
}

command_result command_run(const char *line, const char *input)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    if (input)
        fputs(input, file);
    rewind(file);
    command running = command_start_with(line, fileno(file), 0);
    command_result result = command_end(&running);
    fclose(file);
    return result;
}

command_result command_runf(const char *format, ...)
{
    static char line[MAX_LINE];
    va_list args;
    va_start(args, format);
    ck_assert_int_lt(vsnprintf(line, sizeof line, format, args), (int)sizeof line);
    va_end(args);
    return command_run(line, NULL);
}

int command_code(const char *format, ...)
{
    static char line[MAX_LINE];
    va_list args;
    va_start(args, format);
    ck_assert_int_lt(vsnprintf(line, sizeof line, format, args), (int)sizeof line);
    va_end(args);
    command_result result = command_run(line, NULL);
    const int code = result.code;
    command_clear(&result);
    return code;
}

void command_clear(command_result *result)
{
    free(result->out);
    free(result->err);
    *result = (command_result){0};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Replaces every `from` in the text by `to`, which has the same length. */
static void replace_all(char *text, const char *from, const char *to)
{
    for (char *at = strstr(text, from); at; at = strstr(at, from))
        memcpy(at, to, strlen(to));
}

mgl_json command_json(const command_result *result, const char *schema)
{
    mgl_json json = {0};
    mgl_error err = {0};
    replace_all(result->out, "\\u0000", ZERO);
    ck_assert_msg(mgl_json_parse(result->out, result->out_length, 1 << 28, "standard output", &json,
                                 &err) == MGL_OK,
                  "%s: %s\nstandard output: %s\nstandard error: %s", err.where, err.message,
                  result->out, result->err);
    ck_assert_str_eq(json_string(&json, "schema"), schema);
    return json;
}

mgl_json model_json(const char *model, const char *file)
{
    char path[1200], *text = NULL;
    size_t length = 0;
    mgl_json json = {0};
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/%s", model_path(model), file);
    ck_assert_msg(mgl_file_read(path, 1 << 24, &text, &length, &err) == MGL_OK, "%s", err.message);
    replace_all(text, "\\u0000", ZERO);
    ck_assert_msg(mgl_json_parse(text, length, 1 << 24, path, &json, &err) == MGL_OK, "%s",
                  err.message);
    mgl_free(text);
    return json;
}

const char *scratch_json(const char *name, const cJSON *json)
{
    char *text = cJSON_PrintUnformatted(json);
    ck_assert_ptr_nonnull(text);
    replace_all(text, ZERO, "\\u0000");
    const char *path = scratch_file(name, text);
    cJSON_free(text);
    return path;
}

const cJSON *json_at(const mgl_json *json, const char *path)
{
    char name[128];
    const cJSON *at = json->root;
    while (*path) {
        size_t length = strcspn(path, ".");
        ck_assert_uint_lt(length, sizeof name);
        memcpy(name, path, length);
        name[length] = 0;
        at = mgl_json_member(at, name);
        ck_assert_msg(at != NULL, "the JSON has no %s", path);
        path += length + (path[length] == '.');
    }
    return at;
}

double json_number(const mgl_json *json, const char *path)
{
    const cJSON *at = json_at(json, path);
    ck_assert_msg(cJSON_IsNumber(at), "%s is not a number", path);
    return at->valuedouble;
}

const char *json_string(const mgl_json *json, const char *path)
{
    const cJSON *at = json_at(json, path);
    ck_assert_msg(cJSON_IsString(at), "%s is not a string", path);
    return at->valuestring;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[64];

static void remove_folder(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    if (system(line) != 0)
        fprintf(stderr, "left behind: %s\n", folder);
}

const char *scratch_folder(void)
{
    if (!folder[0]) {
        strcpy(folder, "/tmp/megalith-cli-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        atexit(remove_folder);
    }
    return folder;
}

const char *scratch_file(const char *name, const char *content)
{
    char *path = ring_path();
    snprintf(path, 1024, "%s/%s", scratch_folder(), name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

const char *scratch_store(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s.db", scratch_folder(), name);
    return path;
}

const char *scratch_model(const char *name, const char *as)
{
    char line[4096];
    char *path = ring_path();
    snprintf(path, 1024, "%s/%s", scratch_folder(), as);
    snprintf(line, sizeof line, "mkdir -p %s && ln -sf %s/* %s", path, model_path(name), path);
    ck_assert_int_eq(system(line), 0);
    return path;
}
