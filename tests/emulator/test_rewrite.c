/*
 * Tests of the rewriter of inline assembly: its output, and the statements that it rejects with
 * name and line.
 */
#include "rewrite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/vm/fixture.h"

static const char known[] = "void ptx_ld_u32(\nvoid ptx_st_v2(\nptx_selp(\nptx_test(\nptx_clock(\n"
                            "ptx_mov(\n";

static void check_made(const char *text, const char *wanted)
{
    char problem[200];
    char *made = emu_rewrite("k.cu", text, known, problem, sizeof problem);
    ck_assert_msg(made != NULL, "%s", problem);
    ck_assert_str_eq(made, wanted);
    free(made);
}

static void check_refused(const char *text, const char *wanted)
{
    char problem[200];
    ck_assert_ptr_null(emu_rewrite("k.cu", text, known, problem, sizeof problem));
    ck_assert_msg(strstr(problem, wanted) != NULL, "%s", problem);
}

START_TEST(a_load_is_a_call)
{
    check_made("asm volatile(\"ld.u32 %0, [%1];\" : \"=r\"(v) : \"l\"(f(a, b)) : \"memory\");",
               "({ ptx_ld_u32((v), (f(a, b))); });");
}
END_TEST

START_TEST(vectors_are_flat_and_immediates_arguments)
{
    check_made("asm(\"st.v2 [%0], {%1, 7};\" ::\"l\"(p), \"r\"(x));",
               "({ ptx_st_v2((p), (x), 7); });");
}
END_TEST

START_TEST(a_joined_template_declares_its_registers)
{
    check_made("asm(\"{\\n .reg .pred p;\\n\" \" test p, [%1];\\n selp %0, 1, 0, p;\\n}\" : "
               "\"=r\"(ok) : \"r\"(b));",
               "({ bool p; ptx_test(p, (b)); ptx_selp((ok), 1, 0, p); });");
}
END_TEST

START_TEST(a_guard_is_an_if)
{
    check_made("asm(\"@!p test p, %0;\" ::\"r\"(b));", "({ if (!p) ptx_test(p, (b)); });");
}
END_TEST

START_TEST(a_special_register_is_a_call)
{
    check_made("asm(\"mov %0, %%clock;\" : \"=l\"(t));", "({ ptx_mov((t), ptx_clock()); });");
}
END_TEST

START_TEST(the_rest_stays_as_it_is)
{
    check_made("/* asm(\"x\") */ int asmx = 'a'; // asm(\nf(\"asm(\\\"\");",
               "/* asm(\"x\") */ int asmx = 'a'; // asm(\nf(\"asm(\\\"\");");
}
END_TEST

START_TEST(lines_keep_their_numbers)
{
    check_made("asm(\"ld.u32 %0, [%1];\"\n: \"=r\"(v)\n: \"l\"(a))\n;",
               "({ ptx_ld_u32((v), (a)); })\n\n\n;");
}
END_TEST

START_TEST(dynamic_shared_memory_is_left_out)
{
    check_made("extern __shared__ u8 memory[]; int i;", " int i;");
}
END_TEST

START_TEST(an_unknown_instruction_is_named)
{
    check_refused("\n\nasm(\"ld.u32.new %0, [%1];\" : \"=r\"(v) : \"l\"(a));",
                  "k.cu:3: tests/emulator/device/ptx.h has no function for the instruction "
                  "`ld.u32.new`");
}
END_TEST

START_TEST(an_unknown_special_register_is_named)
{
    check_refused("asm(\"mov %0, %%smid;\" : \"=r\"(v));", "`smid`");
}
END_TEST

START_TEST(a_label_is_rejected)
{
    check_refused("asm(\"L: test p;\" ::);", "not an instruction");
}
END_TEST

START_TEST(a_missing_operand_is_rejected)
{
    check_refused("asm(\"ld.u32 %0, [%1];\" : \"=r\"(v));", "an operand is missing");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("rewrite");
    tcase_add_test(tests, a_load_is_a_call);
    tcase_add_test(tests, vectors_are_flat_and_immediates_arguments);
    tcase_add_test(tests, a_joined_template_declares_its_registers);
    tcase_add_test(tests, a_guard_is_an_if);
    tcase_add_test(tests, a_special_register_is_a_call);
    tcase_add_test(tests, the_rest_stays_as_it_is);
    tcase_add_test(tests, lines_keep_their_numbers);
    tcase_add_test(tests, dynamic_shared_memory_is_left_out);
    tcase_add_test(tests, an_unknown_instruction_is_named);
    tcase_add_test(tests, an_unknown_special_register_is_named);
    tcase_add_test(tests, a_label_is_rejected);
    tcase_add_test(tests, a_missing_operand_is_rejected);
    return fixture_main("rewrite", tests);
}
