/*
 * Benchmarks the CPU's products with every instruction set that it supports, against their bounds:
 *
 *     bench_products stream [SAMPLES [THREADS]]   one row, with THREADS threads: bytes of the tape
 *         per second, against reading (adding) the same bytes by the same threads and vector width
 *     bench_products mapped [SAMPLES [THREADS]]   the same from a mapped file in the page cache
 *     bench_products rows [SAMPLES]               several rows, with one thread: operations per
 *         second of processor time, against OpenBLAS's sgemm with f32 weights, if it can be opened
 *
 * The compared cases alternate. A streamed tape is larger than the caches, and a sample is a slice
 * that was not read recently. Prints one JSON object with the median, p10 and p90 of each case, and
 * the median of the ratios per turn. OPENBLAS_CORETYPE=Haswell makes OpenBLAS an AVX2 library.
 *
 *     tests/tools/bench/record.sh COMMIT OUT.json bench_products stream 101
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "eval/statistics.h"
#include "schedule/program.h"
#include "tests/tools/read_bytes.h"
#include "vm/cpu/products.h"

enum {
    DEFAULT_SAMPLES = 31,
    DEFAULT_THREADS = 2,
    MAX_THREADS = 64,
    MAX_ROWS = 128,
    STREAM_BYTES = 512 << 20, /* bytes of a streamed tape */
    SLICES = 32,              /* slices of the tape */
    PATTERN = 1 << 16,        /* weights, repeated */
    LARGE_PAGE = 2 << 20
};

static const char *const set_names[] = {"avx512vbmi", "avx512", "avx2", "neon", "plain"};

enum { SETS = sizeof set_names / sizeof *set_names };

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "bench_products: %s: %s\n", what, detail);
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *memory = mgl_alloc_aligned(64, bytes);
    if (!memory)
        fail("allocation", "out of memory");
    return memory;
}

/* ---- operands -------------------------------------------------------------------------------- */

typedef struct problem {
    mgl_matrix w;
    int64_t inputs, outputs, groups;
    int warps; /* warps, which determine the positions of the blocks */
    char *tape;
    int32_t *place;
    size_t bytes; /* of the tape */
    bool mapped;  /* the tape is a mapped file */
    float *x;     /* (MAX_ROWS, inputs) */
} problem;

/* Values in [-1, 1). */
static void fill_values(float *to, size_t count)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        to[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

/* The formats that are measured. */
static const mgl_weight_format formats[] = {
    {.code = MGL_CODE_F32},
    {.code = MGL_CODE_BF16},
    {.code = MGL_CODE_F16},
    {.code = MGL_CODE_INT8, .scales = MGL_F32, .group_rows = 1},
    {.code = MGL_CODE_INT8, .scales = MGL_F16, .group = 32, .group_rows = 1},
    {.code = MGL_CODE_INT8, .scales = MGL_F16, .group = 128, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_F16, .group = 32, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_F16, .group = 128, .group_rows = 1},
    {.code = MGL_CODE_INT4, .scales = MGL_BF16, .group = 64, .group_rows = 1, .zeros = true},
    {.code = MGL_CODE_E4M3, .scales = MGL_F32, .group_rows = 1},
    {.code = MGL_CODE_E4M3, .scales = MGL_F32, .group = 128, .group_rows = 128},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Any bytes are codes, and 0x14 of every byte of a scale is a small finite number. */
static void fill_scaled(problem *p)
{
    uint32_t state = 1;
    for (size_t i = 0; i < p->bytes; i++) {
        state = state * 1664525 + 1013904223;
        p->tape[i] = (char)(state >> 24);
        if (p->w.format.code == MGL_CODE_E4M3)
            p->tape[i] &= ~1; /* no NaN */
    }
    for (int64_t g = 0; g < p->groups; g++)
        memset(p->tape + (size_t)g * p->w.group_stride, 0x14, (size_t)-p->w.scales);
}

static void fill_tape(problem *p)
{
    if (mgl_weight_format_is_scaled(p->w.format)) {
        fill_scaled(p);
        return;
    }
    size_t length = (size_t)mgl_weight_code_bytes(p->w.format.code, PATTERN);
    float *values = allocate(PATTERN * sizeof *values);
    char *pattern = allocate(length);
    fill_values(values, PATTERN);
    mgl_weight_code_encode(p->w.format.code, pattern, values, MGL_F32, PATTERN);
    for (size_t at = 0; at < p->bytes; at += length)
        memcpy(p->tape + at, pattern, p->bytes - at < length ? p->bytes - at : length);
    mgl_free(values);
    mgl_free(pattern);
}

/* Allocates weights like the CPU machine: with large pages if available. */
static char *allocate_tape(size_t bytes)
{
    char *memory = mgl_alloc_aligned(LARGE_PAGE, bytes);
    if (!memory)
        fail("allocation", "out of memory");
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

/* An unnamed file. */
static char *map_file(size_t bytes)
{
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), (off_t)bytes))
        fail("a temporary file", "cannot be made");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (memory == MAP_FAILED)
        fail("a temporary file", "cannot be mapped");
    fclose(file);
    return memory;
}

static void make(problem *p, mgl_weight_format format, int64_t inputs, int64_t outputs, bool mapped)
{
    const int columns = mgl_weight_code_columns(format.code);
    const int64_t blocks = (inputs + columns - 1) / columns;
    const size_t scales = (size_t)mgl_tape_scale_bytes(format, inputs);
    const size_t group = (size_t)mgl_tape_group_bytes(format, inputs);
    p->inputs = inputs;
    p->outputs = outputs;
    p->groups = outputs / MGL_ROW_GROUP;
    p->bytes = group * (size_t)p->groups;
    p->mapped = mapped;
    p->tape = mapped ? map_file(p->bytes) : allocate_tape(p->bytes);
    p->place = allocate((size_t)blocks * sizeof *p->place);
    p->w = (mgl_matrix){.tape = p->tape + scales,
                        .group_stride = group,
                        .place = p->place,
                        .blocks = (int)blocks,
                        .format = format,
                        .scales = -(ptrdiff_t)scales,
                        .groups = mgl_tape_scale_groups(format, inputs)};
    p->x = allocate((size_t)(MAX_ROWS * inputs + columns) * sizeof *p->x);
    fill_values(p->x, (size_t)(MAX_ROWS * inputs + columns));
    fill_tape(p);
}

static void place_blocks(problem *p, int warps)
{
    p->warps = warps;
    p->w.place = warps == 1 ? NULL : p->place;
    for (int b = 0; b < p->w.blocks; b++)
        p->place[b] = mgl_tape_place_of_block(p->w.blocks, warps, b);
}

static void release(problem *p)
{
    if (p->mapped)
        munmap(p->tape, p->bytes);
    else
        mgl_free(p->tape);
    mgl_free(p->place);
    mgl_free(p->x);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct job;
typedef void work_fn(const struct job *job, int thread);

/* The work of all threads. */
struct job {
    work_fn *work;
    const mgl_products *set;
    const problem *p;
    float *to[MAX_THREADS], *scratch[MAX_THREADS];
    int threads;
    int slice; /* of the tape */
};

static struct pool {
    pthread_barrier_t start, end;
    const struct job *job; /* NULL: the end */
} pool;

static void *thread_main(void *argument)
{
    int thread = *(int *)argument;
    for (;;) {
        pthread_barrier_wait(&pool.start);
        if (!pool.job)
            return NULL;
        pool.job->work(pool.job, thread);
        pthread_barrier_wait(&pool.end);
    }
}

static pthread_t threads[MAX_THREADS];

static void start_threads(int count)
{
    static int numbers[MAX_THREADS];
    pthread_barrier_init(&pool.start, NULL, (unsigned)count + 1);
    pthread_barrier_init(&pool.end, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, thread_main, &numbers[i]))
            fail("pthread_create", "no thread");
    }
}

static void end_threads(int count)
{
    pool.job = NULL;
    pthread_barrier_wait(&pool.start);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static double run_s(const struct job *job)
{
    pool.job = job;
    double start = mgl_clock_s();
    pthread_barrier_wait(&pool.start);
    pthread_barrier_wait(&pool.end);
    return mgl_clock_s() - start;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Part i of n of a range of numbers: [*lo, *hi). */
static void cut(int64_t n, int i, int parts, int64_t *lo, int64_t *hi)
{
    *lo = n * i / parts;
    *hi = n * (i + 1) / parts;
}

/* The thread's share of the row groups of the slice. */
static void share_of(const struct job *job, int thread, int64_t *lo, int64_t *hi)
{
    int64_t first, last;
    cut(job->p->groups, job->slice, SLICES, &first, &last);
    cut(last - first, thread, job->threads, lo, hi);
    *lo += first;
    *hi += first;
}

static void work_read(const struct job *job, int thread)
{
    int64_t lo, hi;
    share_of(job, thread, &lo, &hi);
    size_t stride = job->p->w.group_stride;
    uint64_t sum =
        read_bytes(job->set->name, job->p->tape + (size_t)lo * stride, (size_t)(hi - lo) * stride);
    memcpy(job->to[thread], &sum, sizeof sum);
}

static void work_multiply(const struct job *job, int thread)
{
    const problem *p = job->p;
    int64_t lo, hi;
    share_of(job, thread, &lo, &hi);
    job->set->multiply(&p->w, lo, hi, p->outputs, p->x, p->inputs, 1, job->to[thread], p->outputs,
                       job->scratch[thread]);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Prints the quantiles of `amount` per time. */
static void print_rate(const char *name, double amount, const double *times, int samples)
{
    double rates[MGL_MAX_SAMPLES];
    for (int i = 0; i < samples; i++)
        rates[i] = amount / times[i] * 1e-9;
    printf(",\"%s\":{\"median\":%.3f,\"p10\":%.3f,\"p90\":%.3f}", name,
           mgl_median(rates, (size_t)samples), mgl_quantile(rates, (size_t)samples, 0.1),
           mgl_quantile(rates, (size_t)samples, 0.9));
}

/* The median, over turns, of the ratio of `others` to `times`. */
static void print_ratio(const char *name, const double *times, const double *others, int samples)
{
    double ratios[MGL_MAX_SAMPLES];
    for (int i = 0; i < samples; i++)
        ratios[i] = others[i] / times[i];
    printf(",\"%s\":%.3f", name, mgl_median(ratios, (size_t)samples));
}

static void print_problem(const mgl_products *set, const problem *p, int rows)
{
    static bool begun;
    char format[MGL_WEIGHT_FORMAT_TEXT];
    printf("%s\n{\"set\":\"%s\",\"format\":\"%s\",\"inputs\":%lld,\"outputs\":%lld,\"warps\":%d,"
           "\"rows\":%d",
           begun ? "," : "", set->name, mgl_weight_format_print(p->w.format, format),
           (long long)p->inputs, (long long)p->outputs, p->warps, rows);
    begun = true;
}

/* Prints the machine that was measured. */
static void print_cpu(void)
{
    char line[256], name[200] = "";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !name[0] && fgets(line, sizeof line, file))
        sscanf(line, "model name : %199[^\n\"\\]", name);
    if (file)
        fclose(file);
    printf("{\"schema\":\"megalith.bench_products/1\",\"cpu\":\"%s\"", name);
}

/* ---- one row --------------------------------------------------------------------------------- */

static void stream_set(const mgl_products *set, const problem *p, int samples, int thread_count)
{
    static double multiply_s[MGL_MAX_SAMPLES], read_s[MGL_MAX_SAMPLES];
    struct job multiply = {.work = work_multiply, .set = set, .p = p, .threads = thread_count};
    for (int i = 0; i < thread_count; i++) {
        multiply.to[i] = allocate((size_t)p->outputs * sizeof(float));
        multiply.scratch[i] =
            allocate(mgl_products_scratch(p->w.blocks, p->w.format) * sizeof(float));
    }
    struct job reading = multiply;
    reading.work = work_read;
    for (int i = -1; i < samples; i++) {
        reading.slice = (i + 1) % SLICES;
        multiply.slice = (i + 1 + SLICES / 2) % SLICES;
        read_s[i < 0 ? 0 : i] = run_s(&reading);
        multiply_s[i < 0 ? 0 : i] = run_s(&multiply);
    }
    print_problem(set, p, 1);
    print_rate("gbps", (double)p->bytes / SLICES, multiply_s, samples);
    print_rate("read_gbps", (double)p->bytes / SLICES, read_s, samples);
    print_ratio("of_read", multiply_s, read_s, samples);
    printf("}");
    for (int i = 0; i < thread_count; i++) {
        mgl_free(multiply.to[i]);
        mgl_free(multiply.scratch[i]);
    }
}

static void stream_problem(const problem *p, int samples, int thread_count)
{
    for (int s = 0; s < SETS; s++) {
        mgl_products set;
        if (mgl_products_find(set_names[s], &set))
            stream_set(&set, p, samples, thread_count);
    }
}

static void stream(int samples, int thread_count, bool mapped)
{
    static const int64_t inputs[] = {576, 2048, 8192};
    start_threads(thread_count);
    print_cpu();
    printf(",\"what\":\"%s\",\"threads\":%d,\"samples\":%d,\"rows\":[",
           mapped ? "mapped" : "stream", thread_count, samples);
    for (int format = 0; format < FORMATS; format++)
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
            problem p;
            const int64_t group = mgl_tape_group_bytes(formats[format], inputs[i]);
            make(&p, formats[format], inputs[i],
                 STREAM_BYTES / group / SLICES * SLICES * MGL_ROW_GROUP, mapped);
            for (int warps = 1; warps <= 8; warps += 7) {
                place_blocks(&p, warps);
                stream_problem(&p, samples, thread_count);
            }
            release(&p);
        }
    printf("\n]}\n");
    end_threads(thread_count);
}

/* ---- several rows ---------------------------------------------------------------------------- */

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 }; /* constants of CBLAS */

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);
typedef void set_threads_fn(int threads);
typedef char *core_fn(void);

static struct blas {
    sgemm_fn *sgemm; /* NULL: no such library */
    const char *core;
} blas;

/* Looks up a function of a library. POSIX allows the conversion of an object pointer. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    *(void **)function = symbol;
}

static void open_blas(void)
{
    set_threads_fn *set_threads;
    core_fn *core;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    find(library, "cblas_sgemm", &blas.sgemm);
    find(library, "openblas_set_num_threads", &set_threads);
    find(library, "openblas_get_corename", &core);
    if (!blas.sgemm || !set_threads || !core)
        fail("libopenblas.so.0", "is no OpenBLAS");
    set_threads(1);
    blas.core = core();
}

/* Buffers for all operands and results. */
typedef struct bench {
    float *weights; /* (outputs, inputs) */
    float *to;      /* (MAX_ROWS, outputs) */
    float *scratch;
    int samples;
} bench;

/* The CPU time of this thread, so that other processes affect it less. */
static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The number of repetitions for which the clock's resolution is negligible. */
static int repeats_of(const problem *p, int rows)
{
    double operations = 2.0 * (double)p->inputs * (double)p->outputs * rows;
    return 1 + (int)(2e8 / operations);
}

static double multiply_s(const bench *b, const mgl_products *set, const problem *p, int rows)
{
    int repeats = repeats_of(p, rows);
    double start = processor_s();
    for (int i = 0; i < repeats; i++)
        set->multiply(&p->w, 0, p->groups, p->outputs, p->x, p->inputs, rows, b->to, p->outputs,
                      b->scratch);
    return (processor_s() - start) / repeats;
}

static double blas_s(const bench *b, const problem *p, int rows)
{
    int repeats = repeats_of(p, rows), inputs = (int)p->inputs, outputs = (int)p->outputs;
    double start = processor_s();
    for (int i = 0; i < repeats; i++)
        blas.sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, rows, outputs, inputs, 1.0f, p->x, inputs,
                   b->weights, inputs, 0.0f, b->to, outputs);
    return (processor_s() - start) / repeats;
}

static void rows_set(const bench *b, const mgl_products *set, const problem *p, int rows)
{
    static double own[MGL_MAX_SAMPLES], others[MGL_MAX_SAMPLES];
    double operations = 2.0 * (double)p->inputs * (double)p->outputs * rows;
    for (int i = -1; i < b->samples; i++) {
        own[i < 0 ? 0 : i] = multiply_s(b, set, p, rows);
        if (blas.sgemm)
            others[i < 0 ? 0 : i] = blas_s(b, p, rows);
    }
    print_problem(set, p, rows);
    print_rate("gflops", operations, own, b->samples);
    if (blas.sgemm) {
        print_rate("openblas_gflops", operations, others, b->samples);
        print_ratio("of_openblas", own, others, b->samples);
    }
    printf("}");
}

static void rows_problem(const bench *b, const problem *p)
{
    static const int rows[] = {2, 4, 8, 16, 32, 128};
    for (int s = 0; s < SETS; s++) {
        mgl_products set;
        if (!mgl_products_find(set_names[s], &set) || !strcmp(set.name, "plain"))
            continue;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            rows_set(b, &set, p, rows[i]);
    }
}

static void several_rows(int samples)
{
    static const int64_t shapes[][2] = {{2048, 2048}, {2048, 8192}, {8192, 2048}, {576, 1536}};
    open_blas();
    print_cpu();
    printf(",\"what\":\"rows\",\"openblas\":\"%s\",\"samples\":%d,\"rows\":[",
           blas.sgemm ? blas.core : "", samples);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t inputs = shapes[i][0], outputs = shapes[i][1];
        bench b = {.samples = samples};
        b.weights = allocate((size_t)(inputs * outputs) * sizeof *b.weights);
        b.to = allocate((size_t)(MAX_ROWS * outputs) * sizeof *b.to);
        fill_values(b.weights, (size_t)(inputs * outputs));
        for (int format = 0; format < FORMATS; format++) {
            problem p;
            make(&p, formats[format], inputs, outputs, false);
            place_blocks(&p, 1);
            b.scratch = allocate(mgl_products_scratch(p.w.blocks, p.w.format) * sizeof(float));
            rows_problem(&b, &p);
            mgl_free(b.scratch);
            release(&p);
        }
        mgl_free(b.weights);
        mgl_free(b.to);
    }
    printf("\n]}\n");
}

int main(int count, char **arguments)
{
    int samples = count > 2 ? atoi(arguments[2]) : DEFAULT_SAMPLES;
    int thread_count = count > 3 ? atoi(arguments[3]) : DEFAULT_THREADS;
    if (samples < 1 || samples > MGL_MAX_SAMPLES || thread_count < 1 || thread_count > MAX_THREADS)
        fail("SAMPLES or THREADS", "is out of range");
    if (count > 1 && !strcmp(arguments[1], "stream"))
        stream(samples, thread_count, false);
    else if (count > 1 && !strcmp(arguments[1], "mapped"))
        stream(samples, thread_count, true);
    else if (count > 1 && !strcmp(arguments[1], "rows"))
        several_rows(samples);
    else
        fail("usage", "bench_products stream|mapped|rows [SAMPLES [THREADS]]");
    return 0;
}
