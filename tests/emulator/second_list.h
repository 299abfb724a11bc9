/*
 * Declares scenarios of programs with two task lists. test_emulator runs them in its groups
 * `replies` and `many`.
 */
#ifndef MGL_TESTS_EMULATOR_SECOND_LIST_H
#define MGL_TESTS_EMULATOR_SECOND_LIST_H

#include "cases.h"
#include "models.h"

/* Number of tasks of attention that shares rows in a second list. */
int second_list_shares(const mgl_geometry *geometry, const device_options *options);

/* A program with two lists; panels compute the products of its second list. */
extern const device_options second_list_options;

/* Checks that `logits` are the logits of the prompt; `first`: stores them instead. */
bool second_list_has_logits(mgl_vm *vm, const int32_t *prompt, int count, float *logits,
                            bool first);

/* Cases of attention that shares rows: shared_rows.c. */
void logits_of_rows(void);
void batch_of_rows(void);
void neighbors_of_rows(void);
void neighbors_of_decode_rows(void);
void decode_rows_are_as_others(void);
void logits_of_rows_by_few_warps(void);
void logits_of_rows_in_small_act_tiles(void);
void delays_of_rows_in_small_act_tiles(void);
void fences_of_rows(void);
void batch_of_rows_apart(void);
void delays_of_rows(void);

enum { SECOND_LIST_REPLIES = 29, SECOND_LIST_ROWS = 25 };

/* Each function is one test. */
extern const emulator_case second_list_replies[SECOND_LIST_REPLIES];
/* Cases with more rows than the first list allows, and traces of both lists. */
extern const emulator_case second_list_rows[SECOND_LIST_ROWS];

#endif
