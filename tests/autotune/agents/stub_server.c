/* Implements the stub of a chat endpoint with a scripted list of answers. See stub_server.h. */
#include "tests/autotune/agents/stub_server.h"

#include "base/json_out.h"

#include <arpa/inet.h>
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MAX_REQUESTS = 64, MAX_REQUEST = 1 << 20 };

struct stub_server {
    stub_answer *script; /* (count) a copy, because a test may end before the last answer is sent */
    int count, listener, seen;
    int served; /* connections, now */
    bool stops;
    char url[80];
    char *heads[MAX_REQUESTS], *bodies[MAX_REQUESTS];
    pthread_t thread;
    pthread_mutex_t lock; /* protects `seen`, `served` and `stops` */
    pthread_cond_t change;
};

/* One connection, on a thread of its own. */
typedef struct talk {
    stub_server *server;
    int connection;
} talk;

/* Reads a complete request. *body: the body, after the 0 byte that ends the head. */
static char *read_request(int connection, char **body)
{
    char *text = calloc(1, MAX_REQUEST + 1), *end = NULL;
    size_t length = 0, wanted = 0;
    *body = NULL;
    while (length < MAX_REQUEST) {
        ssize_t n = recv(connection, text + length, MAX_REQUEST - length, 0);
        if (n <= 0)
            break;
        length += (size_t)n;
        text[length] = 0;
        if (!end && (end = strstr(text, "\r\n\r\n"))) {
            const char *field = strcasestr(text, "content-length:");
            wanted = field ? strtoul(field + 15, NULL, 10) : 0;
            if (strcasestr(text, "expect: 100-continue"))
                send(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
        }
        if (end && length - (size_t)(end + 4 - text) >= wanted)
            break;
    }
    if (!end) {
        free(text);
        return NULL;
    }
    *end = 0;
    *body = end + 4;
    return text;
}

static void send_answer(int connection, const stub_answer *a)
{
    char head[512];
    size_t length = a->body ? strlen(a->body) : 0, all = length * (a->repeat + 1);
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d Stub\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n%s\r\n",
                     a->status, all + a->cut, a->headers ? a->headers : "");
    if (send(connection, head, (size_t)n, MSG_NOSIGNAL) < 0)
        return;
    for (size_t i = 0; i <= a->repeat && length; i++)
        if (send(connection, a->body, length, MSG_NOSIGNAL) < 0)
            return;
}

/* Waits for this many seconds. Returns false if the server stops. */
static bool wait_s(stub_server *s, double seconds)
{
    struct timespec until;
    int status = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    const double end = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)end;
    until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    pthread_mutex_lock(&s->lock);
    while (!s->stops && status == 0 && seconds > 0)
        status = pthread_cond_timedwait(&s->change, &s->lock, &until);
    const bool goes_on = !s->stops;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static void *serve(void *user)
{
    talk *t = user;
    stub_server *s = t->server;
    char *body, *head = read_request(t->connection, &body);
    if (head) {
        pthread_mutex_lock(&s->lock);
        int index = s->seen < s->count ? s->seen : s->count - 1;
        if (s->seen < MAX_REQUESTS) {
            s->heads[s->seen] = head;
            s->bodies[s->seen] = body;
            s->seen++;
        }
        pthread_mutex_unlock(&s->lock);
        const stub_answer *a = &s->script[index];
        if (wait_s(s, a->delay_s) && a->status)
            send_answer(t->connection, a);
    }
    close(t->connection);
    free(t);
    pthread_mutex_lock(&s->lock);
    s->served--;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void *listen_for_requests(void *user)
{
    stub_server *s = user;
    int connection;
    while ((connection = accept(s->listener, NULL, NULL)) >= 0) {
        pthread_t thread;
        const struct timeval limit = {.tv_sec = 10}; /* longer than any client pauses: stub_stop
                                                        ends first */
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        talk *t = malloc(sizeof *t);
        *t = (talk){s, connection};
        pthread_mutex_lock(&s->lock);
        s->served++;
        pthread_mutex_unlock(&s->lock);
        pthread_create(&thread, NULL, serve, t);
        pthread_detach(thread);
    }
    return NULL;
}

stub_server *stub_start(const stub_answer *script, int count)
{
    stub_server *s = calloc(1, sizeof *s);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    s->script = malloc((size_t)count * sizeof *script);
    memcpy(s->script, script, (size_t)count * sizeof *script);
    s->count = count;
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(s->listener, 16), 0);
    ck_assert_int_eq(getsockname(s->listener, (struct sockaddr *)&at, &size), 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/v1/chat/completions", ntohs(at.sin_port));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    ck_assert_int_eq(pthread_create(&s->thread, NULL, listen_for_requests, s), 0);
    return s;
}

void stub_stop(stub_server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->change);
    while (s->served > 0)
        pthread_cond_wait(&s->change, &s->lock);
    pthread_mutex_unlock(&s->lock);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    for (int i = 0; i < s->seen; i++)
        free(s->heads[i]);
    free(s->script);
    free(s);
}

const char *stub_url(const stub_server *s)
{
    return s->url;
}

int stub_requests(stub_server *s)
{
    pthread_mutex_lock(&s->lock);
    int seen = s->seen;
    pthread_mutex_unlock(&s->lock);
    return seen;
}

const char *stub_head(stub_server *s, int index)
{
    ck_assert_int_lt(index, stub_requests(s));
    return s->heads[index];
}

const char *stub_body(stub_server *s, int index)
{
    ck_assert_int_lt(index, stub_requests(s));
    return s->bodies[index];
}

const char *stub_completion(const char *content)
{
    static mgl_json_out made[4];
    static int next;
    mgl_json_out *out = &made[next++ % 4];
    mgl_text_clear(&out->text);
    *out = (mgl_json_out){0};
    mgl_text_put(&out->text, "{");
    mgl_json_out_array(out, "choices");
    mgl_json_out_object(out, NULL);
    mgl_json_out_object(out, "message");
    mgl_json_out_string(out, "role", "assistant");
    mgl_json_out_string(out, "content", content);
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
    mgl_json_out_close_array(out);
    mgl_json_out_object(out, "usage");
    mgl_json_out_int(out, "prompt_tokens", 100);
    mgl_json_out_int(out, "completion_tokens", 20);
    mgl_json_out_close_object(out);
    mgl_json_out_close(out);
    return out->text.bytes;
}
