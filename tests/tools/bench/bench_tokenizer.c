/*
 * Benchmarks a tokenizer:
 *
 *     bench_tokenizer TOKENIZER TEXT-FILE [RUNS]
 *
 * Prints one JSON object with megabytes per second (median, p10 and p90 of RUNS, default 21, after
 * one run that warms the cache) and the seconds to open the tokenizer.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "megalith.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int fail(const mgl_error *err)
{
    fprintf(stderr, "bench_tokenizer: %s: %s\n", err->where, err->message);
    return (int)err->code;
}

int main(int argc, char **argv)
{
    mgl_tokenizer *tokenizer;
    mgl_error err = {0};
    mgl_ids ids = {0};
    char *text;
    size_t length;
    double rates[1000];
    int runs = argc > 3 ? atoi(argv[3]) : 21;
    if (argc < 3 || runs < 1 || runs > 1000) {
        fprintf(stderr, "usage: bench_tokenizer TOKENIZER TEXT-FILE [RUNS up to 1000]\n");
        return 1;
    }
    double start = mgl_clock_s();
    if (mgl_tokenizer_open(argv[1], &tokenizer, &err))
        return fail(&err);
    double open_s = mgl_clock_s() - start;
    if (mgl_file_read(argv[2], (size_t)1 << 30, &text, &length, &err))
        return fail(&err);
    for (int run = -1; run < runs; run++) {
        start = mgl_clock_s();
        if (mgl_tokenizer_encode(tokenizer, text, length, true, &ids, &err))
            return fail(&err);
        if (run >= 0)
            rates[run] = (double)length / 1e6 / (mgl_clock_s() - start);
    }
    qsort(rates, (size_t)runs, sizeof *rates, by_value);
    printf("{\"bytes\": %zu, \"tokens\": %zu, \"open_s\": %.4f, \"runs\": %d, "
           "\"mb_per_s\": {\"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f}}\n",
           length, ids.count, open_s, runs, rates[runs / 2], rates[runs / 10],
           rates[runs * 9 / 10]);
    mgl_ids_clear(&ids);
    mgl_free(text);
    mgl_tokenizer_close(tokenizer);
    return 0;
}
