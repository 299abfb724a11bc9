/*
 * Tests of the MCP server by transcripts. Each file of mcp/ is a session with a new server. A line
 * `> ` is a message. Each following line `< ` is a pattern that the answer must match (`*`: any
 * bytes), and `! ` a pattern that it must not match. `<` alone: no answer. $FOLDER and $MODEL are
 * replaced. The store contains one campaign of five trials on no device. The server may read
 * $FOLDER/in, which contains texts of the micro-kernel merge, and $MODEL. `# allow-trials` on the
 * first line allows trials.
 */
#include "autotune/kernels/gates/unit.h"
#include "autotune/mcp/mcp.h"
#include "autotune/tune.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "tests/autotune/store/store_support.h"
#include "tests/time_limit.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL           MGL_SOURCE_DIR "/tests/models/tales-5m"
#define CASES           MGL_SOURCE_DIR "/tests/validator/cases/"
#define TRANSFORMATIONS MGL_SOURCE_DIR "/autotune/kernels/methods/transformations/"
#define PTX             MGL_SOURCE_DIR "/tests/autotune/kernels/ptx/"
#define SCRIPTS         MGL_SOURCE_DIR "/autotune/kernels/methods/scripts/"

#define SHARES                                                                                     \
    "{\"schema\":\"megalith.shares/1\",\"ops\":[{\"op\":\"merge\",\"us\":10,\"floor_us\":2},"      \
    "{\"op\":\"head\",\"us\":30,\"floor_us\":26}]}"
#define EXPERIMENT_LOG                                                                             \
    "{\"schema\":\"megalith.ledger/1\",\"rows\":[{\"op\":\"merge\",\"idea\":\"split_k\","          \
    "\"outcome\":\"NO_GAIN\",\"kept\":false}]}"

static const char *folder;
static mgl_error err;

/* ---- the scratch folder ---------------------------------------------------------------------- */

static void copy_case(const char *name, const char *to)
{
    char *text;
    size_t length;
    ck_assert_int_eq(mgl_file_read(name, 1 << 20, &text, &length, &err), MGL_OK);
    FILE *file = fopen(store_path(to), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    fclose(file);
    mgl_free(text);
}

/* Appends merge with a text inserted before a region: only that region, in a fence, or the whole
 * unit (ANY: inserted before the device region). */
static void put_merge(mgl_text *out, const char *added, mgl_kernel_region region)
{
    const bool all = region == MGL_KERNEL_REGION_ANY;
    size_t length;
    mgl_kernel_regions regions;
    const char *text = mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length);
    ck_assert_int_eq(mgl_kernel_regions_find(text, length, &regions, &err), MGL_OK);
    const size_t at = regions.of[all ? MGL_KERNEL_REGION_DEVICE : region].first;
    const size_t from = all ? 0 : at, end = all ? length : regions.of[region].end;
    mgl_text_format(out, "%s%.*s%s%.*s%s", all ? "" : "```cuda\n", (int)(at - from), text + from,
                    added, (int)(end - at), text + at, all ? "" : "```\n");
    ck_assert(!out->failed);
}

static void write_text(const char *name, mgl_text *text)
{
    FILE *file = fopen(store_path(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text->bytes, file);
    fclose(file);
    mgl_text_clear(text);
}

static void write_merge(const char *name, const char *added, mgl_kernel_region region)
{
    mgl_text text = {0};
    put_merge(&text, added, region);
    write_text(name, &text);
}

/* Answers to the calls of refactor. */
static void write_script(const char *name)
{
    static const mgl_kernel_region calls[] = {MGL_KERNEL_REGION_DEVICE, MGL_KERNEL_REGION_MACROS,
                                              MGL_KERNEL_REGION_DEVICE};
    mgl_json_out script = {0};
    mgl_text_put(&script.text, "[");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        mgl_text answer = {0};
        put_merge(&answer, i < 2 ? "" : "enum { REFACTORED_OF_MINE = 1 };\n", calls[i]);
        mgl_json_out_string(&script, NULL, answer.bytes);
        mgl_text_clear(&answer);
    }
    mgl_text_put(&script.text, "]");
    write_text(name, &script.text);
}

static void put_text(const char *name, const char *text)
{
    mgl_text copy = {0};
    mgl_text_put(&copy, text);
    write_text(name, &copy);
}

static void fill_folder(void)
{
    ck_assert_int_eq(mkdir(store_path("in"), 0700), 0);
    ck_assert_int_eq(mkdir(store_path("inner"), 0700), 0);
    copy_case(CASES "accept_plain.mls", "in/sound.mls");
    copy_case(CASES "accept_plain.mls", "inner/sound.mls");
    copy_case(CASES "accept_plain.mls", "outside.mls");
    copy_case(CASES "mg302_lost_wait.mls", "in/racy.mls");
    ck_assert_int_eq(symlink("sound.mls", store_path("in/link_inside.mls")), 0);
    ck_assert_int_eq(symlink("../outside.mls", store_path("in/link_outside.mls")), 0);
    ck_assert_int_eq(mkfifo(store_path("in/pipe"), 0600), 0);
    write_merge("in/merge.cuh", "", MGL_KERNEL_REGION_ANY);
    write_merge("in/more.cuh", "enum { MORE_OF_MINE = 1 };\n", MGL_KERNEL_REGION_ANY);
    write_merge("in/clock.cuh", "enum { MINE = clock };\n", MGL_KERNEL_REGION_ANY);
    write_merge("in/answer.md", "enum { MORE_OF_MINE = 1 };\n", MGL_KERNEL_REGION_DEVICE);
    write_merge("merge.cuh", "", MGL_KERNEL_REGION_ANY);
    write_merge("in/other.md", "enum { OTHER_OF_MINE = 1 };\n", MGL_KERNEL_REGION_DEVICE);
    write_script("in/script.json");
    put_text("in/shares.json", SHARES);
    put_text("shares.json", SHARES);
    put_text("in/experiment_log.json", EXPERIMENT_LOG);
    put_text("experiment_log.json", EXPERIMENT_LOG);
    put_text("in/secret", "root:x:0:0:root:/root:/bin/bash\n");
    put_text("in/secret.json", "{\"schema\": \"hunter2\"}\n");
    copy_case(PTX "ring.ptx", "in/ring.ptx");
    copy_case(PTX "bulk.ptx", "in/bulk.ptx");
    copy_case(PTX "ring.ptx", "ring.ptx");
    copy_case(TRANSFORMATIONS "offset.json", "in/offset.json");
    copy_case(TRANSFORMATIONS "offset.json", "offset.json");
    copy_case(SCRIPTS "sm_80.json", "in/sm_80.json");
}

static void run_campaign(void)
{
    const mgl_tune_request request = {
        .model = MODEL, .device = "none", .has_seed = true, .seed = 5, .name = "agents"};
    mgl_store *store = store_open(store_path("campaigns.db"));
    mgl_tune tune;
    ck_assert_msg(!mgl_tune_prepare(store, &request, true, &tune, &err), "%s", err.message);
    ck_assert_msg(!mgl_tune_run(&tune, &(mgl_tune_run_options){.max_trials = 5}, &err), "%s",
                  err.message);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
}

static void setup(void)
{
    folder = store_make_folder();
    setenv("XDG_DATA_HOME", store_path("data"), 1);
    fill_folder();
    run_campaign();
}

static mgl_mcp *open_server(bool allow_trials)
{
    char store[300], in[300], kernels[300];
    snprintf(store, sizeof store, "%s", store_path("campaigns.db"));
    snprintf(in, sizeof in, "%s", store_path("in"));
    snprintf(kernels, sizeof kernels, "%s", store_path("kernels"));
    mgl_mcp_options options = {.store = store,
                               .kernels = kernels,
                               .allow_trials = allow_trials,
                               .folders = {in, MODEL},
                               .folder_count = 2};
    mgl_mcp *mcp;
    ck_assert_msg(!mgl_mcp_open(&options, &mcp, &err), "%s", err.message);
    return mcp;
}

/* ---- transcripts ----------------------------------------------------------------------------- */

/* Glob matching: `*` matches any bytes. On a mismatch, the last `*` is extended by one byte. */
static bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *from = text;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static void replace(mgl_text *line, const char *name, const char *value)
{
    for (char *at; (at = strstr(line->bytes, name));) {
        mgl_text made = {0};
        mgl_text_append(&made, line->bytes, (size_t)(at - line->bytes));
        mgl_text_put(&made, value);
        mgl_text_put(&made, at + strlen(name));
        mgl_text_clear(line);
        *line = made;
    }
}

/* Handles a message like the verb: mgl_mcp_see on arrival, then mgl_mcp_handle. */
static mgl_text ask(mgl_mcp *mcp, const char *message)
{
    mgl_text answer = {0};
    mgl_mcp_see(mcp, message, strlen(message));
    ck_assert_int_eq(mgl_mcp_handle(mcp, message, strlen(message), &answer, &err), MGL_OK);
    mgl_text_put(&answer, "");
    ck_assert(!answer.failed);
    return answer;
}

/* Answers are one line of JSON. */
static void check_form(const char *where, const mgl_text *answer)
{
    mgl_json json;
    if (!answer->length)
        return;
    ck_assert_msg(!strchr(answer->bytes, '\n'), "%s: an answer of lines", where);
    ck_assert_msg(!mgl_json_parse(answer->bytes, answer->length, 1 << 24, "answer", &json, &err),
                  "%s: %s", where, err.message);
    mgl_json_clear(&json);
}

static void check_line(const char *name, int number, const char *line, const mgl_text *answer)
{
    const char *got = answer->bytes ? answer->bytes : "", *pattern = line + (line[1] ? 2 : 1);
    bool wanted = line[0] == '<';
    ck_assert_msg(matches(pattern, got) == wanted, "%s:%d: %s\n  the answer is %s", name, number,
                  line, got);
}

static void play_line(mgl_mcp *mcp, const char *name, int number, char *bytes, mgl_text *answer)
{
    mgl_text line = {0};
    mgl_text_put(&line, bytes);
    replace(&line, "$FOLDER", folder);
    replace(&line, "$MODEL", MODEL);
    if (line.bytes[0] == '>') {
        mgl_text_clear(answer);
        *answer = ask(mcp, line.bytes + 2);
        check_form(name, answer);
    } else if (line.bytes[0] != '#') {
        check_line(name, number, line.bytes, answer);
    }
    mgl_text_clear(&line);
}

static void play(const char *name)
{
    char path[600], *text, *rest;
    size_t length;
    mgl_text answer = {0};
    snprintf(path, sizeof path, MGL_SOURCE_DIR "/tests/autotune/mcp/transcripts/%s", name);
    ck_assert_int_eq(mgl_file_read(path, 1 << 20, &text, &length, &err), MGL_OK);
    mgl_mcp *mcp = open_server(!strncmp(text, "# allow-trials\n", 15));
    int number = 0;
    rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (number++, line[0])
            play_line(mcp, name, number, line, &answer);
    mgl_text_clear(&answer);
    mgl_mcp_close(mcp);
    mgl_free(text);
}

static int is_transcript(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && !strcmp(end, ".txt");
}

START_TEST(talks_go_as_written)
{
    struct dirent **entries;
    int count = scandir(MGL_SOURCE_DIR "/tests/autotune/mcp/transcripts", &entries, is_transcript,
                        alphasort);
    ck_assert_int_ge(count, 8);
    for (int i = 0; i < count; i++) {
        play(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}
END_TEST

/* ---- cases that need more than a transcript -------------------------------------------------- */

START_TEST(a_message_has_its_limit)
{
    size_t length = (size_t)MGL_MCP_MAX_MESSAGE + 1;
    mgl_mcp *mcp = open_server(false);
    mgl_text answer = {0};
    char *message = mgl_alloc_zero(length, 1);
    ck_assert_ptr_nonnull(message);
    memset(message, ' ', length);
    ck_assert_int_eq(mgl_mcp_handle(mcp, message, length, &answer, &err), MGL_OK);
    ck_assert_ptr_nonnull(strstr(answer.bytes, "\"code\":-32700"));
    mgl_text_clear(&answer);
    mgl_free(message);
    mgl_mcp_close(mcp);
}
END_TEST

/* No process runs the campaign, so there is never a verdict. */
#define PATIENT                                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":\"w\",\"method\":\"tools/call\",\"params\":{\"name\":"            \
    "\"submit_trial\",\"arguments\":{\"schedule\":\"x\",\"wait_s\":600}}}"

static void *ask_patiently(void *user)
{
    static mgl_text answer;
    answer = ask(user, PATIENT);
    return &answer;
}

/* Ids of submissions are numbered from 1. */
static int count_waiting(void)
{
    mgl_store *store = store_open(store_path("campaigns.db"));
    mgl_submission submission;
    int count = 0;
    while (!mgl_store_get_submission(store, count + 1, &submission, &err)) {
        mgl_submission_clear(&submission);
        count++;
    }
    mgl_store_close(store);
    return count;
}

/* Starts a request on a thread, and returns when the request waits for its submission. */
static pthread_t start_waiting(mgl_mcp *mcp)
{
    pthread_t thread;
    int before = count_waiting();
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_patiently, mcp), 0);
    while (count_waiting() == before)
        usleep(10000);
    return thread;
}

static mgl_text *end_waiting(pthread_t thread, double since)
{
    void *answer;
    ck_assert_int_eq(pthread_join(thread, &answer), 0);
    ck_assert_double_lt(mgl_clock_s() - since, time_limit(5));
    return answer;
}

START_TEST(a_wait_is_cancelled)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":\"w\"}}";
    mgl_mcp *mcp = open_server(true);
    pthread_t thread = start_waiting(mcp);
    double start = mgl_clock_s();
    mgl_mcp_see(mcp, cancel, strlen(cancel));
    mgl_text *answer = end_waiting(thread, start);
    ck_assert_uint_eq(answer->length, 0);
    mgl_text_clear(answer);
    mgl_mcp_close(mcp);
}
END_TEST

START_TEST(nobody_is_waited_for)
{
    mgl_mcp *mcp = open_server(true);
    pthread_t thread = start_waiting(mcp);
    double start = mgl_clock_s();
    mgl_mcp_end_waits(mcp);
    mgl_text *answer = end_waiting(thread, start);
    ck_assert_ptr_nonnull(strstr(answer->bytes, "\"state\":\"queued\""));
    mgl_text_clear(answer);
    mgl_mcp_close(mcp);
}
END_TEST

/* ---- spaces ---------------------------------------------------------------------------------- */

/* Adds a campaign with its own search space to a store of its own. */
static void add_formats_campaign(const char *path)
{
    static const char space[] =
        "{\"schema\": \"megalith.space/1\", \"knobs\": {\"rows\": [0, 16]}, "
        "\"moves\": [\"queues\"]}";
    char file[400];
    snprintf(file, sizeof file, "%s", store_path("space.json"));
    FILE *to = fopen(file, "w");
    ck_assert_ptr_nonnull(to);
    fputs(space, to);
    fclose(to);
    const mgl_tune_request request = {.model = MODEL, .device = "none", .space = file};
    mgl_store *store = store_open(path);
    mgl_tune tune;
    ck_assert_msg(!mgl_tune_prepare(store, &request, true, &tune, &err), "%s", err.message);
    mgl_tune_clear(&tune);
    mgl_store_close(store);
}

static mgl_json describe_space(const char *store)
{
    mgl_json json;
    mgl_mcp *mcp;
    mgl_mcp_options options = {.store = store};
    ck_assert_msg(!mgl_mcp_open(&options, &mcp, &err), "%s", err.message);
    mgl_text answer = ask(mcp, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                               "\"params\":{\"name\":\"describe_space\"}}");
    ck_assert_int_eq(mgl_json_parse(answer.bytes, answer.length, 1 << 24, "answer", &json, &err),
                     MGL_OK);
    mgl_text_clear(&answer);
    mgl_mcp_close(mcp);
    return json;
}

static const cJSON *part_of(const mgl_json *json, const char *part)
{
    return cJSON_GetObjectItem(
        cJSON_GetObjectItem(cJSON_GetObjectItem(json->root, "result"), "structuredContent"), part);
}

/* The entries of a list that are in the space; all have this name. */
static int count_in_space(const mgl_json *json, const char *list, const char *name)
{
    int count = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, part_of(json, list))
    {
        const cJSON *in = cJSON_GetObjectItem(row, "in_space");
        ck_assert(cJSON_IsBool(in));
        ck_assert(!cJSON_IsTrue(in) ||
                  !strcmp(cJSON_GetObjectItem(row, "name")->valuestring, name));
        ck_assert_int_eq(cJSON_HasObjectItem(row, "values_drawn"),
                         cJSON_IsTrue(in) && !strcmp(list, "knobs"));
        count += cJSON_IsTrue(in);
    }
    return count;
}

START_TEST(each_knob_says_whether_the_space_has_it)
{
    char path[300];
    snprintf(path, sizeof path, "%s", store_path("narrow.db"));
    add_formats_campaign(path);
    mgl_json json = describe_space(path);
    ck_assert_int_eq(count_in_space(&json, "knobs", "rows"), 1);
    ck_assert_int_eq(count_in_space(&json, "moves", "queues"), 1);
    ck_assert_int_eq(cJSON_GetArraySize(part_of(&json, "knobs")), mgl_knob_count());
    mgl_json_clear(&json);
}
END_TEST

START_TEST(without_a_campaign_there_is_no_space)
{
    mgl_json json = describe_space(store_path("nowhere.db"));
    ck_assert(cJSON_IsNull(part_of(&json, "campaign")));
    ck_assert_int_eq(cJSON_GetArraySize(part_of(&json, "knobs")), mgl_knob_count());
    ck_assert(!cJSON_HasObjectItem(cJSON_GetArrayItem(part_of(&json, "knobs"), 0), "in_space"));
    mgl_json_clear(&json);
}
END_TEST

/* ---- links of a model ------------------------------------------------------------------------ */

#define SMALL MGL_SOURCE_DIR "/tests/models/llama3-rope"

/* A folder in the layout of a Hugging Face cache, with files of a small model. */
static void fill_cache(const char *root)
{
    mgl_file_list files = {0};
    char from[600], to[600];
    snprintf(to, sizeof to, "%s/snapshots/rev", root);
    ck_assert_int_eq(mgl_folder_make(to, 0700, &err), MGL_OK);
    snprintf(to, sizeof to, "%s/blobs", root);
    ck_assert_int_eq(mgl_folder_make(to, 0700, &err), MGL_OK);
    ck_assert_int_eq(mgl_folder_list(SMALL, "", &files, &err), MGL_OK);
    for (size_t i = 0; i < files.count; i++) {
        snprintf(from, sizeof from, "cp %s/%s %s/blobs/%zu", SMALL, files.names[i], root, i);
        ck_assert_int_eq(system(from), 0);
        snprintf(from, sizeof from, "../../blobs/%zu", i);
        snprintf(to, sizeof to, "%s/snapshots/rev/%s", root, files.names[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    mgl_file_list_clear(&files);
}

/* The answer of check_schedule for a model if this folder may be read. */
static mgl_text check_with(const char *allowed, const char *model)
{
    char message[2000], in[300];
    snprintf(in, sizeof in, "%s", store_path("in"));
    mgl_mcp_options options = {.folders = {in, allowed}, .folder_count = 2};
    mgl_mcp *mcp;
    ck_assert_msg(!mgl_mcp_open(&options, &mcp, &err), "%s", err.message);
    snprintf(message, sizeof message,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"check_schedule\",\"arguments\":{\"path\":\"%s/sound.mls\",\"model\":\"%s\"}}}",
             in, model);
    mgl_text answer = ask(mcp, message);
    mgl_mcp_close(mcp);
    return answer;
}

static void expect(const char *allowed, const char *model, const char *part)
{
    mgl_text answer = check_with(allowed, model);
    ck_assert_msg(strstr(answer.bytes, part) != NULL, "no %s: %.500s", part, answer.bytes);
    mgl_text_clear(&answer);
}

START_TEST(a_snapshot_may_link_to_its_blobs)
{
    char root[300], snapshot[400], file[500];
    snprintf(root, sizeof root, "%s", store_path("models--org--name"));
    snprintf(snapshot, sizeof snapshot, "%s/snapshots/rev", root);
    fill_cache(root);
    expect(root, snapshot, "\"isError\":false");
    expect(snapshot, snapshot, "\"isError\":false");
    ck_assert_int_eq(symlink("../../outside.mls", store_path("models--org--name/blobs/x")), 0);
    snprintf(file, sizeof file, "%s/more.json", snapshot);
    ck_assert_int_eq(symlink("../../blobs/x", file), 0);
    expect(snapshot, snapshot, "more.json is a link that leads out");
}
END_TEST

/* Links in a folder of another name lead outside and are rejected. */
START_TEST(a_model_may_not_link_outside)
{
    char root[300], snapshot[400];
    snprintf(root, sizeof root, "%s", store_path("plain"));
    snprintf(snapshot, sizeof snapshot, "%s/snapshots/rev", root);
    fill_cache(root);
    expect(snapshot, snapshot, "is a link that leads out of the folders");
    expect(root, snapshot, "\"isError\":false");
}
END_TEST

/* Reading a kernel session that does not exist does not create it. */
START_TEST(looking_at_a_kernel_session_leaves_nothing)
{
    char kernels[300];
    snprintf(kernels, sizeof kernels, "%s", store_path("untouched"));
    mgl_mcp_options options = {.kernels = kernels, .allow_trials = true};
    mgl_mcp *mcp;
    ck_assert_int_eq(mgl_mcp_open(&options, &mcp, &err), MGL_OK);
    mgl_text answer =
        ask(mcp, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"kernel_next\",\"arguments\":{\"unit\":\"merge\"}}}");
    ck_assert_ptr_nonnull(strstr(answer.bytes, "\"isError\":false"));
    ck_assert_int_ne(access(kernels, F_OK), 0);
    mgl_text_clear(&answer);
    mgl_mcp_close(mcp);
}
END_TEST

START_TEST(a_folder_has_to_stand)
{
    mgl_mcp_options options = {.folders = {"/nowhere/at/all"}, .folder_count = 1};
    mgl_mcp *mcp;
    ck_assert_int_eq(mgl_mcp_open(&options, &mcp, &err), MGL_BAD_INPUT);
    ck_assert_ptr_null(mcp);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mcp");
    TCase *tests = tcase_create("mcp");
    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, setup, store_remove_folder);
    tcase_add_test(tests, talks_go_as_written);
    tcase_add_test(tests, a_message_has_its_limit);
    tcase_add_test(tests, a_wait_is_cancelled);
    tcase_add_test(tests, nobody_is_waited_for);
    tcase_add_test(tests, each_knob_says_whether_the_space_has_it);
    tcase_add_test(tests, without_a_campaign_there_is_no_space);
    tcase_add_test(tests, a_snapshot_may_link_to_its_blobs);
    tcase_add_test(tests, a_model_may_not_link_outside);
    tcase_add_test(tests, looking_at_a_kernel_session_leaves_nothing);
    tcase_add_test(tests, a_folder_has_to_stand);
    suite_add_tcase(suite, tests);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
