/*
 * Tests of the overlay of promoted kernels: the compiler uses the overlay's text instead of the
 * built-in one and changes nothing else. Files modified by others are rejected.
 */
#include "autotune/kernels/gates/overlay.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/plan.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/scratch.h"
#include "vm/cuda/canonical.h"
#include "vm/cuda/cuda.h"

static char folder[] = MGL_BINARY_DIR "/overlay-XXXXXX";
static char overlay_path[200];
static mgl_plan *plan;

/* The text of merge with one changed declaration and a comment. */
static char *other_text(const char *comment)
{
    size_t length;
    mgl_text out = {0};
    const char *own = mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length);
    const char *at = strstr(own, "float mean[4];");
    ck_assert_ptr_nonnull(at);
    mgl_text_append(&out, own, (size_t)(at - own));
    mgl_text_put(&out, comment);
    mgl_text_put(&out, at);
    return out.bytes;
}

static mgl_status put(const char *name, const char *comment, mgl_error *err)
{
    char *text = other_text(comment);
    mgl_status status =
        mgl_overlay_put(overlay_path, mgl_kernel_unit_find(name), text, "{\"gain\": 0.05}", err);
    mgl_free(text);
    return status;
}

static void put_merge(void)
{
    mgl_error err = {0};
    ck_assert_msg(!put("merge", "const int more = 1;\n    (void)more;\n    ", &err), "%s",
                  err.message);
}

static void get_key(char key[MGL_SHA256_HEX])
{
    mgl_cuda_kernel_key(plan->program, "sm_90a", 0, key);
}

static void set_up(void)
{
    snprintf(overlay_path, sizeof overlay_path, "%s/XXXXXX", folder);
    scratch_make(overlay_path);
}

/* The text stored in the overlay's folder. */
static void text_path(char path[PATH_MAX])
{
    mgl_file_list list;
    ck_assert_int_eq(mgl_folder_list(overlay_path, ".cuh", &list, NULL), MGL_OK);
    ck_assert_uint_eq(list.count, 1);
    snprintf(path, PATH_MAX, "%s/%s", overlay_path, list.names[0]);
    mgl_file_list_clear(&list);
}

START_TEST(without_a_folder_nothing_changes)
{
    mgl_overlay o;
    char before[MGL_SHA256_HEX], after[MGL_SHA256_HEX];
    get_key(before);
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(mgl_overlay_use(&o, NULL), MGL_OK);
    get_key(after);
    ck_assert_str_eq(before, after);
    mgl_overlay_clear(&o);
}
END_TEST

START_TEST(a_kernel_has_the_text_in_its_key)
{
    mgl_overlay o;
    char before[MGL_SHA256_HEX], after[MGL_SHA256_HEX], again[MGL_SHA256_HEX];
    get_key(before);
    put_merge();
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(o.source_count, 1);
    ck_assert_int_eq(mgl_overlay_use(&o, NULL), MGL_OK);
    get_key(after);
    ck_assert_int_eq(mgl_overlay_use(NULL, NULL), MGL_OK);
    get_key(again);
    ck_assert_str_ne(before, after);
    ck_assert_str_eq(before, again);
    mgl_overlay_clear(&o);
}
END_TEST

/* A text with values of tunables around it, as mgl_trial_text makes it. The scan ignores these
 * values, but nothing else outside the regions. */
START_TEST(a_text_with_tunables_is_kept)
{
    static const char tunable[] = "/* region: launch */\n", shows[] = "float mean[4];";
    static const struct {
        const char *front, *behind;
        mgl_status status;
    } cases[] = {
        {"#define TUNE_TILE 4\n", "#undef TUNE_TILE\n", MGL_OK},
        {"#define TUNE_TILE -4\n#define TUNE_B2 1\n", "#undef TUNE_TILE\n#undef TUNE_B2\n", MGL_OK},
        {"#define TUNE_TILE MGL_ROWS\n", "", MGL_BAD_INPUT},
        {"#define TUNE_TILE 4 + clock()\n", "", MGL_BAD_INPUT},
        {"", "#undef MGL_ROWS\n", MGL_BAD_INPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *own = other_text("const int more = TUNE_TILE;\n    (void)more;\n    ");
        const char *at = strstr(own, tunable);
        mgl_text text = {0};
        mgl_error err = {0};
        ck_assert(at && strstr(own, shows));
        mgl_text_put(&text, cases[i].front);
        mgl_text_append(&text, own, (size_t)(at - own) + strlen(tunable));
        mgl_text_put(&text, "/* tunable tile: 4 8 */\n");
        mgl_text_put(&text, at + strlen(tunable));
        mgl_text_put(&text, cases[i].behind);
        ck_assert_msg(mgl_overlay_put(overlay_path, mgl_kernel_unit_find("merge"), text.bytes, NULL,
                                      &err) == cases[i].status,
                      "%zu: %s", i, err.message);
        mgl_text_clear(&text);
        mgl_free(own);
    }
}
END_TEST

/* Programs of kinds that the gates did not check are compiled with the built-in text. */
START_TEST(other_programs_take_no_texts)
{
    mgl_overlay o;
    mgl_plan *normed = NULL;
    char before[MGL_SHA256_HEX], after[MGL_SHA256_HEX];
    const mgl_plan_options options = {.size = sizeof options,
                                      .shape = "qwen3-0.6b", /* has norms of q and k */
                                      .target = "sm_90a:132",
                                      .capacity = 256};
    ck_assert_int_eq(mgl_plan_lower(&options, &normed, NULL), MGL_OK);
    ck_assert(mgl_cuda_takes_sources(plan->program));
    ck_assert(!mgl_cuda_takes_sources(normed->program));
    mgl_cuda_kernel_key(normed->program, "sm_90a", 0, before);
    put_merge();
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(mgl_overlay_use(&o, NULL), MGL_OK);
    mgl_cuda_kernel_key(normed->program, "sm_90a", 0, after);
    ck_assert_int_eq(mgl_overlay_use(NULL, NULL), MGL_OK);
    ck_assert_str_eq(before, after);
    mgl_overlay_clear(&o);
    mgl_plan_close(normed);
}
END_TEST

START_TEST(evidence_is_kept)
{
    mgl_overlay o;
    put_merge();
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_ptr_nonnull(strstr(o.entries[0].evidence, "0.05"));
    mgl_overlay_clear(&o);
}
END_TEST

START_TEST(a_second_text_replaces_the_first)
{
    mgl_overlay o;
    put_merge();
    ck_assert_int_eq(put("merge", "const int less = 2;\n    (void)less;\n    ", NULL), MGL_OK);
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(o.count, 1);
    ck_assert_ptr_nonnull(strstr(o.entries[0].bytes, "less"));
    mgl_overlay_clear(&o);
}
END_TEST

/* Promotes three texts, then restores them in reverse order, each with its evidence, down to the
 * built-in text. */
START_TEST(what_was_there_before_comes_back)
{
    mgl_overlay o;
    bool restored;
    const mgl_kernel_unit *merge = mgl_kernel_unit_find("merge");
    static const char *const names[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++) {
        char comment[80];
        snprintf(comment, sizeof comment, "const int %s = 1;\n    (void)%s;\n    ", names[i],
                 names[i]);
        ck_assert_int_eq(put("merge", comment, NULL), MGL_OK);
    }
    for (int i = 1; i >= 0; i--) {
        ck_assert_int_eq(mgl_overlay_roll_back(overlay_path, merge, &restored, NULL), MGL_OK);
        ck_assert(restored);
        ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
        ck_assert_int_eq(o.source_count, 1);
        ck_assert_ptr_nonnull(strstr(o.entries[0].bytes, names[i]));
        ck_assert_ptr_nonnull(strstr(o.entries[0].evidence, "0.05"));
        mgl_overlay_clear(&o);
    }
    ck_assert_int_eq(mgl_overlay_roll_back(overlay_path, merge, &restored, NULL), MGL_OK);
    ck_assert(!restored);
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(o.count, 0);
    ck_assert_int_eq(mgl_overlay_roll_back(overlay_path, merge, &restored, NULL), MGL_BAD_INPUT);
    mgl_overlay_clear(&o);
}
END_TEST

START_TEST(a_changed_text_is_rejected)
{
    mgl_overlay o;
    char path[PATH_MAX];
    mgl_error err = {0};
    put_merge();
    text_path(path);
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs("// more\n", file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "was changed"));
}
END_TEST

START_TEST(what_the_scan_rejects_is_not_put_there)
{
    mgl_overlay o;
    mgl_error err = {0};
    ck_assert_int_eq(put("merge", "clock64();\n    ", &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "clock64"));
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(o.count, 0);
}
END_TEST

/* Replaces the first digits of the base hash in the manifest of merge. Returns the number of texts
 * still used. */
static int count_with_base(const char *digits)
{
    char path[PATH_MAX], *text;
    size_t length;
    mgl_overlay o;
    put_merge();
    snprintf(path, sizeof path, "%s/manifest.json", overlay_path);
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &text, &length, NULL), MGL_OK);
    char *base = strstr(text, "\"base\":\"") + strlen("\"base\":\"");
    memcpy(base, digits, strlen(digits));
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    mgl_free(text);
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_OK);
    ck_assert_int_eq(o.count, 1);
    const int count = o.source_count;
    mgl_overlay_clear(&o);
    return count;
}

/* The manifest contains the base hash; a text with another base hash is not used. */
START_TEST(a_text_of_another_base_is_left_out)
{
    ck_assert_int_eq(count_with_base("0123456789abcdef"), 0);
}
END_TEST

/* The base hash is that of the canonical text; older folders have the hash of the bytes. */
START_TEST(both_hashes_of_the_base_count)
{
    size_t length;
    char hex[MGL_SHA256_HEX];
    unsigned char bytes[MGL_SHA256_BYTES];
    const char *own = mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length);
    const mgl_cuda_source source = {"", (const unsigned char *)own};
    mgl_cuda_source_digest(&source, bytes);
    mgl_sha256_hex(bytes, hex);
    ck_assert_int_eq(count_with_base(""), 1);
    ck_assert_int_eq(count_with_base(hex), 1);
    mgl_sha256_of(own, length, bytes);
    mgl_sha256_hex(bytes, hex);
    ck_assert_int_eq(count_with_base(hex), 1);
}
END_TEST

static const char *const bad_manifests[] = {
    "",
    "[]",
    "{}",
    "{\"schema\": \"megalith.overlay/2\", \"units\": []}",
    "{\"schema\": \"megalith.overlay/1\"}",
    "{\"schema\": \"megalith.overlay/1\", \"units\": [{\"unit\": \"gemm\", \"base\": \"\", "
    "\"text\": \"\"}]}",
    "{\"schema\": \"megalith.overlay/1\", \"units\": [{\"unit\": \"merge\", \"base\": \"x\", "
    "\"text\": \"../../../etc/passwd\"}]}"};
enum { BAD_MANIFESTS = sizeof bad_manifests / sizeof *bad_manifests };

START_TEST(bad_manifests_are_rejected)
{
    char path[PATH_MAX];
    mgl_overlay o;
    ck_assert_int_eq(mgl_folder_make(overlay_path, 0777, NULL), MGL_OK);
    snprintf(path, sizeof path, "%s/manifest.json", overlay_path);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(bad_manifests[_i], file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(mgl_overlay_read(overlay_path, &o, NULL), MGL_BAD_INPUT);
}
END_TEST

START_TEST(names_that_are_no_source_are_rejected)
{
    const mgl_cuda_source none = {"nobody.cuh", (const unsigned char *)""};
    ck_assert_int_eq(mgl_cuda_override_sources(&none, 1, NULL), MGL_USAGE);
    ck_assert_int_eq(mgl_cuda_override_sources(NULL, 0, NULL), MGL_OK);
}
END_TEST

int main(void)
{
    const mgl_plan_options options = {.size = sizeof options,
                                      .shape = "smollm2-135m",
                                      .target = "sm_90a:132",
                                      .dtype = "bf16",
                                      .capacity = 256};
    if (!mkdtemp(folder) || mgl_plan_lower(&options, &plan, NULL))
        return 1;
    Suite *suite = suite_create("kernel_overlay");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, NULL);
    tcase_add_test(all, without_a_folder_nothing_changes);
    tcase_add_test(all, a_kernel_has_the_text_in_its_key);
    tcase_add_test(all, a_text_with_tunables_is_kept);
    tcase_add_test(all, other_programs_take_no_texts);
    tcase_add_test(all, evidence_is_kept);
    tcase_add_test(all, a_second_text_replaces_the_first);
    tcase_add_test(all, what_was_there_before_comes_back);
    tcase_add_test(all, a_changed_text_is_rejected);
    tcase_add_test(all, what_the_scan_rejects_is_not_put_there);
    tcase_add_test(all, a_text_of_another_base_is_left_out);
    tcase_add_test(all, both_hashes_of_the_base_count);
    tcase_add_loop_test(all, bad_manifests_are_rejected, 0, BAD_MANIFESTS);
    tcase_add_test(all, names_that_are_no_source_are_rejected);
    suite_add_tcase(suite, all);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    mgl_plan_close(plan);
    return failed > 0;
}
