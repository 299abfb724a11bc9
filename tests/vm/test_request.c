/*
 * Tests of the request code that the machines share: the progress of reading prompts is reported in
 * order, and its end once.
 */
#include "fixture.h"

#include "schedule/step.h"

enum { SEQUENCES = 2 };

static int32_t sequences[SEQUENCES * MGL_SEQUENCE_WORDS];
static const mgl_vm_sequence asked[SEQUENCES] = {{.prompt_count = 7},
                                                 {.prompt_count = 5, .start = 3}};

/* The last progress call, and the number of calls. */
static struct {
    uint64_t done, total;
    int calls;
} heard;

static void hear(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    ck_assert_ptr_eq(user, &heard);
    ck_assert_int_eq(stage, MGL_STAGE_PROMPT);
    heard.done = done;
    heard.total = total;
    heard.calls++;
}

/* The sequence buffer when this number of positions are in the cache. */
static void reach(int32_t first, int32_t second)
{
    int32_t lengths[SEQUENCES] = {first, second};
    for (int s = 0; s < SEQUENCES; s++) {
        sequences[s * MGL_SEQUENCE_WORDS + MGL_SEQUENCE_PROMPT] =
            asked[s].start + asked[s].prompt_count;
        sequences[s * MGL_SEQUENCE_WORDS + MGL_SEQUENCE_LENGTH] = lengths[s];
    }
}

START_TEST(tokens_of_all_prompts_are_told)
{
    mgl_vm_request request = {
        .sequences = asked, .count = SEQUENCES, .on_stage = hear, .stage_user = &heard};
    uint64_t told = 0;
    heard.calls = 0;
    reach(0, 3); /* three of the second were in the cache before */
    mgl_vm_tell_prompt(&request, sequences, &told);
    ck_assert_int_eq(heard.calls, 0);
    reach(4, 5);
    mgl_vm_tell_prompt(&request, sequences, &told);
    ck_assert_uint_eq(heard.done, 6);
    ck_assert_uint_eq(heard.total, 12);
}
END_TEST

START_TEST(the_end_of_the_prompts_is_told_once)
{
    mgl_vm_request request = {
        .sequences = asked, .count = SEQUENCES, .on_stage = hear, .stage_user = &heard};
    uint64_t told = 0;
    heard.calls = 0;
    for (int32_t i = 0; i < 4; i++) { /* the replies continue */
        reach(7 + i, 8 + i);
        mgl_vm_tell_prompt(&request, sequences, &told);
    }
    ck_assert_int_eq(heard.calls, 1);
    ck_assert_uint_eq(heard.done, heard.total);
}
END_TEST

START_TEST(nobody_has_to_listen)
{
    mgl_vm_request request = {.sequences = asked, .count = SEQUENCES};
    uint64_t told = 0;
    reach(7, 8);
    mgl_vm_tell_prompt(&request, sequences, &told);
    ck_assert_uint_eq(told, 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("request");
    tcase_add_test(tests, tokens_of_all_prompts_are_told);
    tcase_add_test(tests, the_end_of_the_prompts_is_told_once);
    tcase_add_test(tests, nobody_has_to_listen);
    return fixture_main("request", tests);
}
