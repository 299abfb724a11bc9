/*
 * Tests of opening a store file: its default path and permissions, rejected files with their
 * messages, locks, and two processes at once.
 */
#include "autotune/store/store_query.h"
#include "tests/autotune/store/store_support.h"

#include "base/file.h"
#include "base/memory.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static mgl_error err;

static void set_up(void)
{
    store_make_folder();
    err = (mgl_error){0};
}

static void tear_down(void)
{
    store_remove_folder();
}

/* The status of opening; *store is closed. */
static mgl_status try_open(const char *path, bool write)
{
    mgl_store *store;
    mgl_status status = mgl_store_open(path, write, &store, &err);
    mgl_store_close(store);
    return status;
}

static void says(const char *part)
{
    ck_assert_msg(strstr(err.message, part) != NULL, "\"%s\" has no \"%s\"", err.message, part);
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

/* Changes the file as another program could. */
static void execute(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static unsigned rights_of(const char *path)
{
    struct stat facts;
    ck_assert_int_eq(stat(path, &facts), 0);
    return facts.st_mode & 0777;
}

/* ---- paths ----------------------------------------------------------------------------------- */

START_TEST(default_path_is_the_state_folder)
{
    mgl_text path = {0};
    ck_assert_int_eq(mgl_store_default_path(&path, &err), MGL_OK);
    ck_assert_str_eq(path.bytes, store_path("megalith/campaigns.db"));
    mgl_text_clear(&path);
}
END_TEST

START_TEST(default_path_without_a_state_folder_is_below_home)
{
    mgl_text path = {0};
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/somebody", 1);
    ck_assert_int_eq(mgl_store_default_path(&path, &err), MGL_OK);
    ck_assert_str_eq(path.bytes, "/home/somebody/.local/state/megalith/campaigns.db");
    mgl_text_clear(&path);
}
END_TEST

START_TEST(default_path_without_home_is_rejected)
{
    mgl_text path = {0};
    setenv("XDG_STATE_HOME", "relative", 1);
    unsetenv("HOME");
    ck_assert_int_eq(mgl_store_default_path(&path, &err), MGL_USAGE);
    says("--store");
    mgl_text_clear(&path);
}
END_TEST

START_TEST(folder_and_files_are_private)
{
    umask(0);
    mgl_store *store = store_open(store_path("a/b/store.db"));
    ck_assert_uint_eq(rights_of(store_path("a")), 0700);
    ck_assert_uint_eq(rights_of(store_path("a/b")), 0700);
    ck_assert_uint_eq(rights_of(store_path("a/b/store.db")), 0600);
    ck_assert_uint_eq(rights_of(store_path("a/b/store.db-wal")), 0600);
    ck_assert_str_eq(mgl_store_path(store), store_path("a/b/store.db"));
    mgl_store_close(store);
    umask(022);
}
END_TEST

START_TEST(odd_names_are_files)
{
    static const char *const names[] = {":memory:", "file:x?mode=memory", "a b%20#?.db"};
    char before[PATH_MAX];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(store_path("")), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(try_open(names[i], true), MGL_OK);
        ck_assert_int_eq(access(names[i], F_OK), 0);
    }
    ck_assert_int_eq(chdir(before), 0);
}
END_TEST

START_TEST(missing_store_is_not_made_to_be_read)
{
    ck_assert_int_eq(try_open(store_path("no/store.db"), false), MGL_BAD_INPUT);
    says("megalith tune");
    ck_assert_int_ne(access(store_path("no"), F_OK), 0);
    ck_assert_int_eq(try_open(store_path("store.db"), false), MGL_BAD_INPUT);
    ck_assert_int_ne(access(store_path("store.db"), F_OK), 0);
}
END_TEST

START_TEST(folders_and_pipes_are_rejected)
{
    ck_assert_int_eq(try_open("", true), MGL_USAGE);
    ck_assert_int_eq(try_open(store_path("folder/"), true), MGL_BAD_INPUT);
    ck_assert_int_eq(mkdir(store_path("folder"), 0700), 0);
    ck_assert_int_eq(try_open(store_path("folder"), true), MGL_BAD_INPUT);
    ck_assert_int_eq(mkfifo(store_path("pipe"), 0600), 0);
    ck_assert_int_eq(try_open(store_path("pipe"), true), MGL_BAD_INPUT);
    says("no regular file");
}
END_TEST

START_TEST(network_file_systems_are_rejected)
{
    static const struct {
        uint32_t type;
        const char *name;
    } cases[] = {{0x6969, "NFS"},      {0x517B, "SMB"},        {0xFF534D42, "CIFS"},
                 {0xFE534D42, "SMB2"}, {0x01021997, "9p"},     {0x5346414F, "AFS"},
                 {0x00C36400, "Ceph"}, {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_store_pretend_file_system(cases[i].type);
        ck_assert_int_eq(try_open(store_path("store.db"), true), MGL_BAD_INPUT);
        says(cases[i].name);
        ck_assert_int_ne(access(store_path("store.db"), F_OK), 0);
    }
    mgl_store_pretend_file_system(0);
}
END_TEST

START_TEST(local_file_systems_are_not_rejected)
{
    static const uint32_t types[] = {
        0xEF53,     0x01021994, 0x58465342,
        0x9123683E, 0x794C7630, 0x65735546}; /* ext4, tmpfs, XFS, btrfs, overlay, FUSE */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        ck_assert_ptr_null(mgl_store_remote_name(types[i]));
}
END_TEST

/* ---- files that are not stores --------------------------------------------------------------- */

START_TEST(text_is_no_store)
{
    char text[5000];
    memset(text, 'x', sizeof text);
    write_file(store_path("store.db"), text, sizeof text);
    for (int write = 0; write < 2; write++) {
        ck_assert_int_eq(try_open(store_path("store.db"), write), MGL_BAD_INPUT);
        says("is no store of campaigns; take another --store");
    }
}
END_TEST

START_TEST(database_of_another_program_is_left_alone)
{
    const char *path = store_path("store.db");
    execute(path, "CREATE TABLE other (a)");
    for (int write = 0; write < 2; write++) {
        ck_assert_int_eq(try_open(path, write), MGL_BAD_INPUT);
        says("another program");
    }
    execute(path, "INSERT INTO other VALUES (1)");
    ck_assert_int_ne(access(store_path("store.db-wal"), F_OK), 0);
}
END_TEST

START_TEST(newer_store_is_rejected)
{
    const char *path = store_path("store.db");
    mgl_store_close(store_open(path));
    execute(path, "PRAGMA user_version = 1000");
    for (int write = 0; write < 2; write++) {
        ck_assert_int_eq(try_open(path, write), MGL_BAD_INPUT);
        says("newer Megalith");
    }
}
END_TEST

START_TEST(store_of_version_1_is_brought_up_to_date)
{
    const char *path = store_path("store.db");
    mgl_campaign_record campaign;
    mgl_store *store = store_open(path);
    int64_t count = -1;
    store_add_campaign(store, "one", &campaign);
    mgl_store_close(store);
    execute(path, "DROP INDEX trials_condemned; ALTER TABLE trials DROP COLUMN condemned;"
                  "PRAGMA user_version = 1");
    ck_assert_int_eq(try_open(path, false), MGL_BAD_INPUT);
    says("older Megalith");
    store = store_open(path);
    ck_assert_int_eq(mgl_store_count_quarantined(store, campaign.id, &count, &err), MGL_OK);
    ck_assert_int_eq(count, 0);
    mgl_store_close(store);
    mgl_campaign_record_clear(&campaign);
}
END_TEST

START_TEST(empty_file_becomes_a_store)
{
    const char *path = store_path("store.db");
    write_file(path, "", 0);
    ck_assert_int_eq(try_open(path, false), MGL_BAD_INPUT);
    says("is empty");
    ck_assert_int_eq(try_open(path, true), MGL_OK);
    ck_assert_int_eq(try_open(path, false), MGL_OK);
}
END_TEST

START_TEST(store_without_its_tables_is_rejected)
{
    const char *path = store_path("store.db");
    mgl_campaign_record campaign;
    mgl_store *store = store_open(path);
    execute(path, "DROP TABLE events");
    store_add_campaign(store, "one", &campaign);
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "keep", "text", &err), MGL_BAD_INPUT);
    says("not one that this version wrote");
    mgl_store_close(store);
    mgl_campaign_record_clear(&campaign);
}
END_TEST

/* A store of some trials, closed. */
static void make_store(const char *path)
{
    mgl_campaign_record campaign;
    mgl_store *store = store_open(path);
    store_add_campaign(store, "one", &campaign);
    for (int64_t number = 1; number <= 20; number++) {
        mgl_trial trial;
        store_fill_trial(campaign.id, number, 20, &trial);
        ck_assert_int_eq(mgl_store_add_trial(store, &trial, NULL), MGL_OK);
        mgl_trial_clear(&trial);
    }
    mgl_store_close(store);
    mgl_campaign_record_clear(&campaign);
}

/* Overwrites bytes of a page: the damage is detected when the store opens, or all data that was
 * read is unchanged. */
START_TEST(damage_is_rejected)
{
    enum { PAGE = 4096 };
    const char *path = store_path("store.db");
    char *bytes, *damaged;
    size_t length;
    int refused = 0, pages = 0;
    make_store(path);
    ck_assert_int_eq(mgl_file_read(path, 1 << 26, &bytes, &length, NULL), MGL_OK);
    damaged = mgl_alloc(length);
    for (size_t at = PAGE; at + PAGE <= length; at += PAGE, pages++) {
        memcpy(damaged, bytes, length);
        memset(damaged + at, 0x5A, PAGE);
        write_file(path, damaged, length);
        mgl_status status = try_open(path, true);
        refused += status == MGL_BAD_INPUT;
        ck_assert(status == MGL_OK || status == MGL_BAD_INPUT);
        if (status)
            says("restore a copy, or take another --store");
    }
    ck_assert_int_gt(refused, pages / 2); /* unused pages may be damaged */
    write_file(path, bytes, length / 2 / PAGE * PAGE);
    ck_assert_int_eq(try_open(path, true), MGL_BAD_INPUT);
    mgl_free(bytes);
    mgl_free(damaged);
}
END_TEST

/* ---- disks ----------------------------------------------------------------------------------- */

/* Mounts a file system in a mount namespace of this process. Returns false, with a line of output,
 * if that is not permitted. */
static bool mount_disk(const char *path, const char *options)
{
    static bool alone;
    mkdir(path, 0700);
    alone = alone || (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    if (alone && !mount("none", path, "tmpfs", 0, options))
        return true;
    fprintf(stderr, "SKIPPED: a full and a read-only disk: they need the right to mount\n");
    return false;
}

START_TEST(full_disk_is_told_and_the_rest_kept)
{
    mgl_campaign_record campaign;
    mgl_status status = MGL_OK;
    int64_t kept = 0;
    const char *disk = store_path("disk");
    if (!mount_disk(disk, "size=1m"))
        return;
    mgl_store *store = store_open(store_path("disk/store.db"));
    store_add_campaign(store, "one", &campaign);
    while (!status) {
        mgl_trial trial;
        store_fill_trial(campaign.id, kept + 1, 20, &trial);
        status = mgl_store_add_trial(store, &trial, &err);
        kept += !status;
        mgl_trial_clear(&trial);
    }
    ck_assert_int_eq(status, MGL_SYSTEM);
    says("disk is full");
    ck_assert_int_gt(kept, 10);
    ck_assert_int_eq(store_count_whole(store, campaign.id, 20), kept);
    mgl_store_close(store);
    store = NULL;
    status = mgl_store_open(store_path("disk/store.db"), false, &store, &err);
    ck_assert_msg(!status, "%s", err.message);
    ck_assert_int_eq(store_count_whole(store, campaign.id, 20), kept);
    mgl_store_close(store);
    mgl_campaign_record_clear(&campaign);
    ck_assert_int_eq(umount(disk), 0);
}
END_TEST

START_TEST(read_only_disk_can_be_read)
{
    mgl_campaign_record campaign;
    mgl_store *store = NULL;
    const char *disk = store_path("disk");
    if (!mount_disk(disk, "size=4m"))
        return;
    make_store(store_path("disk/a%b.db"));
    ck_assert_int_eq(mount("none", disk, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    mgl_status status = mgl_store_open(store_path("disk/a%b.db"), false, &store, &err);
    ck_assert_msg(!status, "%s", err.message);
    ck_assert_int_eq(mgl_store_find_campaign(store, NULL, &campaign, &err), MGL_OK);
    ck_assert_int_eq(store_count_whole(store, campaign.id, 20), 20);
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "keep", "text", &err), MGL_SYSTEM);
    says("cannot be written");
    mgl_store_close(store);
    ck_assert_int_eq(try_open(store_path("disk/a%b.db"), true), MGL_SYSTEM);
    says("cannot be written");
    ck_assert_int_eq(try_open(store_path("disk/new.db"), true), MGL_SYSTEM);
    says("read-only");
    mgl_campaign_record_clear(&campaign);
    ck_assert_int_eq(umount(disk), 0);
}
END_TEST

START_TEST(store_that_is_read_is_not_written)
{
    mgl_store *store = NULL;
    const char *path = store_path("store.db");
    make_store(path);
    ck_assert_int_eq(mgl_store_open(path, false, &store, &err), MGL_OK);
    ck_assert_int_eq(mgl_store_add_event(store, 1, "keep", "text", &err), MGL_SYSTEM);
    says("cannot be written");
    mgl_store_close(store);
}
END_TEST

START_TEST(every_file_operation_fails)
{
    const char *path = store_path("a/store.db");
    mgl_status status = MGL_SYSTEM;
    uint64_t n = 0;
    while (status == MGL_SYSTEM) {
        mgl_file_fail_at(++n);
        status = try_open(path, true);
    }
    mgl_file_fail_at(0);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_gt(n, 3);
    for (status = MGL_NO_MEMORY, n = 0; status == MGL_NO_MEMORY;) {
        mgl_alloc_fail_at(++n, false);
        status = try_open(path, true);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------- */

/* Runs `work` in a process and waits: its exit code. */
static int in_a_child(int (*work)(void))
{
    int status = 0;
    pid_t child = fork();
    if (!child)
        _exit(work());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char gpu[] = "GPU-1234/../5678";

static int take_lock_of_gpu(void)
{
    mgl_store_lock *lock;
    mgl_store *store = store_open(store_path("other.db"));
    return (int)mgl_store_lock_take(store, gpu, &lock, &err);
}

static int is_refused_with_our_pid(void)
{
    char who[40];
    snprintf(who, sizeof who, "process %ld ", (long)getppid());
    return take_lock_of_gpu() == MGL_DEVICE && strstr(err.message, who) ? 7 : 1;
}

START_TEST(gpu_is_locked_whatever_the_store)
{
    mgl_store_lock *lock = NULL, *again = NULL;
    mgl_store *store = store_open(store_path("store.db"));
    ck_assert_int_eq(mgl_store_lock_take(store, gpu, &lock, &err), MGL_OK);
    ck_assert_int_eq(in_a_child(is_refused_with_our_pid), 7);
    ck_assert_int_eq(mgl_store_lock_take(store, gpu, &again, &err), MGL_DEVICE);
    ck_assert_ptr_null(again);
    mgl_store_lock_release(lock);
    ck_assert_int_eq(in_a_child(take_lock_of_gpu), MGL_OK); /* the lock ends with the process */
    ck_assert_int_eq(mgl_store_lock_take(store, gpu, &lock, &err), MGL_OK);
    mgl_store_lock_release(lock);
    mgl_store_lock_release(NULL);
    mgl_store_close(store);
}
END_TEST

static int take_and_mark(void)
{
    mgl_store_lock *lock;
    mgl_text path = {0};
    mgl_store *store = store_open(store_path("store.db"));
    if (mgl_store_lock_take(store, "none:1", &lock, &err) ||
        mgl_store_lock_path(store, "none:1", &path, &err))
        return 1;
    mgl_store_lock_mark(path.bytes);
    mgl_text_clear(&path);
    return 0; /* the process ends with the lock, as by a signal */
}

START_TEST(mark_of_who_was_ended_stands_until_the_next)
{
    bool held = true;
    mgl_store_lock *lock = NULL;
    mgl_store *store = store_open(store_path("store.db"));
    ck_assert(!mgl_store_lock_is_marked(store, "none:1"));
    ck_assert_int_eq(in_a_child(take_and_mark), 0);
    ck_assert(mgl_store_lock_is_marked(store, "none:1"));
    ck_assert(!mgl_store_lock_is_marked(store, "none:2"));
    ck_assert_int_eq(mgl_store_lock_look(store, "none:1", &held, &err), MGL_OK);
    ck_assert(!held);
    ck_assert_int_eq(mgl_store_lock_take(store, "none:1", &lock, &err), MGL_OK);
    ck_assert(!mgl_store_lock_is_marked(store, "none:1"));
    mgl_store_lock_release(lock);
    mgl_store_close(store);
}
END_TEST

static int mark_of_another(void)
{
    mgl_text path = {0};
    mgl_store *store = store_open(store_path("store.db"));
    if (mgl_store_lock_path(store, "none:1", &path, &err))
        return 1;
    mgl_store_lock_mark(path.bytes);
    mgl_text_clear(&path);
    return 0;
}

START_TEST(nobody_marks_the_lock_of_another)
{
    mgl_store_lock *lock = NULL;
    mgl_store *store = store_open(store_path("store.db"));
    ck_assert_int_eq(in_a_child(mark_of_another), 0); /* there is no lock file, and none is
                                                         created */
    ck_assert_int_eq(access(store_path("store.db-none-1.lock"), F_OK), -1);
    ck_assert_int_eq(mgl_store_lock_take(store, "none:1", &lock, &err), MGL_OK);
    ck_assert_int_eq(in_a_child(mark_of_another), 0);
    ck_assert(!mgl_store_lock_is_marked(store, "none:1"));
    mgl_store_lock_release(lock);
    mgl_store_close(store);
}
END_TEST

START_TEST(lock_names_the_process_and_the_boot)
{
    char *text, *boot;
    size_t length;
    mgl_store_lock *lock = NULL;
    mgl_store *store = store_open(store_path("store.db"));
    ck_assert_int_eq(mgl_store_lock_take(store, gpu, &lock, &err), MGL_OK);
    ck_assert_int_eq(mgl_file_read(store_path("megalith/locks/GPU-1234----5678.lock"), 200, &text,
                                   &length, &err),
                     MGL_OK);
    ck_assert_int_eq(strtol(text, NULL, 10), getpid());
    if (!mgl_file_read("/proc/sys/kernel/random/boot_id", 100, &boot, &length, NULL)) {
        ck_assert_ptr_nonnull(strstr(text, boot));
        mgl_free(boot);
    }
    mgl_free(text);
    mgl_store_lock_release(lock);
    mgl_store_close(store);
}
END_TEST

/* Like after a power failure: the process id in the file now belongs to another process, and the
 * boot id is old. */
START_TEST(lock_that_was_left_is_taken_whoever_it_names)
{
    char said[100];
    bool held = true;
    mgl_store_lock *lock = NULL;
    mgl_store *store = store_open(store_path("store.db"));
    ck_assert_int_eq(in_a_child(take_lock_of_gpu), MGL_OK);
    int length =
        snprintf(said, sizeof said, "%ld\n00000000-0000-4000-8000-000000000000", (long)getpid());
    write_file(store_path("megalith/locks/GPU-1234----5678.lock"), said, (size_t)length);
    ck_assert_int_eq(mgl_store_lock_look(store, gpu, &held, &err), MGL_OK);
    ck_assert(!held);
    ck_assert_int_eq(mgl_store_lock_take(store, gpu, &lock, &err), MGL_OK);
    mgl_store_lock_release(lock);
    mgl_store_close(store);
}
END_TEST

START_TEST(campaigns_without_a_gpu_have_locks_of_their_store)
{
    mgl_store_lock *locks[3] = {0};
    mgl_store *one = store_open(store_path("one.db")), *two = store_open(store_path("two.db"));
    ck_assert_int_eq(mgl_store_lock_take(one, "none:1", &locks[0], &err), MGL_OK);
    ck_assert_int_eq(mgl_store_lock_take(one, "none:2", &locks[1], &err), MGL_OK);
    ck_assert_int_eq(mgl_store_lock_take(two, "none:1", &locks[2], &err), MGL_OK);
    mgl_store_lock *again;
    ck_assert_int_eq(mgl_store_lock_take(one, "none:1", &again, &err), MGL_DEVICE);
    says("campaign stop");
    for (int i = 0; i < 3; i++)
        mgl_store_lock_release(locks[i]);
    mgl_store_close(one);
    mgl_store_close(two);
}
END_TEST

static int open_once(void)
{
    return (int)try_open(store_path("store.db"), true);
}

START_TEST(many_processes_make_one_store)
{
    enum { PROCESSES = 8 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        if (!(children[i] = fork()))
            _exit(open_once());
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, MGL_OK);
    }
    ck_assert_int_eq(try_open(store_path("store.db"), false), MGL_OK);
}
END_TEST

/* Holds the write lock until the pipe is closed. */
static pid_t write_for_long(int *until)
{
    int ready[2], end[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(end), 0);
    pid_t child = fork();
    if (!child) {
        sqlite3 *database;
        close(end[1]);
        bool begun = !sqlite3_open(store_path("store.db"), &database) &&
                     !sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        _exit(begun && write(ready[1], "x", 1) == 1 && read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ready[1]);
    close(end[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *until = end[1];
    return child;
}

START_TEST(busy_store_names_who_writes)
{
    int until, status;
    mgl_campaign_record campaign;
    char who[40];
    mgl_store *store = store_open(store_path("store.db"));
    store_add_campaign(store, "one", &campaign);
    pid_t child = write_for_long(&until);
    sqlite3_busy_timeout(store->database, 50);
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "keep", "text", &err), MGL_SYSTEM);
    snprintf(who, sizeof who, "process %ld writes", (long)child);
    if (mgl_store_find_writer(store_path("store.db")) == child)
        says(who);
    else
        fprintf(stderr, "SKIPPED: who writes: /proc/locks does not name process %ld\n",
                (long)child);
    close(until);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(mgl_store_add_event(store, campaign.id, "keep", "text", &err), MGL_OK);
    mgl_store_close(store);
    mgl_campaign_record_clear(&campaign);
}
END_TEST

START_TEST(one_reads_what_another_writes)
{
    mgl_campaign_record campaign, found;
    const char *path = store_path("store.db");
    mgl_store *writer = store_open(path), *reader = NULL;
    store_add_campaign(writer, "one", &campaign);
    ck_assert_int_eq(mgl_store_open(path, false, &reader, &err), MGL_OK);
    for (int64_t number = 1; number <= 5; number++) {
        mgl_trial trial;
        store_fill_trial(campaign.id, number, 4, &trial);
        ck_assert_int_eq(mgl_store_add_trial(writer, &trial, &err), MGL_OK);
        mgl_trial_clear(&trial);
        ck_assert_int_eq(store_count_whole(reader, campaign.id, 4), number);
    }
    ck_assert_int_eq(mgl_store_find_campaign(reader, "one", &found, &err), MGL_OK);
    ck_assert_int_eq(found.trials, 5);
    mgl_store_close(writer);
    ck_assert_int_eq(store_count_whole(reader, campaign.id, 4), 5);
    mgl_store_close(reader);
    mgl_campaign_record_clear(&campaign);
    mgl_campaign_record_clear(&found);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        default_path_is_the_state_folder,
        default_path_without_a_state_folder_is_below_home,
        default_path_without_home_is_rejected,
        folder_and_files_are_private,
        odd_names_are_files,
        missing_store_is_not_made_to_be_read,
        folders_and_pipes_are_rejected,
        network_file_systems_are_rejected,
        local_file_systems_are_not_rejected,
        text_is_no_store,
        database_of_another_program_is_left_alone,
        newer_store_is_rejected,
        store_of_version_1_is_brought_up_to_date,
        empty_file_becomes_a_store,
        store_without_its_tables_is_rejected,
        damage_is_rejected,
        full_disk_is_told_and_the_rest_kept,
        read_only_disk_can_be_read,
        store_that_is_read_is_not_written,
        every_file_operation_fails,
        gpu_is_locked_whatever_the_store,
        lock_names_the_process_and_the_boot,
        mark_of_who_was_ended_stands_until_the_next,
        nobody_marks_the_lock_of_another,
        lock_that_was_left_is_taken_whoever_it_names,
        campaigns_without_a_gpu_have_locks_of_their_store,
        many_processes_make_one_store,
        busy_store_names_who_writes,
        one_reads_what_another_writes,
    };
    Suite *suite = suite_create("store_open");
    TCase *cases = tcase_create("store_open");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
