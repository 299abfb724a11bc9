/* Tests of `tune` and the words of `campaign` as users call them, on no device. */
#include "command.h"

#include "autotune/runner/sandbox.h"
#include "autotune/store/store.h"
#include "base/file.h"
#include "base/memory.h"
#include "tests/sanitized.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static command_result tune(const char *store, const char *flags)
{
    return command_runf("tune %s --device none --seed 5 --store %s %s", model_path("tales-5m"),
                        store, flags);
}

/* Runs a subcommand of `campaign` that must succeed. Returns its JSON object. */
static mgl_json ask(const char *word, const char *store)
{
    command_result result = command_runf("campaign %s --store %s --json", word, store);
    ck_assert_msg(result.code == 0, "campaign %s: exit %d: %s", word, result.code, result.err);
    mgl_json json = command_json(&result, "megalith.campaign/1");
    command_clear(&result);
    return json;
}

/* ---- tune ------------------------------------------------------------------------------------ */

START_TEST(it_tunes_a_shape_on_no_device)
{
    /* A build with sanitizers runs fewer trials, because each trial executes the same code. */
    enum { TRIALS = BY_SANITIZER(6, 2) };
    const char *store = scratch_store("shape");
    command_result result = command_runf(
        "tune --shape smollm2-135m --device none --seed 5 --trials %d --store %s --json", TRIALS,
        store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "state"), "ended");
    ck_assert_int_eq((int)json_number(&json, "trials"), TRIALS);
    ck_assert(cJSON_IsNull(json_at(&json, "best")));
    ck_assert_double_gt(json_number(&json, "outcomes.UNMEASURED"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* The start config with these rows in the second list. */
static const char *config_of_second(int second_rows)
{
    char text[96];
    snprintf(text, sizeof text,
             "{\"schema\": \"megalith.config/1\", \"rows\": 4, \"second_rows\": %d}", second_rows);
    return scratch_file("second.json", text);
}

START_TEST(it_tunes_for_as_many_sequences_as_the_second_list_has_rows)
{
    const char *store = scratch_store("many");
    command_result result = command_runf("tune %s --device none --seed 5 --trials 4 --store %s "
                                         "--config %s --workloads 'batch=1,64' --json",
                                         model_path("tales-5m"), store, config_of_second(64));
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "state"), "ended");
    ck_assert_double_gt(json_number(&json, "outcomes.UNMEASURED"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(it_tunes_for_a_second_list_that_nobody_asked_for)
{
    const char *store = scratch_store("unasked");
    command_result result = tune(store, "--trials 1 --workloads 'batch=17' --quiet --dtype bf16");
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(sequences_that_can_have_no_list_say_why)
{
    const char *store = scratch_store("few");
    command_result result = tune(store, "--trials 1 --workloads 'batch=17' --quiet --dtype f16");
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "on a GPU gamma-scaled values are bf16"));
    command_clear(&result);
}
END_TEST

START_TEST(a_cpu_runs_the_second_list)
{
    const char *store = scratch_store("manycpu");
    command_result result = command_runf(
        "tune %s --device cpu --seed 3 --trials 1 --proposer random --store %s --quiet "
        "--capacity 64 --workloads 'batch=17' --config %s",
        model_path("tales-5m"), store, config_of_second(20));
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_result history = command_runf("campaign history --store %s", store);
    ck_assert_msg(strstr(history.out, "UNMEASURED random: correct"), "%s", history.out);
    command_clear(&result);
    command_clear(&history);
}
END_TEST

/* A worker executes candidates on a CPU, and its durations are not reported as measured times. */
START_TEST(a_cpu_tells_what_is_correct)
{
    const char *store = scratch_store("cpu");
    command_result result = command_runf(
        "tune %s --device cpu --seed 3 --trials 3 --proposer random --store %s --quiet",
        model_path("tales-5m"), store);
    ck_assert_msg(result.code == 0, "%s", result.err);
    command_result history = command_runf("campaign history --store %s", store);
    ck_assert_ptr_nonnull(strstr(history.out, "UNMEASURED random: correct"));
    command_clear(&result);
    command_clear(&history);
}
END_TEST

static mgl_status count_sandbox(void *user, int64_t unix_s, const char *kind, const char *text,
                                mgl_error *err)
{
    (void)unix_s, (void)text, (void)err;
    *(int *)user += !strcmp(kind, "sandbox");
    return MGL_OK;
}

/* Events of the first campaign that report the sandbox. */
static int sandbox_events(const char *path)
{
    mgl_store *store;
    mgl_error err = {0};
    int count = 0;
    ck_assert_msg(!mgl_store_open(path, false, &store, &err), "%s", err.message);
    ck_assert_int_eq(mgl_store_each_event(store, 1, count_sandbox, &count, &err), MGL_OK);
    mgl_store_close(store);
    return count;
}

START_TEST(a_campaign_without_the_sandbox_says_so)
{
    const char *store = scratch_store("sandbox");
    command_result result = command_runf(
        "tune %s --device cpu --seed 3 --trials 1 --proposer random --store %s --no-sandbox "
        "--capacity 64 --workloads 'ctx=0;batch=1'",
        model_path("tales-5m"), store);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.err, "sandbox: the workers have none (--no-sandbox)"));
    ck_assert_int_eq(sandbox_events(store), 1);
    command_clear(&result);
}
END_TEST

/* On a machine that supports the whole sandbox. */
START_TEST(a_whole_sandbox_is_no_event)
{
    const char *store = scratch_store("whole");
    mgl_sandbox has;
    mgl_sandbox_look(&has);
    command_result result = command_runf(
        "tune %s --device cpu --seed 3 --trials 1 --proposer random --store %s --quiet "
        "--capacity 64 --workloads 'ctx=0;batch=1'",
        model_path("tales-5m"), store);
    ck_assert_int_eq(result.code, 0);
    ck_assert_int_eq(sandbox_events(store), has.missing[0] != 0);
    command_clear(&result);
}
END_TEST

/* A campaign continues only on its kind of device, because its times (or their absence) belong to
 * that kind. */
START_TEST(it_stays_on_its_kind_of_device)
{
    const char *store = scratch_store("kind");
    command_result begun = tune(store, "--trials 1 --quiet");
    command_result other =
        command_runf("campaign resume --store %s --device cpu --trials 2 --quiet", store);
    ck_assert_msg(begun.code == 0, "%s", begun.err);
    ck_assert_int_eq(other.code, 1);
    ck_assert_ptr_nonnull(strstr(other.err, "runs on none, and this device is cpu"));
    command_clear(&begun);
    command_clear(&other);
}
END_TEST

/* The start configuration fits the runner: the first token precedes the counted tokens. */
START_TEST(small_capacities_have_room_for_their_workloads)
{
    command_result tight = tune(scratch_store("tight"), "--dry-run --capacity 32");
    command_result room = tune(scratch_store("room"), "--dry-run --capacity 64");
    ck_assert_int_eq(tight.code, 1);
    ck_assert_ptr_nonnull(strstr(tight.err, "do not fit into 32 positions"));
    ck_assert_msg(room.code == 0, "%s", room.err);
    ck_assert_ptr_nonnull(strstr(room.out, "ctx=0;batch=1"));
    command_clear(&tight);
    command_clear(&room);
}
END_TEST

/* A campaign's name is used as an argument of other programs, so some characters are rejected. */
START_TEST(a_name_is_no_option)
{
    command_result result = tune(scratch_store("option"), "--trials 1 --name=--on-event=reboot");
    command_result spelled = tune(scratch_store("option"), "--trials 1 --name --quiet");
    ck_assert_int_eq(result.code, 1);
    ck_assert_int_eq(spelled.code, 1);
    command_clear(&result);
    command_clear(&spelled);
}
END_TEST

/* The limit of hours is for the whole campaign: 0 hours end at once, and are not `no limit`. */
START_TEST(no_hours_are_over_at_once)
{
    command_result result = tune(scratch_store("hours"), "--hours 0");
    ck_assert_msg(result.code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.err, "hours are over"));
    command_clear(&result);
}
END_TEST

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

/* Does not print a line per trial: prints each new best, the last state, and once that nothing is
 * measured. */
START_TEST(it_prints_its_progress)
{
    command_result result = tune(scratch_store("lines"), "--trials 12");
    ck_assert_int_eq(count_of(result.err, "not executed or measured"), 1);
    ck_assert_int_eq(count_of(result.err, "measured"), 1);
    ck_assert_int_eq(count_of(result.err, "UNMEASURED"), 0);
    ck_assert_int_eq(count_of(result.err, "waits:"), 0);
    ck_assert_int_ge(count_of(result.err, " of 12 trials, best predicted "), 1);
    ck_assert_int_lt(count_of(result.err, " of 12 trials, "), 12);
    ck_assert_ptr_nonnull(strstr(result.err, "megalith tune: 12 of 12 trials, best"));
    ck_assert_ptr_nonnull(strstr(result.err, "us (trial "));
    ck_assert_ptr_nonnull(strstr(result.err, "; default "));
    ck_assert_ptr_nonnull(strstr(result.err, "end: its 12 trials are made"));
    ck_assert_ptr_nonnull(strstr(result.out, "trials    12 in "));
    command_clear(&result);
}
END_TEST

START_TEST(verbose_it_prints_a_line_a_trial)
{
    command_result result = tune(scratch_store("verbose"), "--trials 3 --verbose");
    ck_assert_ptr_nonnull(strstr(result.err, "megalith tune: 1 UNMEASURED "));
    ck_assert_ptr_nonnull(strstr(result.err, "megalith tune: 3 "));
    ck_assert_ptr_nonnull(strstr(result.err, "megalith tune: waits: of "));
    ck_assert_int_eq(count_of(result.err, " of 3 trials"), 0);
    command_clear(&result);
}
END_TEST

START_TEST(quiet_it_says_nothing)
{
    command_result result = tune(scratch_store("quiet"), "--trials 2 --quiet");
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.err, "");
    command_clear(&result);
}
END_TEST

/* The digests of a campaign's trials. */
static void list_digests(const char *store, char *to, size_t size)
{
    size_t length = 0;
    mgl_json json = ask("history", store);
    const cJSON *trial;
    to[0] = 0;
    cJSON_ArrayForEach(trial, json_at(&json, "trials"))
    {
        const cJSON *digest = mgl_json_member(trial, "digest");
        const char *text = cJSON_IsString(digest) ? digest->valuestring : "-";
        length += (size_t)snprintf(to + length, size - length, "%.12s ", text);
        ck_assert_uint_lt(length, size);
    }
    mgl_json_clear(&json);
}

START_TEST(the_same_command_goes_on)
{
    char whole[2000], parts[2000], a[300];
    snprintf(a, sizeof a, "%s", scratch_store("whole"));
    command_result one = tune(a, "--trials 12 --quiet");
    const char *b = scratch_store("parts");
    command_result two = tune(b, "--trials 5 --quiet"), three = tune(b, "--trials 12 --quiet");
    ck_assert_int_eq(one.code + two.code + three.code, 0);
    list_digests(a, whole, sizeof whole);
    list_digests(b, parts, sizeof parts);
    ck_assert_str_eq(whole, parts);
    command_clear(&one);
    command_clear(&two);
    command_clear(&three);
}
END_TEST

START_TEST(other_flags_do_not_go_on)
{
    const char *store = scratch_store("flags");
    command_result first = tune(store, "--trials 1 --quiet");
    command_result other = tune(store, "--trials 2 --quiet --proposer random");
    command_result fresh = tune(store, "--trials 2 --quiet --proposer random --new");
    ck_assert_int_eq(first.code, 0);
    ck_assert_int_eq(other.code, 1);
    ck_assert_ptr_nonnull(strstr(other.err, "--new begins a new campaign"));
    ck_assert_int_eq(fresh.code, 0);
    mgl_json json = ask("list", store);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "campaigns")), 2);
    mgl_json_clear(&json);
    command_clear(&first);
    command_clear(&other);
    command_clear(&fresh);
}
END_TEST

START_TEST(a_dry_run_makes_nothing)
{
    const char *store = scratch_store("dry");
    command_result result = tune(store, "--dry-run --json");
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert(cJSON_IsTrue(json_at(&json, "dry_run")));
    ck_assert_double_gt(json_number(&json, "configs"), 1);
    ck_assert_double_gt(json_number(&json, "trials_a_night"), 1);
    ck_assert_int_ne(access(store, F_OK), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(a_dry_run_knows_what_stands)
{
    const char *store = scratch_store("dry_again");
    command_result made = tune(store, "--name twice --trials 1 --quiet");
    command_result result =
        tune(store, "--name twice --dry-run --json --workloads 'ctx=0,512;batch=1'");
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert(cJSON_IsTrue(json_at(&json, "goes_on")));
    ck_assert_int_eq((int)json_number(&json, "trials"), 1);
    ck_assert_int_eq((int)json_number(&json, "programs"), 1);
    command_result other = tune(store, "--name twice --dry-run --workloads 'ctx=0;batch=1,2'");
    ck_assert_int_eq(other.code, 1);
    mgl_json_clear(&json);
    command_clear(&made);
    command_clear(&result);
    command_clear(&other);
}
END_TEST

START_TEST(a_dry_run_counts_its_machines)
{
    command_result result =
        tune(scratch_store("dry_machines"), "--dry-run --workloads 'ctx=0,512;batch=1,2'");
    ck_assert_ptr_nonnull(strstr(result.out, "machines  two at a time, incumbent and candidate; "
                                             "2 programs: one for each number"));
    command_clear(&result);
}
END_TEST

START_TEST(a_dry_run_finds_the_disk_of_a_folder_to_come)
{
    char store[400];
    snprintf(store, sizeof store, "%s/to/come/campaigns.db", scratch_folder());
    command_result result = tune(store, "--dry-run --json");
    ck_assert_msg(result.code == 0, "%s", result.err);
    mgl_json json = command_json(&result, "megalith.tune/1");
    ck_assert_double_gt(json_number(&json, "disk_free_bytes"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

/* "exp" does not match "exp-2024". Names made by --new count up from it. */
START_TEST(a_name_is_the_whole_of_it)
{
    const char *store = scratch_store("whole_name");
    static const char *const flags[] = {"--name exp-2024", "--name exp", "--name exp --new",
                                        "--name exp"};
    static const char *const names[] = {"exp-2024", "exp", "exp-2", "exp"};
    for (int i = 0; i < 4; i++) {
        char line[100];
        snprintf(line, sizeof line, "%s --trials %d --quiet --json", flags[i], i + 1);
        command_result result = tune(store, line);
        ck_assert_msg(result.code == 0, "%s", result.err);
        mgl_json json = command_json(&result, "megalith.tune/1");
        ck_assert_str_eq(json_string(&json, "name"), names[i]);
        mgl_json_clear(&json);
        command_clear(&result);
    }
    mgl_json json = ask("list", store);
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "campaigns")), 3);
    mgl_json_clear(&json);
}
END_TEST

/* Rejected options, and the messages. */
static const struct {
    const char *flags, *message;
} refused[] = {
    {"--disk 4X", "--disk: not a size: \"4X\""},
    {"--new --rebase", "leave out one of the two"},
    {"--until-gain 0", "--until-gain: must be a percentage above 0"},
    {"--until-gain -1", "--until-gain: out of range: -1"},
    {"--proposer evolve:0", "the share of evolve"},
    {"--proposer oracle", "unknown proposer: \"oracle\""},
    {"--report /dev/null/nowhere/page.html", "/dev/null/nowhere"},
    {"--chat-key-file /dev/null/nowhere/key", "/dev/null/nowhere/key"},
};

/* A rejected command must not add a campaign, which would block the corrected command. */
START_TEST(what_is_rejected_adds_no_campaign)
{
    char name[32], flags[256];
    snprintf(name, sizeof name, "refused%d", _i);
    snprintf(flags, sizeof flags, "--trials 1 %s", refused[_i].flags);
    const char *store = scratch_store(name);
    command_result result = tune(store, flags);
    ck_assert_int_ne(result.code, 0);
    ck_assert_msg(strstr(result.err, refused[_i].message) != NULL, "%s", result.err);
    if (!access(store, F_OK)) {
        mgl_json json = ask("list", store);
        ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "campaigns")), 0);
        mgl_json_clear(&json);
    }
    command_clear(&result);
}
END_TEST

START_TEST(a_name_leaves_out_the_path)
{
    const char *store = scratch_store("names");
    command_result result = tune(store, "--trials 1 --json --quiet");
    ck_assert_ptr_null(strstr(result.out, "tests/models"));
    ck_assert_ptr_nonnull(strstr(result.out, "\"model\":\"model-"));
    command_clear(&result);
}
END_TEST

/* ---- campaign -------------------------------------------------------------------------------- */

START_TEST(status_tells_how_far_it_is)
{
    const char *store = scratch_store("status");
    command_result result = tune(store, "--trials 4 --quiet --name night");
    mgl_json json = ask("status night", store);
    ck_assert_str_eq(json_string(&json, "name"), "night");
    ck_assert_int_eq((int)json_number(&json, "trials"), 4);
    ck_assert_str_eq(json_string(&json, "reason"), "its 4 trials are made");
    mgl_json_clear(&json);
    command_clear(&result);
    ck_assert_int_eq(command_code("campaign status day --store %s", store), 2);
}
END_TEST

START_TEST(history_is_a_line_a_trial)
{
    const char *store = scratch_store("history");
    command_result made = tune(store, "--trials 4 --quiet");
    command_result all = command_runf("campaign history --store %s", store);
    command_result some = command_runf("campaign history --store %s --from 2 --limit 1", store);
    command_result last = command_runf("campaign history --store %s --limit 2", store);
    int lines = 0;
    for (const char *at = all.out; *at; at++)
        lines += *at == '\n';
    ck_assert_int_eq(lines, 4);
    ck_assert_int_eq(strncmp(some.out, "2 ", 2), 0);
    ck_assert_ptr_null(strchr(strchr(some.out, '\n') + 1, '\n'));
    ck_assert_int_eq(strncmp(last.out, "3 ", 2), 0);
    ck_assert_ptr_nonnull(strstr(last.out, "\n4 "));
    command_clear(&last);
    command_clear(&made);
    command_clear(&all);
    command_clear(&some);
}
END_TEST

START_TEST(next_says_what_is_wanted)
{
    const char *store = scratch_store("next");
    command_result made = tune(store, "--trials 4 --quiet");
    mgl_json json = ask("next", store);
    ck_assert_str_eq(json_string(&json, "space.schema"), "megalith.space/1");
    ck_assert_int_eq(cJSON_GetArraySize(json_at(&json, "last")), 4);
    ck_assert_ptr_nonnull(json_string(&json, "how"));
    mgl_json_clear(&json);
    command_clear(&made);
}
END_TEST

START_TEST(the_best_is_what_submit_takes)
{
    const char *store = scratch_store("best");
    command_result made = tune(store, "--trials 1 --quiet");
    char file[300];
    snprintf(file, sizeof file, "%s/best.json", scratch_folder());
    command_result best = command_runf("campaign best --store %s -o %s", store, file);
    command_result submitted = command_runf("campaign submit %s --store %s", file, store);
    ck_assert_int_eq(best.code, 0);
    ck_assert_msg(submitted.code == 0, "%s", submitted.err);
    ck_assert_str_eq(submitted.out, "1\n");
    command_clear(&made);
    command_clear(&best);
    command_clear(&submitted);
}
END_TEST

/* An archive of a GPU's campaign on a machine without a GPU: the winner is replayed and
 * validated. */
START_TEST(an_archive_is_imported_without_its_device)
{
    const char *store = scratch_store("imported");
    command_result made = command_runf(
        "campaign import %s/paper/results/h200-campaign-qwen2.5.json --name far --device none "
        "--store %s",
        MGL_SOURCE_DIR, store);
    ck_assert_msg(made.code == 0, "%s", made.err);
    command_result run =
        command_runf("campaign resume far --trials 1 --store %s --quiet --json", store);
    ck_assert_msg(run.code == 0, "%s", run.err);
    mgl_json json = command_json(&run, "megalith.tune/1");
    ck_assert_str_eq(json_string(&json, "device"), "none");
    ck_assert_int_eq((int)json_number(&json, "trials"), 1);
    command_result history = command_runf("campaign history far --store %s", store);
    ck_assert_msg(!strncmp(history.out, "1 UNMEASURED import: ", 21) ||
                      strstr(history.out, "DUPLICATE import: the program that"),
                  "%s", history.out);
    mgl_json_clear(&json);
    command_clear(&made);
    command_clear(&run);
    command_clear(&history);
}
END_TEST

START_TEST(nothing_kept_is_nothing_to_export)
{
    const char *store = scratch_store("export");
    command_result made = tune(store, "--trials 1 --quiet --proposer external --hours 0");
    ck_assert_int_eq(command_code("campaign export --store %s", store), 2);
    ck_assert_int_eq(command_code("campaign best --install --store %s", store), 2);
    command_clear(&made);
}
END_TEST

START_TEST(a_report_is_one_page)
{
    const char *store = scratch_store("report");
    command_result made = tune(store, "--trials 3 --quiet");
    char file[300];
    snprintf(file, sizeof file, "%s/report.html", scratch_folder());
    command_result text = command_runf("campaign report --store %s", store);
    command_result page = command_runf("campaign report --store %s -o %s", store, file);
    ck_assert_int_eq(text.code + page.code, 0);
    ck_assert_int_eq(text.out[0], '#');
    ck_assert_int_eq(access(file, F_OK), 0);
    command_clear(&made);
    command_clear(&text);
    command_clear(&page);
}
END_TEST

START_TEST(tune_writes_its_report)
{
    const char *store = scratch_store("page");
    char file[300], options[400];
    snprintf(file, sizeof file, "%s/page.html", scratch_folder());
    snprintf(options, sizeof options, "--trials 2 --quiet --report %s", file);
    command_result made = tune(store, options);
    ck_assert_int_eq(made.code, 0);
    char *page;
    size_t length;
    ck_assert_int_eq(mgl_file_read(file, 1 << 20, &page, &length, NULL), MGL_OK);
    ck_assert_ptr_nonnull(strstr(page, "<b>trials</b>2<"));
    ck_assert_ptr_null(strstr(page, "http-equiv")); /* it has ended */
    mgl_free(page);
    command_clear(&made);
}
END_TEST

START_TEST(a_report_that_cannot_be_written_is_said_first)
{
    const char *store = scratch_store("nowhere");
    command_result made = tune(store, "--trials 2 --report /dev/null/nowhere/page.html");
    ck_assert_int_ne(made.code, 0);
    ck_assert_ptr_nonnull(strstr(made.err, "/nowhere"));
    ck_assert_ptr_null(strstr(made.err, "UNMEASURED"));
    command_clear(&made);
}
END_TEST

START_TEST(a_report_does_not_replace_its_store)
{
    const char *store = scratch_store("kept");
    command_result made = tune(store, "--trials 1 --quiet");
    command_result page = command_runf("campaign report --store %s -o %s", store, store);
    ck_assert_int_ne(page.code, 0);
    ck_assert_int_eq(command_code("campaign status --store %s", store), 0);
    command_clear(&made);
    command_clear(&page);
}
END_TEST

START_TEST(what_has_ended_is_not_stopped)
{
    const char *store = scratch_store("stop");
    command_result made = tune(store, "--trials 1 --quiet --name night");
    command_result stop = command_runf("campaign stop night --store %s", store);
    ck_assert_int_eq(stop.code, 0);
    ck_assert_str_eq(stop.out, "night has already ended\n");
    mgl_json json = ask("status night", store);
    ck_assert_str_eq(json_string(&json, "state"), "ended");
    ck_assert_str_eq(json_string(&json, "reason"), "its 1 trials are made");
    mgl_json_clear(&json);
    command_clear(&stop);
    command_clear(&made);
}
END_TEST

START_TEST(what_is_deleted_is_gone)
{
    const char *store = scratch_store("delete");
    command_result made = tune(store, "--trials 1 --quiet --name night");
    ck_assert_int_eq(command_code("campaign delete night --store %s", store), 0);
    ck_assert_int_eq(command_code("campaign status night --store %s", store), 2);
    command_clear(&made);
}
END_TEST

START_TEST(every_word_has_help)
{
    static const char *const words[] = {"list",    "status", "next",   "submit",
                                        "history", "best",   "report", "export",
                                        "import",  "stop",   "resume", "delete"};
    command_result all = command_run("campaign --help", NULL);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        command_result one = command_runf("campaign %s --help", words[i]);
        command_result help = command_runf("help campaign %s", words[i]);
        ck_assert_ptr_nonnull(strstr(all.out, words[i]));
        ck_assert_ptr_nonnull(strstr(one.out, "Example:\n  megalith campaign "));
        ck_assert_str_eq(one.out, help.out);
        command_clear(&one);
        command_clear(&help);
    }
    command_clear(&all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli tune");
    TCase *tests = tcase_create("tune");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, it_tunes_a_shape_on_no_device);
    tcase_add_test(tests, it_tunes_for_as_many_sequences_as_the_second_list_has_rows);
    tcase_add_test(tests, it_tunes_for_a_second_list_that_nobody_asked_for);
    tcase_add_test(tests, sequences_that_can_have_no_list_say_why);
    if (!MGL_SANITIZED) { /* under sanitizers, tests/autotune/runner/test_real.c covers these
                             workers */
        tcase_add_test(tests, a_cpu_runs_the_second_list);
        tcase_add_test(tests, a_cpu_tells_what_is_correct);
    }
    tcase_add_test(tests, a_campaign_without_the_sandbox_says_so);
    tcase_add_test(tests, a_whole_sandbox_is_no_event);
    tcase_add_test(tests, it_stays_on_its_kind_of_device);
    tcase_add_test(tests, small_capacities_have_room_for_their_workloads);
    tcase_add_test(tests, a_name_is_no_option);
    tcase_add_test(tests, no_hours_are_over_at_once);
    tcase_add_test(tests, it_prints_its_progress);
    tcase_add_test(tests, verbose_it_prints_a_line_a_trial);
    tcase_add_test(tests, quiet_it_says_nothing);
    tcase_add_test(tests, the_same_command_goes_on);
    tcase_add_test(tests, other_flags_do_not_go_on);
    tcase_add_test(tests, a_dry_run_makes_nothing);
    tcase_add_test(tests, a_dry_run_knows_what_stands);
    tcase_add_test(tests, a_dry_run_counts_its_machines);
    tcase_add_test(tests, a_dry_run_finds_the_disk_of_a_folder_to_come);
    tcase_add_test(tests, a_name_is_the_whole_of_it);
    tcase_add_loop_test(tests, what_is_rejected_adds_no_campaign, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, a_name_leaves_out_the_path);
    tcase_add_test(tests, status_tells_how_far_it_is);
    tcase_add_test(tests, history_is_a_line_a_trial);
    tcase_add_test(tests, next_says_what_is_wanted);
    tcase_add_test(tests, the_best_is_what_submit_takes);
    tcase_add_test(tests, an_archive_is_imported_without_its_device);
    tcase_add_test(tests, nothing_kept_is_nothing_to_export);
    tcase_add_test(tests, a_report_is_one_page);
    tcase_add_test(tests, tune_writes_its_report);
    tcase_add_test(tests, a_report_does_not_replace_its_store);
    tcase_add_test(tests, a_report_that_cannot_be_written_is_said_first);
    tcase_add_test(tests, what_has_ended_is_not_stopped);
    tcase_add_test(tests, what_is_deleted_is_gone);
    tcase_add_test(tests, every_word_has_help);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
