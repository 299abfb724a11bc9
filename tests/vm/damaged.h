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

/* The options of a schedule before it is damaged. */
typedef struct damaged_recipe {
    const mgl_geometry *model;
    const char *target; /* "cpu:3", "sm_90a:3" */
    device_options options;
    int prompt;   /* tokens of the first sequence's prompt */
    int variants; /* this number of 4 damages are of variants */
    int mirrored; /* the second list is a mirror with this number of sets (mirror.h); 0: it is
                     not */
    mgl_weight_format quantized; /* format of the matrices, if scaled; then every second damage is
                                    of formats */
    bool reordered;              /* the columns of quantized matrices are reordered */
} damaged_recipe;

enum { DAMAGED_CODES = 800 /* more than the codes of validator/codes.def */ };

/* Counts over all rounds. */
typedef struct damaged_counts {
    int tried, unreadable, rejected, accepted;
    int unordered, shown;        /* rejected only for order, cover or clears; those that explore
                                    detects */
    int of_variants;             /* rejected only for variants: MG124 to MG129 */
    int with_variants;           /* accepted schedules with a variant */
    int emulated;                /* accepted schedules that the CUDA machine ran */
    int for_cpus, refused;       /* accepted schedules that it does not run: of a CPU's target, and
                                    others */
    int kernels, without_kernel; /* kernels in use; accepted schedules beyond the limit of
                                    kernels */
    int failed;                  /* accepted schedules on which explore, the CPU or the CUDA
                                    machine fails */
    int naming[MGL_VARIANT_COUNT];   /* accepted schedules with this variant */
    int rejected_for[DAMAGED_CODES]; /* rejected schedules with that code among others */
    int made[DAMAGES];               /* damages that changed the text */
} damaged_counts;

typedef struct damaged_base damaged_base;

/* Draws the options of a GPU program: models, families, rows, formats, exec lines. */
damaged_recipe damaged_draw(uint64_t number);

/* Lowers the program, and stores its results. Release with damaged_close. */
damaged_base *damaged_open(const damaged_recipe *recipe);
void damaged_close(damaged_base *base);

/* The CUDA machine. */
typedef struct damaged_device {
    void (*start)(uint64_t round); /* called before each run */
    int kernels; /* maximum kernels of a base; an accepted schedule that needs one more is not
                    run */
} damaged_device;

/* Damages the schedule of `base` at one to three places, determined by `round`, and judges it, also
 * on the CUDA machine unless `device` is NULL. `print`: prints the text too. Failures are printed
 * on stderr, and counted. */
void damaged_round(damaged_base *base, uint64_t round, const damaged_device *device, bool print,
                   damaged_counts *counts);

/* Judges the undamaged schedule. */
void damaged_judge_base(damaged_base *base, const damaged_device *device, damaged_counts *counts);

#endif
