/*
 * The version of lowering's results. A tuned entry was measured with one version and its defaults.
 * With another version its moves may not apply, and its gain is unknown.
 *
 * One row for each version, oldest first: the SHA-256 of the digests of the programs that
 * tests/schedule/test_lowering.c lowers. When lowering or a default of config.def changes those
 * programs, the test fails and prints the row to add. Released rows never change.
 */
#ifndef MGL_SCHEDULE_LOWER_LOWERING_H
#define MGL_SCHEDULE_LOWER_LOWERING_H

#define MGL_LOWERINGS(X)                                                                           \
    X("61a6acb5ade440a378dfee254fb61b6ad751da50ff0c1f27f6faa6572f8e06e2")                          \
    X("924b0308280054d2e7c347d32452644002f50dbfa376de80be823233cc01984f")                          \
    X("90a0de746d8452a1b27c63716f7357fe5488e141b49467a6435d6fe5ed95c78b")                          \
    X("c4563669d20f8004c673cb2c23caecd8eaff1b2f26400a7da1ee7bb9cff19ff6")                          \
    X("923e18c67e602ecb41276c604007e5bcb487ff349197744c813c52a246984703")

#define MGL_X(digest) +1
enum { MGL_LOWERING_VERSION = 0 MGL_LOWERINGS(MGL_X) };
#undef MGL_X

#endif
