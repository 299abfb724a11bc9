/*
 * megalith mcp: serves the tools of autotune/mcp/mcp.h on standard input and output, one message
 * per line (Model Context Protocol). A separate thread reads, so that a request can be cancelled
 * while another one runs. Only answers are written to standard output.
 */
#include "cli/cli.h"
#include "cli/signals.h"

#include "autotune/mcp/mcp.h"
#include "base/memory.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MCP_OPTIONS(X)                                                                             \
    X(flag, allow_trials, "--allow-trials", NULL, 0, 0,                                            \
      "allow agents to submit trials and micro-kernels (default: read only)")                      \
    X(text, folders, "--folders", "A:B", 0, 0, "folders whose files agents may read (none)")       \
    X(text, store, "--store", "F", 0, 0, "the store of campaigns (campaigns.db of the user)")      \
    X(text, kernels, "--kernels", "DIR", 0, 0,                                                     \
      "folder of all kernel sessions (kernels in XDG_DATA_HOME)")
MGL_CLI_OPTIONS(MCP_OPTIONS)

enum { WAITING = 64, POLL_MS = 100 };

/* A bounded queue of messages that were read but not answered. */
typedef struct inbox {
    mgl_mcp *mcp;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mgl_text messages[WAITING];
    int first, count;
    bool over; /* standard input ended, or the reader stopped */
    bool stop; /* the reader must end */
    bool failed;
} inbox;

static bool is_blank(const mgl_text *line)
{
    return strspn(line->bytes, " \t\r") == line->length;
}

static void put_message(inbox *box, mgl_text *message)
{
    if (!message->length || is_blank(message)) {
        mgl_text_clear(message);
        return;
    }
    mgl_mcp_see(box->mcp, message->bytes, message->length);
    pthread_mutex_lock(&box->lock);
    while (box->count == WAITING && !box->stop)
        pthread_cond_wait(&box->changed, &box->lock);
    if (box->count < WAITING) {
        box->messages[(box->first + box->count++) % WAITING] = *message;
        *message = (mgl_text){0};
    }
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
    mgl_text_clear(message);
}

/* Reads bytes of standard input; 0 at the end, or when the reader must stop. */
static size_t read_some(inbox *box, char *to, size_t size)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        pthread_mutex_lock(&box->lock);
        bool stop = box->stop;
        pthread_mutex_unlock(&box->lock);
        if (stop)
            return 0;
        if (poll(&in, 1, POLL_MS) <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, to, size);
        if (n >= 0)
            return (size_t)n;
        if (errno != EINTR && errno != EAGAIN)
            return 0;
    }
}

/* Reads lines. Of a line that is too long, one byte more than the limit is kept, so that the server
 * rejects the message. */
static void *read_messages(void *user)
{
    inbox *box = user;
    mgl_text line = {0};
    char bytes[65536];
    size_t n;
    while ((n = read_some(box, bytes, sizeof bytes)) > 0) {
        for (char *at = bytes, *end = bytes + n; at < end;) {
            char *stop = memchr(at, '\n', (size_t)(end - at));
            size_t length = (size_t)((stop ? stop : end) - at);
            if (line.length <= MGL_MCP_MAX_MESSAGE)
                mgl_text_append(&line, at, length);
            box->failed |= line.failed;
            if (stop)
                put_message(box, &line);
            at += length + (stop != NULL);
        }
    }
    put_message(box, &line);
    mgl_mcp_end_waits(box->mcp);
    pthread_mutex_lock(&box->lock);
    box->over = true;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
    return NULL;
}

/* Waits for the next message; false: no more messages. */
static bool take_message(inbox *box, mgl_text *out)
{
    bool found = false;
    pthread_mutex_lock(&box->lock);
    while (!box->count && !box->over)
        pthread_cond_wait(&box->changed, &box->lock);
    if (box->count) {
        *out = box->messages[box->first];
        box->messages[box->first] = (mgl_text){0};
        box->first = (box->first + 1) % WAITING;
        box->count--;
        found = true;
    }
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
    return found;
}

static mgl_status answer_messages(inbox *box, mgl_error *err)
{
    mgl_text message = {0};
    mgl_status status = MGL_OK;
    while (!status && take_message(box, &message)) {
        mgl_text answer = {0};
        status = mgl_cli_check_cancel(err);
        if (!status)
            status = mgl_mcp_handle(box->mcp, message.bytes, message.length, &answer, err);
        if (!status && answer.length) {
            mgl_text_put(&answer, "\n");
            mgl_cli_print(answer.bytes, answer.length);
            if (!mgl_cli_flush())
                status = mgl_fail(err, MGL_INTERRUPTED, NULL, "%s", "");
        }
        mgl_text_clear(&answer);
        mgl_text_clear(&message);
    }
    return status;
}

/* Splits "A:B" into folders. */
static mgl_status list_folders(char *text, mgl_mcp_options *out, mgl_error *err)
{
    char *rest = text;
    for (char *name; (name = strtok_r(rest, ":", &rest));) {
        if (out->folder_count == MGL_MCP_MAX_FOLDERS)
            return mgl_fail(err, MGL_USAGE, "--folders", "too many folders; at most %d are allowed",
                            MGL_MCP_MAX_FOLDERS);
        out->folders[out->folder_count++] = name;
    }
    return MGL_OK;
}

static mgl_status serve(mgl_mcp *mcp, mgl_error *err)
{
    inbox box = {
        .mcp = mcp, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t reader;
    if (pthread_create(&reader, NULL, read_messages, &box))
        return mgl_fail(err, MGL_SYSTEM, "mcp", "a thread could not be started");
    mgl_status status = answer_messages(&box, err);
    pthread_mutex_lock(&box.lock);
    box.stop = true;
    pthread_cond_broadcast(&box.changed);
    pthread_mutex_unlock(&box.lock);
    pthread_join(reader, NULL);
    for (int i = 0; i < WAITING; i++)
        mgl_text_clear(&box.messages[i]);
    if (!status && box.failed)
        status = mgl_fail_memory(err, MGL_MCP_MAX_MESSAGE);
    return status;
}

static mgl_status run_mcp(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_mcp_options mcp_options = {.store = o->store.value,
                                   .kernels = o->kernels.value,
                                   .allow_trials = o->allow_trials.given};
    mgl_mcp *mcp = NULL;
    char *folders = mgl_strdup(o->folders.given ? o->folders.value : "");
    (void)operand;
    mgl_status status =
        folders ? list_folders(folders, &mcp_options, err) : mgl_fail_memory(err, 1);
    if (!status)
        status = mgl_mcp_open(&mcp_options, &mcp, err);
    if (!status)
        status = serve(mcp, err);
    mgl_mcp_close(mcp);
    mgl_free(folders);
    return status;
}

const mgl_cli_verb mgl_cli_mcp_verb = {
    .name = "mcp",
    .summary = "serves schedules, campaigns and micro-kernels to agents (Model Context Protocol on "
               "stdin and "
               "stdout)",
    .example = "  megalith mcp --folders . --allow-trials",
    MGL_CLI_VERB_OPTIONS,
    .run = run_mcp,
};
