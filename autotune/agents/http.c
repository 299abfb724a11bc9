/* Implements http.h with libcurl's multi interface. */
#include "autotune/agents/http.h"

#include "autotune/agents/curl.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CONNECT_MS = 15000, MAX_URL = 2048, MAX_KEY = 4096 };

/* One request. */
typedef struct flight {
    int number; /* 0: free */
    void *easy; /* libcurl handle */
    char *body; /* sent body */
    mgl_text answer;
    bool too_long;
    double retry_after_s, start;
} flight;

struct mgl_http {
    const mgl_curl *curl;
    void *multi, *headers; /* libcurl handles */
    char *url;
    bool local; /* the local machine: http is allowed, and no proxy is used */
    flight flights[MGL_HTTP_MAX_FLIGHTS];
    int count;      /* flights in use */
    int last;       /* last number assigned */
    mgl_text taken; /* body of the answer that was returned last */
};

/* ---- allowed URLs ---------------------------------------------------------------------------- */

/* Whether the host at `at` is the local machine, by a name that DNS cannot redirect. */
static bool is_loopback(const char *at)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]", "localhost"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t length = strlen(hosts[i]);
        if (!strncasecmp(at, hosts[i], length) && (!at[length] || strchr(":/", at[length])))
            return true;
    }
    return false;
}

static const char *behind(const char *url, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncasecmp(url, scheme, length) ? NULL : url + length;
}

mgl_status mgl_http_check_url(const char *url, mgl_error *err)
{
    const char *safe = behind(url, "https://"), *plain = behind(url, "http://");
    const char *host = safe ? safe : plain;
    if (!host || !host[0] || strlen(url) > MAX_URL)
        return mgl_fail(err, MGL_USAGE, url,
                        "an endpoint is https://HOST/PATH, such as "
                        "https://api.example.com/v1/chat/completions");
    for (const char *at = url; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F)
            return mgl_fail(err, MGL_USAGE, url, "a URL has no spaces and nothing but ASCII");
    size_t authority = strcspn(host, "/?#");
    if (memchr(host, '@', authority))
        return mgl_fail(err, MGL_USAGE, "the endpoint",
                        "has a name or password in its URL: give the key apart");
    if (plain && !is_loopback(plain))
        return mgl_fail(err, MGL_USAGE, url,
                        "http sends the key in the clear: use https (http is for 127.0.0.1, [::1] "
                        "and localhost alone)");
    return MGL_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Headers of every request. The local copy of the line with the key is wiped immediately. */
static mgl_status make_headers(mgl_http *http, const char *key, mgl_error *err)
{
    char line[MAX_KEY + 32];
    void *list = http->curl->list_append(NULL, "Content-Type: application/json");
    http->headers = list;
    if (list && key) {
        for (const char *at = key; *at; at++)
            if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F)
                return mgl_fail(err, MGL_USAGE, "the key", "has spaces or what is no ASCII");
        if (strlen(key) > MAX_KEY)
            return mgl_fail(err, MGL_USAGE, "the key", "has more than %d bytes", MAX_KEY);
        snprintf(line, sizeof line, "Authorization: Bearer %s", key);
        list = http->curl->list_append(list, line);
        explicit_bzero(line, sizeof line);
    }
    return list ? MGL_OK : mgl_fail_memory(err, sizeof line);
}

mgl_status mgl_http_open(const char *url, const char *key, mgl_http **out, mgl_error *err)
{
    *out = NULL;
    mgl_status status = mgl_http_check_url(url, err);
    if (status)
        return status;
    mgl_http *http = mgl_alloc_zero(1, sizeof *http);
    if (!http)
        return mgl_fail_memory(err, sizeof *http);
    status = mgl_curl_open(&http->curl, err);
    if (status) {
        mgl_free(http);
        return status;
    }
    const char *plain = behind(url, "http://"), *safe = behind(url, "https://");
    http->local = is_loopback(plain ? plain : safe);
    http->url = mgl_strdup(url);
    http->multi = http->curl->multi_init();
    if (!http->url || !http->multi)
        status = mgl_fail_memory(err, strlen(url));
    if (!status)
        status = make_headers(http, key, err);
    if (status)
        mgl_http_close(http);
    else
        *out = http;
    return status;
}

static void end_flight(mgl_http *http, flight *f)
{
    if (f->easy) {
        http->curl->multi_remove(http->multi, f->easy);
        http->curl->easy_cleanup(f->easy);
    }
    mgl_free(f->body);
    mgl_text_clear(&f->answer);
    http->count -= f->number != 0;
    *f = (flight){0};
}

void mgl_http_close(mgl_http *http)
{
    if (!http)
        return;
    for (int i = 0; i < MGL_HTTP_MAX_FLIGHTS; i++)
        end_flight(http, &http->flights[i]);
    if (http->multi)
        http->curl->multi_cleanup(http->multi);
    if (http->headers)
        http->curl->list_free(http->headers);
    mgl_text_clear(&http->taken);
    mgl_free(http->url);
    mgl_free(http);
}

int mgl_http_flights(const mgl_http *http)
{
    return http->count;
}

/* ---- one request ----------------------------------------------------------------------------- */

/* libcurl's write callback: a result other than `size * count` aborts the request. */
static size_t take_bytes(const char *bytes, size_t size, size_t count, void *user)
{
    flight *f = user;
    size_t length = size * count;
    f->too_long = f->answer.length + length > MGL_HTTP_MAX_BYTES;
    if (f->too_long)
        return 0;
    mgl_text_append(&f->answer, bytes, length);
    return f->answer.failed ? 0 : length;
}

/* libcurl's header callback: one whole line, without a terminating 0. */
static size_t take_header(const char *bytes, size_t size, size_t count, void *user)
{
    static const char name[] = "retry-after:";
    flight *f = user;
    size_t length = size * count, skip = sizeof name - 1;
    char number[24] = "";
    if (length > skip && !strncasecmp(bytes, name, skip)) {
        size_t rest = length - skip < sizeof number - 1 ? length - skip : sizeof number - 1;
        memcpy(number, bytes + skip, rest);
        char *end;
        double seconds = strtod(number, &end);
        if (end != number && seconds >= 0)
            f->retry_after_s = seconds;
    }
    return length;
}

static bool set_up(mgl_http *http, flight *f, size_t length, double timeout_s)
{
    const mgl_curl *c = http->curl;
    void *easy = f->easy;
    long protocols = MGL_CURL_PROTOCOL_HTTPS | (http->local ? MGL_CURL_PROTOCOL_HTTP : 0);
    int bad = c->easy_set(easy, MGL_CURL_URL, http->url);
    bad |= c->easy_set(easy, MGL_CURL_PROTOCOLS, protocols);
    bad |= c->easy_set(easy, MGL_CURL_FOLLOW, 0L);
    bad |= c->easy_set(easy, MGL_CURL_VERIFY_PEER, 1L);
    bad |= c->easy_set(easy, MGL_CURL_VERIFY_HOST, 2L);
    bad |= c->easy_set(easy, MGL_CURL_NO_SIGNAL, 1L);
    bad |= c->easy_set(easy, MGL_CURL_POST, 1L);
    bad |= c->easy_set(easy, MGL_CURL_FIELDS, f->body);
    bad |= c->easy_set(easy, MGL_CURL_FIELD_BYTES, (long long)length);
    bad |= c->easy_set(easy, MGL_CURL_HEADERS, http->headers);
    bad |= c->easy_set(easy, MGL_CURL_AGENT, "megalith/" MGL_VERSION);
    bad |= c->easy_set(easy, MGL_CURL_TIMEOUT_MS, (long)(timeout_s * 1000));
    bad |= c->easy_set(easy, MGL_CURL_CONNECT_MS, (long)CONNECT_MS);
    bad |= c->easy_set(easy, MGL_CURL_WRITE_FUNCTION, take_bytes);
    bad |= c->easy_set(easy, MGL_CURL_WRITE_DATA, f);
    bad |= c->easy_set(easy, MGL_CURL_HEADER_FUNCTION, take_header);
    bad |= c->easy_set(easy, MGL_CURL_HEADER_DATA, f);
    if (http->local)
        bad |= c->easy_set(easy, MGL_CURL_NO_PROXY, "*");
    return !bad;
}

mgl_status mgl_http_start(mgl_http *http, const char *body, size_t length, double timeout_s,
                          int *request, mgl_error *err)
{
    flight *f = NULL;
    for (int i = 0; i < MGL_HTTP_MAX_FLIGHTS && !f; i++)
        if (!http->flights[i].number)
            f = &http->flights[i];
    if (!f)
        return mgl_fail(err, MGL_USAGE, "requests", "%d are in flight already",
                        MGL_HTTP_MAX_FLIGHTS);
    *f = (flight){.body = mgl_strndup(body, length),
                  .easy = http->curl->easy_init(),
                  .retry_after_s = -1,
                  .start = mgl_clock_s()};
    if (!f->body || !f->easy || !set_up(http, f, length, timeout_s) ||
        http->curl->multi_add(http->multi, f->easy)) {
        end_flight(http, f);
        return mgl_fail_memory(err, length);
    }
    f->number = ++http->last;
    http->count++;
    *request = f->number;
    return MGL_OK;
}

static mgl_http_end end_of(const flight *f, int result)
{
    if (f->too_long)
        return MGL_HTTP_TOO_LONG;
    if (result == MGL_CURL_RESULT_TIMED_OUT)
        return MGL_HTTP_TIMED_OUT;
    return result ? MGL_HTTP_FAILED : MGL_HTTP_DONE;
}

/* Fills *out with the response of an ended request, and frees the entry of the request. */
static mgl_status finish(mgl_http *http, const mgl_curl_message *message, mgl_http_response *out,
                         mgl_error *err)
{
    flight *f = http->flights;
    long status = 0;
    int result = message->data.result;
    while (f->easy != message->easy)
        f++;
    http->curl->easy_get(f->easy, MGL_CURL_STATUS, &status);
    mgl_text_clear(&http->taken);
    http->taken = f->answer;
    f->answer = (mgl_text){0};
    *out = (mgl_http_response){.request = f->number,
                               .end = end_of(f, result),
                               .status = (int)status,
                               .retry_after_s = f->retry_after_s,
                               .body = http->taken.bytes ? http->taken.bytes : "",
                               .length = http->taken.length,
                               .reason = http->curl->easy_reason(result),
                               .seconds = mgl_clock_s() - f->start};
    bool failed = http->taken.failed;
    end_flight(http, f);
    return failed ? mgl_fail_memory(err, out->length) : MGL_OK;
}

/* The next ended request, if any. */
static mgl_curl_message *read_message(mgl_http *http)
{
    mgl_curl_message *message;
    int left;
    while ((message = http->curl->multi_read(http->multi, &left)))
        if (message->what == MGL_CURL_MESSAGE_DONE)
            return message;
    return NULL;
}

mgl_status mgl_http_poll(mgl_http *http, double wait_s, bool *ended, mgl_http_response *out,
                         mgl_error *err)
{
    double until = mgl_clock_s() + wait_s;
    *ended = false;
    if (!http->count)
        return MGL_OK;
    for (;;) {
        int running, ready;
        if (http->curl->multi_perform(http->multi, &running))
            return mgl_fail(err, MGL_SYSTEM, "libcurl", "could not go on with its requests");
        mgl_curl_message *message = read_message(http);
        if (message) {
            *ended = true;
            return finish(http, message, out, err);
        }
        double left = until - mgl_clock_s();
        if (left <= 0)
            return MGL_OK;
        http->curl->multi_poll(http->multi, NULL, 0, (int)(left * 1000) + 1, &ready);
    }
}
