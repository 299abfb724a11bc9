/* Tests of the logits of scored tokens (mgl_vm_score_logits): they give the log-probabilities of a
 * score in one launch, and do not depend on the parts in which a text is read. */
#include "fixture.h"

#include <math.h>
#include <string.h>

enum { CAPACITY = 64, VOCAB = 75, TEXT = 50 };

static const fixture_options shapes[] = {
    {.queues = 1, .rows = 1, .capacity = CAPACITY},
    {.queues = 3, .rows = 4, .capacity = CAPACITY, .exchange = 1},
    {.queues = 2, .rows = 16, .capacity = CAPACITY, .exchange = 2, .splits = 3},
    {.queues = 2, .rows = 2, .second_rows = 40, .capacity = CAPACITY, .exchange = 2}};

static mgl_error err;
static int32_t text[TEXT];
static float whole[TEXT * VOCAB], parts[TEXT * VOCAB];

typedef struct machine {
    mgl_graph *graph;
    mgl_program *program;
    mgl_vm *vm;
} machine;

static machine open_machine(const fixture_options *shape)
{
    machine m = {.graph = random_graph(&small_model, CAPACITY, true, MGL_F32, 41)};
    for (int i = 0; i < TEXT; i++)
        text[i] = (i * 31 + i * i) % VOCAB;
    m.program = fixture_program(m.graph, shape);
    m.vm = fixture_vm(m.program, m.graph, true);
    return m;
}

static void close_machine(machine *m)
{
    mgl_vm_close(m->vm);
    mgl_program_free(m->program);
    mgl_graph_free(m->graph);
}

/* Split attention sums the positions of earlier epochs in another order than those of this epoch.
 */
static void check_equal(const fixture_options *shape, const float *a, const float *b, int count)
{
    if (shape->splits <= 1)
        ck_assert_mem_eq(a, b, (size_t)count * sizeof *a);
    for (int i = 0; i < count; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-4f);
}

static double log_probability(const float *logits, int32_t token)
{
    double sum = 0;
    for (int i = 0; i < VOCAB; i++)
        sum += exp((double)logits[i]);
    return (double)logits[token] - log(sum);
}

/* A score in one launch uses the second list, whose sums may have another order. */
START_TEST(they_give_the_score)
{
    machine m = open_machine(&shapes[_i]);
    const mgl_vm_sequence sequence = {
        .mode = MGL_VM_SCORE, .prompt = text, .prompt_count = TEXT, .max_new = 1};
    const mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_vm_report report;
    ok(mgl_vm_score_logits(m.vm, text, TEXT, 0, NULL, whole, &err), err);
    ok(mgl_vm_run(m.vm, &request, &report, &err), err);
    for (int i = 0; i + 1 < TEXT; i++)
        ck_assert_double_eq_tol(log_probability(whole + i * VOCAB, text[i + 1]),
                                (double)report.score[0][i + 1], 1e-4);
    close_machine(&m);
}
END_TEST

/* Reads the text in parts of `step` tokens, each from a cache with the tokens before. */
START_TEST(parts_of_a_text)
{
    machine m = open_machine(&shapes[_i]);
    ok(mgl_vm_score_logits(m.vm, text, TEXT, 0, NULL, whole, &err), err);
    for (int step = 1; step < TEXT; step += 6) {
        memset(parts, 0, sizeof parts);
        for (int begin = 0; begin + 1 < TEXT; begin += step) {
            const int count = begin + step + 1 < TEXT ? begin + step + 1 : TEXT;
            ok(mgl_vm_score_logits(m.vm, text, count, begin, NULL, parts + begin * VOCAB, &err),
               err);
        }
        check_equal(&shapes[_i], parts, whole, (TEXT - 1) * VOCAB);
    }
    close_machine(&m);
}
END_TEST

/* Another text in the cache, or none: the tokens before `begin` are read too. */
START_TEST(an_end_of_a_text)
{
    enum { BEGIN = 33 };
    machine m = open_machine(&shapes[_i]);
    int32_t other[TEXT];
    ok(mgl_vm_score_logits(m.vm, text, TEXT, BEGIN, NULL, parts, &err), err);
    ok(mgl_vm_score_logits(m.vm, text, TEXT, 0, NULL, whole, &err), err);
    check_equal(&shapes[_i], parts, whole + BEGIN * VOCAB, (TEXT - 1 - BEGIN) * VOCAB);
    memcpy(other, text, sizeof other);
    other[20] = (other[20] + 1) % VOCAB;
    ok(mgl_vm_score_logits(m.vm, other, TEXT, 0, NULL, parts, &err), err);
    ok(mgl_vm_score_logits(m.vm, text, TEXT, BEGIN, NULL, parts, &err), err);
    check_equal(&shapes[_i], parts, whole + BEGIN * VOCAB, (TEXT - 1 - BEGIN) * VOCAB);
    close_machine(&m);
}
END_TEST

/* A score that continues in the cache names the position of a value that is not finite. */
START_TEST(values_that_are_not_finite)
{
    machine m = open_machine(&shapes[1]);
    mgl_vm_close(m.vm);
    spoil_row(m.graph, "model.embed_tokens.weight", text[40], INFINITY);
    m.vm = fixture_vm(m.program, m.graph, true);
    ck_assert_int_eq(mgl_vm_score_logits(m.vm, text, TEXT, 0, NULL, whole, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "position 1 is not a number") != NULL, "%s", err.message);
    close_machine(&m);
}
END_TEST

START_TEST(an_abort)
{
    machine m = open_machine(&shapes[1]);
    const atomic_int set = 1;
    ck_assert_int_eq(mgl_vm_score_logits(m.vm, text, TEXT, 0, &set, whole, &err), MGL_INTERRUPTED);
    close_machine(&m);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("logits");
    const int count = sizeof shapes / sizeof *shapes;
    tcase_add_loop_test(tests, they_give_the_score, 0, count);
    tcase_add_loop_test(tests, parts_of_a_text, 0, count);
    tcase_add_loop_test(tests, an_end_of_a_text, 0, count);
    tcase_add_test(tests, values_that_are_not_finite);
    tcase_add_test(tests, an_abort);
    return fixture_main("logits", tests);
}
