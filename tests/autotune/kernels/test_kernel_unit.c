/*
 * Tests of kernel units: their regions, the hash of their texts, the tunables in their launch
 * regions, and the contexts of their ops.
 */
#include "autotune/kernels/gates/context.h"
#include "autotune/kernels/gates/launch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plan.h"

static const char text[] = "/* opening */\n"
                           "/* region: launch */\n"
                           "/* need shared: 16 * tile */\n"
                           "/* tunable ahead: 4 2 8 */\n"
                           "/* region: macros */\n"
                           "enum { A = 1 };\n"
                           "/* region: device */\n"
                           "static int f() { return A; }\n"
                           "/* region: end */\n"
                           "#endif\n";

static const mgl_kernel_unit *unit_of(int index)
{
    return mgl_kernel_unit_get(index);
}

/* ---- regions --------------------------------------------------------------------------------- */

START_TEST(a_region_is_found)
{
    mgl_kernel_regions r;
    ck_assert_int_eq(mgl_kernel_regions_find(text, strlen(text), &r, NULL), MGL_OK);
    const size_t first = r.of[MGL_KERNEL_REGION_MACROS].first;
    ck_assert_uint_eq(r.of[MGL_KERNEL_REGION_MACROS].end - first, strlen("enum { A = 1 };\n"));
    ck_assert_int_eq(strncmp(text + first, "enum", 4), 0);
}
END_TEST

START_TEST(every_unit_has_all_regions)
{
    mgl_kernel_regions r;
    size_t length;
    const char *own = mgl_kernel_unit_text(unit_of(_i), &length);
    ck_assert_int_eq(mgl_kernel_regions_find(own, length, &r, NULL), MGL_OK);
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++)
        ck_assert_uint_gt(r.of[i].first, 0);
}
END_TEST

static const char *const bad_marks[] = {
    "no marks at all\n",
    "/* region: device */\nint f();\n",
    "/* region: device */\n/* region: device */\n/* region: end */\n",
    "/* region: host */\n/* region: end */\n",
    "/* region: end */\n",
    "/* region: device */ int x;\n/* region: end */\n",
    "/* region: device */\n/* region: end */\n/* region: macros */\n"};
enum { BAD_MARKS = sizeof bad_marks / sizeof *bad_marks };

START_TEST(bad_marks_are_rejected)
{
    mgl_kernel_regions r;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_kernel_regions_find(bad_marks[_i], strlen(bad_marks[_i]), &r, &err),
                     MGL_BAD_INPUT);
    ck_assert_int_eq(strncmp(err.where, "line ", 5), 0);
}
END_TEST

/* Each byte of the text in turn is changed: a change outside the region is detected. */
START_TEST(any_byte_outside_is_noticed)
{
    mgl_kernel_regions r;
    char changed[sizeof text];
    ck_assert_int_eq(mgl_kernel_regions_find(text, strlen(text), &r, NULL), MGL_OK);
    for (size_t i = 0; i < strlen(text); i++) {
        const bool inside = i >= r.of[_i].first && i < r.of[_i].end;
        memcpy(changed, text, sizeof text);
        changed[i] ^= 1;
        const mgl_status is = mgl_kernel_regions_compare(
            text, strlen(text), changed, strlen(changed), (mgl_kernel_region)_i, NULL);
        if (!inside)
            ck_assert_msg(is == MGL_BAD_INPUT, "byte %zu", i);
    }
}
END_TEST

START_TEST(a_byte_more_or_less_outside_is_noticed)
{
    char changed[sizeof text + 1];
    snprintf(changed, sizeof changed, "%s\n", text);
    ck_assert_int_eq(mgl_kernel_regions_compare(text, strlen(text), changed, strlen(changed),
                                                (mgl_kernel_region)_i, NULL),
                     MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_kernel_regions_compare(text, strlen(text), text, strlen(text) - 1,
                                                (mgl_kernel_region)_i, NULL),
                     MGL_BAD_INPUT);
}
END_TEST

START_TEST(a_region_is_replaced)
{
    mgl_text out = {0};
    ck_assert_int_eq(
        mgl_kernel_region_replace(text, strlen(text), (mgl_kernel_region)_i, "x y", 3, &out, NULL),
        MGL_OK);
    ck_assert_ptr_nonnull(strstr(out.bytes, "x y\n/* region: "));
    ck_assert_int_eq(mgl_kernel_regions_compare(text, strlen(text), out.bytes, out.length,
                                                (mgl_kernel_region)_i, NULL),
                     MGL_OK);
    mgl_text_clear(&out);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

static bool same_hash(const char *a, const char *b)
{
    char first[MGL_SHA256_HEX], second[MGL_SHA256_HEX];
    ck_assert_int_eq(mgl_kernel_hash(a, strlen(a), first, NULL), MGL_OK);
    ck_assert_int_eq(mgl_kernel_hash(b, strlen(b), second, NULL), MGL_OK);
    return !strcmp(first, second);
}

START_TEST(layout_is_no_difference)
{
    ck_assert(same_hash("int f() { return 1; }", "int f()\n{\n    return 1; // one\n}\n"));
}
END_TEST

START_TEST(words_are_a_difference)
{
    ck_assert(!same_hash("int f() { return 1; }", "int f() { return 2; }"));
    ck_assert(!same_hash("a b", "ab"));
    ck_assert(!same_hash("#define A b\nc", "#define A b c"));
}
END_TEST

START_TEST(needs_are_a_difference)
{
    char other[sizeof text];
    memcpy(other, text, sizeof text);
    *strstr(other, "16 *") = '3';
    ck_assert(!same_hash(text, other));
}
END_TEST

/* ---- the launch region ----------------------------------------------------------------------- */

static mgl_status read_launch(const char *lines, mgl_kernel_launch *out, mgl_error *err)
{
    char whole[600];
    snprintf(whole, sizeof whole, "/* region: launch */\n%s\n/* region: end */\n", lines);
    return mgl_kernel_launch_read(whole, strlen(whole), out, err);
}

START_TEST(needs_are_expressions)
{
    mgl_kernel_launch launch;
    mgl_dimensions d = {.of = {0}};
    int64_t chosen[MGL_KERNEL_VALUES] = {0}, value = 0;
    d.of[MGL_DIMENSION_WARPS] = 8;
    ck_assert_int_eq(
        read_launch("/* tunable tile: 4 8 */\n/* need shared: 16 * tile * warps */", &launch, NULL),
        MGL_OK);
    ck_assert_int_eq(mgl_kernel_launch_choose(&launch, NULL, 0, chosen, NULL), MGL_OK);
    ck_assert(mgl_kernel_launch_needs(&launch, MGL_KERNEL_NEED_SHARED, chosen, &d, &value));
    ck_assert_int_eq(value, 512);
}
END_TEST

START_TEST(a_tunable_takes_its_values_alone)
{
    mgl_kernel_launch launch;
    int64_t chosen[MGL_KERNEL_VALUES];
    const mgl_kernel_value eight = {"tile", 8}, five = {"tile", 5};
    ck_assert_int_eq(read_launch("/* tunable tile: 4 8 */", &launch, NULL), MGL_OK);
    ck_assert_int_eq(mgl_kernel_launch_choose(&launch, &eight, 1, chosen, NULL), MGL_OK);
    ck_assert_int_eq(chosen[0], 8);
    ck_assert_int_eq(mgl_kernel_launch_choose(&launch, &five, 1, chosen, NULL), MGL_BAD_INPUT);
}
END_TEST

static const char *const bad_launches[] = {"int x;",
                                           "/* need wishes: 1 */",
                                           "/* need shared: */",
                                           "/* need shared: nobody */",
                                           "/* need shared 1 */",
                                           "/* need shared: 1 */\n/* need shared: 2 */",
                                           "/* tunable TILE: 1 */",
                                           "/* tunable warps: 1 */",
                                           "/* tunable tile: */",
                                           "/* tunable tile: 1 x */",
                                           "/* tunable tile: 1 */\n/* tunable tile: 2 */",
                                           "/* a */ int x; /* b */",
                                           "/* two\n lines */"};
enum { BAD_LAUNCHES = sizeof bad_launches / sizeof *bad_launches };

START_TEST(bad_launches_are_rejected)
{
    mgl_kernel_launch launch;
    mgl_error err = {0};
    ck_assert_int_eq(read_launch(bad_launches[_i], &launch, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(strncmp(err.where, "line ", 5), 0);
}
END_TEST

/* ---- contexts -------------------------------------------------------------------------------- */

START_TEST(every_unit_has_a_context)
{
    mgl_kernel_context c;
    mgl_error err = {0};
    ck_assert_msg(!mgl_kernel_context_read(unit_of(_i), &c, &err), "%s: %s", err.where,
                  err.message);
    ck_assert_int_gt(c.input_count, 0);
    ck_assert_int_gt(c.output_count, 0);
    mgl_kernel_context_clear(&c);
}
END_TEST

/* The minimum and the maximum of each scalar. */
START_TEST(sizes_have_values_at_the_corners)
{
    mgl_kernel_context c;
    ck_assert_int_eq(mgl_kernel_context_read(unit_of(_i), &c, NULL), MGL_OK);
    for (int most = 0; most < 2; most++) {
        int64_t values[MGL_CONTEXT_NAMES], size;
        for (int i = 0; i < c.name_count; i++)
            values[i] = most ? c.names[i].to : c.names[i].from;
        ck_assert(mgl_kernel_context_holds(&c, values));
        ck_assert(mgl_expression_value(&c.bytes, values, &size) && size > 0);
        ck_assert(mgl_expression_value(&c.flops, values, &size) && size > 0);
        for (int i = 0; i < c.output_count; i++)
            ck_assert(mgl_expression_value(&c.outputs[i].size, values, &size) && size > 0);
    }
    mgl_kernel_context_clear(&c);
}
END_TEST

/* The program in which a unit is compiled has tasks that run it: of the unit's variant, if it has
 * one, and of its op's family. */
START_TEST(programs_run_their_units)
{
    mgl_kernel_context c;
    mgl_plan *plan = NULL;
    bool runs = false;
    mgl_error err = {0};
    const mgl_kernel_unit *unit = unit_of(_i);
    ck_assert_int_eq(mgl_kernel_context_read(unit, &c, NULL), MGL_OK);
    const mgl_context_harness *h = mgl_kernel_context_harness(&c, unit);
    const mgl_plan_options options = {.size = sizeof options,
                                      .shape = h->shape,
                                      .target = "sm_90a:132",
                                      .dtype = h->dtype,
                                      .capacity = h->capacity,
                                      .sequences = h->sequences};
    ck_assert_msg(!mgl_plan_lower(&options, &plan, &err), "%s: %s", err.where, err.message);
    for (int i = 0; i < plan->program->task_count; i++) {
        const mgl_task *task = &plan->program->tasks[i];
        runs = runs || (mgl_op_get(task->op)->family == mgl_op_get(unit->op)->family &&
                        (!strchr(unit->name, '.') || task->variant == unit->variant));
    }
    ck_assert_msg(runs, "%s: %s has no such task", unit->name, h->shape);
    mgl_plan_close(plan);
    mgl_kernel_context_clear(&c);
}
END_TEST

static const char *const bad_contexts[] = {
    "{}",
    "{\"schema\": \"megalith.kernel/2\"}",
    "[]",
    "{\"schema\": \"megalith.kernel/1\"}",
    "{\"schema\": \"megalith.kernel/1\", \"meaning\": \"x\", \"scalars\": [{\"name\": \"r\"}]}",
    "{\"schema\": \"megalith.kernel/1\", \"meaning\": \"x\", \"scalars\": [{\"name\": \"r\", "
    "\"from\": 1, \"to\": 2}], \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"init\": "
    "\"normal\", \"size\": \"rows\"}]}"};
enum { BAD_CONTEXTS = sizeof bad_contexts / sizeof *bad_contexts };

START_TEST(bad_contexts_are_rejected)
{
    mgl_kernel_context c;
    ck_assert_int_eq(
        mgl_kernel_context_parse(bad_contexts[_i], strlen(bad_contexts[_i]), "x.json", &c, NULL),
        MGL_BAD_INPUT);
}
END_TEST

int main(void)
{
    const int units = mgl_kernel_unit_count();
    Suite *suite = suite_create("kernel_unit");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_region_is_found);
    tcase_add_loop_test(all, every_unit_has_all_regions, 0, units);
    tcase_add_loop_test(all, bad_marks_are_rejected, 0, BAD_MARKS);
    tcase_add_loop_test(all, any_byte_outside_is_noticed, 0, MGL_KERNEL_REGION_COUNT);
    tcase_add_loop_test(all, a_byte_more_or_less_outside_is_noticed, 0, MGL_KERNEL_REGION_COUNT);
    tcase_add_loop_test(all, a_region_is_replaced, 0, MGL_KERNEL_REGION_COUNT);
    tcase_add_test(all, layout_is_no_difference);
    tcase_add_test(all, words_are_a_difference);
    tcase_add_test(all, needs_are_a_difference);
    tcase_add_test(all, needs_are_expressions);
    tcase_add_test(all, a_tunable_takes_its_values_alone);
    tcase_add_loop_test(all, bad_launches_are_rejected, 0, BAD_LAUNCHES);
    tcase_add_loop_test(all, every_unit_has_a_context, 0, units);
    tcase_add_loop_test(all, sizes_have_values_at_the_corners, 0, units);
    tcase_add_loop_test(all, programs_run_their_units, 0, units);
    tcase_add_loop_test(all, bad_contexts_are_rejected, 0, BAD_CONTEXTS);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed > 0;
}
