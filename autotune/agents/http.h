/*
 * HTTP client for chat endpoints: POST of JSON with several requests in flight, through libcurl,
 * which is loaded on first use. Security rules: https only, or http to the local machine;
 * certificates are verified; redirects are not followed; an answer has at most MGL_HTTP_MAX_BYTES;
 * nothing is written to a file; the key appears only in the request header. The chat proposer and
 * the chat model client use it.
 */
#ifndef MGL_AUTOTUNE_AGENTS_HTTP_H
#define MGL_AUTOTUNE_AGENTS_HTTP_H

#include "base/error.h"

enum { MGL_HTTP_MAX_BYTES = 4 << 20, MGL_HTTP_MAX_FLIGHTS = 8 };

typedef struct mgl_http mgl_http;

/*
 * MGL_USAGE: libcurl is missing (with what to install), or the URL is not allowed. Allowed are
 * https://..., and http:// with 127.0.0.1, [::1] or localhost, without a password. `key` (NULL:
 * none) is copied and sent as "Authorization: Bearer KEY". Release with mgl_http_close, which
 * cancels requests in flight.
 */
mgl_status mgl_http_open(const char *url, const char *key, mgl_http **out, mgl_error *err);
void mgl_http_close(mgl_http *http); /* NULL is fine */

/* The end of a request. */
typedef enum mgl_http_end {
    MGL_HTTP_DONE,      /* a response came, with any status */
    MGL_HTTP_TIMED_OUT, /* no complete answer within the time limit */
    MGL_HTTP_TOO_LONG,  /* the answer exceeds MGL_HTTP_MAX_BYTES */
    MGL_HTTP_FAILED     /* no connection, an invalid certificate, or a truncated answer */
} mgl_http_end;

typedef struct mgl_http_response {
    int request; /* number from mgl_http_start */
    mgl_http_end end;
    int status;           /* 200, 429, ...; 0: no response */
    double retry_after_s; /* header Retry-After in seconds; -1: missing */
    const char *body;     /* (length), followed by a 0 byte; valid until the next call on this
                           * mgl_http */
    size_t length;
    const char *reason; /* for MGL_HTTP_FAILED: libcurl's message */
    double seconds;
} mgl_http_response;

/* Starts a request with a copy of the body. At most MGL_HTTP_MAX_FLIGHTS run at once
 * (MGL_USAGE). *request is its number. */
mgl_status mgl_http_start(mgl_http *http, const char *body, size_t length, double timeout_s,
                          int *request, mgl_error *err);
/* Runs requests for at most `wait_s` seconds and returns one that ended; *ended false: none did. */
mgl_status mgl_http_poll(mgl_http *http, double wait_s, bool *ended, mgl_http_response *out,
                         mgl_error *err);
int mgl_http_flights(const mgl_http *http);

/* MGL_USAGE with the reason if a URL is not allowed. */
mgl_status mgl_http_check_url(const char *url, mgl_error *err);

#endif
