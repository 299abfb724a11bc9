/*
 * Cases of test_emulator. `./quickstart test` runs the quick cases of all groups; `./quickstart
 * test all` also runs the long cases. The quick cases together cover each op, each variant and each
 * kernel path (coverage.h).
 */
#ifndef MGL_TESTS_EMULATOR_CASES_H
#define MGL_TESTS_EMULATOR_CASES_H

typedef enum emulator_duration { CASE_LONG, CASE_QUICK } emulator_duration;

typedef struct emulator_case {
    void (*run)(void);
    emulator_duration duration;
} emulator_case;

#endif
