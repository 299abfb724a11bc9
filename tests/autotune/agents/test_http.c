/*
 * Tests of HTTP requests to an endpoint: which requests are allowed, and every way in which an
 * answer can end.
 */
#include "autotune/agents/http.h"
#include "tests/autotune/agents/stub_server.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mgl_http *http;
static stub_server *server;

static void open_with(const stub_answer *script, int count, const char *key)
{
    mgl_error err = {0};
    server = stub_start(script, count);
    ck_assert_msg(mgl_http_open(stub_url(server), key, &http, &err) == MGL_OK, "%s", err.message);
}

static void close_all(void)
{
    mgl_http_close(http);
    stub_stop(server);
}

/* Sends one request and waits for its end. */
static mgl_http_response ask(double timeout_s)
{
    mgl_http_response response = {0};
    bool ended = false;
    int request;
    ck_assert_int_eq(mgl_http_start(http, "{\"a\":1}", 7, timeout_s, &request, NULL), MGL_OK);
    ck_assert_int_eq(mgl_http_poll(http, 10, &ended, &response, NULL), MGL_OK);
    ck_assert(ended);
    ck_assert_int_eq(response.request, request);
    return response;
}

static const struct {
    const char *url;
    bool good;
} urls[] = {{"https://api.example.com/v1/chat/completions", true},
            {"http://127.0.0.1:8080/v1", true},
            {"http://[::1]:8080/v1", true},
            {"http://localhost/v1", true},
            {"http://example.com/v1", false},
            {"http://127.0.0.1.example.com/", false},
            {"http://localhost.example.com/", false},
            {"http://127.0.0.1@example.com/", false},
            {"https://name:secret@example.com/", false},
            {"file:///etc/passwd", false},
            {"ftp://127.0.0.1/", false},
            {"https://", false},
            {"https://a b/", false},
            {"", false}};

START_TEST(knows_which_urls_may_be_asked)
{
    mgl_error err = {0};
    mgl_status status = mgl_http_check_url(urls[_i].url, &err);
    ck_assert_msg((status == MGL_OK) == urls[_i].good, "%s: %s", urls[_i].url, err.message);
    ck_assert(status == MGL_OK || status == MGL_USAGE);
    ck_assert_ptr_null(strstr(err.where, "secret"));
}
END_TEST

START_TEST(hands_out_an_answer)
{
    const stub_answer script[] = {{.status = 200, .body = "{\"b\":2}"}};
    open_with(script, 1, "sesame");
    mgl_http_response response = ask(10);
    ck_assert_int_eq(response.end, MGL_HTTP_DONE);
    ck_assert_int_eq(response.status, 200);
    ck_assert_str_eq(response.body, "{\"b\":2}");
    ck_assert_str_eq(stub_body(server, 0), "{\"a\":1}");
    ck_assert_ptr_nonnull(strstr(stub_head(server, 0), "Authorization: Bearer sesame"));
    close_all();
}
END_TEST

START_TEST(sends_no_key_where_there_is_none)
{
    const stub_answer script[] = {{.status = 200, .body = "{}"}};
    open_with(script, 1, NULL);
    ask(10);
    ck_assert_ptr_null(strcasestr(stub_head(server, 0), "authorization"));
    close_all();
}
END_TEST

START_TEST(reads_retry_after)
{
    const stub_answer script[] = {{.status = 429, .headers = "Retry-After: 17\r\n", .body = "{}"},
                                  {.status = 500}};
    open_with(script, 2, NULL);
    mgl_http_response response = ask(10);
    ck_assert_int_eq(response.status, 429);
    ck_assert_double_eq(response.retry_after_s, 17);
    response = ask(10);
    ck_assert_int_eq(response.status, 500);
    ck_assert_double_eq(response.retry_after_s, -1);
    close_all();
}
END_TEST

START_TEST(follows_no_redirect)
{
    const stub_answer script[] = {
        {.status = 302, .headers = "Location: http://127.0.0.1:1/\r\n", .body = "{}"}};
    open_with(script, 1, NULL);
    mgl_http_response response = ask(10);
    ck_assert_int_eq(response.end, MGL_HTTP_DONE);
    ck_assert_int_eq(response.status, 302);
    ck_assert_int_eq(stub_requests(server), 1);
    close_all();
}
END_TEST

START_TEST(ends_in_its_time)
{
    const stub_answer script[] = {{.status = 200, .body = "{}", .delay_s = 1}};
    open_with(script, 1, NULL);
    mgl_http_response response = ask(0.1);
    ck_assert_int_eq(response.end, MGL_HTTP_TIMED_OUT);
    usleep(1000000);
    close_all();
}
END_TEST

START_TEST(takes_no_more_than_its_share)
{
    static char piece[65537];
    memset(piece, ' ', 65536);
    const stub_answer script[] = {{.status = 200, .body = piece, .repeat = 80}};
    open_with(script, 1, NULL);
    ck_assert_int_eq(ask(10).end, MGL_HTTP_TOO_LONG);
    close_all();
}
END_TEST

START_TEST(tells_of_what_breaks_off)
{
    const stub_answer script[] = {{.status = 200, .body = "{\"b\":", .cut = 100}, {.status = 0}};
    open_with(script, 2, NULL);
    ck_assert_int_eq(ask(10).end, MGL_HTTP_FAILED);
    ck_assert_int_eq(ask(10).end, MGL_HTTP_FAILED);
    close_all();
}
END_TEST

START_TEST(has_several_in_flight)
{
    const stub_answer script[] = {{.status = 200, .body = "{}", .delay_s = 0.3}};
    int request, ends = 0;
    bool ended = true;
    mgl_http_response response;
    open_with(script, 1, NULL);
    for (int i = 0; i < MGL_HTTP_MAX_FLIGHTS; i++)
        ck_assert_int_eq(mgl_http_start(http, "{}", 2, 10, &request, NULL), MGL_OK);
    ck_assert_int_eq(mgl_http_start(http, "{}", 2, 10, &request, NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_http_flights(http), MGL_HTTP_MAX_FLIGHTS);
    while (ends < MGL_HTTP_MAX_FLIGHTS && ended) {
        ck_assert_int_eq(mgl_http_poll(http, 10, &ended, &response, NULL), MGL_OK);
        ends += ended && response.status == 200;
    }
    ck_assert_int_eq(ends, MGL_HTTP_MAX_FLIGHTS);
    ck_assert_int_eq(mgl_http_flights(http), 0);
    close_all();
}
END_TEST

START_TEST(rejects_keys_that_would_end_the_line)
{
    mgl_error err = {0};
    ck_assert_int_eq(mgl_http_open("http://127.0.0.1/", "a\r\nX: b", &http, &err), MGL_USAGE);
    ck_assert_ptr_null(http);
    ck_assert_ptr_null(strstr(err.message, "X:"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http");
    TCase *tests = tcase_create("http");
    mgl_http *probe = NULL;
    mgl_error err = {0};
    if (mgl_http_open("http://127.0.0.1/", NULL, &probe, &err)) {
        printf("skipped: %s: %s\n", err.where, err.message);
        return 77;
    }
    mgl_http_close(probe);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, knows_which_urls_may_be_asked, 0, (int)(sizeof urls / sizeof *urls));
    tcase_add_test(tests, hands_out_an_answer);
    tcase_add_test(tests, sends_no_key_where_there_is_none);
    tcase_add_test(tests, reads_retry_after);
    tcase_add_test(tests, follows_no_redirect);
    tcase_add_test(tests, ends_in_its_time);
    tcase_add_test(tests, takes_no_more_than_its_share);
    tcase_add_test(tests, tells_of_what_breaks_off);
    tcase_add_test(tests, has_several_in_flight);
    tcase_add_test(tests, rejects_keys_that_would_end_the_line);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
