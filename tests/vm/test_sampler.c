/*
 * Tests of sampling: the generator's published vectors, the integer weights against exp, each rule
 * against a sort, and the distribution of draws.
 */
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "schedule/step.h"

/* Random123 1.14, tests/kat_vectors: philox4x32 10. */
START_TEST(philox_has_its_published_words)
{
    static const struct {
        unsigned counter[4], key[2], words[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    unsigned words[4];
    mgl_philox(cases[_i].counter, cases[_i].key, words);
    ck_assert_mem_eq(words, cases[_i].words, sizeof words);
}
END_TEST

START_TEST(keys_order_as_the_values)
{
    static const float values[] = {-INFINITY, -3e38f, -1.0f, -1e-40f, 0.0f,
                                   1e-40f,    1.0f,   3e38f, INFINITY};
    const size_t count = sizeof values / sizeof *values;
    for (size_t i = 0; i + 1 < count; i++)
        ck_assert_uint_lt(mgl_sampler_key(values[i]), mgl_sampler_key(values[i + 1]));
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq(mgl_sampler_value(mgl_sampler_key(values[i])), values[i]);
    ck_assert_uint_eq(mgl_sampler_key(-0.0f), mgl_sampler_key(0.0f));
    ck_assert_uint_eq(mgl_sampler_key(values[0]), MGL_KEY_LOWEST);
    ck_assert_uint_eq(mgl_sampler_key(values[count - 1]), MGL_KEY_HIGHEST);
    ck_assert_uint_eq(mgl_sampler_key(NAN), MGL_KEY_NAN);
    ck_assert_uint_eq(mgl_sampler_key(-NAN), MGL_KEY_NAN);
}
END_TEST

START_TEST(only_finite_numbers_are_chosen_by)
{
    static const float finite[] = {-3e38f, -1.0f, 0.0f, 1e-40f, 3e38f};
    static const float others[] = {-INFINITY, INFINITY, NAN, -NAN};
    for (size_t i = 0; i < sizeof finite / sizeof *finite; i++)
        ck_assert(mgl_sampler_is_finite(mgl_sampler_key(finite[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert(!mgl_sampler_is_finite(mgl_sampler_key(others[i])));
}
END_TEST

START_TEST(weights_are_exponentials)
{
    ck_assert(mgl_sampler_weight(1.5f, 1.5f) == 1ull << 40);
    ck_assert(mgl_sampler_weight(INFINITY, INFINITY) == 1ull << 40);
    ck_assert(mgl_sampler_weight(-INFINITY, 1.0f) == 0);
    ck_assert(mgl_sampler_weight(1.0f, INFINITY) == 0);
    ck_assert(mgl_sampler_weight(-28.0f, 0.0f) == 0);
    for (float d = 0.0f; d < 28.0f; d += 0.00037f) {
        double wanted = ldexp(exp(-(double)d), 40);
        double found = (double)mgl_sampler_weight(-d, 0.0f);
        ck_assert_double_le(fabs(found - wanted), 1.0 + wanted * 0x1p-27);
    }
}
END_TEST

START_TEST(scale_is_the_high_word)
{
    ck_assert(mgl_sampler_scale(~0ull, ~0ull) == ~0ull - 1);
    ck_assert(mgl_sampler_scale(1ull << 63, 10) == 5);
    ck_assert(mgl_sampler_scale(~0ull, 1) == 0);
    ck_assert(mgl_sampler_scale(0x123456789ABCDEF0ull, 0xFEDCBA9876543210ull) ==
              0x121FA00AD77D7422ull);
}
END_TEST

/* ---- the rules, by a sort -------------------------------------------------------------------- */

enum { MOST = 300 };

__extension__ typedef unsigned __int128 wide;

struct ranked {
    float value;
    int id;
    unsigned long long weight;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value > y->value ? -1 : x->value < y->value ? 1 : x->id - y->id;
}

static int by_id(const void *a, const void *b)
{
    return ((const struct ranked *)a)->id - ((const struct ranked *)b)->id;
}

/* The definition of the header, with a sort instead of the radix selection. */
static int draw_sorted(const float *logits, int count, float temperature, int top_k, float top_p,
                       float min_p, unsigned long long random)
{
    struct ranked items[MOST];
    unsigned long long total = 0, sum = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        items[n++] = (struct ranked){logits[i] / temperature, i, 0};
    qsort(items, (size_t)n, sizeof *items, by_rank);
    if (top_k > 0 && top_k < n)
        n = top_k;
    for (int i = 0; i < n; i++)
        total += items[i].weight = mgl_sampler_weight(items[i].value, items[0].value);
    if (top_p > 0.0f && top_p < 1.0f) {
        /* kept while the sum before it is under p total */
        unsigned long long limit = (unsigned long long)((long double)total * (long double)top_p);
        int kept = 0;
        for (; kept < n && (kept == 0 || sum < limit); kept++)
            sum += items[kept].weight;
        n = kept;
        total = sum;
    }
    for (int i = n - 1; i > 0 && (double)items[i].weight < (double)min_p * 0x1p40; i--, n--)
        total -= items[i].weight;
    qsort(items, (size_t)n, sizeof *items, by_id);
    unsigned long long target = (unsigned long long)(((wide)random * total) >> 64);
    for (int i = 0; i < n; i++) {
        if (target < items[i].weight)
            return items[i].id;
        target -= items[i].weight;
    }
    ck_abort_msg("the target is beyond the sum");
}

/* Random logits with many ties, sometimes -inf, with all kinds of settings. */
START_TEST(draws_are_those_of_a_sort)
{
    static const float temperatures[] = {1.0f, 0.25f, 3.0f}, tops[] = {0.0f, 0.5f, 0.25f, 0.875f};
    static const float least[] = {0.0f, 0.05f, 0.5f, 1.0f, 1e-9f};
    unsigned words[4] = {0}, key[2] = {9, 9};
    for (unsigned round = 0; round < 3000; round++) {
        unsigned counter[4] = {round, 1, 2, 3};
        mgl_philox(counter, key, words);
        float logits[MOST];
        int count = 1 + (int)(words[0] % MOST), top_k = (int)(words[1] % 8 ? words[1] % 40 : 0);
        for (int i = 0; i < count; i++) {
            unsigned at[4] = {round, (unsigned)i, 7, 7}, word[4];
            mgl_philox(at, key, word);
            logits[i] = (float)(word[0] % 32) * 0.25f - 4.0f; /* exact: many ties */
            if (round % 2)
                logits[i] += (float)(word[1] >> 8) * 0x1p-22f;
            if (round % 5 == 0 && word[2] % 7 == 0)
                logits[i] = -INFINITY;
        }
        logits[words[2] % (unsigned)count] = 1.0f;
        float temperature = temperatures[round % 3], top_p = tops[words[2] % 4];
        float min_p = least[words[1] % 5];
        unsigned long long random = (unsigned long long)words[3] << 32 | words[0];
        ck_assert_int_eq(mgl_sampler_draw(logits, count, temperature, top_k, top_p, min_p, random),
                         draw_sorted(logits, count, temperature, top_k, top_p, min_p, random));
    }
}
END_TEST

/* Hugging Face's TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper and MinPLogitsWarper
 * (transformers, generation/logits_process.py) in sequence, in f64 with softmax: the remaining
 * tokens and their probabilities. -1: so close to a limit that f32 may decide otherwise. */
static int warp(const float *logits, int count, float temperature, int top_k, float top_p,
                float min_p, double *probabilities)
{
    struct ranked items[MOST];
    double total = 0, sum = 0, kept = 0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        items[i] = (struct ranked){logits[i] / temperature, i, 0};
        probabilities[i] = 0;
    }
    qsort(items, (size_t)count, sizeof *items, by_rank);
    if (top_k > 0 && top_k < count)
        count = top_k;
    for (int i = 0; i < count; i++)
        total += exp((double)items[i].value - (double)items[0].value);
    for (; n < count; n++) {
        double before = sum / total;
        if (top_p < 1 && n && fabs(before - (double)top_p) < 1e-5)
            return -1;
        if (top_p < 1 && n && before >= (double)top_p)
            break;
        sum += exp((double)items[n].value - (double)items[0].value);
    }
    for (int i = 0; i < n; i++) {
        double ratio = exp((double)items[i].value - (double)items[0].value);
        if (fabs(ratio / (double)min_p - 1) < 1e-5)
            return -1;
        if (ratio >= (double)min_p)
            kept += probabilities[items[i].id] = ratio;
    }
    for (int i = 0; i < MOST; i++)
        probabilities[i] /= kept;
    return 0;
}

/* On 200 random states: as the random number goes from 0 to 1, each token gets its share of the
 * interval, in id order. */
START_TEST(min_p_is_hugging_faces)
{
    enum { STATES = 200, STEPS = 64 };
    int compared = 0;
    for (unsigned state = 0; state < STATES; state++) {
        double probabilities[MOST] = {0}, edge = 0;
        float logits[MOST];
        unsigned words[4], counter[4] = {state, 5, 5, 5}, key[2] = {1, 2};
        mgl_philox(counter, key, words);
        for (int i = 0; i < MOST; i++) {
            unsigned at[4] = {state, (unsigned)i, 6, 6}, word[4];
            mgl_philox(at, key, word);
            logits[i] = (float)word[0] * 0x1p-29f - 4.0f;
        }
        float temperature = 0.3f + (float)(words[0] % 100) * 0.02f;
        int top_k = words[1] % 3 ? 0 : 1 + (int)(words[1] % 50);
        float top_p = words[2] % 3 ? 1.0f : 0.5f + (float)(words[2] % 40) * 0.01f;
        float min_p = 0.001f + (float)(words[3] % 400) * 0.001f;
        if (warp(logits, MOST, temperature, top_k, top_p, min_p, probabilities))
            continue;
        compared++;
        for (int id = 0; id < MOST; id++) {
            for (int step = 1; step < STEPS && probabilities[id] > 1e-4; step += 31) {
                double u = edge + probabilities[id] * step / STEPS;
                int drawn = mgl_sampler_draw(logits, MOST, temperature, top_k, top_p, min_p,
                                             (unsigned long long)(u * 0x1p64));
                ck_assert_msg(drawn == id, "state %u: %d, not %d", state, drawn, id);
            }
            edge += probabilities[id];
        }
    }
    ck_assert_int_ge(compared, 190);
}
END_TEST

START_TEST(extremes)
{
    static const float nothing[] = {-INFINITY, -INFINITY, -INFINITY}, one[] = {-1e30f};
    static const float broken[] = {1.0f, NAN, 2.0f};
    static const float infinite[] = {1.0f, INFINITY, 2.0f, INFINITY};
    ck_assert_int_eq(mgl_sampler_draw(nothing, 3, 1.0f, 2, 0.5f, 0.0f, ~0ull), 0);
    ck_assert_int_eq(mgl_sampler_draw(broken, 3, 1.0f, 2, 0.5f, 0.0f, ~0ull), 0);
    ck_assert_int_eq(mgl_sampler_draw(one, 1, 1e-30f, 5, 0.1f, 0.0f, ~0ull), 0);
    ck_assert_int_eq(mgl_sampler_draw(infinite, 4, 1.0f, 0, 0.0f, 0.0f, 0), 1);
    ck_assert_int_eq(mgl_sampler_draw(infinite, 4, 1.0f, 0, 0.0f, 0.0f, ~0ull), 3);
    ck_assert_int_eq(mgl_sampler_draw(infinite, 4, 1.0f, 1, 0.0f, 0.0f, ~0ull), 1);
    /* the smallest p keeps the first */
    ck_assert_int_eq(mgl_sampler_draw(infinite, 4, 1.0f, 0, 1e-30f, 0.0f, ~0ull), 1);
}
END_TEST

/* ---- the distribution ------------------------------------------------------------------------ */

/* Pearson's chi-square test of 40,000 draws with a fixed seed against the softmax of the kept
 * tokens; kept - 1 degrees of freedom, limits at p = 0.999. */
static void check_distribution(float temperature, int top_k, float top_p, float min_p,
                               const bool *kept, double limit)
{
    enum { VOCAB = 8, DRAWS = 40000 };
    static const float logits[VOCAB] = {0.5f, 2.0f, -1.0f, 2.5f, 0.0f, 1.0f, 2.0f, -0.5f};
    int found[VOCAB] = {0};
    double total = 0.0, chi = 0.0;
    for (unsigned i = 0; i < DRAWS; i++)
        found[mgl_sampler_draw(logits, VOCAB, temperature, top_k, top_p, min_p,
                               mgl_philox_token(12345, 678, i))]++;
    for (int i = 0; i < VOCAB; i++)
        total += kept[i] ? exp((double)(logits[i] / temperature)) : 0.0;
    for (int i = 0; i < VOCAB; i++) {
        double wanted = (double)DRAWS * exp((double)(logits[i] / temperature)) / total;
        if (kept[i])
            chi += (found[i] - wanted) * (found[i] - wanted) / wanted;
        else
            ck_assert_int_eq(found[i], 0);
    }
    ck_assert_double_lt(chi, limit);
}

START_TEST(draws_follow_the_distribution)
{
    static const bool all[] = {1, 1, 1, 1, 1, 1, 1, 1}, three[] = {0, 1, 0, 1, 0, 0, 1, 0};
    static const bool two[] = {0, 1, 0, 1, 0, 0, 0, 0}, four[] = {0, 1, 0, 1, 0, 1, 1, 0};
    check_distribution(1.0f, 0, 0.0f, 0.0f, all, 24.32);
    check_distribution(0.7f, 0, 1.0f, 0.0f, all, 24.32);
    check_distribution(2.0f, 0, 0.0f, 0.0f, all, 24.32);
    check_distribution(1.0f, 3, 0.0f, 0.0f, three, 13.82);
    check_distribution(1.0f, 2, 0.0f, 0.0f, two, 10.83); /* of the tie, the lower id */
    /* shares 0.366, 0.222, 0.222, 0.082, 0.050, ...: 0.810 before the fourth, 0.892 before the
     * fifth */
    check_distribution(1.0f, 0, 0.8f, 0.0f, three, 13.82);
    check_distribution(1.0f, 0, 0.85f, 0.0f, four, 16.27);
    check_distribution(1.0f, 3, 0.5f, 0.0f, two, 10.83);
    /* exp(-0.5) = 0.61, exp(-1.5) = 0.22 and exp(-2) = 0.14 of the best */
    check_distribution(1.0f, 0, 0.0f, 0.5f, three, 13.82);
    check_distribution(1.0f, 0, 0.0f, 0.2f, four, 16.27);
    check_distribution(1.0f, 2, 0.0f, 0.2f, two, 10.83);
    check_distribution(1.0f, 0, 0.0f, 1e-12f, all, 24.32);
}
END_TEST

/* ---- in the machine -------------------------------------------------------------------------- */

static void generate(mgl_vm *vm, uint64_t seed, int32_t *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    static const int32_t prompt[] = {3, 14, 15};
    mgl_vm_sequence sequence = {.prompt = prompt,
                                .prompt_count = 3,
                                .max_new = 40,
                                .temperature = 0.9f,
                                .top_k = 30,
                                .top_p = 0.95f,
                                .seed = seed};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    memcpy(tokens, report.output[0], 40 * sizeof *tokens);
}

START_TEST(a_seed_is_a_reply)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 41);
    mgl_program *one = fixture_program(graph, &(fixture_options){0});
    mgl_program *many = fixture_program(graph, &(fixture_options){.queues = 7});
    mgl_vm *a = fixture_vm(one, graph, true), *b = fixture_vm(many, graph, true);
    int32_t first[40], again[40];
    generate(a, 1, first);
    generate(a, 1, again);
    ck_assert_mem_eq(first, again, sizeof first);
    generate(b, 1, again); /* the reference's sums do not depend on the queues */
    ck_assert_mem_eq(first, again, sizeof first);
    generate(a, 1ull << 32, again);
    ck_assert_mem_ne(first, again, sizeof first);
    mgl_vm_close(a);
    mgl_vm_close(b);
    mgl_program_free(one);
    mgl_program_free(many);
    mgl_graph_free(graph);
}
END_TEST

/* The index of a sequence in a batch is not part of the counter. */
START_TEST(a_draw_is_of_seed_and_token)
{
    unsigned counter[4] = {21, 0, 0, 0}, key[2] = {3, 4}, out[4];
    mgl_philox(counter, key, out);
    ck_assert(mgl_philox_token(3, 4, 21) == ((unsigned long long)out[1] << 32 | out[0]));
}
END_TEST

enum { NEIGHBORS = 5, MOST_NEW = 40 };

/* Sampling options, prompts and lengths, all different; two share a seed. */
static void make_neighbors(mgl_vm_sequence *out)
{
    static const int32_t prompt[] = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32};
    static const mgl_vm_sequence ways[NEIGHBORS] = {
        {.temperature = 0.0f, .max_new = 31},
        {.temperature = 0.9f, .top_k = 30, .top_p = 0.95f, .seed = 1, .max_new = MOST_NEW},
        {.temperature = 1.3f, .seed = 1, .max_new = 17},
        {.temperature = 0.7f, .top_k = 5, .seed = 1ull << 40, .max_new = MOST_NEW},
        {.temperature = 2.0f, .top_p = 0.5f, .seed = 4, .max_new = 2}};
    for (int s = 0; s < NEIGHBORS; s++) {
        out[s] = ways[s];
        out[s].prompt = prompt + s;
        out[s].prompt_count = 1 + s;
    }
}

static void run_neighbors(mgl_vm *vm, const mgl_vm_sequence *sequences, int count,
                          mgl_vm_report *report)
{
    mgl_error err;
    mgl_vm_request request = {.sequences = sequences, .count = count};
    ok(mgl_vm_run(vm, &request, report, &err), err);
}

/* Token 3 of sequence 1 becomes its end token: it ends before all but the last. */
START_TEST(a_reply_is_the_same_with_neighbors)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 42);
    fixture_options together = {.queues = 3, .sequences = NEIGHBORS};
    mgl_program *one = fixture_program(graph, &(fixture_options){0});
    mgl_program *all = fixture_program(graph, &together);
    mgl_vm *a = fixture_vm(one, graph, true), *b = fixture_vm(all, graph, true);
    mgl_vm_sequence sequences[NEIGHBORS];
    mgl_vm_report alone, report;
    make_neighbors(sequences);
    run_neighbors(a, &sequences[1], 1, &alone);
    int32_t end = alone.output[0][3];
    sequences[1].ends = &end;
    sequences[1].end_count = 1;
    run_neighbors(b, sequences, NEIGHBORS, &report);
    ck_assert_int_eq(report.state[1], MGL_STATE_EOS);
    for (int s = 0; s < NEIGHBORS; s++) {
        run_neighbors(a, &sequences[s], 1, &alone);
        ck_assert_int_eq(report.state[s], alone.state[0]);
        ck_assert_int_eq(report.produced[s], alone.produced[0]);
        ck_assert_mem_eq(report.output[s], alone.output[0],
                         (size_t)alone.produced[0] * sizeof(int32_t));
    }
    mgl_vm_close(a);
    mgl_vm_close(b);
    mgl_program_free(one);
    mgl_program_free(all);
    mgl_graph_free(graph);
}
END_TEST

/* The same request at every index of a batch gives the same reply. */
START_TEST(a_reply_is_the_same_at_every_place)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 43);
    fixture_options options = {.sequences = MGL_MAX_ROWS};
    mgl_program *program = fixture_program(graph, &options);
    mgl_vm *vm = fixture_vm(program, graph, true);
    mgl_vm_sequence neighbors[NEIGHBORS], sequences[MGL_MAX_ROWS];
    mgl_vm_report report;
    make_neighbors(neighbors);
    for (int s = 0; s < MGL_MAX_ROWS; s++)
        sequences[s] = neighbors[1];
    run_neighbors(vm, sequences, MGL_MAX_ROWS, &report);
    for (int s = 0; s < MGL_MAX_ROWS; s++) {
        ck_assert_int_eq(report.produced[s], MOST_NEW);
        ck_assert_mem_eq(report.output[s], report.output[0], MOST_NEW * sizeof(int32_t));
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("sampler");
    tcase_add_loop_test(tests, philox_has_its_published_words, 0, 3);
    tcase_add_test(tests, keys_order_as_the_values);
    tcase_add_test(tests, only_finite_numbers_are_chosen_by);
    tcase_add_test(tests, weights_are_exponentials);
    tcase_add_test(tests, scale_is_the_high_word);
    tcase_add_test(tests, draws_are_those_of_a_sort);
    tcase_add_test(tests, min_p_is_hugging_faces);
    tcase_add_test(tests, extremes);
    tcase_add_test(tests, draws_follow_the_distribution);
    tcase_add_test(tests, a_seed_is_a_reply);
    tcase_add_test(tests, a_draw_is_of_seed_and_token);
    tcase_add_test(tests, a_reply_is_the_same_with_neighbors);
    tcase_add_test(tests, a_reply_is_the_same_at_every_place);
    return fixture_main("sampler", tests);
}
