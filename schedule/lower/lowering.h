/*
 * The version of what lowering makes. A tuned entry was measured with the programs of one version
 * and beside its defaults: under another one its moves may not fit, and its gain is not known.
 *
 * One row a version, the oldest first: the SHA-256 of the digests of the programs that
 * tests/schedule/test_lowering.c lowers. When lowering or a default of config.def changes what they
 * are, that test fails and prints the row to add. Rows that were released stay as they are.
 */
#ifndef MGL_SCHEDULE_LOWER_LOWERING_H
#define MGL_SCHEDULE_LOWER_LOWERING_H

#define MGL_LOWERINGS(X)                                                                           \
    X("61a6acb5ade440a378dfee254fb61b6ad751da50ff0c1f27f6faa6572f8e06e2")                          \
    X("924b0308280054d2e7c347d32452644002f50dbfa376de80be823233cc01984f")                          \
    X("90a0de746d8452a1b27c63716f7357fe5488e141b49467a6435d6fe5ed95c78b")                          \
    X("c4563669d20f8004c673cb2c23caecd8eaff1b2f26400a7da1ee7bb9cff19ff6")

#define MGL_X(digest) +1
enum { MGL_LOWERING_VERSION = 0 MGL_LOWERINGS(MGL_X) };
#undef MGL_X

#endif
