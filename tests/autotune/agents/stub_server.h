/*
 * A stub of a chat endpoint for tests: a local HTTP server that returns scripted answers, one per
 * request, and records the requests. It is the only mock of the tests.
 */
#ifndef MGL_TESTS_AUTOTUNE_AGENTS_STUB_SERVER_H
#define MGL_TESTS_AUTOTUNE_AGENTS_STUB_SERVER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stub_answer {
    int status;          /* 200; 0: the connection is closed without an answer */
    const char *headers; /* "Retry-After: 1\r\n", or NULL */
    const char *body;    /* or NULL */
    size_t repeat;       /* additional repetitions of the body */
    double delay_s;      /* delay before the answer */
    size_t cut;          /* bytes by which Content-Length exceeds what is sent */
} stub_answer;

typedef struct stub_server stub_server;

/* Starts the server. After the end of the script, it repeats the last answer. The script must
 * outlive it. */
stub_server *stub_start(const stub_answer *script, int count);
void stub_stop(stub_server *server);
/* "http://127.0.0.1:PORT/v1/chat/completions" */
const char *stub_url(const stub_server *server);
int stub_requests(stub_server *server); /* number of requests so far */
/* Head and body of request `index`, 0-terminated; they belong to the server. */
const char *stub_head(stub_server *server, int index);
const char *stub_body(stub_server *server, int index);

/* The body of an answer in OpenAI's form with this content. Static storage: valid until four more
 * calls. */
const char *stub_completion(const char *content);

#endif
