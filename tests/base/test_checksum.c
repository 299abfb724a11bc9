/* Tests of the checksum: it equals a byte-by-byte implementation of its formula, and detects
 * damage. */
#include "base/checksum.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t factor = 0x9E3779B97F4A7C15;

static uint64_t step(uint64_t hash, uint64_t word)
{
    uint64_t product = (hash ^ word) * factor;
    return product << 29 | product >> 35;
}

/* The formula of checksum.h, byte by byte. */
static uint64_t checksum_of(const unsigned char *bytes, size_t length)
{
    uint64_t lanes[4] = {1, 2, 3, 4}, sum = length;
    size_t words = (length + 31) / 32 * 4;
    for (size_t w = 0; w < words; w++) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8; i++)
            if (8 * w + i < length)
                word |= (uint64_t)bytes[8 * w + i] << (8 * i);
        lanes[w % 4] = step(lanes[w % 4], word);
    }
    for (int i = 0; i < 4; i++)
        sum = step(sum, lanes[i]);
    return (sum ^ sum >> 32) * factor;
}

static void fill(unsigned char *bytes, size_t length)
{
    uint32_t state = 1;
    for (size_t i = 0; i < length; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
}

START_TEST(is_what_its_formula_says)
{
    unsigned char bytes[300];
    fill(bytes, sizeof bytes);
    for (size_t length = 0; length <= sizeof bytes; length++)
        ck_assert_uint_eq(mgl_checksum(bytes, length), checksum_of(bytes, length));
}
END_TEST

/* Files contain checksums, so the values must never change. */
START_TEST(stays_as_it_is)
{
    ck_assert_uint_eq(mgl_checksum("", 0), 0x58C8BD819690D4C6);
    ck_assert_uint_eq(mgl_checksum("abc", 3), 0xB05BD8580FE4C3BA);
}
END_TEST

START_TEST(sees_every_flipped_bit)
{
    unsigned char bytes[500];
    fill(bytes, sizeof bytes);
    uint64_t sum = mgl_checksum(bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_uint_ne(mgl_checksum(bytes, sizeof bytes), sum);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

/* Swapped words, within a lane and between lanes. */
START_TEST(sees_words_that_change_places)
{
    uint64_t words[64];
    fill((unsigned char *)words, sizeof words);
    uint64_t sum = mgl_checksum(words, sizeof words);
    for (int i = 1; i < 64; i++) {
        uint64_t first = words[0];
        words[0] = words[i];
        words[i] = first;
        ck_assert_uint_ne(mgl_checksum(words, sizeof words), sum);
        words[i] = words[0];
        words[0] = first;
    }
}
END_TEST

START_TEST(sees_zeros_that_are_missing)
{
    char zeros[100] = {0};
    for (size_t length = 1; length <= sizeof zeros; length++)
        ck_assert_uint_ne(mgl_checksum(zeros, length), mgl_checksum(zeros, length - 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checksum");
    TCase *cases = tcase_create("checksum");
    tcase_add_test(cases, is_what_its_formula_says);
    tcase_add_test(cases, stays_as_it_is);
    tcase_add_test(cases, sees_every_flipped_bit);
    tcase_add_test(cases, sees_words_that_change_places);
    tcase_add_test(cases, sees_zeros_that_are_missing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
