/*
 * Tests of the text form: golden/two_queues.mls is canonical and uses every construct of the
 * grammar. golden/loose.mls is the same program, written as loosely as the grammar allows.
 */
#include "support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

#define GOLDEN "tests/schedule/golden/two_queues.mls"

START_TEST(golden_is_canonical)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *program = parsed(golden.bytes, golden.length);
    mgl_text again = printed(program);
    ck_assert_str_eq(again.bytes, golden.bytes);
    mgl_text_clear(&again);
    mgl_text_clear(&golden);
    mgl_program_free(program);
}
END_TEST

START_TEST(loose_text_prints_as_the_golden)
{
    mgl_text golden = fixture(GOLDEN), loose = fixture("tests/schedule/golden/loose.mls");
    mgl_program *a = parsed(golden.bytes, golden.length), *b = parsed(loose.bytes, loose.length);
    ck_assert(mgl_program_equal(a, b));
    mgl_text again = printed(b);
    ck_assert_str_eq(again.bytes, golden.bytes);
    mgl_text_clear(&again);
    mgl_text_clear(&loose);
    mgl_text_clear(&golden);
    mgl_program_free(a);
    mgl_program_free(b);
}
END_TEST

START_TEST(no_newline_at_the_end_is_fine)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *a = parsed(golden.bytes, golden.length),
                *b = parsed(golden.bytes, golden.length - 1);
    ck_assert(mgl_program_equal(a, b));
    mgl_program_free(a);
    mgl_program_free(b);
    mgl_text_clear(&golden);
}
END_TEST

/* The line number in `text`, from 1, of the line that starts with `start`; the test fails if there
 * is none. */
static int line_of(const char *text, const char *start)
{
    int line = 1;
    for (const char *at = text; at; line++) {
        if (!strncmp(at, start, strlen(start)))
            return line;
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    ck_abort_msg("no line starts with `%s`", start);
    return 0;
}

START_TEST(everything_knows_its_line)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *p = parsed(golden.bytes, golden.length);
    ck_assert_int_eq(p->tensors[3].line, line_of(golden.bytes, "tensor l0.k "));
    ck_assert_int_eq(p->buffers[5].line, line_of(golden.bytes, "buffer x "));
    ck_assert_int_eq(p->counters[1].line, line_of(golden.bytes, "counter l0.qkv"));
    ck_assert_int_eq(p->queues[1].line, line_of(golden.bytes, "queue 1"));
    ck_assert_int_eq(p->tasks[4].line, line_of(golden.bytes, "attend_past "));
    mgl_program_free(p);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(fields_are_what_the_text_says)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *p = parsed(golden.bytes, golden.length);
    ck_assert_str_eq(p->target.arch, "sm_90a");
    ck_assert_int_eq(p->target.shared_bytes, 232448);
    ck_assert_int_eq(p->geometry.kv_heads, 2);
    ck_assert_float_eq(p->geometry.eps, 1e-05F);
    ck_assert_int_eq(p->exec.stage_bytes, 8192);
    ck_assert_int_eq(p->kv_dtype, MGL_BF16);
    ck_assert_str_eq(p->tensors[8].checkpoint, "quoted \"\\\x01\x7f \xc3\xa9");
    ck_assert_int_eq(p->tensors[8].cols, INT64_C(1) << 53);
    ck_assert_int_eq(p->tensors[8].rows, 1);
    ck_assert_int_eq(p->buffers[0].tensor, 0);
    ck_assert_int_eq(p->buffers[2].source, MGL_SOURCE_ROPE);
    ck_assert_int_eq(p->buffers[2].extents[0].symbol, MGL_CAPACITY);
    ck_assert_int_eq(p->buffers[2].extents[0].count, 32);
    ck_assert_int_eq(p->buffers[8].sets, 2);
    ck_assert_int_eq(p->queues[0].tape_pad, 1536);
    ck_assert_int_eq(p->queues[1].tasks.first, 6);
    ck_assert_int_eq(p->queues[1].tasks.count, 4);
    mgl_program_free(p);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(a_task_has_its_operands)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *p = parsed(golden.bytes, golden.length);
    const mgl_task *t = &p->tasks[3]; /* attend */
    ck_assert_int_eq(t->op, MGL_OP_ATTEND);
    ck_assert_int_eq(t->in.count, 6);
    ck_assert_int_eq(t->out.count, 3);
    ck_assert_int_eq(p->regions[t->in.first + 4].ranges[2].kind, MGL_RANGE_PAST);
    ck_assert_int_eq(p->regions[t->out.first + 1].ranges[2].kind, MGL_RANGE_NOW);
    ck_assert_int_eq(p->regions[t->in.first].ranges[0].kind, MGL_RANGE_ROWS);
    ck_assert_int_eq(p->regions[t->in.first + 1].ranges[1].hi, 80);
    ck_assert_int_eq(t->waits.count, 2);
    ck_assert_int_eq(p->waits[t->waits.first + 1].threshold, 1);
    ck_assert_int_eq(t->signals.count, 2);
    ck_assert_int_eq(p->signals[t->signals.first + 1], 3);
    t = &p->tasks[7]; /* norm_swiglu */
    ck_assert(p->regions[t->in.first].flag);
    ck_assert(!p->regions[t->in.first + 1].flag);
    ck_assert_int_eq(p->segments[t->segments.first].layout, MGL_LAYOUT_G8X2);
    ck_assert_int_eq(p->segments[t->segments.first].tensor2, 7);
    mgl_program_free(p);
    mgl_text_clear(&golden);
}
END_TEST

START_TEST(one_task_prints_as_its_line)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *p = parsed(golden.bytes, golden.length);
    for (int i = 0; i < p->task_count; i++) {
        mgl_text line = {0};
        mgl_schedule_print_task(p, i, &line);
        ck_assert(!strchr(line.bytes, '\n'));
        mgl_text_put(&line, "\n");
        ck_assert_ptr_nonnull(strstr(golden.bytes, line.bytes));
        mgl_text_clear(&line);
    }
    mgl_program_free(p);
    mgl_text_clear(&golden);
}
END_TEST

/* Each edit changes one field: the text still parses, round trips, and is another program. */
static const char *const edits[][2] = {
    {"sm_90a", "sm_80"},
    {"queues 2", "queues 3"},
    {"shared 232448", "shared 0"},
    {"hidden 64", "hidden 65"},
    {"layers 1", "layers 2"},
    {"heads 4", "heads 8"},
    {"kv_heads 2", "kv_heads 1"},
    {"head_dim 16", "head_dim 8"},
    {"ffn 96", "ffn 97"},
    {"vocab 41", "vocab 42"},
    {"eps 1e-05", "eps 1.0000001e-05"},
    {"limits rows 4", "limits rows 5"},
    {"sequences 2", "sequences 1"},
    {"capacity 32", "capacity 33"},
    {"page 2048", "page 4096"},
    {"ring 4", "ring 5"},
    {"warps 8", "warps 7"},
    {"stage 8192", "stage 0"},
    {"weights bf16", "weights f16"},
    {"cache bf16", "cache f32"},
    {"cache bf16", "embedding f32 cache bf16"},
    {"cache bf16", "exchange f16 cache bf16"},
    {"cache bf16", "embedding f16 exchange f32 cache bf16"},
    {"tensor embed bf16", "tensor embed f32"},
    {"tensor odd", "tensor even"},
    {"[41,64] \"model", "[40,64] \"model"},
    {"[41,64] \"model", "[41,63] \"model"},
    {"norm f32 [64]", "norm f32 [1,64]"},
    {"embed_tokens", "embed_token"},
    {"buffer h act", "buffer h io"},
    {"buffer h act f32", "buffer h act bf16"},
    {"buffer x act f32 [rows,64]", "buffer x act f32 [4,64]"},
    {"buffer flag act f32 [rows,64]", "buffer flag act f32 [rows,65]"},
    {"[41,64] tensor embed", "[41,64] tensor l0.q"},
    {"[41,64] tensor embed", "[41,64]"},
    {"[capacity,16] rope", "[capacity,16]"},
    {"sets 2", "sets 3"},
    {"tape 24576", "tape 24577"},
    {"pad 1536", "pad 1535"},
    {"out x[:rows,0:32]", "out x[:rows,0:33]"},
    {"out x[:rows,0:32]", "out x[:rows,1:32]"},
    {"out x[:rows,0:32]", "out x[:pos,0:32]"},
    {"out x[:rows,0:32]", "out x[pos,0:32]"},
    {"out x[:rows,0:32]", "out flag x[:rows,0:32]"},
    {"out x[:rows,0:32]", "out att[:rows,0:32]"},
    {"tape l0.q[0:64,0:64]@g8", "tape l0.o[0:64,0:64]@g8"},
    {"tape l0.q[0:64,0:64]@g8", "tape l0.q[8:64,0:64]@g8"},
    {"tape l0.q[0:64,0:64]@g8", "tape l0.q[0:56,0:64]@g8"},
    {"tape l0.q[0:64,0:64]@g8", "tape l0.q[0:64,1:64]@g8"},
    {"tape l0.q[0:64,0:64]@g8", "tape l0.q[0:64,0:63]@g8"},
    {"tape l0.q[0:64,0:64]@g8", "tape l0.q|l0.q[0:64,0:64]@g8x2"},
    {"l0.gate|l0.up", "l0.gate|l0.gate"},
    {"@g8+8192", "@g8+8193"},
    {", l0.k[0:16,0:64]@g8+8192", ""},
    {"merge in part", "merge in flag part"},
    {"wait sampled>=0", "wait sampled>=1"},
    {"wait sampled>=0", "wait embedded>=0"},
    {"wait sampled>=0", ""},
    {"wait sampled>=0", "wait sampled>=0, sampled>=0"},
    {"signal embedded", "signal sampled"},
    {"signal embedded", ""},
    {"signal embedded", "signal embedded, embedded"},
    {"clear out h[:rows,0:48] wait l0.attend>=9007199254740992\n", ""},
    {"queue 1 tape 0 pad 0\n", ""},
    {"clear out", "embed in embedding[0:41,0:64] out"},
    {"\ncounter sampled\n", "\ncounter sampled\ncounter more\n"},
};

START_TEST(every_field_counts)
{
    mgl_text golden = fixture(GOLDEN);
    mgl_program *original = parsed(golden.bytes, golden.length);
    mgl_text text = edited(golden.bytes, edits[_i][0], edits[_i][1]);
    mgl_program *changed = parsed(text.bytes, text.length);
    ck_assert_msg(!mgl_program_equal(original, changed), "%s", edits[_i][1]);
    mgl_text again = printed(changed);
    mgl_program *reread = parsed(again.bytes, again.length);
    ck_assert_msg(mgl_program_equal(changed, reread), "%s", edits[_i][1]);
    mgl_program_free(original);
    mgl_program_free(changed);
    mgl_program_free(reread);
    mgl_text_clear(&golden);
    mgl_text_clear(&text);
    mgl_text_clear(&again);
}
END_TEST

/* A program with only a value of eps. */
static float round_trip(float eps, char *shown, size_t size)
{
    mgl_program *p = NULL;
    ck_assert_int_eq(mgl_program_new(&p, NULL), MGL_OK);
    strcpy(p->target.arch, "cpu");
    p->geometry.eps = eps;
    mgl_text text = printed(p);
    const char *at = strstr(text.bytes, "eps ") + 4;
    snprintf(shown, size, "%.*s", (int)strcspn(at, "\n"), at);
    mgl_program *q = parsed(text.bytes, text.length);
    float again = q->geometry.eps;
    mgl_program_free(p);
    mgl_program_free(q);
    mgl_text_clear(&text);
    return again;
}

START_TEST(floats_are_shortest_and_exact)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = {{1e-5F, "1e-05"},
                 {1e-6F, "1e-06"},
                 {0, "0"},
                 {1, "1"},
                 {0.1F, "0.1"},
                 {1.5e10F, "1.5e+10"},
                 {16777216, "16777216"},
                 {3.4028235e38F, "3.4028235e+38"},
                 {1e-45F, "1e-45"},
                 {1.00000012F, "1.0000001"}};
    char shown[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float again = round_trip(cases[i].value, shown, sizeof shown);
        ck_assert_float_eq(again, cases[i].value);
        ck_assert_str_eq(shown, cases[i].text);
    }
    uint32_t bits = 1;
    for (int i = 0; i < 2000; i++) {
        bits = bits * 1664525 + 1013904223;
        uint32_t positive = bits & 0x7FFFFFFF;
        float value;
        memcpy(&value, &positive, 4);
        if (isfinite(value))
            ck_assert_float_eq(round_trip(value, shown, sizeof shown), value);
    }
}
END_TEST

START_TEST(the_locale_does_not_matter)
{
    char shown[64];
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "de_DE"))
        printf("SKIPPED the_locale_does_not_matter: no locale de_DE here\n");
    ck_assert_float_eq(round_trip(1.5F, shown, sizeof shown), 1.5F);
    ck_assert_str_eq(shown, "1.5");
    setlocale(LC_ALL, "C");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule text");
    TCase *cases = tcase_create("text");
    tcase_add_test(cases, golden_is_canonical);
    tcase_add_test(cases, loose_text_prints_as_the_golden);
    tcase_add_test(cases, no_newline_at_the_end_is_fine);
    tcase_add_test(cases, everything_knows_its_line);
    tcase_add_test(cases, fields_are_what_the_text_says);
    tcase_add_test(cases, a_task_has_its_operands);
    tcase_add_test(cases, one_task_prints_as_its_line);
    tcase_add_loop_test(cases, every_field_counts, 0, (int)(sizeof edits / sizeof *edits));
    tcase_add_test(cases, floats_are_shortest_and_exact);
    tcase_add_test(cases, the_locale_does_not_matter);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
