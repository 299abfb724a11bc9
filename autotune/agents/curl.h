/* Loads libcurl at run time and declares the functions that http.c needs. Names, numbers and
 * meanings follow libcurl's reference (unchanged in its ABI 4 for twenty years); the
 * declarations are written for this project. */
#ifndef MGL_AUTOTUNE_AGENTS_CURL_H
#define MGL_AUTOTUNE_AGENTS_CURL_H

#include "base/error.h"

/* An element returned by curl_multi_info_read. */
typedef struct mgl_curl_message {
    int what; /* MGL_CURL_MESSAGE_DONE */
    void *easy;
    union {
        void *whatever;
        int result; /* MGL_CURL_RESULT_... */
    } data;
} mgl_curl_message;

/*  member, result, symbol, arguments */
#define MGL_CURL_FUNCTIONS(X)                                                                      \
    X(global_init, int, "curl_global_init", (long flags))                                          \
    X(easy_init, void *, "curl_easy_init", (void))                                                 \
    X(easy_cleanup, void, "curl_easy_cleanup", (void *easy))                                       \
    X(easy_set, int, "curl_easy_setopt", (void *easy, int option, ...))                            \
    X(easy_get, int, "curl_easy_getinfo", (void *easy, int info, ...))                             \
    X(easy_reason, const char *, "curl_easy_strerror", (int result))                               \
    X(list_append, void *, "curl_slist_append", (void *list, const char *line))                    \
    X(list_free, void, "curl_slist_free_all", (void *list))                                        \
    X(multi_init, void *, "curl_multi_init", (void))                                               \
    X(multi_cleanup, int, "curl_multi_cleanup", (void *multi))                                     \
    X(multi_add, int, "curl_multi_add_handle", (void *multi, void *easy))                          \
    X(multi_remove, int, "curl_multi_remove_handle", (void *multi, void *easy))                    \
    X(multi_perform, int, "curl_multi_perform", (void *multi, int *running))                       \
    X(multi_poll, int, "curl_multi_poll",                                                          \
      (void *multi, void *extra, unsigned extra_count, int wait_ms, int *ready))                   \
    X(multi_read, mgl_curl_message *, "curl_multi_info_read", (void *multi, int *left))

typedef struct mgl_curl {
#define MGL_X(member, result, symbol, arguments) result(*member) arguments;
    MGL_CURL_FUNCTIONS(MGL_X)
#undef MGL_X
} mgl_curl;

enum {
    MGL_CURL_GLOBAL_DEFAULT = 3,
    MGL_CURL_MESSAGE_DONE = 1,
    MGL_CURL_RESULT_TIMED_OUT = 28,
    MGL_CURL_PROTOCOL_HTTP = 1,
    MGL_CURL_PROTOCOL_HTTPS = 2,
    /* options that take a long */
    MGL_CURL_POST = 47,
    MGL_CURL_FOLLOW = 52,
    MGL_CURL_VERIFY_PEER = 64,
    MGL_CURL_VERIFY_HOST = 81,
    MGL_CURL_NO_SIGNAL = 99,
    MGL_CURL_TIMEOUT_MS = 155,
    MGL_CURL_CONNECT_MS = 156,
    MGL_CURL_PROTOCOLS = 181,
    /* pointers */
    MGL_CURL_WRITE_DATA = 10001,
    MGL_CURL_URL = 10002,
    MGL_CURL_FIELDS = 10015,
    MGL_CURL_AGENT = 10018,
    MGL_CURL_HEADERS = 10023,
    MGL_CURL_HEADER_DATA = 10029,
    MGL_CURL_NO_PROXY = 10177,
    /* functions */
    MGL_CURL_WRITE_FUNCTION = 20011,
    MGL_CURL_HEADER_FUNCTION = 20079,
    /* 64-bit numbers */
    MGL_CURL_FIELD_BYTES = 30120,
    MGL_CURL_STATUS = 0x200002
};

/* The function table, loaded at the first call and kept. MGL_USAGE: libcurl is missing. Not
 * thread safe. */
mgl_status mgl_curl_open(const mgl_curl **out, mgl_error *err);

#endif
