/* Tests of reading and mapping whole files: size limits, special files, files that shrink while
 * mapped, and every operation failing once. */
#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* a jump out of ThreadSanitizer's memcpy is not possible */
#if defined(__SANITIZE_THREAD__)
enum { CAN_JUMP = 0 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { CAN_JUMP = 0 };
#else
enum { CAN_JUMP = 1 };
#endif
#else
enum { CAN_JUMP = 1 };
#endif

enum { SIZE = 40000 }; /* some pages and a part of one */

static char folder[] = "/tmp/megalith-file-XXXXXX";
static char path[64];

static void write_file(size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < size; i++)
        fputc((int)(i % 251 + 1), file);
    fclose(file);
}

static void set_up(void)
{
    snprintf(path, sizeof path, "%s/f", folder);
    write_file(SIZE);
}

static void tear_down(void)
{
    unlink(path);
}

START_TEST(test_read_whole)
{
    char *bytes;
    size_t length;
    mgl_error err;
    ck_assert_int_eq(mgl_file_read(path, SIZE, &bytes, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, SIZE);
    ck_assert_int_eq((unsigned char)bytes[SIZE - 1], (SIZE - 1) % 251 + 1);
    ck_assert_int_eq(bytes[SIZE], 0);
    mgl_free(bytes);
    ck_assert_int_eq(mgl_file_read(path, SIZE - 1, &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "larger than 39999 bytes"));
    write_file(0);
    ck_assert_int_eq(mgl_file_read(path, 0, &bytes, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, 0);
    ck_assert_int_eq(bytes[0], 0);
    mgl_free(bytes);
}
END_TEST

START_TEST(test_a_long_pipe_is_not_read_to_its_end)
{
    int ends[2];
    char name[64], *bytes, block[1000] = {1};
    size_t length;
    bool fits;
    mgl_error err;
    ck_assert_int_eq(pipe(ends), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(write(ends[1], block, sizeof block), (int)sizeof block);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    ck_assert_int_eq(mgl_file_read_fitting(name, 5000, &bytes, &length, &fits, &err),
                     MGL_BAD_INPUT);
    ck_assert(!fits);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(test_that_none_stands_is_no_matter_of_size)
{
    char *bytes;
    size_t length;
    bool fits;
    mgl_error err;
    ck_assert_int_eq(mgl_file_read_fitting("/nowhere", SIZE, &bytes, &length, &fits, &err),
                     MGL_BAD_INPUT);
    ck_assert(fits);
}
END_TEST

START_TEST(test_read_pipe)
{
    int ends[2];
    char name[64], *bytes, block[1000] = {1};
    size_t length;
    mgl_error err;
    ck_assert_int_eq(pipe(ends), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(write(ends[1], block, sizeof block), (int)sizeof block);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    ck_assert_int_eq(mgl_file_read(name, SIZE, &bytes, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, 10 * sizeof block);
    mgl_free(bytes);
    close(ends[0]);
}
END_TEST

START_TEST(test_no_file)
{
    char *bytes, name[80];
    size_t length;
    bool stands;
    mgl_map *map;
    mgl_error err;
    snprintf(name, sizeof name, "%s/none", folder);
    ck_assert_int_eq(mgl_file_read(name, SIZE, &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, name);
    ck_assert_int_eq(mgl_map_open(name, &map, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_file_read(folder, SIZE, &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_map_open(folder, &map, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mkfifo(name, 0600), 0);
    ck_assert_int_eq(mgl_map_open(name, &map, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "regular file"));
    ck_assert_int_eq(mgl_file_read_regular(name, SIZE, &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "regular file"));
    ck_assert_int_eq(mgl_file_stands(name, &stands, &err), MGL_OK);
    ck_assert(stands);
    unlink(name);
    ck_assert_int_eq(mgl_file_stands(name, &stands, &err), MGL_OK);
    ck_assert(!stands);
    ck_assert_int_eq(mgl_file_read_regular(name, SIZE, &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(symlink("nowhere", name), 0);
    ck_assert_int_eq(mgl_file_stands(name, &stands, &err), MGL_OK);
    ck_assert(stands);
    unlink(name);
}
END_TEST

START_TEST(test_map)
{
    mgl_map *map;
    mgl_error err;
    unsigned char bytes[8] = {0};
    ck_assert_int_eq(mgl_map_open(path, &map, &err), MGL_OK);
    ck_assert_uint_eq(mgl_map_size(map), SIZE);
    ck_assert_int_eq(mgl_map_read(map, SIZE - 8, 8, bytes, &err), MGL_OK);
    ck_assert_int_eq(bytes[7], (SIZE - 1) % 251 + 1);
    ck_assert_int_eq(mgl_map_read(map, SIZE, 0, bytes, &err), MGL_OK);
    ck_assert_int_eq(mgl_map_read(map, SIZE - 7, 8, bytes, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_map_read(map, SIZE_MAX, 8, bytes, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_map_read(map, 8, SIZE_MAX, bytes, &err), MGL_BAD_INPUT);
    mgl_map_close(map);
    mgl_map_close(NULL);
    write_file(0);
    ck_assert_int_eq(mgl_map_open(path, &map, &err), MGL_OK);
    ck_assert_uint_eq(mgl_map_size(map), 0);
    mgl_map_close(map);
}
END_TEST

static mgl_map *shrunk_map;

static void *read_shrunk(void *result)
{
    static char bytes[SIZE];
    mgl_error err;
    *(mgl_status *)result = mgl_map_read(shrunk_map, 0, SIZE, bytes, &err);
    return NULL;
}

/* Truncates a mapped file to 0 bytes (its pages raise SIGBUS) and to the middle of a page (the rest
 * reads as zeros), on this thread and on another. The remaining part stays readable. */
START_TEST(test_shrink)
{
    static char bytes[SIZE];
    mgl_error err;
    pthread_t thread;
    mgl_status status = MGL_OK;
    ck_assert_int_eq(mgl_map_open(path, &shrunk_map, &err), MGL_OK);
    ck_assert_int_eq(truncate(path, _i), 0);
    ck_assert_int_eq(mgl_map_read(shrunk_map, 0, SIZE, bytes, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, path);
    ck_assert_ptr_nonnull(strstr(err.message, "shrank from 40000"));
    ck_assert_int_eq(pthread_create(&thread, NULL, read_shrunk, &status), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_map_read(shrunk_map, 0, (size_t)_i, bytes, &err), MGL_OK);
    mgl_map_close(shrunk_map);
}
END_TEST

/* The exit status of a child with the library's handler. The child accesses a missing page (`sent`
 * 0), or sends itself the signal. */
static int end_of_child(int sent)
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        int descriptor = open(path, O_RDONLY);
        volatile char *page = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, descriptor, 0);
        if (sent)
            raise(SIGBUS);
        else if (!truncate(path, 0))
            (void)page[0];
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* A SIGBUS outside our maps ends the process as without our handler. */
START_TEST(test_signals_of_others)
{
    mgl_map *map;
    mgl_error err;
    ck_assert_int_eq(mgl_map_open(path, &map, &err), MGL_OK);
    mgl_map_close(map);
    int status = end_of_child(_i);
    ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "the child lived on");
}
END_TEST

/* A device may be endless: only a limited number of bytes is read and allocated. */
START_TEST(test_devices)
{
    char *bytes;
    size_t length;
    mgl_error err;
    uint64_t before = mgl_alloc_count();
    ck_assert_int_eq(mgl_file_read("/dev/zero", SIZE_MAX, &bytes, &length, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "of a device"));
    ck_assert_uint_le(mgl_alloc_count() - before, 2);
    ck_assert_int_eq(mgl_file_read("/dev/null", SIZE, &bytes, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, 0);
    mgl_free(bytes);
    ck_assert_int_eq(mgl_file_read_regular("/dev/zero", SIZE, &bytes, &length, &err),
                     MGL_BAD_INPUT);
}
END_TEST

/* The limit is checked before reading and allocation. */
START_TEST(test_too_large)
{
    char *bytes;
    size_t length;
    bool fits;
    mgl_error err;
    ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
    mgl_alloc_fail_at(1, true);
    mgl_status status = mgl_file_read_fitting(path, (size_t)1 << 39, &bytes, &length, &fits, &err);
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_BAD_INPUT);
    ck_assert(!fits);
    ck_assert_ptr_nonnull(strstr(err.message, "larger than"));
}
END_TEST

/* Standard input is read from its current position: a file, and a socket, which cannot be opened by
 * name. */
START_TEST(test_standard_input)
{
    char *bytes;
    size_t length;
    mgl_error err;
    int before = dup(STDIN_FILENO), ends[2], file = open(path, O_RDONLY);
    ck_assert_int_eq(dup2(file, STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(lseek(STDIN_FILENO, 100, SEEK_SET), 100);
    ck_assert_int_eq(mgl_file_read(MGL_STDIN, SIZE, &bytes, &length, &err), MGL_OK);
    ck_assert_uint_eq(length, SIZE - 100);
    ck_assert_int_eq(bytes[0], 101);
    mgl_free(bytes);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    ck_assert_int_eq(mgl_file_read(MGL_STDIN, SIZE, &bytes, &length, &err), MGL_OK);
    ck_assert_str_eq(bytes, "hello");
    mgl_free(bytes);
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    close(file);
}
END_TEST

static bool is_same(const char *a, const char *b)
{
    bool same;
    mgl_error err;
    ck_assert_int_eq(mgl_file_same(a, b, &same, &err), MGL_OK);
    return same;
}

/* Whether paths name the same file: by other names, links and links of links. A path without a file
 * is compared by its folder. */
START_TEST(test_same)
{
    char other[100], missing[100];
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(missing, sizeof missing, "%s/../%s/none", folder, strrchr(folder, '/') + 1);
    ck_assert(is_same(path, path));
    ck_assert(!is_same(path, other));
    ck_assert_int_eq(link(path, other), 0);
    ck_assert(is_same(path, other));
    unlink(other);
    ck_assert_int_eq(symlink("f", other), 0);
    ck_assert(is_same(other, path));
    unlink(other);
    ck_assert_int_eq(symlink(".", other), 0);
    char through[120];
    snprintf(through, sizeof through, "%s/f", other);
    ck_assert(is_same(through, path));
    snprintf(through, sizeof through, "%s/none", other);
    ck_assert(is_same(through, missing));
    ck_assert(!is_same(through, path));
    unlink(other);
}
END_TEST

static mgl_status use_all(void)
{
    char *bytes, some[4];
    bool stands;
    size_t length;
    mgl_map *map;
    mgl_error err = {0};
    mgl_status status = mgl_file_read(path, SIZE, &bytes, &length, &err);
    if (status)
        return status;
    mgl_free(bytes);
    if ((status = mgl_map_open(path, &map, &err)))
        return status;
    status = mgl_map_read(map, 1, 4, some, &err);
    mgl_map_close(map);
    if (!status)
        status = mgl_file_check_output(folder, path, &err);
    return status ? status : mgl_file_stands(path, &stands, &err);
}

/* Status codes, in order: invalid path, out of memory, any other error. */
START_TEST(test_what_errno_means)
{
    mgl_error err;
    errno = ENOENT;
    ck_assert_int_eq(mgl_fail_path(&err, path, "cannot be opened"), MGL_BAD_INPUT);
    errno = ENOMEM;
    ck_assert_int_eq(mgl_fail_path(&err, path, "cannot be mapped"), MGL_NO_MEMORY);
    errno = EIO;
    ck_assert_int_eq(mgl_fail_path(&err, path, "cannot be read"), MGL_SYSTEM);
}
END_TEST

START_TEST(test_every_operation_fails)
{
    mgl_status status = MGL_SYSTEM;
    uint64_t n = 0;
    while (status == MGL_SYSTEM) {
        mgl_file_fail_at(++n);
        status = use_all();
    }
    mgl_file_fail_at(0);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_eq(n, 10); /* open, two reads; open, map, read; three looks; none */
    status = MGL_NO_MEMORY;
    for (n = 0; status == MGL_NO_MEMORY;) {
        mgl_alloc_fail_at(++n, false);
        status = use_all();
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_ge(n, 4);
}
END_TEST

START_TEST(test_folders_are_made)
{
    char deep[200];
    struct stat facts;
    mgl_error err;
    snprintf(deep, sizeof deep, "%s/one/two", folder);
    ck_assert_int_eq(mgl_folder_make(deep, 0700, &err), MGL_OK);
    ck_assert_int_eq(stat(deep, &facts), 0);
    ck_assert_uint_eq(facts.st_mode & 0777, 0700);
    ck_assert_int_eq(mgl_folder_make(deep, 0755, &err), MGL_OK);
    ck_assert_int_eq(stat(deep, &facts), 0);
    ck_assert_uint_eq(facts.st_mode & 0777, 0700);
    rmdir(deep);
    mgl_file_fail_at(2);
    ck_assert_int_eq(mgl_folder_make(deep, 0700, &err), MGL_SYSTEM);
    mgl_file_fail_at(0);
    snprintf(deep, sizeof deep, "%s/one", folder);
    rmdir(deep);
}
END_TEST

START_TEST(test_no_folder_in_the_place_of_a_file)
{
    char below[100];
    mgl_error err;
    snprintf(below, sizeof below, "%s/below", path);
    ck_assert_int_eq(mgl_folder_make(path, 0700, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_folder_make(below, 0700, &err), MGL_BAD_INPUT);
    ck_assert_int_eq(mgl_folder_make("", 0700, &err), MGL_BAD_INPUT);
}
END_TEST

/* Creates empty files of these names in a new folder, or removes the files and the folder. */
static void fill_folder(const char *of, const char *const *names, size_t count, bool make)
{
    char name[300];
    if (make)
        ck_assert_int_eq(mkdir(of, 0700), 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/%s", of, names[i]);
        if (make)
            fclose(fopen(name, "w"));
        else
            unlink(name);
    }
    if (!make)
        rmdir(of);
}

START_TEST(test_folders_are_listed)
{
    static const char *const names[] = {"b.json", "a.json", "c.txt", ".json", ".d.json", "10.json"};
    static const char *const wanted[] = {"10.json", "a.json", "b.json"};
    char of[200];
    mgl_file_list list;
    mgl_error err;
    snprintf(of, sizeof of, "%s/listed", folder);
    ck_assert_int_eq(mgl_folder_list(of, ".json", &list, &err), MGL_OK); /* the file does not
                                                                            exist */
    ck_assert_uint_eq(list.count, 0);
    fill_folder(of, names, sizeof names / sizeof *names, true);
    ck_assert_int_eq(mgl_folder_list(of, ".json", &list, &err), MGL_OK);
    ck_assert_uint_eq(list.count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_str_eq(list.names[i], wanted[i]);
    mgl_file_list_clear(&list);
    for (uint64_t n = 1; n <= 9; n++) { /* opened, and six names, two dots and the end are read */
        mgl_file_fail_at(n);
        ck_assert_int_eq(mgl_folder_list(of, ".json", &list, &err), MGL_SYSTEM);
        ck_assert_uint_eq(list.count, 0);
    }
    mgl_file_fail_at(0);
    fill_folder(of, names, sizeof names / sizeof *names, false);
    ck_assert_int_eq(mgl_folder_list(path, ".json", &list, &err), MGL_BAD_INPUT); /* a file */
}
END_TEST

/* The type of FOLDER/NAME: missing, file or folder. */
START_TEST(test_what_a_folder_holds)
{
    mgl_text joined;
    mgl_error err;
    bool holds = false, is_folder = true;
    ck_assert_int_eq(mgl_path_join(folder, "f", &joined, &err), MGL_OK);
    ck_assert_str_eq(joined.bytes, path);
    mgl_text_clear(&joined);
    ck_assert_int_eq(mgl_folder_holds(folder, "f", &holds, &err), MGL_OK);
    ck_assert(holds);
    ck_assert_int_eq(mgl_folder_holds(folder, "no-such-file", &holds, &err), MGL_OK);
    ck_assert(!holds);
    ck_assert_int_eq(mgl_folder_stands(path, &is_folder, &err), MGL_OK);
    ck_assert(!is_folder);
    ck_assert_int_eq(mgl_folder_stands(folder, &is_folder, &err), MGL_OK);
    ck_assert(is_folder);
}
END_TEST

START_TEST(test_formatted_paths)
{
    char made[PATH_MAX], longest[PATH_MAX];
    mgl_error err = {0};
    ck_assert_int_eq(mgl_file_path(made, &err, "%s/%d", "folder", 7), MGL_OK);
    ck_assert_str_eq(made, "folder/7");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    ck_assert_int_eq(mgl_file_path(made, &err, "%s", longest), MGL_OK);
    ck_assert_int_eq(mgl_file_path(made, &err, "%s/", longest), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "longer than 4095 bytes"));
}
END_TEST

START_TEST(test_disk_free)
{
    uint64_t bytes = 0;
    mgl_error err;
    ck_assert_int_eq(mgl_disk_free(path, &bytes, &err), MGL_OK);
    ck_assert_uint_gt(bytes, 0);
    ck_assert_int_eq(mgl_disk_free("/no/such/path", &bytes, &err), MGL_BAD_INPUT);
    mgl_file_fail_at(1);
    ck_assert_int_eq(mgl_disk_free(path, &bytes, &err), MGL_SYSTEM);
    mgl_file_fail_at(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *cases = tcase_create("file");
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, test_read_whole);
    tcase_add_test(cases, test_read_pipe);
    tcase_add_test(cases, test_a_long_pipe_is_not_read_to_its_end);
    tcase_add_test(cases, test_that_none_stands_is_no_matter_of_size);
    tcase_add_test(cases, test_no_file);
    tcase_add_test(cases, test_what_a_folder_holds);
    tcase_add_test(cases, test_devices);
    tcase_add_test(cases, test_too_large);
    tcase_add_test(cases, test_standard_input);
    tcase_add_test(cases, test_same);
    tcase_add_test(cases, test_map);
    if (!CAN_JUMP)
        fprintf(stderr, "SKIPPED: test_shrink: it needs a build without ThreadSanitizer\n");
    for (int left = 0; CAN_JUMP && left < SIZE; left += 13333)
        tcase_add_loop_test(cases, test_shrink, left, left + 1);
    tcase_add_loop_test(cases, test_signals_of_others, 0, 2);
    tcase_add_test(cases, test_what_errno_means);
    tcase_add_test(cases, test_folders_are_made);
    tcase_add_test(cases, test_no_folder_in_the_place_of_a_file);
    tcase_add_test(cases, test_folders_are_listed);
    tcase_add_test(cases, test_formatted_paths);
    tcase_add_test(cases, test_disk_free);
    tcase_add_test(cases, test_every_operation_fails);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    rmdir(folder);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
