/*
 * Tests of the keeper: objects named by their hashes, documents that several processes change, and
 * files of earlier programs (the folder `kept`).
 */
#include "autotune/archive/archive.h"
#include "autotune/kernels/gates/overlay.h"
#include "autotune/kernels/ptx/ideas.h"
#include "autotune/kernels/sessions/kernel_session.h"
#include "autotune/kernels/versions/experiment_log.h"
#include "autotune/store/keeper.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "tests/scratch.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT   MGL_SOURCE_DIR "/tests/autotune/store/kept"
#define FIRST  "9edb496f94e91849a8f16d9f4074263968eaa13a94b454e31dcf88a9a0dafdaf"
#define SECOND "a2f73d1907b208bcfc8bdfd92e63b4babd3d9e24e390c0f7fd4c2d8643cc786d"
enum { PROCESSES = 6, CHANGES = 8 };

static char folder[] = MGL_BINARY_DIR "/keeper-XXXXXX";
static mgl_keeper keeper = {folder, ".txt", 1 << 16};
static mgl_error err;

static void setup(void)
{
    scratch_make(folder);
    err = (mgl_error){0};
}

static void teardown(void)
{
    scratch_remove(folder);
}

#define CHECK_OK(call) ck_assert_msg((call) == MGL_OK, "%s: %s", err.where, err.message)

/* ---- objects --------------------------------------------------------------------------------- */

static mgl_digest put(const char *text)
{
    mgl_digest id;
    CHECK_OK(mgl_keeper_put(&keeper, text, strlen(text), id.hex, &err));
    return id;
}

START_TEST(an_object_comes_back_by_its_hash)
{
    char *text;
    size_t length;
    const mgl_digest id = put("a text"), again = put("a text");
    ck_assert_str_eq(id.hex, again.hex);
    ck_assert(mgl_keeper_is_id(id.hex));
    CHECK_OK(mgl_keeper_get(&keeper, id.hex, &text, &length, &err));
    ck_assert_str_eq(text, "a text");
    ck_assert_uint_eq(length, 6);
    mgl_free(text);
}
END_TEST

START_TEST(a_damaged_object_is_rejected)
{
    char path[PATH_MAX], *text;
    size_t length;
    const mgl_digest id = put("a text");
    snprintf(path, sizeof path, "%s/%s.txt", folder, id.hex);
    CHECK_OK(mgl_output_write_file(path, "a tent", 6, &err));
    ck_assert_int_eq(mgl_keeper_get(&keeper, id.hex, &text, &length, &err), MGL_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "damaged"));
    ck_assert_ptr_null(text);
}
END_TEST

static mgl_status count(void *user, const char *id, mgl_error *why)
{
    (void)id, (void)why;
    ++*(int *)user;
    return MGL_OK;
}

START_TEST(objects_are_listed_and_found_by_their_first_digits)
{
    char path[PATH_MAX], found[MGL_SHA256_HEX];
    size_t matches;
    int seen = 0;
    mgl_digest id = put("a text");
    put("another");
    snprintf(path, sizeof path, "%s/notes.txt", folder); /* not an object */
    CHECK_OK(mgl_output_write_file(path, "x", 1, &err));
    CHECK_OK(mgl_keeper_each(&keeper, count, &seen, &err));
    ck_assert_int_eq(seen, 2);
    id.hex[8] = 0;
    CHECK_OK(mgl_keeper_find(&keeper, id.hex, found, &matches, &err));
    ck_assert_uint_eq(matches, 1);
    ck_assert(!strncmp(found, id.hex, 8));
    CHECK_OK(mgl_keeper_find(&keeper, "", found, &matches, &err));
    ck_assert_uint_eq(matches, 2);
    CHECK_OK(mgl_keeper_find(&keeper, "zz", found, &matches, &err));
    ck_assert_uint_eq(matches, 0);
}
END_TEST

/* ---- several processes ----------------------------------------------------------------------- */

/* Runs `change` in several processes at once; it returns 0. */
static void change_at_once(int (*change)(int process))
{
    for (int i = 0; i < PROCESSES; i++) {
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (!child)
            _exit(change(i));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int ended;
        ck_assert_int_gt(wait(&ended), 0);
        ck_assert_int_eq(ended, 0);
    }
}

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int record_rows(int process)
{
    mgl_experiment_log_row row = {.outcome = MGL_OUTCOME_NO_GAIN, .calls = process};
    size_t number;
    mgl_status status = MGL_OK;
    strcpy(row.op, "merge");
    strcpy(row.idea, "split_k");
    for (int i = 0; i < CHANGES && !status; i++)
        status = mgl_experiment_log_record(path_of("experiment_log.json"), &row, &number, NULL);
    return status;
}

START_TEST(no_row_of_the_experiment_log_is_lost)
{
    mgl_experiment_log all = {0};
    change_at_once(record_rows);
    CHECK_OK(mgl_experiment_log_read(path_of("experiment_log.json"), &all, &err));
    ck_assert_uint_eq(all.count, PROCESSES * CHANGES);
    mgl_experiment_log_clear(&all);
}
END_TEST

static mgl_status condense(const char *load, mgl_ptx_condensed *out)
{
    char text[600];
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry a(.param .u64 p)\n{\n"
             "\t.reg .f32 %%f<5>;\n\t.reg .b64 %%rd<2>;\n\tld.param.u64 %%rd1, [p];\n\t%s\n"
             "\tst.global.f32 [%%rd1], %%f1;\n\tret;\n}\n",
             load);
    return mgl_ptx_condense_text(text, strlen(text), "a.ptx", out, NULL);
}

static int learn_pairs(int process)
{
    mgl_ptx_condensed before, after;
    size_t learned, all;
    (void)process;
    mgl_status status = condense("ld.global.f32 %f1, [%rd1];", &before);
    if (!status)
        status = condense("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", &after);
    const mgl_ptx_pair pair = {&before, &after, "merge", "H100", 0.1};
    for (int i = 0; i < 2 && !status; i++)
        status = mgl_ptx_ideas_learn(path_of("ideas.json"), &pair, &learned, &all, NULL);
    return status;
}

START_TEST(no_evidence_of_a_ptx_idea_is_lost)
{
    mgl_ptx_ideas all;
    change_at_once(learn_pairs);
    CHECK_OK(mgl_ptx_ideas_read(path_of("ideas.json"), &all, &err));
    ck_assert_uint_ge(all.count, 1);
    for (size_t i = 0; i < all.count; i++)
        ck_assert_int_eq(all.rows[i].uses, PROCESSES * 2);
    mgl_ptx_ideas_clear(&all);
}
END_TEST

static int promote(int process)
{
    size_t length;
    const mgl_kernel_unit *unit = mgl_kernel_unit_get(process);
    return mgl_overlay_put(path_of("overlay"), unit, mgl_kernel_unit_text(unit, &length), NULL,
                           NULL);
}

START_TEST(no_promoted_unit_is_lost)
{
    mgl_overlay overlay;
    change_at_once(promote);
    CHECK_OK(mgl_overlay_read(path_of("overlay"), &overlay, &err));
    ck_assert_int_eq(overlay.count, PROCESSES);
    mgl_overlay_clear(&overlay);
}
END_TEST

/* A folder that cannot be opened is written without a lock. */
START_TEST(a_folder_that_cannot_be_locked_is_no_error)
{
    int lock;
    mgl_file_fail_at(2); /* the first operation checks the folder */
    ck_assert_int_eq(mgl_keeper_lock(path_of("experiment_log.json"), &lock, &err), MGL_OK);
    mgl_file_fail_at(0);
    ck_assert_int_eq(lock, -1);
    mgl_keeper_unlock(lock);
}
END_TEST

START_TEST(a_document_waits_for_its_lock)
{
    int lock;
    CHECK_OK(mgl_keeper_lock(path_of("experiment_log.json"), &lock, &err));
    ck_assert_int_ge(lock, 0);
    const pid_t child = fork();
    if (!child) {
        close(lock); /* the inherited descriptor would keep the lock */
        _exit(record_rows(0));
    }
    usleep(100 * 1000);
    ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0);
    mgl_keeper_unlock(lock);
    int ended;
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
}
END_TEST

/* ---- files of earlier programs --------------------------------------------------------------- */

START_TEST(old_versions_are_read)
{
    mgl_versions *versions;
    mgl_version_record r;
    CHECK_OK(mgl_versions_open(KEPT "/kernels/merge", true, &versions, &err));
    CHECK_OK(mgl_versions_get(versions, NULL, &r, &err));
    ck_assert_str_eq(r.id, SECOND);
    ck_assert_str_eq(r.parents[0], FIRST);
    ck_assert_str_eq(r.transformation, "split_k");
    ck_assert_int_eq(r.verdict.outcome, MGL_OUTCOME_OK);
    ck_assert_double_eq(r.verdict.facts.time_us, 12.5);
    ck_assert_double_eq(r.verdict.facts.registers, 96);
    ck_assert_int_eq(r.values[0].value, 4);
    mgl_version_clear(&r);
    CHECK_OK(mgl_versions_get(versions, "9edb496f", &r, &err));
    ck_assert_str_eq(r.note, "make it faster");
    ck_assert_int_eq(r.verdict.outcome, MGL_OUTCOME_UNMEASURED);
    mgl_version_clear(&r);
    mgl_versions_lend_original(versions, "merge", "the original");
    CHECK_OK(mgl_versions_get(versions, "original", &r, &err));
    ck_assert(mgl_version_is_original(&r));
    mgl_version_clear(&r);
    mgl_versions_close(versions);
}
END_TEST

START_TEST(an_old_open_work_is_read)
{
    mgl_library library;
    mgl_kernel_session *session;
    mgl_text prompt = {0};
    CHECK_OK(mgl_library_open(NULL, &library, &err));
    const mgl_kernel_session_options options = {.folder = KEPT "/kernels",
                                                .unit = mgl_kernel_unit_find("merge"),
                                                .library = &library,
                                                .no_compile = true,
                                                .reads = true};
    CHECK_OK(mgl_kernel_session_open(&options, &session, &err));
    const mgl_work_state state = mgl_kernel_session_state(session);
    ck_assert(state.open);
    ck_assert_str_eq(state.instruction, "again");
    ck_assert_int_eq(state.calls, 2);
    CHECK_OK(mgl_kernel_session_prompt(session, false, &prompt, &err));
    ck_assert_ptr_nonnull(strstr(prompt.bytes, "asm volatile"));
    mgl_text_clear(&prompt);
    mgl_kernel_session_close(session);
    mgl_library_clear(&library);
}
END_TEST

START_TEST(an_old_experiment_log_is_read)
{
    mgl_experiment_log all = {0};
    CHECK_OK(mgl_experiment_log_read(KEPT "/kernels/experiments.json", &all, &err));
    ck_assert_uint_eq(all.count, 2);
    ck_assert_str_eq(all.rows[0].idea, "split_k");
    ck_assert_double_eq(all.rows[0].gain, 0.031);
    ck_assert_int_eq(all.rows[1].outcome, MGL_OUTCOME_COMPILE_SYNTAX);
    mgl_experiment_log_clear(&all);
}
END_TEST

/* Copies a file or a folder of `kept`. */
static void copy_kept(const char *name, const char *to)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "cp -r '" KEPT "/%s' '%s'", name, path_of(to));
    ck_assert_int_eq(system(command), 0);
}

static size_t rows_of(const char *name)
{
    mgl_experiment_log all = {0};
    CHECK_OK(mgl_experiment_log_read(path_of(name), &all, &err));
    const size_t rows = all.count;
    mgl_experiment_log_clear(&all);
    return rows;
}

static bool exists(const char *name)
{
    return !access(path_of(name), F_OK);
}

/* Copies the old log, which has two rows. */
static void copy_log(const char *to)
{
    copy_kept("kernels/experiments.json", to);
}

static mgl_status record_row(const char *name, size_t *number)
{
    const mgl_experiment_log_row row = {
        .op = "merge", .idea = "split_k", .outcome = MGL_OUTCOME_NO_GAIN};
    return mgl_experiment_log_record(path_of(name), &row, number, &err);
}

/* Readers read the log with its old name; the next write gives the file its new name. */
START_TEST(an_experiment_log_gets_its_new_name)
{
    size_t number;
    copy_log("ledger.json");
    ck_assert_uint_eq(rows_of("experiment_log.json"), 2);
    ck_assert(exists("ledger.json") && !exists("experiment_log.json"));
    CHECK_OK(record_row("experiment_log.json", &number));
    ck_assert_uint_eq(number, 3);
    ck_assert(!exists("ledger.json") && exists("experiment_log.json"));
    ck_assert_uint_eq(rows_of("experiment_log.json"), 3);
    ck_assert_uint_eq(rows_of("ledger.json"), 3); /* a path with the old name means the same log */
    CHECK_OK(record_row("ledger.json", &number));
    ck_assert_uint_eq(number, 4);
    ck_assert(!exists("ledger.json"));
}
END_TEST

/* A path given by a user is not renamed. */
START_TEST(a_given_path_with_the_old_name_stays)
{
    size_t number;
    CHECK_OK(record_row("ledger.json", &number));
    CHECK_OK(record_row("ledger.json", &number));
    ck_assert_uint_eq(number, 2);
    ck_assert(exists("ledger.json") && !exists("experiment_log.json"));
}
END_TEST

/* Neither of two logs is preferred, and nothing is written. */
START_TEST(both_names_of_an_experiment_log_are_an_error)
{
    static const char *const names[] = {"experiment_log.json", "ledger.json"};
    mgl_experiment_log all;
    size_t number;
    copy_log(names[0]);
    copy_log(names[1]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mgl_experiment_log_read(path_of(names[i]), &all, &err), MGL_BAD_INPUT);
        ck_assert_str_eq(err.where, path_of("ledger.json"));
        ck_assert_ptr_eq(strstr(err.message, "\"ledger.json\" is the old name of "
                                             "\"experiment_log.json\", which is in the same folder "
                                             "too: move the rows"),
                         err.message);
        ck_assert_int_eq(record_row(names[i], &number), MGL_BAD_INPUT);
    }
    ck_assert_int_eq(unlink(path_of("ledger.json")), 0);
    ck_assert_uint_eq(rows_of("experiment_log.json"), 2);
}
END_TEST

/* Each file operation of a write fails once: the folder has one log, with or without the row. */
START_TEST(a_failed_write_loses_no_row_of_an_old_experiment_log)
{
    size_t number;
    for (uint64_t at = 1; at < 20; at++) {
        unlink(path_of("experiment_log.json"));
        copy_log("ledger.json");
        mgl_file_fail_at(at);
        const mgl_status status = record_row("experiment_log.json", &number);
        mgl_file_fail_at(0);
        ck_assert_int_ne(exists("ledger.json"), exists("experiment_log.json"));
        ck_assert_uint_eq(rows_of("experiment_log.json"), status ? 2 : 3);
        ck_assert(status || !exists("ledger.json"));
    }
}
END_TEST

START_TEST(no_row_of_an_old_experiment_log_is_lost)
{
    copy_log("ledger.json");
    change_at_once(record_rows);
    ck_assert_uint_eq(rows_of("experiment_log.json"), 2 + PROCESSES * CHANGES);
    ck_assert(!exists("ledger.json"));
}
END_TEST

START_TEST(old_ptx_ideas_are_read)
{
    mgl_ptx_ideas all;
    CHECK_OK(mgl_ptx_ideas_read(KEPT "/ideas.json", &all, &err));
    ck_assert_uint_eq(all.count, 1);
    ck_assert_str_eq(all.rows[0].requires, "sm_80");
    ck_assert_uint_eq(all.rows[0].evidence_count, 2);
    mgl_ptx_ideas_clear(&all);
}
END_TEST

/* The texts were made from an older original text: they are read, and not compiled. */
START_TEST(an_old_overlay_is_read_and_rolled_back)
{
    mgl_overlay overlay;
    bool restored;
    copy_kept("overlay", "overlay");
    CHECK_OK(mgl_overlay_read(path_of("overlay"), &overlay, &err));
    ck_assert_int_eq(overlay.count, 1);
    ck_assert(overlay.entries[0].stale);
    ck_assert_str_eq(overlay.entries[0].bytes, "// the second promoted text\n");
    mgl_overlay_clear(&overlay);
    CHECK_OK(
        mgl_overlay_roll_back(path_of("overlay"), mgl_kernel_unit_find("merge"), &restored, &err));
    ck_assert(restored);
    CHECK_OK(mgl_overlay_read(path_of("overlay"), &overlay, &err));
    ck_assert_str_eq(overlay.entries[0].bytes, "// the first promoted text\n");
    ck_assert_str_eq(overlay.entries[0].evidence, "{\"gain\":0.02}");
    mgl_overlay_clear(&overlay);
}
END_TEST

/* A store of version 1 has no column of quarantined trials. */
START_TEST(an_old_store_is_migrated)
{
    char *sql;
    size_t length;
    sqlite3 *database;
    mgl_store *store;
    mgl_campaign_record campaign;
    mgl_trial trial;
    int64_t requests, tokens;
    CHECK_OK(mgl_file_read(KEPT "/store_1.sql", 1 << 16, &sql, &length, &err));
    ck_assert_int_eq(sqlite3_open(path_of("old.db"), &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    mgl_free(sql);
    ck_assert_int_eq(mgl_store_open(path_of("old.db"), false, &store, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "older") != NULL, "%s", err.message);
    CHECK_OK(mgl_store_open(path_of("old.db"), true, &store, &err));
    CHECK_OK(mgl_store_find_campaign(store, "a night", &campaign, &err));
    ck_assert_int_eq(campaign.incumbent, 1);
    ck_assert_uint_eq(campaign.seed, UINT64_MAX);
    CHECK_OK(mgl_store_get_trial(store, campaign.id, 1, true, &trial, &err));
    ck_assert_int_eq(trial.proposal.config.exchange_precision, 1);
    ck_assert_double_eq(trial.workloads[0].candidate_us, 485);
    ck_assert_int_eq(trial.pair_count, 1);
    ck_assert_uint_eq(trial.pairs[0].reasons, UINT64_MAX);
    ck_assert_int_eq(trial.quarantined, 0);
    CHECK_OK(mgl_store_sum_costs(store, campaign.id, &requests, &tokens, &err));
    ck_assert_int_eq(tokens, 30);
    mgl_trial_clear(&trial);
    mgl_campaign_record_clear(&campaign);
    mgl_store_close(store);
}
END_TEST

START_TEST(an_old_archive_is_read)
{
    char *text;
    size_t length;
    mgl_archive archive;
    CHECK_OK(mgl_file_read(MGL_SOURCE_DIR "/tests/fuzz/seeds/fuzz_archive/night.json",
                           MGL_ARCHIVE_MAX, &text, &length, &err));
    CHECK_OK(mgl_archive_parse(text, length, "night.json", &archive, &err));
    ck_assert_int_eq(archive.winner->number, 2);
    ck_assert_uint_eq(archive.share_count, 1);
    mgl_archive_clear(&archive);
    mgl_free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keeper");
    TCase *tests = tcase_create("keeper");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, an_object_comes_back_by_its_hash);
    tcase_add_test(tests, a_damaged_object_is_rejected);
    tcase_add_test(tests, objects_are_listed_and_found_by_their_first_digits);
    tcase_add_test(tests, no_row_of_the_experiment_log_is_lost);
    tcase_add_test(tests, no_evidence_of_a_ptx_idea_is_lost);
    tcase_add_test(tests, no_promoted_unit_is_lost);
    tcase_add_test(tests, a_folder_that_cannot_be_locked_is_no_error);
    tcase_add_test(tests, a_document_waits_for_its_lock);
    tcase_add_test(tests, old_versions_are_read);
    tcase_add_test(tests, an_old_open_work_is_read);
    tcase_add_test(tests, an_old_experiment_log_is_read);
    tcase_add_test(tests, an_experiment_log_gets_its_new_name);
    tcase_add_test(tests, a_given_path_with_the_old_name_stays);
    tcase_add_test(tests, both_names_of_an_experiment_log_are_an_error);
    tcase_add_test(tests, a_failed_write_loses_no_row_of_an_old_experiment_log);
    tcase_add_test(tests, no_row_of_an_old_experiment_log_is_lost);
    tcase_add_test(tests, old_ptx_ideas_are_read);
    tcase_add_test(tests, an_old_overlay_is_read_and_rolled_back);
    tcase_add_test(tests, an_old_store_is_migrated);
    tcase_add_test(tests, an_old_archive_is_read);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
