/*
 * Measures the time from a model's files to its first token: `megalith run` for one token, in a new
 * process each time, with the compiled file and with its folder, the latter with and without the
 * kernel in the cache. The cases alternate. The first round is not counted, so that all files are
 * in the page cache. Prints one JSON object with the quantiles of all times of `run --json` and of
 * the process's time.
 *
 *     bench_load MEGALITH FOLDER FILE.mega [SAMPLES [DEVICE]]
 *     tests/tools/bench/record.sh COMMIT OUT.json bench_load MEGALITH FOLDER FILE.mega 11
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "eval/statistics.h"

enum { DEFAULT_SAMPLES = 11, MAX_OUTPUT = 1 << 16, MAX_PATH = 1024, MAX_ARGUMENTS = 16 };

/* fields of `timing`, in seconds */
#define FIELDS(X)                                                                                  \
    X(first_token_s)                                                                               \
    X(driver_s)                                                                                    \
    X(load_s)                                                                                      \
    X(import_s)                                                                                    \
    X(check_s)                                                                                     \
    X(weights_s)                                                                                   \
    X(compile_s)                                                                                   \
    X(kernel_s)                                                                                    \
    X(prefill_s)

enum {
#define ID(name) FIELD_##name,
    FIELDS(ID)
#undef ID
        FIELD_process_s, /* from fork to exit */
    FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {
#define NAME(name) #name,
    FIELDS(NAME)
#undef NAME
        "process_s"};

/* The measured cases. */
typedef struct way {
    const char *name;
    const char *model;
    bool cold; /* no kernel is in the cache */
    double samples[FIELD_COUNT][MGL_MAX_SAMPLES];
} way;

enum { COMPILED, WARM, COLD, PATH_COUNT };

typedef struct bench {
    const char *megalith, *device;
    char cache[MAX_PATH]; /* private folder of kernels */
    char capacity[16];    /* capacity of the compiled file, also used for the folder */
    char gpu[128];        /* name of the device */
    int64_t bytes;        /* bytes of the weights */
    way ways[PATH_COUNT];
    int samples;
} bench;

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "bench_load: %s: %s\n", what, detail);
    exit(1);
}

/* ---- one process ----------------------------------------------------------------------------- */

static void execute(const bench *b, const way *w, int out)
{
    const char *arguments[MAX_ARGUMENTS] = {b->megalith, "run",          w->model, "--device",
                                            b->device,   "--prompt-ids", "1",      "--max-tokens",
                                            "1",         "--ignore-eos", "--json"};
    if (b->capacity[0]) {
        arguments[11] = "--capacity";
        arguments[12] = b->capacity;
    }
    if (dup2(out, STDOUT_FILENO) < 0 || setenv("MEGALITH_CACHE", b->cache, 1))
        _exit(127);
    if (w->cold && setenv("CUDA_CACHE_DISABLE", "1", 1)) /* NVRTC has its own cache too */
        _exit(127);
    execv(b->megalith, (char **)(uintptr_t)arguments);
    _exit(127);
}

static size_t read_all(int from, char *to, size_t room)
{
    size_t length = 0;
    for (;;) {
        ssize_t n = read(from, to + length, room - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || length + (size_t)n == room)
            return n < 0 ? 0 : length;
        length += (size_t)n;
    }
}

/* Runs the program and reads its output. Returns the seconds from start to end. */
static double run_process(const bench *b, const way *w, char *out, size_t *length)
{
    int pipes[2], state = 0;
    double start = mgl_clock_s();
    if (pipe(pipes))
        fail("pipe", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        fail("fork", strerror(errno));
    if (child == 0) {
        close(pipes[0]);
        execute(b, w, pipes[1]);
    }
    close(pipes[1]);
    *length = read_all(pipes[0], out, MAX_OUTPUT);
    close(pipes[0]);
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            fail("waitpid", strerror(errno));
    if (!WIFEXITED(state) || WEXITSTATUS(state))
        fail(w->name, "`run` failed");
    return mgl_clock_s() - start;
}

static bench session;

/* Also after a failed run. */
static void remove_cache(void)
{
    char command[MAX_PATH + 64];
    snprintf(command, sizeof command, "rm -rf '%s'", session.cache);
    if (system(command))
        fprintf(stderr, "bench_load: %s could not be removed\n", session.cache);
}

static void empty_cache(const bench *b)
{
    char command[MAX_PATH + 64];
    snprintf(command, sizeof command, "rm -f '%s'/*.kernel", b->cache);
    if (system(command))
        fail(b->cache, "cannot be emptied");
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void check(mgl_status status, const mgl_error *err)
{
    if (status)
        fail(err->where, err->message);
}

/* The facts that all runs share, from the first run of the compiled file. */
static void read_facts(bench *b, const mgl_json *json)
{
    mgl_error err;
    const char *device;
    int64_t capacity = 0;
    check(mgl_json_get_string(json, json->root, "device", true, &device, &err), &err);
    check(mgl_json_get_int(json, json->root, "capacity", true, 1, INT32_MAX, &capacity, &err),
          &err);
    check(mgl_json_get_int(json, json->root, "weight_bytes", true, 0, INT64_MAX, &b->bytes, &err),
          &err);
    snprintf(b->gpu, sizeof b->gpu, "%s", device);
    snprintf(b->capacity, sizeof b->capacity, "%lld", (long long)capacity);
}

static void read_times(const mgl_json *json, double process_s, way *w, int sample)
{
    mgl_error err;
    const cJSON *timing;
    check(mgl_json_get_object(json, json->root, "timing", true, &timing, &err), &err);
    for (int f = 0; f < FIELD_process_s; f++)
        check(mgl_json_get_double(json, timing, field_names[f], true, &w->samples[f][sample], &err),
              &err);
    w->samples[FIELD_process_s][sample] = process_s;
}

/* Sample -1 is not counted. */
static void measure(bench *b, way *w, int sample)
{
    static char out[MAX_OUTPUT];
    size_t length;
    mgl_error err;
    mgl_json json;
    if (w->cold)
        empty_cache(b);
    double process_s = run_process(b, w, out, &length);
    check(mgl_json_parse(out, length, MAX_OUTPUT, "run --json", &json, &err), &err);
    if (!b->capacity[0])
        read_facts(b, &json);
    read_times(&json, process_s, w, sample < 0 ? 0 : sample);
    mgl_json_clear(&json);
    fprintf(stderr, "bench_load: %s%s: first token %.3f s, driver %.3f s\n", w->name,
            sample < 0 ? " (not counted)" : "",
            w->samples[FIELD_first_token_s][sample < 0 ? 0 : sample],
            w->samples[FIELD_driver_s][sample < 0 ? 0 : sample]);
}

/* A cold run stores the kernel in the cache, where the warm run of the next round finds it. */
static void measure_all(bench *b)
{
    for (int sample = -1; sample < b->samples; sample++)
        for (int i = 0; i < PATH_COUNT; i++)
            measure(b, &b->ways[i], sample);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_path(const bench *b, const way *w, bool last)
{
    size_t count = (size_t)b->samples;
    double weights_s = mgl_median(w->samples[FIELD_weights_s], count);
    printf("{\"way\":\"%s\",\"weights_gbps\":%.3f", w->name, (double)b->bytes / weights_s * 1e-9);
    for (int f = 0; f < FIELD_COUNT; f++)
        printf(",\n  \"%s\":{\"median\":%.6f,\"p10\":%.6f,\"p90\":%.6f}", field_names[f],
               mgl_median(w->samples[f], count), mgl_quantile(w->samples[f], count, 0.1),
               mgl_quantile(w->samples[f], count, 0.9));
    printf("}%s\n", last ? "" : ",");
}

static void print_all(const bench *b)
{
    printf("{\"schema\":\"megalith.bench_load/1\",\"device\":\"%s\",\"capacity\":%s,"
           "\"weight_bytes\":%lld,\"samples\":%d,\"ways\":[\n",
           b->gpu, b->capacity, (long long)b->bytes, b->samples);
    for (int i = 0; i < PATH_COUNT; i++)
        print_path(b, &b->ways[i], i + 1 == PATH_COUNT);
    printf("]}\n");
}

static void read_arguments(bench *b, int count, char **arguments)
{
    b->megalith = arguments[1];
    b->samples = count > 4 ? atoi(arguments[4]) : DEFAULT_SAMPLES;
    b->device = count > 5 ? arguments[5] : "cuda";
    b->ways[COMPILED] = (way){.name = "compiled file", .model = arguments[3]};
    b->ways[WARM] = (way){.name = "folder, kernel in the cache", .model = arguments[2]};
    b->ways[COLD] =
        (way){.name = "folder, no kernel in the cache", .model = arguments[2], .cold = true};
    if (b->samples < 1 || b->samples > MGL_MAX_SAMPLES)
        fail(arguments[4], "is no number of samples");
}

int main(int count, char **arguments)
{
    if (count < 4 || count > 6) {
        fprintf(stderr, "usage: bench_load MEGALITH FOLDER FILE.mega [SAMPLES [DEVICE]]\n");
        return 1;
    }
    read_arguments(&session, count, arguments);
    snprintf(session.cache, sizeof session.cache, "/tmp/megalith-load-XXXXXX");
    if (!mkdtemp(session.cache))
        fail(session.cache, strerror(errno));
    if (atexit(remove_cache))
        fail(session.cache, "would be left behind");
    measure_all(&session);
    print_all(&session);
    return 0;
}
