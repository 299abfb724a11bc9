/*
 * Benchmarks a model on a CPU, from its folder and from its compiled file: private memory, time to
 * the first token, tokens per second, and prompt speed. The bound is measured too: the same threads
 * read the same bytes of the file, alternating with the replies.
 *
 *     bench_cpu FOLDER FILE.mega [SAMPLES [TOKENS [PROMPT [THREADS]]]]    (5, 17, 256, all of them)
 *     tests/tools/bench/record.sh COMMIT OUT.json bench_cpu FOLDER FILE.mega
 *
 * Prints one JSON object with the median, p10 and p90 of each figure. token_bytes are the weights
 * that a token reads: all but an embedding that is no head. share_of_bound compares token_bytes a
 * second with the bound. cpu_share does the same with the processor time of the process instead of
 * elapsed time; with one thread, it does not depend on what else the machine does. Each way to open
 * the model runs in a separate process, so that its memory is separate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "eval/statistics.h"
#include "importer/checkpoint.h"
#include "megalith.h"
#include "tests/tools/read_bytes.h"
#include "vm/cpu/pool.h"

enum { PIECE = 1 << 20, MOST_PROMPT = 4096 };

static struct {
    int samples, tokens, prompt, threads;
    const char *folder, *file;
} asked = {.samples = 5, .tokens = 17, .prompt = 256};

static void fail(const char *what, const mgl_error *err)
{
    fprintf(stderr, "bench_cpu: %s: %s: %s\n", what, err->where, err->message);
    exit(1);
}

static void need(mgl_status status, const char *what, const mgl_error *err)
{
    if (status)
        fail(what, err);
}

/* ---- the bound ------------------------------------------------------------------------------- */

static struct {
    mgl_map *map;
    mgl_pool *pool;
    const char *set; /* instruction set of the vectors */
    uint64_t sums[MGL_POOL_MAX_THREADS];
} reader;

static void read_piece(void *user, int worker, size_t item)
{
    size_t size = mgl_map_size(reader.map), at = item * PIECE;
    size_t length = size - at < PIECE ? (size - at) / 256 * 256 : PIECE;
    (void)user;
    reader.sums[worker] +=
        read_bytes(reader.set, (const char *)mgl_map_bytes(reader.map) + at, length);
}

/* Seconds in which the threads read the file's bytes. */
static double read_file(void)
{
    double start = mgl_clock_s();
    mgl_pool_run(reader.pool, (mgl_map_size(reader.map) + PIECE - 1) / PIECE, NULL, read_piece,
                 NULL);
    return mgl_clock_s() - start;
}

static void open_reader(const mgl_model_facts *facts)
{
    mgl_error err;
    need(mgl_map_open(asked.file, &reader.map, &err), "the file", &err);
    need(mgl_pool_open(facts->threads, &reader.pool, &err), "threads", &err);
    reader.set = facts->instructions;
    read_file(); /* its pages are mapped into this process */
}

/* ---- a model --------------------------------------------------------------------------------- */

static int32_t prompt[MOST_PROMPT];

/* Seconds to the first token, and from there to the last. */
static mgl_result reply(mgl_model *model, int count, int tokens)
{
    mgl_error err;
    mgl_result result = {.size = sizeof result};
    const mgl_request request = {.size = sizeof request,
                                 .prompt = prompt,
                                 .prompt_count = (size_t)count,
                                 .max_tokens = tokens,
                                 .ignore_eos = true};
    need(mgl_model_generate(model, &request, NULL, NULL, &result, &err), "a reply", &err);
    mgl_ids_clear(&result.output);
    return result;
}

/* Private memory of the process, bytes. */
static double private_bytes(void)
{
    char *text;
    size_t length;
    mgl_error err;
    need(mgl_file_read("/proc/self/status", 1 << 16, &text, &length, &err), "memory", &err);
    const char *at = strstr(text, "RssAnon:");
    double bytes = at ? 1024 * strtod(at + 8, NULL) : 0;
    free(text);
    return bytes;
}

static void print(const char *name, const double *samples, int count)
{
    printf(",\"%s\":{\"median\":%.6g,\"p10\":%.6g,\"p90\":%.6g}", name,
           mgl_median(samples, (size_t)count), mgl_quantile(samples, (size_t)count, 0.1),
           mgl_quantile(samples, (size_t)count, 0.9));
}

/* Processor time of the process, s. */
static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Bytes of weights that a token reads. Of an embedding that is no head, it reads one row. */
static double token_bytes(const mgl_model_facts *facts)
{
    mgl_error err;
    mgl_checkpoint *checkpoint;
    double bytes = (double)facts->weight_bytes;
    need(mgl_import(asked.folder, &checkpoint, &err), asked.folder, &err);
    for (int i = 0; i < checkpoint->graph->tensor_count && !checkpoint->graph->tied; i++)
        if (!strcmp(checkpoint->graph->tensors[i].name, MGL_TENSOR_EMBEDDING))
            bytes -= (double)mgl_tensor_bytes(&checkpoint->graph->tensors[i]);
    mgl_checkpoint_close(checkpoint);
    return bytes;
}

static void measure(mgl_model *model, double bytes)
{
    static double cpu_share[MGL_MAX_SAMPLES];
    static double rate[MGL_MAX_SAMPLES], gbps[MGL_MAX_SAMPLES], share[MGL_MAX_SAMPLES];
    static double prompt_rate[MGL_MAX_SAMPLES];
    for (int i = 0; i < asked.samples; i++) {
        const double size = (double)mgl_map_size(reader.map), before = processor_s();
        gbps[i] = size / read_file() * 1e-9;
        const double read = processor_s();
        rate[i] = (asked.tokens - 1) / reply(model, 1, asked.tokens).decode_s;
        share[i] = rate[i] * bytes * 1e-9 / gbps[i];
        cpu_share[i] = asked.tokens * bytes / (processor_s() - read) / (size / (read - before));
        prompt_rate[i] = asked.prompt / reply(model, asked.prompt, 1).prefill_s;
    }
    print("tokens_per_s", rate, asked.samples);
    print("read_gbps", gbps, asked.samples);
    print("share_of_bound", share, asked.samples);
    print("cpu_share", cpu_share, asked.samples);
    print("prompt_tokens_per_s", prompt_rate, asked.samples);
}

/* Opens the model, measures it, and prints the results. */
static void bench(const char *name, const char *path)
{
    mgl_error err;
    mgl_model *model;
    mgl_model_facts facts = {.size = sizeof facts};
    const mgl_open_options options = {.size = sizeof options,
                                      .device = "cpu",
                                      .wanted = asked.prompt + asked.tokens,
                                      .threads = asked.threads};
    double start = mgl_clock_s();
    need(mgl_model_open(path, &options, &model, &err), path, &err);
    double opened = mgl_clock_s();
    reply(model, 1, 1);
    double first = mgl_clock_s(), bytes = private_bytes();
    need(mgl_model_get_facts(model, &facts, &err), "facts", &err);
    const double token = token_bytes(&facts);
    printf("{\"from\":\"%s\",\"threads\":%d,\"instructions\":\"%s\",\"weight_bytes\":%llu,"
           "\"token_bytes\":%.0f,\"private_bytes\":%.0f,\"of_weights\":%.4f,\"open_s\":%.4f,"
           "\"first_token_s\":%.4f",
           name, (int)facts.threads, facts.instructions, (unsigned long long)facts.weight_bytes,
           token, bytes, bytes / (double)facts.weight_bytes, opened - start, first - start);
    open_reader(&facts);
    measure(model, token);
    printf("}");
    mgl_pool_close(reader.pool);
    mgl_map_close(reader.map);
    mgl_model_close(model);
}

/* Runs in a separate process. */
static void bench_apart(const char *name, const char *path)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bench(name, path);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

static int number(const char *text, int least, int most)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || n < least || n > most) {
        fprintf(stderr, "bench_cpu: %s is not a number from %d to %d\n", text, least, most);
        exit(1);
    }
    return (int)n;
}

int main(int argc, char **argv)
{
    struct utsname system;
    if (argc < 3) {
        fprintf(stderr, "bench_cpu FOLDER FILE.mega [SAMPLES [TOKENS [PROMPT [THREADS]]]]\n");
        return 1;
    }
    asked.folder = argv[1];
    asked.file = argv[2];
    asked.samples = argc > 3 ? number(argv[3], 1, MGL_MAX_SAMPLES) : asked.samples;
    asked.tokens = argc > 4 ? number(argv[4], 2, 100000) : asked.tokens;
    asked.prompt = argc > 5 ? number(argv[5], 1, MOST_PROMPT) : asked.prompt;
    asked.threads = argc > 6 ? number(argv[6], 0, MGL_POOL_MAX_THREADS) : 0;
    for (int i = 0; i < MOST_PROMPT; i++)
        prompt[i] = 1 + i % 200;
    uname(&system);
    printf("{\"schema\":\"megalith.bench_cpu/1\",\"machine\":\"%s\",\"samples\":%d,\"tokens\":%d,"
           "\"prompt\":%d,\"ways\":[",
           system.machine, asked.samples, asked.tokens, asked.prompt);
    bench_apart("folder", asked.folder);
    printf(",");
    bench_apart("file", asked.file);
    printf("]}\n");
    return 0;
}
