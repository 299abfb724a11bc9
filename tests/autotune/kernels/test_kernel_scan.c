/*
 * Tests of the static scan of micro-kernels: each unit's own text passes, and small texts test
 * single rules. test_kernel_tricks tests the corpus of tricks.
 */
#include "autotune/kernels/gates/scan.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_scan_fault scan(const char *unit, const char *text)
{
    mgl_scan_fault fault;
    mgl_error err = {0};
    const mgl_kernel_unit *u = mgl_kernel_unit_find(unit);
    ck_assert_ptr_nonnull(u);
    ck_assert_msg(!mgl_kernel_scan(u, text, strlen(text), 0, &fault, &err), "%s: %s", err.where,
                  err.message);
    return fault;
}

START_TEST(units_pass)
{
    const mgl_kernel_unit *unit = mgl_kernel_unit_get(_i);
    size_t length;
    const char *text = mgl_kernel_unit_text(unit, &length);
    ck_assert_msg(length > 0, "%s: %s is no source of the kernel", unit->name, unit->file);
    const mgl_scan_fault fault = scan(unit->name, text);
    ck_assert_msg(fault.line == 0, "%s:%d: %s", unit->file, fault.line, fault.what);
}
END_TEST

/* ---- allowed texts --------------------------------------------------------------------------- */

static const char *const good[] = {
    "enum { TILE_OF_MINE = 8, HALF_OF_MINE = TILE_OF_MINE / 2 };",
    "static constexpr int tile_of_mine = 8;",
    "struct quad_of_mine {\n    float x, y;\n    static constexpr int SIZE = 2;\n};",
    "typedef part_words<2> two_of_mine;\nusing three_of_mine = part_words<3>;",
    "template <int N, class T> static __device__ __forceinline__ T sum_of_mine(const T "
    "(&x)[N])\n{\n"
    "    T s = x[0];\n#pragma unroll\n    for (int i = 1; i < N; i++)\n        s += x[i];\n"
    "    return s;\n}",
    "#define EACH_OF_MINE(i, n) for (int i = 0; i < (n); i++)\n"
    "static __device__ int count_mine(int n)\n{\n    int c = 0;\n    EACH_OF_MINE(j, n)\n"
    "        c += j;\n    return c;\n}",
    "enum { NEWER_OF_MINE = __CUDA_ARCH__ >= 900 };",
    "static __device__ __forceinline__ uint4 load_of_mine(const void *at)\n{\n    uint4 v;\n"
    "    asm volatile(\"ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];\"\n"
    "                 : \"=r\"(v.x), \"=r\"(v.y), \"=r\"(v.z), \"=r\"(v.w)\n"
    "                 : \"l\"(at));\n    return v;\n}",
    "static __device__ void copy_of_mine(u32 to, const u8 *from)\n{\n"
    "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" ::\"r\"(to), \"l\"(from) : "
    "\"memory\");\n    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n"
    "    asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(1) : \"memory\");\n}",
    "static __device__ u32 pick_of_mine(u32 a, u32 b)\n{\n    u32 c;\n"
    "    asm(\"{\\n .reg .pred p, q;\\n setp.lt.u32 p, %1, %2;\\n @!p bra done;\\n\"\n"
    "        \" add.u32 %1, %1, 1;\\ndone: selp.u32 %0, %1, %2, p;\\n}\"\n"
    "        : \"=r\"(c)\n        : \"r\"(a), \"r\"(b));\n    return c;\n}",
    "#define MMA_OF_MINE \"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 \"\n"
    "static __device__ void add_of_mine(float *c, u32 a, u32 b)\n{\n    asm(MMA_OF_MINE \"{%0, %1, "
    "%2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};\"\n        : \"+f\"(c[0]), "
    "\"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n        : \"r\"(a), \"r\"(b));\n}",
    "static __device__ float half_of_mine(float x)\n{\n    const auto half = [](float y) { return "
    "y * "
    "0.5f; };\n    return half(__fdividef(x, 2.0e-3f)) + 1'000.0f;\n}"};
enum { GOOD = sizeof good / sizeof *good };

/* The scan's result for merge with this text in its device region. */
static mgl_scan_fault scan_within(const char *piece)
{
    mgl_text text = {0};
    mgl_kernel_regions regions;
    size_t length;
    const char *own = mgl_kernel_unit_text(mgl_kernel_unit_find("merge"), &length);
    ck_assert_int_eq(mgl_kernel_regions_find(own, length, &regions, NULL), MGL_OK);
    const size_t at = regions.of[MGL_KERNEL_REGION_DEVICE].first;
    mgl_text_append(&text, own, at);
    mgl_text_format(&text, "%s\n", piece);
    mgl_text_append(&text, own + at, length - at);
    const mgl_scan_fault fault = scan("merge", text.bytes);
    mgl_text_clear(&text);
    return fault;
}

START_TEST(what_only_computes_passes)
{
    const mgl_scan_fault fault = scan_within(good[_i]);
    ck_assert_msg(fault.line == 0, "%d: %s\n%s", fault.line, fault.what, good[_i]);
}
END_TEST

/* ---- addresses in asm ------------------------------------------------------------------------ */

/* Statements with operands `to` and `barrier` (u32), `from` and `factor` (u64), x (u32). `why`: a
 * part of the finding; NULL: allowed. */
static const struct {
    const char *statement, *why;
} addresses[] = {
    {"\"st.shared.u32 [%0], %1;\" :: \"r\"(to), \"r\"(x)", NULL},
    {"\"st.shared.u32 [%0+16], %1;\" :: \"r\"(to), \"r\"(x)", NULL},
    {"\"st.shared.u32 [ %0 + -0x10 ], %1;\" :: \"r\"(to + 4), \"r\"(x)", NULL},
    {"\"st.shared.u32 [%0+%2], %1;\" :: \"r\"(to), \"r\"(x), \"n\"(16)", NULL},
    {"\"ld.shared.v2.u32 {%0, %1}, [%2];\" : \"=r\"(x), \"=r\"(barrier) : \"r\"(to)", NULL},
    {"\"{ .reg .u32 a; add.u32 a, %1, 1; st.shared.u32 [%0], a; }\" :: \"r\"(to), \"r\"(x)", NULL},
    {"\"{ .reg .pred p; setp.ne.u32 p, %1, 0; @p st.shared.u32 [%0], %1; }\" :: \"r\"(to), "
     "\"r\"(x)",
     NULL},
    {"\"cp.async.cg.shared.global [%0], [%1], 16;\" :: \"r\"(to), \"l\"(from)", NULL},
    {"\"{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }\" :: \"r\"(barrier)", NULL},
    {"\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %0, %0, %0}, {%1, %1, %1, %1}, "
     "%2, 1, 1, 1, 0;\" : \"+f\"(sum) : \"r\"(x), \"l\"(factor)",
     NULL},

    {"\"st.shared.u32 [16], %0;\" :: \"r\"(x)", "has to be an operand"},
    {"\"st.shared.u32 [16+%1], %0;\" :: \"r\"(x), \"r\"(to)", "has to be an operand"},
    {"\"st.shared.u32 [], %0;\" :: \"r\"(x)", "has to be an operand"},
    {"\"st.shared.u32 [%1, %0;\" :: \"r\"(x), \"r\"(to)", "a bracket is open"},
    {"\"{ .reg .u32 a; mov.u32 a, 16; st.shared.u32 [a], %0; }\" :: \"r\"(x)",
     "has to be an operand"},
    {"\"{ .reg .u32 a; mov.u32 a, 16; add.u32 a, a, %1; ld.shared.u32 %0, [a]; }\" : \"=r\"(x) : "
     "\"r\"(to)",
     "has to be an operand"},
    {"\"st.shared.u32 [%%laneid], %0;\" :: \"r\"(x)", "has to be an operand"},
    {"\"{ .reg .u32 a; mov.u32 a, 16; cp.async.cg.shared.global [a], [%0], 16; }\" :: \"l\"(from)",
     "has to be an operand"},
    {"\"{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [16]; }\" : : ", "has to be an operand"},
    {"\"mov.u32 %0, 16; st.shared.u32 [%0], %1;\" : \"+r\"(to) : \"r\"(x)",
     "that the statement writes to"},
    {"\"mov.u32 %0, 16; st.shared.u32 [%0], %1;\" :: \"r\"(to), \"r\"(x)",
     "that the statement writes to"},
    {"\"st.shared.u32 [%0], %1; mov.u32 %0, 16;\" : \"+r\"(to) : \"r\"(x)",
     "that the statement writes to"},
    {"\"again: .reg .pred p; next: @p mov.u32 %0, 16; st.shared.u32 [%0], %1;\" : \"+r\"(to) : "
     "\"r\"(x)",
     "that the statement writes to"},
    {"\"mov.b64 {%0, %1}, %2; st.shared.u32 [%1], %0;\" : \"+r\"(x), \"+r\"(to) : \"l\"(from)",
     "that the statement writes to"},
    {"\"mov.u32%0,16; st.shared.u32 [%0], %1;\" : \"+r\"(to) : \"r\"(x)",
     "that the statement writes to"},
    {"\"st.shared.u32 [%0], %1;\" :: \"n\"(16), \"r\"(x)", "is a numeric address"},
    {"\"st.shared.u32 [%0], %1;\" :: \"r\"(16), \"r\"(x)", "is a numeric address"},
    {"\"st.shared.u32 [%2], %1;\" :: \"r\"(to), \"r\"(x)", "is not an operand of the statement"},
    {"\"st.shared.u32 [%99999999999], %1;\" :: \"r\"(to), \"r\"(x)",
     "is not an operand of the statement"},
    {"\"st.shared.u32 [%0+%1], %1;\" :: \"r\"(to), \"r\"(x)", "is not an offset"},
    {"\"st.shared.u32 [%0 16], %1;\" :: \"r\"(to), \"r\"(x)", "is not an offset"},
    {"\"{ .reg .b64 d; mov.b64 d, 1; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %0, "
     "%0, %0}, %1, d, 1, 1, 1, 0, 0; }\" : \"+f\"(sum) : \"l\"(factor)",
     "has to be an operand"}};
enum { ADDRESSES = sizeof addresses / sizeof *addresses };

START_TEST(addresses_are_operands)
{
    mgl_text text = {0};
    const char *why = addresses[_i].why;
    mgl_text_format(&text,
                    "static __device__ void by_hand(u32 to, u32 barrier, u64 from, u64 factor, u32 "
                    "x, float sum)\n{\n    asm volatile(%s);\n}",
                    addresses[_i].statement);
    const mgl_scan_fault fault = scan_within(text.bytes);
    ck_assert_msg(why ? fault.line > 0 && strstr(fault.what, why) : fault.line == 0, "%s: %s",
                  addresses[_i].statement, fault.what);
    mgl_text_clear(&text);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

enum { DAMAGED = 200 };

/* A byte that is special in a lexer, or any other. */
static char draw_byte(unsigned *seed)
{
    static const char bytes[] = "(){}[]<>;:,.#\"'\\/*\n =+-%?aR_0";
    const unsigned drawn = (unsigned)rand_r(seed);
    return drawn % 4 ? bytes[drawn / 4 % (sizeof bytes - 1)] : (char)(drawn / 4 % 256);
}

/* Changes, inserts and deletes bytes, and repeats pieces of the text. */
static size_t damage(char *text, size_t length, size_t room, unsigned *seed)
{
    for (int n = rand_r(seed) % 6 + 1; n > 0; n--) {
        const size_t at = (size_t)rand_r(seed) % length;
        const size_t piece = (size_t)rand_r(seed) % 40 + 1;
        const bool fits = at + piece < length && length + piece < room;
        if (rand_r(seed) % 2 || !fits) {
            text[at] = draw_byte(seed);
        } else if (rand_r(seed) % 2) {
            memmove(text + at + piece, text + at, length - at);
            length += piece;
        } else {
            memmove(text + at, text + at + piece, length - at - piece);
            length -= piece;
        }
    }
    return length;
}

/* The scan of a damaged text ends with acceptance or rejection. */
START_TEST(damaged_texts_end)
{
    static char text[1 << 17];
    unsigned seed = (unsigned)_i + 1;
    mgl_scan_fault fault;
    mgl_error err = {0};
    size_t length;
    const mgl_kernel_unit *unit = mgl_kernel_unit_get(_i % mgl_kernel_unit_count());
    const char *own = mgl_kernel_unit_text(unit, &length);
    ck_assert_uint_lt(length, sizeof text / 2);
    memcpy(text, own, length);
    length = damage(text, length, sizeof text, &seed);
    ck_assert_int_eq(mgl_kernel_scan(unit, text, length, 0, &fault, &err), MGL_OK);
    ck_assert_int_ge(fault.line, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_scan");
    TCase *rules = tcase_create("rules");
    tcase_add_loop_test(rules, units_pass, 0, mgl_kernel_unit_count());
    tcase_add_loop_test(rules, what_only_computes_passes, 0, GOOD);
    tcase_add_loop_test(rules, addresses_are_operands, 0, ADDRESSES);
    tcase_add_loop_test(rules, damaged_texts_end, 0, DAMAGED);
    suite_add_tcase(suite, rules);
    SRunner *suite_runner = srunner_create(suite);
    srunner_run_all(suite_runner, CK_NORMAL);
    int failed = srunner_ntests_failed(suite_runner);
    srunner_free(suite_runner);
    return failed > 0;
}
