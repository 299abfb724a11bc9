/*
 * Compares the provided checkpoints on a machine with Hugging Face's results (golden.json). The
 * tests of the CPU and the CUDA VM share it.
 *
 * Fixtures are in $MGL_TEST_MODELS, or else in the source tree, so that the tests can run on
 * another machine (tests/tools/gpu_bundle.sh).
 */
#ifndef MGL_TESTS_VM_GOLDEN_H
#define MGL_TESTS_VM_GOLDEN_H

#include "fixture.h"

#include "base/json.h"
#include "importer/checkpoint.h"

enum { GOLDEN_MODELS = 6, GOLDEN_MOST = 256 /* maximum ids of a prompt or of an answer */ };
extern const char *const golden_names[GOLDEN_MODELS];

/* Folders of tests/models/families: other families and types of rope, without tokenizers. */
enum { GOLDEN_FAMILIES = 23 };
extern const char *const golden_families[GOLDEN_FAMILIES];

/* Quantized checkpoints of tests/models/quantized; their goldens are of the decoded weights. */
enum { GOLDEN_QUANTIZED = 6 };
extern const char *const golden_quantized[GOLDEN_QUANTIZED];

/* A checkpoint of tests/models with its goldens, on a machine. */
typedef struct golden_model {
    const char *name;
    mgl_checkpoint *checkpoint;
    mgl_tokenizer *tokenizer; /* tokenizer; NULL: a family, whose texts are ids */
    cJSON *golden, *texts;
    mgl_program *program; /* set by the caller, like vm; released with the rest */
    mgl_vm *vm;
} golden_model;
void golden_open(golden_model *m, const char *name);
void golden_close(golden_model *m);

/* The f32 goldens for the rope that a program of this capacity has. */
const cJSON *golden_fp32(const golden_model *m);

/* Reads the ids of a JSON array. Returns their number, at most GOLDEN_MOST. */
int golden_ids(const cJSON *array, int32_t *ids);

/* Compares greedy tokens of all prompts, one launch each: at the first difference, the f32 gap must
 * be below `gap`. */
void golden_check_greedy(const golden_model *m, double gap);

/* The same for the first prompt and its first `most` tokens. */
void golden_check_first(const golden_model *m, double gap, int most);

/* Compares the negative log-likelihood of the validation texts, with as many texts per launch as
 * the program has sequences: relative difference at most `tolerance`. */
void golden_check_likelihood(const golden_model *m, double tolerance);

#endif
