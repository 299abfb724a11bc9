/*
 * Declares the checks of the CUDA machine, which run on a GPU (test_cuda_run.c) and, with shorter
 * replies, in the emulator (tests/emulator). Each opens machines for a random model, runs them and
 * closes them.
 */
#ifndef MGL_TESTS_VM_CUDA_CUDA_CHECKS_H
#define MGL_TESTS_VM_CUDA_CUDA_CHECKS_H

#include "tests/vm/cuda/cuda_support.h"

enum { CHECK_CAPACITY = 96, CHECK_MOST = 64 /* tokens of a prompt, and of a reply */ };

/* Makes a prompt of `count` ids below `vocab` from a seed. */
void fill_prompt(int32_t *prompt, int count, int vocab, int seed);

/* A model on both machines, with CHECK_CAPACITY positions; owns the graph. */
struct pair {
    mgl_graph *graph;
    mgl_program *program, *other; /* program of the GPU, and of the CPU */
    mgl_vm *gpu, *cpu;
};
struct pair open_pair(mgl_graph *graph, const device_options *options);
void close_pair(struct pair *p);

/* Checks that the logits after `prompt_count` tokens, and after `more` greedy tokens, equal the CPU
 * machine's within the tolerance; in f32 the tokens too. `seed`: seed of the prompt; odd seeds tie
 * the model's embeddings. */
void check_logits(const mgl_geometry *geometry, const device_options *options, int seed,
                  int prompt_count, int more);

/* Checks that the logits after prompts of several lengths equal the CPU machine's within 1.5 times
 * the tolerance of check_logits, and are bitwise equal in `times` runs. `seed` as above. */
void check_prompts(const mgl_geometry *geometry, const device_options *options, int seed,
                   int times);

/* Checks that the same seed gives the same tokens, another seed others, and both machines draw the
 * same `most` tokens with each of the first `settings` of CHECK_SETTINGS. */
enum { CHECK_SETTINGS = 8 };
void check_sampling(int settings, int most);

/* Checks sequences of different lengths in one launch, generated and scored: each equals a single
 * run. With f32 or bf16 by `options`, with `splits`, and at most `most` tokens. */
void check_ragged(const mgl_geometry *geometry, const device_options *options, int most);

/* Checks `count` sequences, up to 64, in one bf16 launch. The second list has more rows than the
 * first list's maximum. Replies have different lengths and ends, greedy and drawn; one is scored.
 * In another order, and with other neighbors, each has the same tokens. Greedy replies equal the
 * CPU machine's up to a token with a logit gap below 0.1. */
void check_neighbors(const mgl_geometry *geometry, const device_options *options, int count);

/* Checks that two programs for the same model give bitwise equal replies (`most` tokens) and
 * logits. */
void check_same_answer(const mgl_graph *graph, const mgl_program *a, const mgl_program *b,
                       int most);

/* Checks the same sequences, in f32, with two task lists: the CPU machine's tokens, in the same
 * number of epochs. */
void check_two_lists(const mgl_geometry *geometry, const device_options *options, int most);

/* Checks a conversation of this number of turns in f32. Each prompt is everything before and some
 * more. One machine reuses its cache, the other starts fresh: the tokens are equal, and only the
 * new part is read. */
void check_talk(const mgl_geometry *geometry, const device_options *options, int turns);

/* Checks two machines on one cache in a conversation of this number of turns in f32: one with two
 * lists reads each prompt except its last token, then its owner with one list generates. The tokens
 * are those of a machine without a reader. */
void check_owner(const mgl_geometry *geometry, const device_options *options, int turns);

/* Checks replies that a stop string ends, in f32; see tests/vm/stops.h. */
void check_device_stops(const mgl_geometry *geometry, const device_options *options);

/* Checks penalties on this number of states, in f32; see tests/vm/penalties.h. */
void check_device_penalties(const mgl_geometry *geometry, const device_options *options,
                            int states);

/* Checks log-probabilities in f32; see tests/vm/likely.h. */
void check_device_likely(const mgl_geometry *geometry, const device_options *options);

/* Checks one compiled kernel with programs of two capacities in f32: sequences in one launch have
 * the CPU machine's tokens, in the report and as delivered. */
void check_capacities(const mgl_geometry *geometry, int most);

/* Checks NaN weights: a sequence that reads them ends at once without a token, greedy or drawn,
 * with the CPU machine's message. The other sequences of the launch have the tokens of a clean
 * model. */
void check_numbers(const mgl_geometry *geometry, const device_options *options);

/* Checks that a reply of `most` tokens ends at an end token that occurs in it. */
void check_end_token(int most);

/* Checks that random delays change nothing: a reply of `most` tokens after 5, and its logits, have
 * the same bits in `launches` launches of a kernel with delays as without. */
void check_delays(const mgl_geometry *geometry, const device_options *options, int launches,
                  int most);

/* Checks `turns` exchanges between two programs of one kernel on one machine. Each time, all tapes
 * have the packer's bytes, and a reply of `most` tokens and its logits equal those of a machine
 * opened with the program. */
void check_exchange(const mgl_graph *graph, const device_options *a, const device_options *b,
                    int turns, int most);

/* Checks a program without the last signal of that counter, run without the validator. It ends
 * within `most_s` seconds, names who waited for what, and the process continues. */
void check_deadlock(const char *counter, double most_s);

/* The same for a counter of the second list, in f32 and, with panels, in bf16. */
void check_deadlock_of_second(const char *counter, double most_s);
void check_deadlock_of_panels(const mgl_geometry *geometry, const device_options *options,
                              const char *counter, double most_s);

/* The same for a program with flag words without a writer. */
void check_missing_words(double most_s);

/* The same for a machine with a task whose op the kernel lacks. */
void check_unknown_op(double most_s);

/* The same for a queue whose ring has stopped, which the caller causes. */
void check_lost_page(double most_s);

#endif
