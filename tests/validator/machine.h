/*
 * A symbolic machine for tests: runs a program on hashes instead of numbers. Every column of a
 * buffer has a 64-bit hash of the values that it was computed from, so two programs compute the
 * same if and only if (up to collisions) the hashes at sample are equal. Queues are interleaved at
 * random. A task reads and writes at random moments between its start and its end, its signals come
 * one by one, and activations are scrambled between epochs. A flag word is a word that is not all
 * ones. A flag store is visible before or after other stores of its task with equal chance. The
 * machine implements ops, counters and flags, and shares nothing with the validator.
 */
#ifndef MGL_TESTS_VALIDATOR_MACHINE_H
#define MGL_TESTS_VALIDATOR_MACHINE_H

#include "schedule/program.h"

enum { MACHINE_EPOCHS = 4 };

struct outcome {
    bool stuck;     /* deadlock: no queue can continue */
    bool unordered; /* a task of an epoch had not ended at its sample */
    uint64_t tokens[MACHINE_EPOCHS];
};

/* Runs a program, which the validator must have accepted: indices are not checked. */
void machine_run(const mgl_program *program, uint32_t seed, struct outcome *out);

#endif
