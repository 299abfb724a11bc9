/*
 * megalith kernel guard selftest: plants known violations and checks that the gates before the
 * compiler, and the scan of the compiled code, reject each one. Exit code 6 if a violation is
 * accepted.
 */
#include "cli/kernel/kernel.h"

#include "autotune/kernels/gates/guard.h"
#include "base/memory.h"

#define SELFTEST_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SELFTEST_OPTIONS)

static void put_test(const mgl_guard_test *test)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_bool(&out, "holds", test->missed == 0);
    mgl_json_out_int(&out, "tricks", test->tricks);
    mgl_json_out_int(&out, "units", test->units);
    mgl_json_out_int(&out, "ptx_tricks", test->ptx_tricks);
    mgl_json_out_int(&out, "ptx_modules", test->ptx_modules);
    mgl_json_out_int(&out, "missed", test->missed);
    mgl_json_out_array(&out, "misses");
    for (int i = 0; i < test->missed && i < MGL_GUARD_MISSES; i++) {
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "name", test->misses[i].name);
        mgl_json_out_string(&out, "got", test->misses[i].got);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_cli_end_json(&out);
}

static void print_test(const mgl_guard_test *test)
{
    for (int i = 0; i < test->missed && i < MGL_GUARD_MISSES; i++)
        mgl_cli_printf("MISSED %s: %s\n", test->misses[i].name, test->misses[i].got);
    mgl_cli_printf("planted %d tricks and scanned %d original units; planted %d tricks in PTX and "
                   "scanned %d clean modules: ",
                   test->tricks, test->units, test->ptx_tricks, test->ptx_modules);
    if (test->missed)
        mgl_cli_printf("%d missed, the guard fails\n", test->missed);
    else
        mgl_cli_put("the guard passes\n");
}

static mgl_status selftest(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_guard_test *test = mgl_alloc_zero(1, sizeof *test);
    (void)operand;
    mgl_status status = test ? mgl_guard_selftest(test, err) : mgl_fail_memory(err, sizeof *test);
    if (!status && test->missed)
        mgl_cli_end_with((int)MGL_GATE);
    if (!status && o->json.given)
        put_test(test);
    else if (!status)
        print_test(test);
    mgl_free(test);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_guard_selftest_verb = {
    .name = "kernel guard selftest",
    .summary = "plants known tricks and checks that each is rejected; exits with 6 if one is not",
    .example = "  megalith kernel guard selftest",
    MGL_CLI_VERB_OPTIONS,
    .run = selftest,
};
