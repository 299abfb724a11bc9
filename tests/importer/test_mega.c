/* Tests of the container of compiled models: written sections are read back. Damage, other
 * versions, another byte order and other files are rejected with specific messages. */
#include "base/file.h"
#include "base/memory.h"
#include "importer/mega.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

static char folder[] = "/tmp/megalith-mega-XXXXXX";
static char path[64];

/* Sections: "first" (hello), "empty", "large" (5,000 bytes, reserved, written in two parts). */
static mgl_status write_file(mgl_error *err)
{
    mgl_mega_writer *writer;
    char part[2500];
    memset(part, 'x', sizeof part);
    mgl_status status = mgl_mega_create(path, &writer, err);
    if (status)
        return status;
    status = mgl_mega_add(writer, "first", "hello", 5, err);
    if (!status)
        status = mgl_mega_add(writer, "empty", "", 0, err);
    if (!status)
        status = mgl_mega_reserve(writer, "large", 5000, err);
    if (!status)
        status = mgl_mega_write(writer, 2500, part, sizeof part, err);
    if (!status)
        status = mgl_mega_write(writer, 0, part, sizeof part, err);
    if (!status)
        return mgl_mega_finish(writer, NULL, err);
    mgl_mega_abandon(writer);
    return status;
}

static void set_up(void)
{
    mgl_error err;
    snprintf(path, sizeof path, "%s/f.mega", folder);
    ok(write_file(&err), err);
}

static void tear_down(void)
{
    unlink(path);
}

/* Opens the file, and reads every section that has a hash. */
static mgl_status read_file(mgl_error *err)
{
    mgl_mega *mega;
    char *bytes;
    size_t length;
    mgl_status status = mgl_mega_open(path, &mega, err);
    if (status)
        return status;
    status = mgl_mega_read(mega, "first", &bytes, &length, err);
    if (!status) {
        ck_assert_str_eq(bytes, "hello");
        mgl_free(bytes);
        status = mgl_mega_read(mega, "empty", &bytes, &length, err);
    }
    if (!status) {
        ck_assert_uint_eq(length, 0);
        mgl_free(bytes);
    }
    mgl_mega_close(mega);
    return status;
}

static void flip(long offset, int bits)
{
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, offset, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(byte ^ bits, file);
    fclose(file);
}

/* Checks that the file is rejected with these words. */
static void refused(const char *words)
{
    mgl_error err = {0};
    ck_assert_int_eq(read_file(&err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, path);
    ck_assert_msg(strstr(err.message, words) != NULL, "says '%s', without '%s'", err.message,
                  words);
}

START_TEST(what_is_written_comes_back)
{
    mgl_error err;
    mgl_mega *mega;
    char part[10];
    ok(read_file(&err), err);
    ok(mgl_mega_open(path, &mega, &err), err);
    const mgl_mega_section *large = mgl_mega_find(mega, "large");
    ck_assert_ptr_nonnull(large);
    ck_assert_uint_eq(large->bytes, 5000);
    ck_assert_uint_eq(large->offset % MGL_MEGA_PAGE, 0);
    ok(mgl_mega_read_part(mega, large, 4990, 10, part, &err), err);
    ck_assert_mem_eq(part, "xxxxxxxxxx", 10);
    ck_assert_int_eq(mgl_mega_read_part(mega, large, 4991, 10, part, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(mgl_mega_find(mega, "fir"));
    mgl_mega_close(mega);
}
END_TEST

START_TEST(the_header_is_as_it_is_drawn)
{
    char *bytes;
    size_t length;
    unsigned char hash[MGL_SHA256_BYTES];
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &bytes, &length, NULL), MGL_OK);
    ck_assert_uint_eq(length, 2 * 4096 + 5000);
    ck_assert_mem_eq(bytes, "\x89MEGA\r\n\x1A\1\0\0\0\x0D\x0C\x0B\x0A", 16);
    ck_assert_mem_eq(bytes + 16, "\x88\x33\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16); /* 0x3388 bytes */
    ck_assert_str_eq(bytes + 32, "first");
    ck_assert_mem_eq(bytes + 32 + 32, "\0\x10\0\0\0\0\0\0\5\0\0\0\0\0\0\0", 16);
    mgl_sha256_of("hello", 5, hash);
    ck_assert_mem_eq(bytes + 32 + 48, hash, sizeof hash);
    mgl_sha256_of(bytes, 4064, hash);
    ck_assert_mem_eq(bytes + 4064, hash, sizeof hash);
    ck_assert_str_eq(bytes + 4096, "hello");
    mgl_free(bytes);
}
END_TEST

START_TEST(any_bit_of_the_header_matters)
{
    unsigned char page[MGL_MEGA_PAGE];
    mgl_mega_table table;
    FILE *file = fopen(path, "rb");
    ck_assert_uint_eq(fread(page, 1, sizeof page, file), sizeof page);
    fclose(file);
    ck_assert_int_eq(mgl_mega_parse(page, sizeof page, 13192, "f", &table, NULL), MGL_OK);
    for (size_t bit = 0; bit < 8 * sizeof page; bit++) {
        page[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_int_eq(mgl_mega_parse(page, sizeof page, 13192, "f", &table, NULL),
                         MGL_BAD_INPUT);
        page[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

START_TEST(any_length_but_its_own_is_rejected)
{
    ck_assert_int_eq(truncate(path, 13193), 0);
    refused("longer than it was");
    for (int length = 13191; length >= 0; length -= length < 4200 ? 7 : 509) {
        ck_assert_int_eq(truncate(path, length), 0);
        refused(length < 8 ? "is not a compiled model" : "is cut off");
    }
}
END_TEST

START_TEST(a_damaged_section_is_rejected)
{
    flip(4096 + 4, 1);
    refused("its section first does not have the hash");
}
END_TEST

START_TEST(bytes_between_sections_are_rejected)
{
    flip(4096 + 5, 0x40);
    refused("there are bytes behind its section first");
}
END_TEST

/* Changes a number in the header and corrects its hash, as another program might. */
static void forge(long offset, unsigned char value)
{
    unsigned char page[MGL_MEGA_PAGE];
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(page, 1, sizeof page, file), sizeof page);
    page[offset] = value;
    mgl_sha256_of(page, 4064, page + 4064);
    fseek(file, 0, SEEK_SET);
    fwrite(page, 1, sizeof page, file);
    fclose(file);
}

static const struct {
    long offset;
    unsigned char value;
    const char *words;
} forgeries[] = {
    {0, 'M', "is not a compiled model"},
    {8, 2, "has version 2 of the format, and this Megalith reads version 1"},
    {16, 0, "longer than it was"},
    {24, 33, "its header makes no sense"},
    {24, 2, "its header makes no sense"}, /* the third entry is unused */
    {28, 1, "its header makes no sense"},
    {32, 0, "section 0 of its header makes no sense"},           /* no name */
    {32 + 20, 'x', "section 0 of its header makes no sense"},    /* nonzero bytes after the name */
    {32 + 32, 1, "section 0 of its header makes no sense"},      /* not page-aligned */
    {32 + 40 + 7, 255, "section 0 of its header makes no sense"} /* longer than the file */
};

START_TEST(another_header_is_rejected)
{
    forge(forgeries[_i].offset, forgeries[_i].value);
    refused(forgeries[_i].words);
}
END_TEST

START_TEST(another_byte_order_is_rejected)
{
    for (int i = 0; i < 4; i++)
        forge(12 + i, (unsigned char)(10 + i));
    refused("other byte order");
}
END_TEST

START_TEST(two_sections_of_a_name_are_rejected)
{
    const char *name = "first";
    for (int i = 0; i < 6; i++)
        forge(32 + 80 + i, (unsigned char)name[i]);
    refused("section 1 of its header makes no sense");
}
END_TEST

START_TEST(a_missing_section_is_told)
{
    mgl_error err;
    mgl_mega *mega;
    char *bytes;
    size_t length;
    ok(mgl_mega_open(path, &mega, &err), err);
    ck_assert_int_eq(mgl_mega_read(mega, "second", &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "its section second is missing"));
    mgl_mega_close(mega);
}
END_TEST

START_TEST(a_section_is_written_once)
{
    mgl_error err;
    mgl_mega_writer *writer;
    char name[8];
    ok(mgl_mega_create(path, &writer, &err), err);
    ok(mgl_mega_add(writer, "a", "", 0, &err), err);
    ck_assert_int_eq(mgl_mega_add(writer, "a", "", 0, &err), MGL_USAGE);
    ck_assert_int_eq(mgl_mega_add(writer, "a name that is longer than a name is", "", 0, &err),
                     MGL_USAGE);
    for (int i = 1; i < MGL_MEGA_SECTIONS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        ok(mgl_mega_add(writer, name, "", 0, &err), err);
    }
    ck_assert_int_eq(mgl_mega_add(writer, "b", "", 0, &err), MGL_USAGE);
    mgl_mega_abandon(writer);
}
END_TEST

static bool stands(const char *file)
{
    bool does;
    mgl_error err;
    ok(mgl_mega_stands(file, &does, &err), err);
    return does;
}

START_TEST(is_known_by_its_name_or_its_bytes)
{
    char other[64], text[64];
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(text, sizeof text, "%s/t.mega", folder);
    ck_assert(stands(path));
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert(stands(other));
    ck_assert(!stands(path));
    ck_assert_int_eq(mkdir(text, 0777), 0);
    ck_assert(!stands(text));
    rmdir(text);
    ck_assert_int_eq(truncate(other, 7), 0);
    ck_assert(!stands(other));
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert(stands(path));
}
END_TEST

START_TEST(every_operation_of_writing_may_fail)
{
    mgl_error err;
    mgl_status status = MGL_SYSTEM;
    for (uint64_t n = 1; status; n++) {
        unlink(path);
        mgl_file_fail_at(n);
        status = write_file(&err);
        mgl_file_fail_at(0);
        if (status == MGL_OK || !access(path, F_OK)) /* the file is complete or missing */
            ok(read_file(&err), err);
    }
}
END_TEST

START_TEST(every_operation_of_reading_may_fail)
{
    mgl_error err;
    mgl_status status = MGL_SYSTEM;
    for (uint64_t n = 1; status; n++) {
        mgl_file_fail_at(n);
        status = read_file(&err);
        mgl_file_fail_at(0);
        ck_assert(status == MGL_OK || status == MGL_SYSTEM);
    }
    status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        mgl_alloc_fail_at(n, false);
        status = read_file(&err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mega");
    TCase *cases = tcase_create("mega");
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, what_is_written_comes_back);
    tcase_add_test(cases, the_header_is_as_it_is_drawn);
    tcase_add_test(cases, any_bit_of_the_header_matters);
    tcase_add_test(cases, any_length_but_its_own_is_rejected);
    tcase_add_test(cases, a_damaged_section_is_rejected);
    tcase_add_test(cases, bytes_between_sections_are_rejected);
    tcase_add_loop_test(cases, another_header_is_rejected, 0,
                        (int)(sizeof forgeries / sizeof *forgeries));
    tcase_add_test(cases, another_byte_order_is_rejected);
    tcase_add_test(cases, two_sections_of_a_name_are_rejected);
    tcase_add_test(cases, a_missing_section_is_told);
    tcase_add_test(cases, a_section_is_written_once);
    tcase_add_test(cases, is_known_by_its_name_or_its_bytes);
    tcase_add_test(cases, every_operation_of_writing_may_fail);
    tcase_add_test(cases, every_operation_of_reading_may_fail);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    rmdir(folder);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
