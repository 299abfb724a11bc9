/*
 * Tests of hostile templates: each ends with an error, soon, and in little memory. Also tests every
 * failed allocation.
 */
#include "base/memory.h"
#include "importer/chat/jinja.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static mgl_status render_with(const char *template, size_t size, const char *variables, char **out,
                              size_t *length, mgl_error *err)
{
    mgl_jinja *jinja = NULL;
    mgl_json json = {0};
    *out = NULL;
    *err = (mgl_error){0};
    mgl_status status =
        mgl_json_parse_values(variables, strlen(variables), 1 << 20, "vars", &json, err);
    if (!status)
        status = mgl_jinja_parse(template, size, "t", &jinja, err);
    if (!status)
        status = mgl_jinja_render(jinja, json.root, out, length, err);
    mgl_jinja_free(jinja);
    mgl_json_clear(&json);
    return status;
}

static mgl_status render(const char *template, char **out, mgl_error *err)
{
    size_t length;
    return render_with(template, strlen(template), "{\"s\": \"text\", \"xs\": [1, 2, 3]}", out,
                       &length, err);
}

/* ---- what takes too much --------------------------------------------------------------------- */

static const struct hostile {
    const char *template, *says;
} hostile[] = {
    {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "parts within parts"},
    {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
     "parts within parts"},
    {"{% macro m(n) %}{{ m(n + 1) ~ m(n + 1) }}{% endmacro %}{{ m(0) }}", "parts within parts"},
    {"{% macro m(n) %}{% if n %}{{ m(n - 1) ~ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
     "takes more than"},
    {"{% macro m() %}{{ caller() }}{% call m() %}x{% endcall %}{% endmacro %}"
     "{% call m() %}y{% endcall %}",
     "parts within parts"},
    {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
     "takes more than"},
    {"{% for a in range(99999) if false %}{% endfor %}"
     "{% for a in range(99999) for b in range(9) %}{% endfor %}",
     "is expected here"},
    {"{{ 'abcdefgh' * 1000000000 }}", "text grows"},
    {"{{ 'a' * 9223372036854775807 }}", "text grows"},
    {"{{ [0] * 9223372036854775807 }}", ""},
    {"{{ (xs * 100000) * 100000 }}", ""},
    {"{% set ns = namespace(s='0123456789') %}{% for i in range(99) %}"
     "{% set ns.s = ns.s + ns.s %}{% endfor %}",
     "text grows"},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}"
     "{% endfor %}",
     "takes more than"},
    {"{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}"
     "{{ ns.l }}",
     "parts within parts"},
    {"{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}"
     "{{ ns.l|tojson }}",
     "parts within parts"},
    {"{% set ns = namespace(l=[], k=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}"
     "{% set ns.k = [ns.k] %}{% endfor %}{{ ns.l == ns.k }}",
     "parts within parts"},
    {"{% set l = [] %}{% set x = l.append(l) %}{{ l }}", "parts within parts"},
    {"{% set l = [] %}{% set x = l.append(l) %}{{ l|tojson }}", "parts within parts"},
    {"{% set l = [] %}{% set x = l.append(l) %}{% set k = [] %}{% set x = k.append(k) %}"
     "{{ l == k }}",
     "parts within parts"},
    {"{% set l = [1] %}{% for x in l %}{% set y = l.append(x) %}{% endfor %}", "takes more than"},
    {"{% set ns = namespace(t=()) %}{% for i in range(9999) %}{% set ns.t = (ns.t,) %}{% endfor %}"
     "{{ {ns.t: 1} }}",
     "parts within parts"},
    {"{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{{ s.replace('a', 'bb')|length }}"
     "{% endfor %}",
     "takes more than"},
    {"{% set s = 'ab' * 1000000 %}{% for i in range(99999) %}{{ s.find('ba' * 9 ~ 'x') }}"
     "{% endfor %}",
     "takes more than"},
    {"{% set s = 'aé' * 1000000 %}{% for i in range(99999) %}{{ s[i * 9] }}{% endfor %}",
     "takes more than"},
    {"{% set s = 'é' * 1000000 %}{{ s[::-1] }}", "takes more than"},
    {"{% set s = 'a' * 30000000 %}{% for i in range(99999) %}{{ s.split('a')|length }}{% endfor %}",
     ""},
    {"{% set s = ' ' * 1000000 %}{% for i in range(99999) %}{{ (s ~ i).strip() }}{% endfor %}",
     "takes more than"},
    {"{{ '%1000000000d' % 1 }}", "width"},
    {"{{ '%.1000000000f' % 1.0 }}", "width"},
    {"{{ '{:1000000000}'.format(1) }}", "form"},
    {"{{ 'a'.center(999999999999) }}", "text grows"},
    {"{{ 'a'.zfill(999999999999) }}", "text grows"},
    {"{{ 'a'|indent(999999999999) }}", "text grows"},
    {"{{ ('a\n' * 100000)|indent(1000) }}", "text grows"},
    {"{{ [[1]]|tojson(indent=99999999999) }}", "text grows"},
    {"{{ range(9)|batch(99999999999, 1)|list }}", ""},
    {"{{ range(99999)|batch(0)|list|length }}", ""},
    {"{{ 10 ** 1000000000 }}", "64 bits"},
    {"{{ 2 ** 63 }}", "64 bits"},
    {"{{ 9223372036854775807 + 1 }}", "64 bits"},
    {"{{ 100000000000000000000 * 2 }}", "64 bits"},
    {"{{ range(9223372036854775807) }}", "items"},
    {"{{ range(-9223372036854775807, 9223372036854775807) }}", "items"},
    {"{% set ns = namespace(d={}) %}{% for i in range(99999) %}"
     "{% set ns.d = dict(ns.d, **{i|string: i}) %}{% endfor %}",
     ""},
    {"{% for i in range(99999) %}{{ range(99999)|unique|list|length }}{% endfor %}",
     "takes more than"},
    {"{% for i in range(99999) %}{{ i in range(99999) }}{% endfor %}", "takes more than"},
    {"{% set s = 'a' * 10000000 %}{% set d = {s: 1} %}{% for i in range(99999) %}"
     "{% set x = d[s] %}{% endfor %}",
     "takes more than"},
    {"{% set s = 'a' * 9999999 ~ 'b' %}{% set t = 'a' * 9999999 ~ 'c' %}"
     "{% for i in range(99999) %}{% set x = s == t %}{% endfor %}",
     "takes more than"},
    {"{% set s = 'a' * 9999999 %}{% for i in range(99999) %}{% set x = s.removeprefix(s ~ '') ~ "
     "s.removesuffix(s) %}{% endfor %}",
     "takes more than"},
    {"{{ ('a' * 10000000).strip('b' * 1000000 ~ 'a') }}", "takes more than"},
    {"{{ ('a' * 10000000).rsplit('a' * 5000000 ~ 'b') }}", "takes more than"},
    {"{{ ('a' * 10000000).rpartition('a' * 5000000 ~ 'b') }}", "takes more than"},
    {"{% set s = 'a' * 9999999 %}{% for i in range(99999) %}{% set x = s is lower %}{% endfor %}",
     "takes more than"},
    {"{% set s = 'a' * 9999999 %}{% for i in range(99999) %}{% set x = s.isalnum() %}{% endfor %}",
     "takes more than"},
    {"{% set s = 'a' * 9999999 %}{% for i in range(99999) %}{% set x = s|wordcount %}{% endfor %}",
     "takes more than"},
    {"{% set s = 'a' * 9999999 %}{{ s|unique(attribute=s)|list }}", "takes more than"},
    {"{% set s %}{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}{% endset %}",
     "text grows"},
    {"{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", "text grows"},
    {"{{ strftime_now('%c' * 1000000) }}", ""},
    {"{{ s.__class__.__mro__[1].__subclasses__() }}", "not for templates"},
    {"{{ s.upper.__globals__ }}{{ s.upper.__self__.__class__.__base__ }}", "not for templates"},
    {"{{ ''['__class__']['__mro__'] }}", "not for templates"},
    {"{{ (s|attr('__class__')).__mro__ }}", "not for templates"},
    {"{{ xs|map(attribute='__class__.__mro__')|list }}", "not for templates"},
    {"{{ '{0.__class__.__mro__}'.format(s) }}", "not for templates"},
    {"{{ namespace.__init__.__globals__['os'] }}", "not for templates"},
    {"{{ self._TemplateReference__context }}", "undefined"},
    {"{{ cycler.__init__.__globals__ }}", "not for templates"},
    {"{{ xs.clear() }}", "not for templates"},
    {"{{ lipsum() }}", "the function 'lipsum' is not supported"},
};

START_TEST(ends_soon)
{
    const struct hostile *h = &hostile[_i];
    mgl_error err;
    char *text;
    double start = now();
    mgl_status status = render(h->template, &text, &err);
    double seconds = now() - start;
    ck_assert_msg(status == MGL_BAD_INPUT || !*h->says, "%s: status %d", h->template, status);
    ck_assert_msg(!status || strstr(err.message, h->says), "%s: %s", h->template, err.message);
    ck_assert_msg(seconds < 10, "%s: %.1f s", h->template, seconds); /* alone: less than one */
    mgl_free(text);
}
END_TEST

/* Of all earlier tests in this process. */
START_TEST(memory_is_bounded)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    ck_assert_int_lt(usage.ru_maxrss, 1500 * 1024);
}
END_TEST

/* ---- what nests too deeply ------------------------------------------------------------------- */

static const struct nest {
    const char *open, *close;
} nests[] = {
    {"{{ (", ""},
    {"{{ [", ""},
    {"{{ not ", ""},
    {"{{ -", ""},
    {"{{ {1:", ""},
    {"{% if 1 %}", ""},
    {"{% for x in y %}", ""},
    {"{% macro m() %}", ""},
    {"{{ x[", ""},
    {"{{ x(", ""},
    {"{{ x|default(", ""},
    {"{{ x is eq(", ""},
    {"{{ 1 if ", ""},
    {"{% set a %}", ""},
    {"{% filter upper %}", ""},
    {"{% call m() %}", ""},
    {"{{ 1 + ", ""},
    {"{% if 1 %}{% elif 1 %}", ""},
    {"{% for (", ""},
    {"{% with a = ", ""},
};

START_TEST(nests_too_deeply)
{
    enum { TIMES = 20000 };
    const struct nest *n = &nests[_i];
    const char *again = strstr(n->open, "{{ ") == n->open ? n->open + 3 : n->open;
    again = strncmp(n->open, "{% for (", 8) ? again : "(";
    size_t size = strlen(n->open) + TIMES * strlen(again) + 1, length;
    char *template = malloc(size), *text;
    mgl_error err;
    strcpy(template, n->open);
    char *at = template + strlen(template);
    for (int i = 0; i < TIMES; i++, at += strlen(again))
        memcpy(at, again, strlen(again) + 1);
    ck_assert_int_eq(render_with(template, strlen(template), "{}", &text, &length, &err),
                     MGL_BAD_INPUT);
    free(template);
}
END_TEST

/* Long chains are parsed, and rejected if they would recurse too deeply. */
START_TEST(long_chains)
{
    static const char *const links[] = {" + 1",   "|abs",  " ~ 1",        ".a",   "[0]",   "()",
                                        " and 1", " or 0", " is defined", " * 1", " if 1", ", 1"};
    enum { TIMES = 50000 };
    size_t link = strlen(links[_i]), length;
    char *template = malloc(TIMES * link + 10), *text;
    mgl_error err;
    strcpy(template, "{{ 1");
    for (size_t i = 0; i < TIMES; i++)
        memcpy(template + 4 + i * link, links[_i], link + 1);
    strcat(template, " }}");
    double start = now();
    render_with(template, strlen(template), "{}", &text, &length, &err);
    ck_assert(now() - start < 10);
    mgl_free(text);
    free(template);
}
END_TEST

START_TEST(a_template_too_large)
{
    size_t size = MGL_JINJA_CAP + 1, length;
    char *template = malloc(size), *text;
    mgl_error err;
    memset(template, 'x', size);
    ck_assert_int_eq(render_with(template, size, "{}", &text, &length, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "most accepted"));
    ck_assert_int_eq(render_with(template, size - 1, "{}", &text, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, size - 1);
    mgl_free(text);
    for (size_t i = 0; i + 7 <= size; i += 7)
        memcpy(template + i, "{{a~1}}", 7);
    render_with(template, size - 1, "{}", &text, &length, &err);
    mgl_free(text);
    for (size_t i = 0; i < size; i++)
        template[i] = "{}[](),:.|~+-*/%<>=!'\"#_a1 \n"[rand() % 28];
    ck_assert_int_eq(render_with(template, size - 1, "{}", &text, &length, &err), MGL_BAD_INPUT);
    free(template);
}
END_TEST

/* ---- errors point ---------------------------------------------------------------------------- */

static const struct pointed {
    const char *template, *where, *message;
} pointed[] = {
    {"a\n  {{ x.y.z }}", "t:2:6", "'dict' has no attribute or item 'y'\n  {{ x.y.z }}\n     ^~~~~"},
    {"{% include 'a' %}", "t:1:4",
     "the statement 'include' is not supported: a chat template cannot refer to other templates\n"
     "{% include 'a' %}\n   ^~~~~~~"},
    {"{{ 'é' + 1 }}", "t:1:4",
     "'+' is not for values of types 'str' and 'int'\n{{ 'é' + 1 }}\n   ^~~~~~~"},
    {"{{ x | nope }}", "t:1:8", "the filter 'nope' is not supported\n{{ x | nope }}\n       ^~~~"},
    {"{{ x is nope }}", "t:1:9", "the test 'nope' is not supported\n{{ x is nope }}\n        ^~~~"},
    {"\n\n{{ raise_exception('Only users') }}", "t:3:4",
     "the template rejects this conversation: Only users\n{{ raise_exception('Only users') }}"},
    {"{% for a in b recursive %}", "t:1:15", "recursive loops are not known; use a macro"},
    {"{% if x %}\nyes", "t:2:4", "the template ends within a block: 'endif' is missing"},
    {"{% foo %}", "t:1:4", "the statement 'foo' is not supported\n{% foo %}\n   ^~~"},
    {"{% if x %}{% endfor %}", "t:1:14",
     "the statement 'endfor' is not supported; a block waits for its 'endif'"},
    {"{{ x", "t:1:1", "this has no end: '}}' is missing\n{{ x\n^~"},
    {"{{ 'x }}", "t:1:4", "this string has no end"},
    {"{% set 1 = 2 %}", "t:1:8", "a name to assign to is expected here, not '1'"},
    {"{{ 1 + }}", "t:1:8", "an expression is expected here, not '}}'"},
    {"{{ x|join(foo=1) }}", "t:1:6", "the filter 'join' has no parameter 'foo'"},
    {"{{ 'a'.split(1, 2, 3) }}", "t:1:4", "the method 'split' takes 2 arguments at most, not 3"},
    {"\xff", "t:1:1", "a byte that is not UTF-8"},
};

START_TEST(errors_point)
{
    const struct pointed *p = &pointed[_i];
    mgl_error err;
    char *text;
    size_t length;
    mgl_status status =
        render_with(p->template, strlen(p->template), "{\"x\": {\"a\": 1}}", &text, &length, &err);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, p->where);
    ck_assert_msg(!strncmp(err.message, p->message, strlen(p->message)), "%s", err.message);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(every_allocation_fails_once)
{
    static const char template[] =
        "{% macro m(a, b=2) %}{{ a ~ b }}{{ caller() if caller }}{% endmacro %}"
        "{% set ns = namespace(l=[]) %}{% for x in xs if x > 1 %}{{ loop.nextitem }}"
        "{% set ns.l = ns.l + [x] %}{% endfor %}{% set t %}{{ 'x' * 20000 }}{% endset %}"
        "{% call m(1) %}{{ t[:5]|upper }}{% endcall %}{{ {'a': [1, 'b']}|tojson(indent=2) }}"
        "{{ ' a b '.split()|map('upper')|sort|join(',') }}{{ '%5s' % s }}{{ t|length }}";
    mgl_status status = MGL_NO_MEMORY;
    uint64_t n = 1;
    for (; status; n++) {
        mgl_error err;
        char *text;
        ck_assert_uint_lt(n, 1000);
        mgl_alloc_fail_at(n, false);
        status = render(template, &text, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert_msg(status == MGL_OK || status == MGL_NO_MEMORY, "allocation %d: status %d: %s",
                      (int)n, status, err.message);
        mgl_free(text);
    }
    ck_assert_uint_gt(n, 15);
}
END_TEST

#define COUNT(array) (int)(sizeof array / sizeof *array)

int main(void)
{
    Suite *suite = suite_create("hostile");
    TCase *tests = tcase_create("hostile");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, ends_soon, 0, COUNT(hostile));
    tcase_add_test(tests, memory_is_bounded);
    tcase_add_loop_test(tests, nests_too_deeply, 0, COUNT(nests));
    tcase_add_loop_test(tests, long_chains, 0, 12);
    tcase_add_test(tests, a_template_too_large);
    tcase_add_loop_test(tests, errors_point, 0, COUNT(pointed));
    tcase_add_test(tests, every_allocation_fails_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
