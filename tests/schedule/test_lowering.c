/*
 * Tests of the version of lowering: its output for a few models must match the newest row of
 * schedule/lower/lowering.h. Otherwise an entry of schedule/tuned would be replayed on programs
 * other than those measured.
 */
#include "lowering.h"

#include "schedule/digest.h"
#include "schedule/lower/lowering.h"
#include "schedule/moves/moves.h"

#define X(digest) digest,
static const char *const rows[] = {MGL_LOWERINGS(X)};
#undef X

/* Four layers of an 8B model, whose ffn is too wide for some rows of a single list. */
static const shape wide = {{4096, 4, 32, 8, 128, 14336, 1000, 1e-5F}, false};

/* The cases, lowered with the default config. */
static const struct {
    const shape *of;
    const char *target;
    mgl_lower_options options;
} cases[] = {
    {&even, "cpu:1", {.dtype = MGL_F32, .capacity = 64, .sequences = 1}},
    {&even, "sm_90a:4", {.dtype = MGL_BF16, .capacity = 4096, .sequences = 2}},
    {&billion, "sm_90a:132", {.dtype = MGL_BF16, .capacity = 256, .sequences = 1}},
    {&billion, "sm_90a:132", {.dtype = MGL_BF16, .capacity = 4096, .sequences = 8}},
    {&billion, "sm_80:108", {.dtype = MGL_F16, .capacity = 4096, .sequences = 1}},
    {&billion, "cpu:1", {.dtype = MGL_F32, .capacity = 4096, .sequences = 1}},
    {&wide, "sm_90a:132", {.dtype = MGL_BF16, .capacity = 4096, .sequences = 8}},
    {&wide, "sm_90a:132", {.dtype = MGL_BF16, .capacity = 4096, .sequences = 16}},
    {&billion, "sm_90a:132", {.dtype = MGL_BF16, .capacity = 4096, .sequences = 1, .prompt = 2048}},
};

/* Adds the digest of a case. */
static void add(mgl_sha256 *hash, size_t i)
{
    mgl_error err = {0};
    mgl_program *program = NULL;
    mgl_schedule_config config;
    unsigned char digest[MGL_SHA256_BYTES];
    mgl_graph *graph = graph_of(cases[i].of);
    mgl_target target = target_of(cases[i].target);
    mgl_schedule_config_default(&config);
    mgl_status status =
        mgl_schedule_lower(graph, &target, &cases[i].options, &config, &program, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    ck_assert_int_eq(mgl_program_digest(program, digest, NULL), MGL_OK);
    mgl_sha256_add(hash, digest, sizeof digest);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

START_TEST(lowering_is_that_of_its_version)
{
    mgl_sha256 hash;
    unsigned char digest[MGL_SHA256_BYTES];
    char digits[MGL_SHA256_HEX];
    mgl_sha256_start(&hash);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        add(&hash, i);
    mgl_sha256_end(&hash, digest);
    mgl_sha256_hex(digest, digits);
    ck_assert_msg(!strcmp(digits, rows[MGL_LOWERING_VERSION - 1]),
                  "lowering makes other programs than version %d did; add a row behind the last of "
                  "schedule/lower/lowering.h, which makes it version %d: X(\"%s\")",
                  MGL_LOWERING_VERSION, MGL_LOWERING_VERSION + 1, digits);
}
END_TEST

START_TEST(the_version_is_the_number_of_rows)
{
    ck_assert_uint_eq(MGL_LOWERING_VERSION, sizeof rows / sizeof *rows);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lowering");
    TCase *unit = tcase_create("version");
    tcase_set_timeout(unit, 60);
    tcase_add_test(unit, lowering_is_that_of_its_version);
    tcase_add_test(unit, the_version_is_the_number_of_rows);
    suite_add_tcase(suite, unit);
    return run_suite(suite);
}
