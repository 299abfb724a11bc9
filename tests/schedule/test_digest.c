/* Tests of the digest of a program: it depends on everything except names. */
#include "lowering.h"

#include "base/clock.h"
#include "schedule/digest.h"
#include "schedule/moves/moves.h"
#include "tests/time_limit.h"

#include <stdio.h>

#define GOLDEN "tests/schedule/golden/two_queues.mls"

static void digest_of(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES])
{
    ck_assert_int_eq(mgl_program_digest(program, out, NULL), MGL_OK);
}

static bool is_same(const mgl_program *a, const mgl_program *b)
{
    unsigned char x[MGL_SHA256_BYTES], y[MGL_SHA256_BYTES];
    digest_of(a, x);
    digest_of(b, y);
    return !memcmp(x, y, sizeof x);
}

/* Replaces `from`, if it is a whole word, by `to` everywhere except in strings. */
static mgl_text renamed(const char *text, const char *from, const char *to)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    mgl_text out = {0};
    const size_t length = strlen(from);
    bool quoted = false;
    for (const char *at = text; *at; at++) {
        quoted ^= *at == '"';
        if (!quoted && !strncmp(at, from, length) && !strchr(letters, at[length]) &&
            (at == text || !strchr(letters, at[-1]))) {
            mgl_text_put(&out, to);
            at += length - 1;
        } else {
            mgl_text_append(&out, at, 1);
        }
    }
    return out;
}

/* Renames one name of each kind, and shifts lines by blank lines and comments. */
START_TEST(names_and_lines_do_not_count)
{
    mgl_text text = {0};
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    mgl_program *a = lowered(graph, 3, &config, 64);
    static const char *const names[][2] = {
        {"l0.down", "weights"}, {"best_value", "b"}, {"embedded", "zero"}, {"l0.o", "elsewhere"}};
    mgl_schedule_print(a, &text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mgl_text other = renamed(text.bytes, names[i][0], names[i][1]);
        mgl_text commented = edited(other.bytes, "\nqueue 0", "\n\n# a queue\n\nqueue 0");
        mgl_program *b = parsed(commented.bytes, commented.length);
        ck_assert_msg(!mgl_program_equal(a, b), "%s", names[i][0]);
        ck_assert_msg(is_same(a, b), "%s", names[i][0]);
        mgl_program_free(b);
        mgl_text_clear(&other);
        mgl_text_clear(&commented);
    }
    mgl_text_clear(&text);
    mgl_program_free(a);
    mgl_graph_free(graph);
}
END_TEST

/* ---- every field counts ---------------------------------------------------------------------- */

static mgl_program *program;
static unsigned char original[MGL_SHA256_BYTES];
static int tried;

static void expect_change(const char *what, int index)
{
    unsigned char changed[MGL_SHA256_BYTES];
    digest_of(program, changed);
    ck_assert_msg(memcmp(changed, original, sizeof changed) != 0, "%s %d", what, index);
    tried++;
}

/* Changes a field, checks that the digest changes, and restores it. */
#define CHANGE(field, i)                                                                           \
    do {                                                                                           \
        program->field++;                                                                          \
        expect_change(#field, i);                                                                  \
        program->field--;                                                                          \
    } while (0)

static void change_settings(void)
{
    CHANGE(target.arch[0], 0);
    CHANGE(target.queues, 0);
    CHANGE(target.shared_bytes, 0);
    CHANGE(geometry.hidden, 0);
    CHANGE(geometry.layers, 0);
    CHANGE(geometry.heads, 0);
    CHANGE(geometry.kv_heads, 0);
    CHANGE(geometry.head_dim, 0);
    CHANGE(geometry.ffn, 0);
    CHANGE(geometry.vocab, 0);
    CHANGE(limits.rows, 0);
    CHANGE(limits.sequences, 0);
    CHANGE(limits.capacity, 0);
    CHANGE(exec.page_bytes, 0);
    CHANGE(exec.ring_pages, 0);
    CHANGE(exec.warps, 0);
    CHANGE(exec.stage_bytes, 0);
    CHANGE(exec.flight_bytes, 0);
    CHANGE(exec.pending_bytes, 0);
    CHANGE(exec.prefetch_bytes, 0);
    CHANGE(weight_dtype, 0);
    CHANGE(embedding_dtype, 0);
    CHANGE(exchange_dtype, 0);
    CHANGE(kv_dtype, 0);
    const float eps = program->geometry.eps;
    program->geometry.eps = -eps;
    expect_change("eps", 0);
    program->geometry.eps = eps;
}

static void change_declarations(void)
{
    for (int i = 0; i < program->tensor_count; i++) {
        const char *name = program->tensors[i].checkpoint;
        program->tensors[i].checkpoint = name + 1;
        expect_change("checkpoint", i);
        program->tensors[i].checkpoint = name;
        CHANGE(tensors[i].format.code, i);
        CHANGE(tensors[i].rank, i);
        CHANGE(tensors[i].rows, i);
        CHANGE(tensors[i].cols, i);
    }
    for (int i = 0; i < program->buffer_count; i++) {
        CHANGE(buffers[i].space, i);
        CHANGE(buffers[i].dtype, i);
        CHANGE(buffers[i].source, i);
        CHANGE(buffers[i].tensor, i);
        CHANGE(buffers[i].sets, i);
        for (int d = 0; d < program->buffers[i].rank; d++) {
            CHANGE(buffers[i].extents[d].symbol, i);
            CHANGE(buffers[i].extents[d].count, i);
        }
    }
}

static void change_ranges(int i)
{
    const int rank = program->buffers[program->regions[i].buffer].rank;
    for (int d = 0; d < rank; d++) {
        CHANGE(regions[i].ranges[d].kind, i);
        if (program->regions[i].ranges[d].kind != MGL_RANGE_FIXED)
            continue;
        CHANGE(regions[i].ranges[d].lo, i);
        CHANGE(regions[i].ranges[d].hi, i);
    }
}

static void change_pieces(void)
{
    for (int i = 0; i < program->region_count; i++) {
        const bool last = program->regions[i].buffer + 1 == program->buffer_count;
        program->regions[i].flag = !program->regions[i].flag;
        expect_change("flag", i);
        program->regions[i].flag = !program->regions[i].flag;
        if (!last)
            CHANGE(regions[i].buffer, i);
        change_ranges(i);
    }
    for (int i = 0; i < program->segment_count; i++) {
        CHANGE(segments[i].tensor, i);
        CHANGE(segments[i].tensor2, i);
        CHANGE(segments[i].layout, i);
        CHANGE(segments[i].row_lo, i);
        CHANGE(segments[i].row_hi, i);
        CHANGE(segments[i].col_lo, i);
        CHANGE(segments[i].col_hi, i);
        CHANGE(segments[i].offset, i);
    }
}

static void change_tasks(void)
{
    for (int i = 0; i < program->wait_count; i++) {
        CHANGE(waits[i].counter, i);
        CHANGE(waits[i].threshold, i);
    }
    for (int i = 0; i < program->signal_count; i++)
        CHANGE(signals[i], i);
    for (int i = 0; i + 1 < program->task_count; i++) {
        CHANGE(tasks[i].op, i);
        CHANGE(tasks[i].variant, i);
        CHANGE(tasks[i].in.count, i);
        program->tasks[i].out.count--;
        expect_change("outputs of task", i);
        program->tasks[i].out.count++;
    }
    for (int i = 0; i < program->queue_count; i++) {
        CHANGE(queues[i].tape_bytes, i);
        CHANGE(queues[i].tape_pad, i);
        program->queues[i].tasks.count--;
        expect_change("tasks of queue", i);
        program->queues[i].tasks.count++;
    }
}

START_TEST(every_field_counts)
{
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    config.exchange = _i ? MGL_EXCHANGE_FLAGS : MGL_EXCHANGE_COUNTERS;
    config.splits = 2;
    program = lowered(graph, 3, &config, 64);
    digest_of(program, original);
    tried = 0;
    change_settings();
    change_declarations();
    change_pieces();
    change_tasks();
    ck_assert_int_gt(tried, 500);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- value ----------------------------------------------------------------------------------- */

/* The digest identifies programs in stores. If this value changes, the version of the canonical
 * form must change. */
START_TEST(the_golden_keeps_its_digest)
{
    unsigned char digest[MGL_SHA256_BYTES];
    char hex[MGL_SHA256_HEX];
    mgl_text golden = fixture(GOLDEN);
    mgl_program *p = parsed(golden.bytes, golden.length);
    digest_of(p, digest);
    mgl_sha256_hex(digest, hex);
    ck_assert_str_eq(hex, "7aa92318ad3e063c2bfd4ebe69b700d2bb57bb1a24f674bcd34b0617db748267");
    mgl_program_free(p);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(large_programs_are_fast)
{
    unsigned char digest[MGL_SHA256_BYTES];
    mgl_graph *graph = graph_of(&billion);
    mgl_schedule_config config = preset();
    config.exchange = MGL_EXCHANGE_FLAGS;
    mgl_program *p = lowered(graph, 132, &config, 4096);
    ck_assert_int_gt(p->task_count, 8000);
    double begun = mgl_clock_s();
    digest_of(p, digest);
    ck_assert_double_lt(mgl_clock_s() - begun, time_limit(0.5)); /* 5 ms on an idle machine */
    mgl_program_free(p);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("digest");
    TCase *tests = tcase_create("digest");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, names_and_lines_do_not_count);
    tcase_add_loop_test(tests, every_field_counts, 0, 2);
    tcase_add_test(tests, the_golden_keeps_its_digest);
    tcase_add_test(tests, large_programs_are_fast);
    return run_suite(suite);
}
