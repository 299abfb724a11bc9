/* Helpers of the tests of moves: programs to edit, and moves of each kind. */
#ifndef MGL_TESTS_SCHEDULE_MOVING_H
#define MGL_TESTS_SCHEDULE_MOVING_H

#include "lowering.h"
#include "schedule/moves/moves.h"

enum { MOVED_VARIANTS = 11, SMALL = 8 /* the first ones are */ };

/* A small model of three layers, which most test variants use. */
extern const shape three;

/* Source of the programs of a test, between start and finish. */
extern mgl_graph *graph;
extern mgl_program *program;

void start(int variant);
void finish(void);

/* Parses moves; the test fails if they are invalid. Release with mgl_moves_clear. */
mgl_moves moves_of(const char *text);

#define EACH_KIND                                                                                  \
    "queues layer=all step=o from=0 to=4\n"                                                        \
    "rows layer=3 step=qkv from=12 to=13 count=1\n"                                                \
    "shift layer=0 step=gate_up from=2 count=-3\n"                                                 \
    "place layer=1 step=merge from=2 to=0\n"                                                       \
    "splits layer=1 from=0 to=8 count=4\n"                                                         \
    "sets layer=all step=down count=3\n"                                                           \
    "coarser layer=all step=head\n"                                                                \
    "finer layer=2 step=attend count=2\n"                                                          \
    "counted layer=2 step=o\n"                                                                     \
    "flagged layer=2 step=o\n"                                                                     \
    "clear layer=5 step=qkv from=7 count=2\n"                                                      \
    "sample to=3\n"

#endif
