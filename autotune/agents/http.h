/*
 * Requests to a chat endpoint: POST of JSON, several in flight, through libcurl, which is opened
 * when it is needed. What a request may do is fixed here: https, or http to this machine itself;
 * certificates are verified; no redirect is followed; an answer has at most MGL_HTTP_MAX_BYTES;
 * nothing is written to a file, and the key is in nothing but the header of the request.
 */
#ifndef MGL_AUTOTUNE_AGENTS_HTTP_H
#define MGL_AUTOTUNE_AGENTS_HTTP_H

#include "base/error.h"

enum { MGL_HTTP_MAX_BYTES = 4 << 20, MGL_HTTP_MAX_FLIGHTS = 8 };

typedef struct mgl_http mgl_http;

/* MGL_USAGE: libcurl is not there (what to install), or the URL is none that may be asked: it has
 * to be https://..., or http:// of 127.0.0.1, [::1] or localhost, without a password in it. `key`
 * (NULL: none) is sent as "Authorization: Bearer KEY"; it is copied. Release with mgl_http_close,
 * which ends what is in flight. */
mgl_status mgl_http_open(const char *url, const char *key, mgl_http **out, mgl_error *err);
void mgl_http_close(mgl_http *http); /* NULL is fine */

/* How a request ended. */
typedef enum mgl_http_end {
    MGL_HTTP_DONE,      /* with the status of the response, whatever it is */
    MGL_HTTP_TIMED_OUT, /* no whole answer in its time */
    MGL_HTTP_TOO_LONG,  /* the answer has more than MGL_HTTP_MAX_BYTES */
    MGL_HTTP_FAILED /* no connection, a certificate that does not hold, an answer that breaks off */
} mgl_http_end;

typedef struct mgl_http_response {
    int request; /* as mgl_http_start numbered it */
    mgl_http_end end;
    int status;           /* 200, 429, ...; 0: none came */
    double retry_after_s; /* of the header Retry-After in seconds; -1: there was none */
    const char *body;     /* (length), with a 0 behind it; of the http, until its next call */
    size_t length;
    const char *reason; /* of MGL_HTTP_FAILED, in libcurl's words */
    double seconds;
} mgl_http_response;

/* Starts a request with that body, which is copied; at most MGL_HTTP_MAX_FLIGHTS at once
 * (MGL_USAGE). Its number goes to *request. */
mgl_status mgl_http_start(mgl_http *http, const char *body, size_t length, double timeout_s,
                          int *request, mgl_error *err);
/* Lets requests go on for at most `wait_s`, and hands out one that ended: *ended false if none did.
 */
mgl_status mgl_http_poll(mgl_http *http, double wait_s, bool *ended, mgl_http_response *out,
                         mgl_error *err);
int mgl_http_flights(const mgl_http *http);

/* Whether a URL may be asked: MGL_USAGE, in words, where not. */
mgl_status mgl_http_check_url(const char *url, mgl_error *err);

#endif
