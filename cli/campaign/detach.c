/*
 * Detaches a campaign from the terminal (`--detach`): starts the same program as `campaign resume`
 * of the campaign, which is already in the store, in a new session. The child inherits only the
 * store and the flags of the run. All errors of the command line are reported before the start.
 */
#include "cli/campaign/campaign.h"

#include "base/file.h"
#include "base/memory.h"
#include "cli/chat_key.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORDS = 32, LOG_RIGHTS = 0600 };

/* A key from standard input is passed in the environment, not as a file. */
static const char *key_file(const mgl_cli_tuning *how)
{
    return how->chat_key && strcmp(how->chat_key, MGL_STDIN) ? how->chat_key : NULL;
}

/* Builds the child's command line. The words point into `how` and `numbers`. */
static void list_words(const mgl_tune *tune, const mgl_cli_tuning *how, char numbers[5][40],
                       const char **words)
{
    int count = 0;
    const char *fixed[] = {"megalith",        "campaign", "resume",
                           tune->record.name, "--store",  mgl_store_url(tune->store)};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        words[count++] = fixed[i];
    const struct {
        const char *flag, *value;
    } given[] = {{"--device", how->device},
                 {"--until-gain", how->until_gain > 0 ? numbers[4] : NULL},
                 {"--on-event", how->on_event},
                 {"--report", how->report},
                 {"--hours", how->hours > 0 ? numbers[0] : NULL},
                 {"--trials", how->trials > 0 ? numbers[1] : NULL},
                 {"--disk", how->disk},
                 {"--chat-key-file", key_file(how)},
                 {"--budget-tokens", how->budget_tokens > 0 ? numbers[2] : NULL},
                 {"--budget-requests", how->budget_requests > 0 ? numbers[3] : NULL}};
    snprintf(numbers[0], 40, "%.17g", how->hours);
    snprintf(numbers[1], 40, "%lld", (long long)how->trials);
    snprintf(numbers[2], 40, "%lld", (long long)how->budget_tokens);
    snprintf(numbers[3], 40, "%lld", (long long)how->budget_requests);
    snprintf(numbers[4], 40, "%.17g", how->until_gain);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].value) {
            words[count++] = given[i].flag;
            words[count++] = given[i].value;
        }
    if (how->json)
        words[count++] = "--json";
    if (how->no_sandbox)
        words[count++] = "--no-sandbox";
    if (how->quiet)
        words[count++] = "--quiet";
    if (how->verbose)
        words[count++] = "--verbose";
    words[count] = NULL;
}

/* Starts the child. Returns 0 or an errno value. */
static int spawn(const char *log, char *const *argv, char *const *env, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&how);
    if (!error) {
        error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        if (!error)
            error = posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND,
                                                     LOG_RIGHTS);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&files, 1, 2);
        if (!error)
            error = posix_spawn_file_actions_addclosefrom_np(&files, 3);
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigmask(&how, &none);
        if (!error)
            error = posix_spawn(pid, "/proc/self/exe", &files, &how, argv, env);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static void tell(const mgl_tune *tune, const mgl_cli_tuning *how, pid_t pid, const char *log)
{
    mgl_json_out out = {0};
    if (!how->json) {
        mgl_cli_printf("%s runs in the background as process %ld; its log is %s\n",
                       tune->record.name, (long)pid, log);
        return;
    }
    mgl_json_out_begin(&out, "megalith.tune/1");
    mgl_answer_campaign(&out, &tune->record);
    mgl_json_out_int(&out, "pid", pid);
    mgl_json_out_string(&out, "log", log);
    mgl_cli_end_json(&out);
}

mgl_status mgl_cli_detach(const mgl_tune *tune, const mgl_cli_tuning *how, mgl_error *err)
{
    char numbers[5][40], number[24];
    const char *words[MOST_WORDS];
    mgl_text log = {0}, file = {0};
    pid_t pid = 0;
    mgl_text_format(&log, "%s.%s.log", mgl_store_beside(tune->store), tune->record.name);
    mgl_text_format(&file, "%s.%s.pid", mgl_store_beside(tune->store), tune->record.name);
    mgl_status status = log.failed || file.failed ? mgl_fail_memory(err, log.capacity) : MGL_OK;
    mgl_cli_environment env = {0};
    list_words(tune, how, numbers, words);
    if (!status)
        status = mgl_cli_make_environment(!key_file(how) && tune->chat_url, &env, err);
    if (!status) {
        signal(SIGHUP, SIG_IGN); /* the child inherits the ignored signal, so a logout does not end
                                  * it */
        errno = spawn(log.bytes, (char *const *)(uintptr_t)words, env.entries, &pid);
        if (errno)
            status =
                mgl_fail_errno(err, log.bytes, "the campaign cannot be started in the background");
    }
    mgl_cli_clear_environment(&env);
    int length = snprintf(number, sizeof number, "%ld\n", (long)pid);
    if (!status)
        status = mgl_cli_write_file(file.bytes, number, (size_t)length, err);
    if (!status)
        tell(tune, how, pid, log.bytes);
    mgl_text_clear(&log);
    mgl_text_clear(&file);
    return status;
}
