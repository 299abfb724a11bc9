/*
 * Tests of the block-level sampling (instructions/sample/draw_row.cuh) in the emulator against the
 * serial functions of the sampler: the same token, and the same set of most likely tokens, for all
 * kinds of logits and settings, in blocks of several shapes.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "instructions/sample/sampler.h"
#include "schedule/step.h"
#include "tests/emulator/emulator.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/sources.h"

enum { SKIP = 77, LEAST_PART = 48, PARTS = 132, LARGEST = 1 << 20 };

/* The shape of a block. With few bytes of stage memory, the list does not fit, and the row is
 * scanned again. */
static const struct shape {
    int vocab, rows, warps, stage, draws;
    bool usual; /* good guesses */
} shapes[] = {{3, 1, 1, 1024, 150, false},      {75, 16, 2, 0, 150, false},
              {1003, 1, 4, 32768, 150, false},  {1024, 17, 8, 64, 150, false},
              {4100, 1, 8, 1024, 100, false},   {40000, 64, 16, 65536, 25, false},
              {33333, 1, 3, 16384, 20, false},  {9001, 1, 2, 8192, 150, false},
              {128256, 1, 8, 65536, 150, true}, {128256, 64, 8, 65536, 150, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The same value as in the kernel. */
struct draw_block {
    const float *logits;
    const int32_t *sequence;
    const uint32_t *keys;
    const uint64_t *random;
    const float *parts;
    int part_count;
    uint32_t *drawn;
    int rows;
};

static uint64_t state = 88172645463325252u; /* xorshift64 (Marsaglia 2003) */

static unsigned draw(unsigned end)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 20) % end);
}

static float uniform(void)
{
    return (float)draw(1u << 24) / (float)(1u << 24);
}

/* Approximately normal: the sum of four uniform numbers. */
static float spread(void)
{
    return (uniform() + uniform() + uniform() + uniform() - 2.0f) * 1.7f;
}

/* ---- logits ---------------------------------------------------------------------------------- */

enum {
    NORMAL,   /* like a model's */
    NARROW,   /* the smallest bins are as wide as the whole range */
    PEAKED,   /* some far above the others */
    TIED,     /* few values */
    EQUAL,    /* one value */
    AROUND_0, /* many magnitudes, zeros of both signs, and denormals */
    HUGE_ONES,
    MASKED, /* most are -inf */
    ONE,    /* all but one are -inf */
    NO_NUMBERS,
    KINDS
};

static float logit_of(int kind, int i)
{
    static const float odd[] = {0.0f, -0.0f, 1e-40f, -1e-40f, 1e-30f, -1e-30f, 1e-10f, -3e-20f};
    switch (kind) {
    case NORMAL:
        return 2.5f * spread() + 3.0f;
    case NARROW:
        return -7.0f + 1e-4f * spread();
    case PEAKED:
        return draw(50) ? spread() : 20.0f + 3.0f * spread();
    case TIED:
        return (float)draw(7) * 0.75f;
    case EQUAL:
        return 3.25f;
    case AROUND_0:
        return draw(3) ? odd[draw(8)] : spread();
    case HUGE_ONES:
        return draw(2) ? 3e38f * (spread() / 4.0f) : 1e25f * spread();
    case MASKED:
        return draw(20) ? -INFINITY : spread();
    case ONE:
        return i == 2 ? 5.0f : -INFINITY;
    default:
        return draw(4) ? spread() : draw(2) ? NAN : INFINITY;
    }
}

static void fill(int kind, int vocab, float *logits)
{
    for (int i = 0; i < vocab; i++)
        logits[i] = logit_of(kind, i);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int32_t bits_of(float value)
{
    return (int32_t)mgl_float_bits(value);
}

static void set(int vocab, int32_t *sequence)
{
    static const float temperatures[] = {1.0f, 0.8f, 0.3f, 1.7f, 1e-3f, 30.0f, 1e-8f, 3e7f};
    static const float tops[] = {0.95f, 0.5f, 0.999f, 0.01f, 0.9f};
    static const float least[] = {0.05f, 0.5f, 1.0f, 1e-9f};
    sequence[MGL_SEQUENCE_TEMPERATURE] =
        bits_of(draw(2) ? temperatures[draw(3)] : temperatures[draw(8)]);
    if (draw(2))
        sequence[MGL_SEQUENCE_TOP_K] =
            draw(2) ? 1 + (int)draw(20) : 1 + (int)draw((unsigned)vocab + 2);
    if (draw(3))
        sequence[MGL_SEQUENCE_TOP_P] = bits_of(tops[draw(5)]);
    if (draw(3) == 0)
        sequence[MGL_SEQUENCE_MIN_P] = bits_of(least[draw(4)]);
}

/* The logits of a part, divided among queues. */
static int part_of(int vocab)
{
    return vocab / PARTS > LEAST_PART ? vocab / PARTS : LEAST_PART;
}

/* Also the best values of parts. */
static void find_keys(const float *logits, int vocab, uint32_t keys[2], float *parts)
{
    keys[0] = 0;
    keys[1] = 0xFFFFFFFFu;
    const int part = part_of(vocab);
    for (int from = 0; from < vocab; from += part) {
        uint32_t best = 0;
        for (int i = from; i < vocab && i < from + part; i++) {
            const uint32_t key = mgl_sampler_key(logits[i]);
            best = key > best ? key : best;
        }
        keys[0] = best > keys[0] ? best : keys[0];
        keys[1] = best < keys[1] ? best : keys[1];
        parts[from / part] = mgl_sampler_value(best);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Compiles the kernel for a shape; returns its only function. */
static const emu_plain_kernel *compile(const struct shape *s)
{
    static char options[40][48];
    const char **names = calloc((size_t)mgl_cuda_source_count, sizeof *names);
    const char **texts = calloc((size_t)mgl_cuda_source_count, sizeof *texts), *list[40];
    const struct {
        const char *name;
        int value;
    } constants[] = {{"ROWS", s->rows},
                     {"LISTS", s->rows > 16},
                     {"FEW", s->rows > 16 ? 1 : s->rows},
                     {"MANY_SEQUENCES", s->rows > 1},
                     {"VOCAB", s->vocab},
                     {"WARPS", s->warps},
                     {"ACTIVATION_BYTES", s->stage},
                     {"SHARED", 28672},
                     {"HIDDEN", 64},
                     {"ATTENDED", 64},
                     {"FFN", 64},
                     {"HEADS", 1},
                     {"HEAD_DIM", 64},
                     {"EPS_BITS", 0},
                     {"WEIGHT", 0},
                     {"EMBEDDING", 0},
                     {"CACHE", 0},
                     {"PAGE", 2048},
                     {"RING", 2},
                     {"FLIGHT", 2},
                     {"PREFETCH", 2},
                     {"VARIANTS_PRODUCT", 0},
                     {"VARIANTS_ATTENTION", 0},
                     {"VARIANTS_PANEL", 0},
                     {"VARIANTS_ATTEND_ROWS", 0},
                     {"KV_RING", 0},
                     {"BIAS", 0},
                     {"MERGE_ADD", 0},
                     {"SCALED", 0},
                     {"DRAWS", 0},
                     {"PENALTIES", 0},
                     {"SHARE", 0},
                     {"QK_NORM", 0},
                     {"TRACE", 0},
                     {"DELAYS", 0}};
    const int count = (int)(sizeof constants / sizeof *constants);
    static mgl_nvrtc compiler;
    static mgl_cu driver;
    mgl_error err;
    char *text, log[5000];
    size_t length;
    void *program, *module, *function;
    ck_assert_int_eq(
        mgl_file_read(MGL_SOURCE_DIR "/tests/emulator/draw_rows.cu", LARGEST, &text, &length, &err),
        MGL_OK);
    for (int i = 0; i < mgl_cuda_source_count; i++) {
        names[i] = mgl_cuda_sources[i].name;
        texts[i] = (const char *)mgl_cuda_sources[i].text;
    }
    for (int i = 0; i < count; i++) {
        snprintf(options[i], sizeof options[i], "-DMGL_%s=%d", constants[i].name,
                 constants[i].value);
        list[i] = options[i];
    }
    list[count] = "-arch=sm_90a";
    emu_fill_compiler(&compiler);
    emu_fill_driver(&driver);
    compiler.create(&program, text, "eval/draw_rows.cu", mgl_cuda_source_count, texts, names);
    const int result = compiler.compile(program, count + 1, list);
    compiler.log(program, log);
    ck_assert_msg(result == 0, "%s", log);
    compiler.cubin_size(program, &length);
    char *object = malloc(length);
    compiler.cubin(program, object);
    compiler.destroy(&program);
    ck_assert_int_eq(driver.module_load(&module, object, 0, NULL, NULL), 0);
    ck_assert_int_eq(driver.module_function(&function, module, "draw_rows"), 0);
    free(object);
    free(names);
    free(texts);
    mgl_free(text);
    return function;
}

static void describe_block(const unsigned char *shared, char *to, size_t length)
{
    (void)shared;
    snprintf(to, length, "draws");
}

static void describe_warp(int warp, char *to, size_t length)
{
    snprintf(to, length, "warp %d", warp);
}

static void run(const struct shape *s, const struct draw_block *block)
{
    const emu_plain_kernel *plain = compile(s);
    const unsigned threads = (unsigned)s->warps * 32;
    const emu_kernel kernel = {.run = plain->run,
                               .describe_block = describe_block,
                               .describe_warp = describe_warp,
                               .threads = threads};
    *plain->grid = (emu_grid){.blocks = {1, 1, 1}, .threads = threads};
    ck_assert(emu_launch(&kernel, block, 1, threads, 28672 + (size_t)s->stage));
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The token and the cut by the serial functions of the sampler. */
static void draw_plainly(const float *logits, int vocab, const int32_t *sequence, uint32_t best,
                         uint64_t random, uint32_t drawn[3])
{
    const int top_k = sequence[MGL_SEQUENCE_TOP_K];
    const mgl_sampler_input in = {logits, vocab, 1.0f, mgl_sampler_value(best), 0};
    mgl_sampler_cut cut = {0, 0};
    if (top_k > 0 && mgl_sampler_is_finite(best))
        cut = mgl_sampler_select(&in, cut, 0, (unsigned)top_k);
    drawn[0] = 0;
    if (mgl_sampler_is_finite(best)) /* for other rows there is no token */
        drawn[0] = (uint32_t)mgl_sampler_draw(
            logits, vocab, mgl_bits_float((unsigned)sequence[MGL_SEQUENCE_TEMPERATURE]), top_k,
            mgl_bits_float((unsigned)sequence[MGL_SEQUENCE_TOP_P]),
            mgl_bits_float((unsigned)sequence[MGL_SEQUENCE_MIN_P]), random);
    drawn[1] = cut.key;
    drawn[2] = cut.ties;
}

START_TEST(draws_are_those_of_the_sampler)
{
    const struct shape *s = &shapes[_i];
    const size_t draws = (size_t)s->draws, vocab = (size_t)s->vocab;
    float *logits = aligned_alloc(64, (draws * vocab * sizeof *logits + 63) / 64 * 64);
    int32_t *sequences = calloc(draws * MGL_SEQUENCE_WORDS, sizeof *sequences);
    uint32_t *keys = calloc(2 * draws, sizeof *keys), *drawn = calloc(4 * draws, sizeof *drawn);
    uint64_t *random = calloc(draws, sizeof *random);
    const size_t part = (size_t)part_of(s->vocab), part_count = (vocab + part - 1) / part;
    float *parts = calloc(draws * part_count, sizeof *parts);
    for (size_t i = 0; i < draws; i++) {
        int32_t *sequence = sequences + i * MGL_SEQUENCE_WORDS;
        fill((int)(i % KINDS), s->vocab, logits + i * vocab);
        find_keys(logits + i * vocab, s->vocab, keys + 2 * i, parts + i * part_count);
        set(s->vocab, sequence);
        if (sequence[MGL_SEQUENCE_TOP_K] > s->vocab)
            sequence[MGL_SEQUENCE_TOP_K] = 0;
        for (int n = 0; n < 4; n++)
            random[i] = random[i] << 16 | draw(1u << 16);
    }
    run(s, &(struct draw_block){logits, sequences, keys, random, parts, (int)part_count, drawn,
                                s->draws});
    int asked = 0, guessed = 0; /* counts over rows like a model's, cut by top-p alone */
    for (size_t i = 0; i < draws; i++) {
        uint32_t wanted[3];
        draw_plainly(logits + i * vocab, s->vocab, sequences + i * MGL_SEQUENCE_WORDS, keys[2 * i],
                     random[i], wanted);
        for (int n = 0; n < 3; n++)
            ck_assert_msg(drawn[4 * i + (size_t)n] == wanted[n],
                          "draw %zu of a vocabulary of %d: %u is %u, not %u", i, s->vocab,
                          (unsigned)n, drawn[4 * i + (size_t)n], wanted[n]);
    }
    for (size_t i = 0; i < draws; i++) {
        const int32_t *sequence = sequences + i * MGL_SEQUENCE_WORDS;
        const bool by_sum = sequence[MGL_SEQUENCE_TOP_P] && !sequence[MGL_SEQUENCE_TOP_K] &&
                            !sequence[MGL_SEQUENCE_MIN_P];
        const bool usual = mgl_bits_float((unsigned)sequence[MGL_SEQUENCE_TEMPERATURE]) > 0.2f;
        asked += by_sum && usual && i % KINDS == NORMAL;
        guessed += drawn[4 * i + 3] && by_sum && usual && i % KINDS == NORMAL;
    }
    printf("vocabulary %d: %d of %d guessed\n", s->vocab, guessed, asked);
    if (s->usual)
        ck_assert_int_gt(guessed, asked / 2);
    free(parts);
    free(random);
    free(drawn);
    free(keys);
    free(sequences);
    free(logits);
}
END_TEST

int main(void)
{
    if (!emu_install("draw"))
        return SKIP;
    TCase *tests = tcase_create("draw");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, draws_are_those_of_the_sampler, 0, SHAPES);
    Suite *suite = suite_create("draw");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
