/*
 * Judges damaged schedules (damage.h). The validator accepts or rejects a schedule. explore, which
 * shares no code with the validator, runs accepted schedules in several interleavings with reused
 * sets of words. It must find no fault and give the tokens of the CPU machine, which must equal
 * those of the undamaged schedule. On a GPU, or the emulator of one, the CUDA machine must also
 * give the same tokens, and the same logits up to rounding.
 *
 * The test is meaningless if all or no schedules are accepted, or if explore is blind. Therefore it
 * counts the accepted schedules, and of those rejected only for their order, how many faults
 * explore detects.
 */
#ifndef MGL_TESTS_VM_DAMAGED_H
#define MGL_TESTS_VM_DAMAGED_H

#include "damage.h"
#include "tests/vm/cuda/cuda_support.h"

/* What a schedule is made of before it is damaged. */
typedef struct damaged_recipe {
    const mgl_geometry *model;
    const char *target; /* "cpu:3", "sm_90a:3" */
    device_options options;
    int prompt;   /* tokens of the first sequence's */
    int variants; /* of 4 damages so many are of variants */
    int mirrored; /* the second list is made anew, with so many sets: mirror.h; 0: it is not */
} damaged_recipe;

enum { DAMAGED_CODES = 800 /* above all of validator/codes.def */ };

/* What came of the rounds. */
typedef struct damaged_counts {
    int tried, unreadable, rejected, accepted;
    int unordered, shown;  /* rejected for order, cover or clears alone; those that explore shows */
    int of_variants;       /* rejected for variants alone: MG124 to MG129 */
    int with_variants;     /* accepted that name one */
    int emulated;          /* accepted that the CUDA machine ran */
    int for_cpus, refused; /* accepted that it does not run: of a CPU's target, and others */
    int kernels, without_kernel;     /* of it, and accepted beyond as many as it may have */
    int failed;                      /* accepted that explore, the CPU or the CUDA machine fails */
    int naming[MGL_VARIANT_COUNT];   /* accepted that name it */
    int rejected_for[DAMAGED_CODES]; /* rejected with that code among others */
    int made[DAMAGES];               /* damages that changed the text */
} damaged_counts;

typedef struct damaged_base damaged_base;

/* Draws what a program for a GPU can be: models, families, rows, formats, exec lines. */
damaged_recipe damaged_draw(uint64_t number);

/* Lowers it, and keeps what it computes. Release with damaged_close. */
damaged_base *damaged_open(const damaged_recipe *recipe);
void damaged_close(damaged_base *base);

/* The CUDA machine. */
typedef struct damaged_device {
    void (*start)(uint64_t round); /* called before each run */
    int kernels; /* of a base, at most: an accepted schedule that needs one more does not run */
} damaged_device;

/* Damages the schedule of `base` at one to three places, as `round` says, and judges it; with the
 * CUDA machine too unless `device` is NULL. `print`: the text as well. Failures are told on stderr,
 * and counted. */
void damaged_round(damaged_base *base, uint64_t round, const damaged_device *device, bool print,
                   damaged_counts *counts);

/* The schedule as it was lowered, judged. */
void damaged_judge_base(damaged_base *base, const damaged_device *device, damaged_counts *counts);

#endif
