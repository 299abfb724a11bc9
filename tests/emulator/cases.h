/*
 * Cases of test_emulator: a table of them is a group. `./quickstart test` runs the quick cases of
 * all groups, `./quickstart test all` the long ones too. The quick cases together run each op and
 * each kernel variant at least once; test_emulator checks that.
 */
#ifndef MGL_TESTS_EMULATOR_CASES_H
#define MGL_TESTS_EMULATOR_CASES_H

typedef enum emulator_set { LONG, QUICK } emulator_set;

typedef struct emulator_case {
    void (*run)(void);
    emulator_set set;
} emulator_case;

#endif
