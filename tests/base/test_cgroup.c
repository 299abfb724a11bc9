/* Tests of reading limits of control groups, from folders laid out like /proc and
 * /sys/fs/cgroup. */
#include "base/memory.h"
#include "base/parallel.h"
#include "base/system/cgroup.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/megalith-cgroup-XXXXXX";

/* Writes a file below the root, and creates its folders. */
static void put(const char *path, const char *text)
{
    char full[300];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(full, 0700);
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void set_up(void)
{
    scratch_make(root);
    put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:  8000 kB\nSwapFree: 1000 kB\n");
}

static void tear_down(void)
{
    scratch_remove(root);
}

static mgl_cgroup_limits read_limits(void)
{
    mgl_cgroup_limits limits;
    mgl_cgroup_read(root, &limits);
    return limits;
}

static void check_limits(double processors, size_t memory, size_t left)
{
    mgl_cgroup_limits limits = read_limits();
    ck_assert_double_eq_tol(limits.processors, processors, 1e-9);
    ck_assert_uint_eq(limits.memory, memory);
    ck_assert_uint_eq(limits.memory_left, left);
}

#define MOUNT(top, point, type, options)                                                           \
    "30 23 0:26 " top " " point " rw,nosuid shared:9 - " type " cgroup rw," options "\n"
#define OTHER "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"

/* ---- version 2 ------------------------------------------------------------------------------- */

static void lay_out_unified(const char *group, const char *top)
{
    char text[300];
    snprintf(text, sizeof text, "0::%s\n", group);
    put("proc/self/cgroup", text);
    snprintf(text, sizeof text, OTHER "30 23 0:26 %s /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
             top);
    put("proc/self/mountinfo", text);
}

START_TEST(no_group_has_no_limit)
{
    check_limits(0, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(mgl_memory_available_below(root), 9000 * 1024);
    lay_out_unified("/a", "/");
    check_limits(0, SIZE_MAX, SIZE_MAX);
    put("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/memory.max", "max\n");
    put("sys/fs/cgroup/a/memory.current", "5000\n");
    check_limits(0, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(mgl_memory_available_below(root), 9000 * 1024);
}
END_TEST

START_TEST(a_group_limits_what_it_does_not_use)
{
    lay_out_unified("/a/b", "/");
    put("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
    put("sys/fs/cgroup/a/b/memory.current", "400000\n");
    check_limits(1.5, 1000000, 600000);
    ck_assert_uint_eq(mgl_memory_available_below(root), 600000);
    put("sys/fs/cgroup/a/b/memory.current", "2000000\n");
    ck_assert_uint_eq(mgl_memory_available_below(root), 1);
}
END_TEST

START_TEST(the_cached_parts_of_files_are_not_in_use)
{
    lay_out_unified("/a", "/");
    put("sys/fs/cgroup/a/memory.max", "1000000\n");
    put("sys/fs/cgroup/a/memory.current", "900000\n");
    put("sys/fs/cgroup/a/memory.stat",
        "anon 1\nfile 700000\ninactive_file 300000\nactive_file 200000\n");
    check_limits(0, 1000000, 600000);
}
END_TEST

START_TEST(a_group_above_may_be_tighter)
{
    lay_out_unified("/a/b/c", "/");
    put("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
    put("sys/fs/cgroup/a/b/memory.current", "100000\n");
    put("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    put("sys/fs/cgroup/a/memory.max", "2000000\n");
    put("sys/fs/cgroup/a/memory.current", "1900000\n");
    check_limits(3, 1000000, 100000);
}
END_TEST

START_TEST(a_threshold_of_memory_is_a_limit)
{
    lay_out_unified("/a", "/");
    put("sys/fs/cgroup/a/memory.max", "max\n");
    put("sys/fs/cgroup/a/memory.high", "500000\n");
    put("sys/fs/cgroup/a/memory.current", "1000\n");
    check_limits(0, 500000, 499000);
}
END_TEST

/*  the process's group, root of the mount, folder below the mount point where its limits are */
static const struct place {
    const char *group, *top, *folder;
} places[] = {
    {"/", "/", ""},                                 /* a namespace of its own */
    {"/docker/1", "/docker/1", ""},                 /* the group alone is mounted */
    {"/docker/1/inner", "/docker/1", "inner/"},     /* a group below it */
    {"/docker/1", "/", "docker/1/"},                /* the root group is mounted */
    {"/docker/1", "/docker", "1/"},                 /* a part */
    {"/docker/1/gone", "/", "docker/1/"},           /* the nearest visible group */
    {"/", "/..", ""},                               /* above the namespace */
    {"/../other", "/", ""},                         /* beside the namespace */
    {"/../other/x", "/..", "other/x/"},             /* the same, seen from above */
    {"/with a blank", "/with\\040a\\040blank", ""}, /* escaped only in mountinfo */
};
enum { PLACES = sizeof places / sizeof *places };

START_TEST(the_path_of_a_group_is_resolved)
{
    char path[200];
    lay_out_unified(places[_i].group, places[_i].top);
    snprintf(path, sizeof path, "sys/fs/cgroup/%scpu.max", places[_i].folder);
    put(path, "200000 100000\n");
    snprintf(path, sizeof path, "sys/fs/cgroup/%smemory.max", places[_i].folder);
    put(path, "1000\n");
    check_limits(2, 1000, 1000);
}
END_TEST

START_TEST(a_group_elsewhere_is_no_group_of_the_process)
{
    lay_out_unified("/a", "/b");
    put("sys/fs/cgroup/memory.max", "1000\n");
    put("sys/fs/cgroup/a/memory.max", "1000\n");
    check_limits(0, SIZE_MAX, SIZE_MAX);
    lay_out_unified("/bc", "/b");
    put("sys/fs/cgroup/c/memory.max", "1000\n");
    check_limits(0, SIZE_MAX, SIZE_MAX);
}
END_TEST

START_TEST(the_mount_that_shows_the_group_counts)
{
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo",
        MOUNT("/x", "/one", "cgroup2", "x") MOUNT("/a", "/my\\040two", "cgroup2", "x"));
    put("one/memory.max", "5\n");
    put("my two/b/memory.max", "1000\n");
    check_limits(0, 1000, 1000);
}
END_TEST

/* ---- version 1 ------------------------------------------------------------------------------- */

static void lay_out_old(const char *group, const char *top)
{
    char text[600];
    snprintf(text, sizeof text, "5:name=systemd:/s\n4:cpuacct,cpu:%s\n3:memory:%s\n0::/\n", group,
             group);
    put("proc/self/cgroup", text);
    snprintf(text, sizeof text,
             OTHER "30 23 0:26 %s /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup "
                   "rw,cpuacct,cpu\n"
                   "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                   "32 23 0:28 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
             top, top);
    put("proc/self/mountinfo", text);
}

START_TEST(a_group_of_version_1_limits)
{
    lay_out_old("/d/1/inner", "/d/1");
    put("sys/fs/cgroup/cpuset/d/1/inner/cpu.cfs_quota_us", "1\n");
    put("sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "9223372036854771712\n");
    check_limits(0, SIZE_MAX, SIZE_MAX);
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "700000\n");
    put("sys/fs/cgroup/memory/memory.stat",
        "inactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 0\n");
    check_limits(2.5, 1000000, 400000);
}
END_TEST

START_TEST(a_group_that_is_out_of_sight_limits)
{
    lay_out_old("/d/1", "/d/1");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "200\n");
    put("sys/fs/cgroup/memory/memory.stat", "cache 0\nhierarchical_memory_limit 1000\n");
    check_limits(0, 1000, 800);
}
END_TEST

/* ---- derived limits -------------------------------------------------------------------------- */

START_TEST(processors_follow_the_limit)
{
    int all = mgl_parallel_processors_below(root);
    lay_out_unified("/", "/");
    put("sys/fs/cgroup/cpu.max", "50000 100000\n");
    ck_assert_int_eq(mgl_parallel_processors_below(root), 1);
    put("sys/fs/cgroup/cpu.max", "110000 100000\n");
    ck_assert_int_eq(mgl_parallel_processors_below(root), all < 2 ? all : 2);
    put("sys/fs/cgroup/cpu.max", "99900000 100000\n");
    ck_assert_int_eq(mgl_parallel_processors_below(root), all);
}
END_TEST

static const char *const damaged[][2] = {
    {"", ""},
    {"0:", "30"},
    {"0::", " - cgroup2 "},
    {"0::/a", "30 23 0:26 / - cgroup2 cgroup2 rw\n"},
    {":::\n0::/\n", "30 23 0:26 \\ \\04 rw - cgroup2\n"},
    {"3:memory", "30 23 0:26 / /m rw - cgroup"},
};
enum { DAMAGED = sizeof damaged / sizeof *damaged };

START_TEST(what_cannot_be_read_has_no_limit)
{
    put("proc/self/cgroup", damaged[_i][0]);
    put("proc/self/mountinfo", damaged[_i][1]);
    check_limits(0, SIZE_MAX, SIZE_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cgroup");
    TCase *cases = tcase_create("cgroup");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, no_group_has_no_limit);
    tcase_add_test(cases, a_group_limits_what_it_does_not_use);
    tcase_add_test(cases, the_cached_parts_of_files_are_not_in_use);
    tcase_add_test(cases, a_group_above_may_be_tighter);
    tcase_add_test(cases, a_threshold_of_memory_is_a_limit);
    tcase_add_loop_test(cases, the_path_of_a_group_is_resolved, 0, PLACES);
    tcase_add_test(cases, a_group_elsewhere_is_no_group_of_the_process);
    tcase_add_test(cases, the_mount_that_shows_the_group_counts);
    tcase_add_test(cases, a_group_of_version_1_limits);
    tcase_add_test(cases, a_group_that_is_out_of_sight_limits);
    tcase_add_test(cases, processors_follow_the_limit);
    tcase_add_loop_test(cases, what_cannot_be_read_has_no_limit, 0, DAMAGED);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
