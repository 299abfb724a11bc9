/* Scenarios of programs with two task lists, which test_emulator runs in its groups `replies` and
 * `many`; and the models that both files have. */
#ifndef MGL_TESTS_EMULATOR_SECOND_LIST_H
#define MGL_TESTS_EMULATOR_SECOND_LIST_H

#include "cuda_checks.h"

static const mgl_geometry even_model = {512, 1, 8, 2, 64, 1024, 300, 1e-5f};
static const mgl_geometry uneven_model = {448, 1, 14, 2, 32, 4608, 200, 1e-5f};
static const mgl_geometry grouped_heads = {128, 1, 6, 2, 64, 128, 75, 1e-5f};

/* Tasks of attention that shares rows, in a second list. */
int second_list_shares(const mgl_geometry *geometry, const device_options *options);

enum { SECOND_LIST_REPLIES = 27, SECOND_LIST_MANY = 19 };

/* Each is a test by itself. */
extern void (*const second_list_replies[SECOND_LIST_REPLIES])(void);
/* Of more rows than the first list may have, and traces of both lists. */
extern void (*const second_list_many[SECOND_LIST_MANY])(void);

#endif
