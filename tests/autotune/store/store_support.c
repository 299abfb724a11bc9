/* Implements the helpers of the store's tests. See store_support.h. */
#include "tests/autotune/store/store_support.h"

#include "autotune/store/store_query.h"
#include "base/memory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Also used where no test is running, so without Check. */
static void must(bool holds, const mgl_error *err, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "store_support: %s: %s: %s\n", what, err ? err->where : "",
            err ? err->message : "");
    abort();
}

/* ---- a folder ------------------------------------------------------------------------------- */

static char folder[200];
static const char *server; /* URL; NULL: a file */

void store_use_server(const char *url)
{
    server = url;
}

const char *store_at(const char *name)
{
    return server ? server : store_path(name);
}

const char *store_place(void)
{
    return store_at("store.db");
}

static void empty_server(void)
{
    mgl_error err = {0};
    mgl_store *store = store_open(server);
    must(!mgl_store_execute(store, "DROP SCHEMA megalith CASCADE", &err), &err, "it stays full");
    mgl_store_close(store);
}

const char *store_make_folder(void)
{
    snprintf(folder, sizeof folder, "%s/store-XXXXXX", MGL_BINARY_DIR);
    must(mkdtemp(folder) != NULL, NULL, "no folder");
    setenv("XDG_STATE_HOME", folder, 1);
    if (server)
        empty_server();
    return folder;
}

static int remove_one(const char *path, const struct stat *facts, int flag, struct FTW *place)
{
    (void)facts, (void)flag, (void)place;
    return remove(path);
}

void store_remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *store_path(const char *name)
{
    static char paths[16][300];
    static int next;
    char *path = paths[next++ % 16];
    must(folder[0] != 0, NULL, "store_make_folder comes first");
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

mgl_store *store_open(const char *path)
{
    mgl_error err = {0};
    mgl_store *store = NULL;
    must(!mgl_store_open(path, true, &store, &err), &err, "a store does not open");
    return store;
}

/* ---- records -------------------------------------------------------------------------------- */

void store_fill_campaign(const char *name, mgl_campaign_record *out)
{
    *out = (mgl_campaign_record){
        .name = mgl_strdup(name),
        .model = mgl_strdup("llama-1b"),
        .shape = mgl_strdup("{\"hidden_size\":2048,\"rms_norm_eps\":1e-05}"),
        .device = mgl_strdup("NVIDIA H200"),
        .target = mgl_strdup("sm_90a:132"),
        .dtype = mgl_strdup("bf16"),
        .workloads = mgl_strdup("ctx=0,8192;batch=1"),
        .space = mgl_strdup("{\"schema\":\"megalith.space/1\"}"),
        .options = mgl_strdup("{\"log\":\"/home/someone/night.log\"}"),
        .state = mgl_strdup("running"),
        .capacity = 4096,
        .seed = UINT64_C(0xFEDCBA9876543210),
        .created_unix = 1700000000,
        .updated_unix = 1700000000,
        .seconds = 1.5,
    };
    memset(out->manifest, 'a', MGL_SHA256_HEX - 1);
}

void store_add_campaign(mgl_store *store, const char *name, mgl_campaign_record *out)
{
    mgl_error err = {0};
    store_fill_campaign(name, out);
    must(!mgl_store_add_campaign(store, out, &err), &err, "a campaign is not added");
}

static void fill_hash(char out[MGL_SHA256_HEX], int64_t number, const char *kind)
{
    unsigned char hash[MGL_SHA256_BYTES];
    char text[64];
    int n = snprintf(text, sizeof text, "%s %lld", kind, (long long)number);
    mgl_sha256_of(text, (size_t)n, hash);
    mgl_sha256_hex(hash, out);
}

static void fill_proposal(int64_t number, mgl_proposal *out)
{
    static const char moves[] = "rows layer=3 step=o from=12 to=13 count=1\nsample to=5\n";
    out->proposer = mgl_strdup(number % 2 ? "evolve" : "surrogate");
    out->hypothesis = mgl_strdup("fewer edges, \"quoted\" & <b>marked</b>; DROP TABLE trials");
    out->parent = number - 1;
    mgl_schedule_config_default(&out->config);
    out->config.queues[MGL_STEP_QKV].count = (int)(number % 100) + 1;
    mgl_error err = {0};
    must(!mgl_moves_parse(moves, sizeof moves - 1, "moves", &out->moves, &err), &err, "no moves");
    if (number % 7 == 0)
        out->schedule = mgl_strdup("schedule text\nof two lines\n");
}

static void fill_results(int64_t number, mgl_trial *out)
{
    out->workload_count = 2;
    for (int i = 0; i < 2; i++)
        out->workloads[i] = (mgl_workload_result){
            .predicted_us = 1000.0 / 3 + (double)number,
            .incumbent_us = 900.0 + i,
            .candidate_us = 890.1 + i,
            .gain = 0.0123,
            .gain_lo = 0.0051,
            .gain_hi = 0.0199,
            .stream_us = 800.5,
            .error = 1e-3,
            .error_default = 1.1e-3,
            .pairs = 40 + i,
            .dropped = i,
        };
}

static void fill_pairs(int64_t number, int count, mgl_trial *out)
{
    out->pairs = mgl_alloc_zero((size_t)count, sizeof *out->pairs);
    out->pair_count = count;
    for (int i = 0; i < count; i++)
        out->pairs[i] = (mgl_pair){
            .workload = i % 2,
            .stage = i * 3 / count,
            .candidate_first = i % 3 == 0,
            .dropped = i % 50 == 49,
            .incumbent_us = 900.0 + (double)(number * 31 % 17) / 7 + i / 13.0,
            .candidate_us = 890.0 + (double)(number * 37 % 19) / 7 + i / 11.0,
            .sm_mhz = {1980, 1965},
            .memory_mhz = 3201,
            .temperature = 61,
            .reasons = i % 50 == 49 ? UINT64_C(1) << 63 : 0,
        };
}

void store_fill_trial(int64_t campaign, int64_t number, int pairs, mgl_trial *out)
{
    *out = (mgl_trial){
        .campaign = campaign,
        .number = number,
        .same_kernel = number % 2,
        .verdict.outcome = number % 10 == 3 ? MGL_OUTCOME_OK : MGL_OUTCOME_NO_GAIN,
        .predicted_us = 950.25,
        .gain = 0.011,
        .gain_lo = 0.004,
        .gain_hi = 0.018,
        .p_value = 0.001,
        .level = 0.05 / (double)(number * (number + 1)),
        .seconds = 3.25,
        .compile_s = 1.5,
        .gpu_s = 1.25,
        .started_unix = 1700000000 + number,
        .commit = "324fa18",
        .driver = "570.86.15",
        .device_uuid = "GPU-00000000-1111-2222-3333-444444444444",
    };
    fill_proposal(number, &out->proposal);
    fill_hash(out->digest, number, "digest");
    fill_hash(out->nonce, number, "nonce");
    fill_hash(out->manifest, 0, "manifest");
    snprintf(out->verdict.diagnostic, sizeof out->verdict.diagnostic, "gain of %lld",
             (long long)number);
    fill_results(number, out);
    fill_pairs(number, pairs, out);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool same_moves(const mgl_moves *a, const mgl_moves *b)
{
    mgl_text texts[2] = {{0}};
    mgl_moves_print(a, &texts[0]);
    mgl_moves_print(b, &texts[1]);
    bool same = texts[0].length == texts[1].length &&
                (!texts[0].length || !memcmp(texts[0].bytes, texts[1].bytes, texts[0].length));
    mgl_text_clear(&texts[0]);
    mgl_text_clear(&texts[1]);
    return same;
}

static bool same_field(const mgl_field *field, const void *a, const void *b)
{
    if (field->kind == MGL_FIELD_MOVES)
        return same_moves(a, b);
    if (field->kind == MGL_FIELD_CHARS)
        return !strcmp(a, b);
    if (field->kind != MGL_FIELD_TEXT)
        return !memcmp(a, b, field->size);
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    return one && other ? !strcmp(one, other) : one == other;
}

const char *store_compare_fields(const mgl_fields *fields, const void *a, const void *b)
{
    for (int i = 0; i < fields->count; i++) {
        const mgl_field *field = &fields->list[i];
        if (!same_field(field, (const char *)a + field->offset, (const char *)b + field->offset))
            return field->name;
    }
    return NULL;
}

const char *store_find_difference(const mgl_trial *a, const mgl_trial *b, bool pairs)
{
    const char *name = store_compare_fields(&mgl_trial_fields, a, b);
    if (!name && (a->workload_count != b->workload_count || a->campaign != b->campaign))
        name = "workload_count";
    for (int i = 0; !name && i < a->workload_count; i++)
        name = store_compare_fields(&mgl_result_fields, &a->workloads[i], &b->workloads[i]);
    if (!name && pairs && a->pair_count != b->pair_count)
        name = "pair_count";
    for (int i = 0; !name && pairs && i < a->pair_count; i++)
        name = store_compare_fields(&mgl_pair_fields, &a->pairs[i], &b->pairs[i]);
    return name;
}

static mgl_status count_one(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    int64_t *count = user;
    *count = *count + 1 == trial->number && trial->workload_count == 2 ? trial->number : -1;
    return *count < 0 ? MGL_GATE : MGL_OK;
}

int64_t store_count_whole(mgl_store *store, int64_t campaign, int pairs)
{
    int64_t count = 0;
    if (mgl_store_each_trial(store, campaign, 1, 0, count_one, &count, NULL))
        return -1;
    for (int64_t number = 1; number <= count; number++) {
        mgl_trial trial, wanted;
        if (mgl_store_get_trial(store, campaign, number, true, &trial, NULL))
            return -1;
        store_fill_trial(campaign, number, pairs, &wanted);
        bool whole = !store_find_difference(&trial, &wanted, true);
        mgl_trial_clear(&trial);
        mgl_trial_clear(&wanted);
        if (!whole)
            return -1;
    }
    return count;
}
