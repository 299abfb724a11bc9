/*
 * Soak test of a GPU: checks that results are repeatable and that no launch hangs. On one
 * checkpoint:
 *
 *   launches   the same prompt repeatedly, each time generated and scored: the tokens, the logits
 *              after the last token and the log-probabilities of all positions are bitwise equal
 *   long       many tokens, sampled at temperature 1, in launches as long as the cache, each
 *              starting with the last token of the one before: the watchdog ends none
 *   companies  with --sequences: launches of several sequences (soak_neighbors.h), each launched
 *              twice and compared with its replies alone
 *   delays     `launches` and `companies` with a kernel with random delays
 *              (vm/cuda/device/delay.cuh), each launch with a new seed: the bits of the kernel
 *              without delays
 *
 *     soak MODEL [--dtype bf16] [--prompt 16] [--launches 1000] [--tokens 32] [--long 100000]
 *                [--capacity 4096] [--delays 20] [--sequences 1] [--groups 0] [--device 0]
 *                [--arch compute_80] [--config F]
 *
 * With --sequences the long part samples as many replies side by side and counts all. 0 skips a
 * part. Prints one JSON object, also for a failed run. The exit code is 1 if results differ, or the
 * error's if a launch failed. In 16 bits a reply with neighbors may differ from the reply alone,
 * but a greedy one only if the two most likely tokens are closer than NEIGHBORS_GAP.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "schedule/schedule.h"
#include "tests/tools/bench/soak_neighbors.h"
#include "vm/cuda/cuda.h"
#include "vm/vm.h"

enum { DEADLINE_MS = 10000 };

struct options {
    const char *model;
    const char *config; /* path of a ScheduleConfig; NULL: the default */
    const char *arch;   /* architecture to compile for; NULL: the device's */
    mgl_dtype dtype;
    int prompt, launches, tokens, long_tokens, capacity, delays, device;
    int sequences, groups;
};

/* Results of the launches of one prompt. */
struct answer {
    int32_t *tokens; /* (prompt + tokens) the prompt, and the reply */
    float *logits;   /* (vocab) logits after the reply */
    float *scores;   /* (prompt + tokens) */
};

/* A part that compares launches. */
struct comparison {
    int generated, scored;            /* launches */
    int tokens_differ, logits_differ; /* differences of generated launches */
    int scores_differ;                /* differences of scored launches */
    int changes;                      /* launches whose results differ from the first launch's */
    uint64_t last;                    /* fingerprint of the first results; 0: none */
    double seconds;
};

struct soak {
    struct options options;
    mgl_checkpoint *checkpoint;
    mgl_target target;
    mgl_program *program;
    mgl_vm *vm;
    struct answer wanted, seen;
    struct comparison launches, delays;
    neighbors_counts groups, delayed;
    int long_tokens, long_launches; /* done */
    double long_seconds;
    mgl_vm_facts facts; /* facts of the first machine */
};

/* ---- machines and memory --------------------------------------------------------------------- */

static mgl_status lower(struct soak *s, mgl_error *err)
{
    const struct options *o = &s->options;
    mgl_schedule_config config;
    mgl_lower_options options = {
        .dtype = o->dtype, .capacity = o->capacity, .sequences = o->sequences};
    int most = s->checkpoint->graph->max_positions;
    if (options.capacity > most)
        options.capacity = most;
    if (options.capacity < o->prompt + o->tokens + 1)
        return mgl_fail(err, MGL_USAGE, "--capacity", "%d positions have no room for %d tokens",
                        options.capacity, o->prompt + o->tokens);
    mgl_schedule_config_default(&config);
    mgl_status status = o->config ? mgl_schedule_config_read(o->config, &config, err) : MGL_OK;
    return status ? status
                  : mgl_schedule_lower(s->checkpoint->graph, &s->target, &options, &config,
                                       &s->program, err);
}

/* Replaces the open machine. `delay_seed`: see vm/vm.h. */
static mgl_status open_vm(struct soak *s, uint32_t delay_seed, mgl_error *err)
{
    mgl_vm_options options = {.kind = MGL_VM_CUDA,
                              .device = s->options.device,
                              .arch = s->options.arch,
                              .deadline_ms = DEADLINE_MS,
                              .delay_seed = delay_seed};
    mgl_vm_close(s->vm);
    s->vm = NULL;
    return mgl_vm_open(s->program, s->checkpoint->graph, &options, &s->vm, err);
}

static mgl_status open_answer(const struct soak *s, struct answer *a, mgl_error *err)
{
    size_t positions = (size_t)(s->options.prompt + s->options.tokens);
    size_t vocab = (size_t)s->checkpoint->graph->geometry.vocab;
    a->tokens = mgl_alloc_zero(positions, sizeof *a->tokens);
    a->logits = mgl_alloc_zero(vocab, sizeof *a->logits);
    a->scores = mgl_alloc_zero(positions, sizeof *a->scores);
    if (!a->tokens || !a->logits || !a->scores)
        return mgl_fail_memory(err, vocab * sizeof *a->logits);
    srand(1);
    for (int i = 0; i < s->options.prompt; i++)
        a->tokens[i] = rand() % (int32_t)vocab;
    return MGL_OK;
}

static void clear_answer(struct answer *a)
{
    mgl_free(a->tokens);
    mgl_free(a->logits);
    mgl_free(a->scores);
}

static mgl_status open_soak(struct soak *s, mgl_error *err)
{
    mgl_status status = mgl_import(s->options.model, &s->checkpoint, err);
    if (!status)
        status = mgl_cuda_live_target(s->options.device, &s->target, err);
    if (!status)
        status = lower(s, err);
    if (!status)
        status = open_answer(s, &s->wanted, err);
    if (!status)
        status = open_answer(s, &s->seen, err);
    return status;
}

static void close_soak(struct soak *s)
{
    mgl_vm_close(s->vm);
    mgl_program_free(s->program);
    mgl_checkpoint_close(s->checkpoint);
    clear_answer(&s->wanted);
    clear_answer(&s->seen);
}

/* ---- fingerprints ---------------------------------------------------------------------------- */

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t count) /* FNV-1a */
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
    return hash;
}

static uint64_t fingerprint(const struct soak *s, const struct answer *a)
{
    size_t positions = (size_t)(s->options.prompt + s->options.tokens);
    uint64_t hash = add_bytes(14695981039346656037ull, a->tokens, positions * sizeof *a->tokens);
    hash = add_bytes(hash, a->logits,
                     (size_t)s->checkpoint->graph->geometry.vocab * sizeof *a->logits);
    return add_bytes(hash, a->scores, positions * sizeof *a->scores);
}

/* ---- launches -------------------------------------------------------------------------------- */

static mgl_status launch(struct soak *s, const mgl_vm_sequence *sequence, mgl_vm_report *report,
                         mgl_error *err)
{
    mgl_vm_request request = {.sequences = sequence, .count = 1};
    mgl_status status = mgl_vm_run(s->vm, &request, report, err);
    int wanted = sequence->mode == MGL_VM_SCORE ? 0 : sequence->max_new;
    if (!status && report->produced[0] != wanted)
        status = mgl_fail(err, MGL_GATE, "launch", "%d tokens were made in place of %d",
                          (int)report->produced[0], wanted);
    return status;
}

/* Stores tokens and logits of a greedy reply to the prompt in *to. */
static mgl_status generate(struct soak *s, struct answer *to, mgl_error *err)
{
    mgl_vm_report report;
    int tokens = s->options.tokens;
    mgl_vm_sequence sequence = {
        .prompt = to->tokens, .prompt_count = s->options.prompt, .max_new = tokens};
    mgl_status status = launch(s, &sequence, &report, err);
    if (status)
        return status;
    memcpy(to->tokens + s->options.prompt, report.output[0], (size_t)tokens * sizeof *to->tokens);
    return mgl_vm_get_logits(s->vm, to->logits, err);
}

/* Scores each token of the prompt and the first reply. */
static mgl_status score(struct soak *s, struct answer *to, mgl_error *err)
{
    mgl_vm_report report;
    int count = s->options.prompt + s->options.tokens;
    mgl_vm_sequence sequence = {
        .mode = MGL_VM_SCORE, .prompt = s->wanted.tokens, .prompt_count = count, .max_new = 1};
    mgl_status status = launch(s, &sequence, &report, err);
    if (!status)
        memcpy(to->scores, report.score[0], (size_t)count * sizeof *to->scores);
    return status;
}

/* Runs one launch of each kind, and compares it with the first. */
static mgl_status compare(struct soak *s, struct comparison *c, mgl_error *err)
{
    size_t positions = (size_t)(s->options.prompt + s->options.tokens);
    size_t vocab = (size_t)s->checkpoint->graph->geometry.vocab;
    mgl_status status = generate(s, &s->seen, err);
    if (status)
        return status;
    c->generated++;
    c->tokens_differ += memcmp(s->seen.tokens, s->wanted.tokens, positions * sizeof(int32_t)) != 0;
    c->logits_differ += memcmp(s->seen.logits, s->wanted.logits, vocab * sizeof(float)) != 0;
    status = score(s, &s->seen, err);
    if (status)
        return status;
    c->scored++;
    c->scores_differ += memcmp(s->seen.scores, s->wanted.scores, positions * sizeof(float)) != 0;
    uint64_t made = fingerprint(s, &s->seen);
    c->changes += c->last != 0 && made != c->last;
    c->last = made;
    return MGL_OK;
}

static mgl_status compare_all(struct soak *s, const char *what, int count, struct comparison *c,
                              mgl_error *err)
{
    double start = mgl_clock_s();
    mgl_status status = MGL_OK;
    for (int i = 0; i < count && !status; i++)
        status = compare(s, c, err);
    c->seconds = mgl_clock_s() - start;
    fprintf(stderr, "soak: %s: %d generated and %d scored, %d, %d and %d differ, %.1f s\n", what,
            c->generated, c->scored, c->tokens_differ, c->logits_differ, c->scores_differ,
            c->seconds);
    return status;
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* Runs the reference launches, with which all others are compared. */
static mgl_status begin(struct soak *s, mgl_error *err)
{
    mgl_status status = open_vm(s, 0, err);
    if (status)
        return status;
    mgl_vm_get_facts(s->vm, &s->facts);
    status = generate(s, &s->wanted, err);
    return status ? status : score(s, &s->wanted, err);
}

/* Replies of all sequences in one launch, each with `count` tokens. */
static mgl_status run_replies(struct soak *s, int32_t *last, int count, mgl_error *err)
{
    mgl_vm_sequence sequences[MGL_MAX_SEQUENCES];
    mgl_vm_report report;
    const int n = s->options.sequences;
    for (int i = 0; i < n; i++)
        sequences[i] = (mgl_vm_sequence){.prompt = &last[i],
                                         .prompt_count = 1,
                                         .max_new = count,
                                         .temperature = 1.0f,
                                         .seed = (uint64_t)(s->long_launches * n + i)};
    const mgl_vm_request request = {.sequences = sequences, .count = n};
    mgl_status status = mgl_vm_run(s->vm, &request, &report, err);
    for (int i = 0; i < n && !status; i++) {
        if (report.produced[i] != count)
            return mgl_fail(err, MGL_GATE, "long", "%d tokens were made in place of %d",
                            (int)report.produced[i], count);
        last[i] = report.output[i][count - 1];
        s->long_tokens += count;
    }
    return status;
}

static mgl_status run_long(struct soak *s, mgl_error *err)
{
    double start = mgl_clock_s();
    int32_t last[MGL_MAX_SEQUENCES];
    mgl_status status = MGL_OK;
    for (int i = 0; i < s->options.sequences; i++)
        last[i] = s->wanted.tokens[0];
    while (!status && s->long_tokens < s->options.long_tokens) {
        const int left = s->options.long_tokens - s->long_tokens;
        const int each = (left - 1) / s->options.sequences + 1;
        const int most = s->program->limits.capacity - 1;
        status = run_replies(s, last, each < most ? each : most, err);
        s->long_launches += !status;
    }
    s->long_seconds = mgl_clock_s() - start;
    fprintf(stderr, "soak: long: %d tokens in %d launches, %.1f s\n", s->long_tokens,
            s->long_launches, s->long_seconds);
    return status;
}

static neighbors_shape shape_of(const struct soak *s)
{
    return (neighbors_shape){s->options.sequences, s->options.prompt, s->options.tokens,
                             s->checkpoint->graph->geometry.vocab};
}

static mgl_status run_groups(struct soak *s, mgl_error *err)
{
    const neighbors_shape shape = shape_of(s);
    neighbors_counts *c = &s->groups;
    mgl_status status = MGL_OK;
    for (int i = 0; i < s->options.groups && !status; i++)
        status = neighbors_compare(s->vm, &shape, i, c, err);
    fprintf(stderr,
            "soak: companies: %d of %d, %d changes; %d replies, %d ended; apart from those alone "
            "%d (gap %.3g) and %d drawn, %.1f s\n",
            c->groups, shape.sequences, c->changes, c->replies, c->ended, c->apart, c->worst_gap,
            c->drawn_apart, c->seconds);
    return status;
}

static mgl_status run_delays(struct soak *s, mgl_error *err)
{
    const neighbors_shape shape = shape_of(s);
    mgl_status status = s->options.delays > 0 ? open_vm(s, 1, err) : MGL_OK;
    if (!status)
        status = compare_all(s, "with delays", s->options.delays, &s->delays, err);
    for (int i = 0; i < s->groups.groups && s->options.delays > 0 && !status; i++)
        status = neighbors_repeat(s->vm, &shape, i, &s->delayed, err);
    return status;
}

static mgl_status run(struct soak *s, mgl_error *err)
{
    mgl_status status = open_soak(s, err);
    if (!status)
        status = begin(s, err);
    if (!status)
        status = compare_all(s, "launches", s->options.launches, &s->launches, err);
    if (!status)
        status = run_long(s, err);
    if (!status)
        status = run_groups(s, err);
    return status ? status : run_delays(s, err);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_comparison(const char *name, const struct comparison *c)
{
    printf("\"%s\":{\"generated\":%d,\"scored\":%d,\"tokens_differ\":%d,\"logits_differ\":%d,"
           "\"scores_differ\":%d,\"changes\":%d,\"seconds\":%.2f},",
           name, c->generated, c->scored, c->tokens_differ, c->logits_differ, c->scores_differ,
           c->changes, c->seconds);
}

static void print_groups(const struct soak *s)
{
    const neighbors_counts *c = &s->groups;
    printf("\"sequences\":%d,\"companies\":{\"launched\":%d,\"changes\":%d,\"delayed\":%d,"
           "\"delayed_changes\":%d,\"replies\":%d,\"ended\":%d,\"tokens\":%" PRId64
           ",\"apart_from_alone\":%d,\"worst_gap\":%.4f,\"over_gap\":%d,\"drawn_apart\":%d,"
           "\"seconds\":%.2f},",
           s->options.sequences, c->groups, c->changes, s->delayed.groups, s->delayed.changes,
           c->replies, c->ended, c->tokens, c->apart, c->worst_gap, c->over_gap, c->drawn_apart,
           c->seconds);
}

/* The fingerprint of the first result allows a comparison between processes. */
static void print(const struct soak *s, mgl_status status)
{
    const struct options *o = &s->options;
    printf("{\"schema\":\"megalith.soak/1\",\"device\":\"%s\",\"dtype\":\"%s\",\"arch\":\"%s\","
           "\"prompt\":%d,\"tokens\":%d,\"capacity\":%d,",
           s->facts.device, mgl_dtype_name(o->dtype), o->arch ? o->arch : s->target.arch, o->prompt,
           o->tokens, s->program ? s->program->limits.capacity : 0);
    print_comparison("launches", &s->launches);
    print_comparison("delays", &s->delays);
    print_groups(s);
    printf("\"long\":{\"tokens\":%d,\"launches\":%d,\"us_per_token\":%.2f,\"seconds\":%.2f},",
           s->long_tokens, s->long_launches,
           s->long_tokens > 0 ? 1e6 * s->long_seconds / s->long_tokens : 0.0, s->long_seconds);
    printf("\"fingerprint\":\"%016" PRIx64
           "\",\"registers\":%d,\"spill_bytes\":%d,\"status\":%d}\n",
           s->vm ? fingerprint(s, &s->wanted) : 0, s->facts.registers, s->facts.spill_bytes,
           (int)status);
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool read_count(const char *text, int *to)
{
    char *end;
    long value = strtol(text, &end, 10);
    *to = (int)value;
    return end != text && *end == 0 && value >= 0 && value <= 1 << 28;
}

/* Reads the value of a flag. Returns whether flag and value are valid. */
static bool read_flag(struct options *o, const char *flag, const char *value)
{
    const struct {
        const char *flag;
        int *to;
    } counts[] = {
        {"--launches", &o->launches},   {"--tokens", &o->tokens}, {"--long", &o->long_tokens},
        {"--capacity", &o->capacity},   {"--delays", &o->delays}, {"--device", &o->device},
        {"--sequences", &o->sequences}, {"--groups", &o->groups}, {"--prompt", &o->prompt}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!strcmp(flag, counts[i].flag))
            return read_count(value, counts[i].to);
    if (!strcmp(flag, "--arch"))
        return (o->arch = value)[0] != 0;
    if (!strcmp(flag, "--config"))
        return (o->config = value)[0] != 0;
    return !strcmp(flag, "--dtype") && mgl_dtype_parse(value, &o->dtype);
}

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.dtype = MGL_BF16,
                          .prompt = 16,
                          .sequences = 1,
                          .launches = 1000,
                          .tokens = 32,
                          .long_tokens = 100000,
                          .capacity = 4096,
                          .delays = 20};
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-' && !o->model)
            o->model = argv[i];
        else if (i + 1 < argc && read_flag(o, argv[i], argv[i + 1]))
            i++;
        else
            return fprintf(stderr, "soak: what is %s?\n", argv[i]), false;
    if (o->groups > 0 && (o->prompt > NEIGHBORS_MOST || o->tokens > NEIGHBORS_MOST))
        return fprintf(stderr, "soak: with --groups --prompt and --tokens are at most %d\n",
                       NEIGHBORS_MOST),
               false;
    if (!o->model || o->tokens < 1 || o->prompt < 1 || o->sequences < 1 ||
        o->sequences > MGL_MAX_SEQUENCES)
        return fprintf(stderr,
                       "usage: soak MODEL [flags]; --prompt and --tokens are at least 1, "
                       "--sequences 1 to %d\n",
                       MGL_MAX_SEQUENCES),
               false;
    return true;
}

static bool is_same(const struct comparison *c)
{
    return c->tokens_differ + c->logits_differ + c->scores_differ == 0;
}

static bool are_same(const struct soak *s)
{
    const neighbors_counts *c = &s->groups;
    const bool exact = s->options.dtype == MGL_F32;
    return !c->changes && !s->delayed.changes && !c->over_gap &&
           !(exact && c->apart + c->drawn_apart);
}

int main(int argc, char **argv)
{
    struct soak s = {0};
    mgl_error err = {0};
    if (!parse(argc, argv, &s.options))
        return 1;
    mgl_status status = run(&s, &err);
    if (status)
        fprintf(stderr, "soak: %s%s%s\n", err.where, err.where[0] ? ": " : "", err.message);
    print(&s, status);
    bool same = is_same(&s.launches) && is_same(&s.delays) && are_same(&s);
    close_soak(&s);
    return status ? (int)status : same ? 0 : 1;
}
