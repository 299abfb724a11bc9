/*
 * Declares the checks of the CUDA machine, which run on a GPU (test_cuda_run.c) and, with shorter
 * replies, in the emulator (tests/emulator). Each opens machines for a random model, runs them and
 * closes them.
 */
#ifndef MGL_TESTS_VM_CUDA_CUDA_CHECKS_H
#define MGL_TESTS_VM_CUDA_CUDA_CHECKS_H

#include "tests/vm/cuda/cuda_support.h"

enum { CHECK_CAPACITY = 96, CHECK_MOST = 64 /* tokens of a prompt, and of a reply */ };

/* A prompt of `count` ids below `vocab`, others for each seed. */
void fill_prompt(int32_t *prompt, int count, int vocab, int seed);

/* A model on both machines, with a cache of CHECK_CAPACITY; owns the graph. */
struct pair {
    mgl_graph *graph;
    mgl_program *program, *other; /* of the GPU, and of the CPU */
    mgl_vm *gpu, *cpu;
};
struct pair open_pair(mgl_graph *graph, const device_options *options);
void close_pair(struct pair *p);

/* The logits after `prompt_count` tokens, and after `more` greedy ones behind them, are those of
 * the CPU machine; in f32 the tokens too. `seed`: of the prompt; an odd one ties the model's
 * embeddings. */
void check_logits(const mgl_geometry *geometry, const device_options *options, int seed,
                  int prompt_count, int more);

/* The same seed gives the same tokens, another seed others, and both machines draw alike, in `most`
 * tokens of each of the first `settings` of CHECK_SETTINGS. */
enum { CHECK_SETTINGS = 8 };
void check_sampling(int settings, int most);

/* Sequences of different lengths in one launch, generated and scored: each as if it were alone.
 * With f32 or bf16, as `options` say, and with that many splits; `most` tokens each, and fewer. */
void check_ragged(const mgl_geometry *geometry, const device_options *options, int most);

/* `count` sequences, up to 64, in one launch of a program in bf16 whose second list has more rows
 * than the first one's only one: replies of different lengths and ends, greedy and drawn, and one
 * that is scored. In another order, and beside others that end elsewhere, each has the same tokens;
 * and greedy ones are those of the CPU machine, up to a token that it has another one for within
 * 0.1. */
void check_neighbors(const mgl_geometry *geometry, const device_options *options, int count);

/* Two programs for the same model: a reply of `most` tokens and the logits behind it are the same
 * bits. */
void check_same_answer(const mgl_graph *graph, const mgl_program *a, const mgl_program *b,
                       int most);

/* The same sequences, in f32, with two task lists: the tokens of the CPU machine, in as many
 * epochs.
 */
void check_two_lists(const mgl_geometry *geometry, const device_options *options, int most);

/* A talk of so many turns, each prompt being all that was said before and some more: on one machine
 * that reuses what its cache holds, against fresh starts. The same tokens, and only what is new is
 * read. In f32. */
void check_talk(const mgl_geometry *geometry, const device_options *options, int turns);

/* Replies that a stop text ends, as tests/vm/stops.h has it. In f32. */
void check_device_stops(const mgl_geometry *geometry, const device_options *options);

/* Penalties, as tests/vm/penalties.h has them, of so many states. In f32. */
void check_device_penalties(const mgl_geometry *geometry, const device_options *options,
                            int states);

/* How likely tokens are, as tests/vm/likely.h has it. In f32. */
void check_device_likely(const mgl_geometry *geometry, const device_options *options);

/* One compiled kernel, and programs of two capacities: sequences in one launch get the CPU
 * machine's tokens, in the report and one by one. In f32. */
void check_capacities(const mgl_geometry *geometry, int most);

/* Weights that are NaN: a sequence that meets them ends at once, without a token, drawn or not, in
 * the words of the CPU machine; the others of its launch have the tokens of a clean model. */
void check_numbers(const mgl_geometry *geometry, const device_options *options);

/* A reply of `most` tokens ends with an end token that comes in it. */
void check_end_token(int most);

/* Random delays change nothing: a reply of `most` tokens behind 5, and the logits behind it, are
 * the same bits in `launches` launches of a kernel with delays as without. */
void check_delays(const mgl_geometry *geometry, const device_options *options, int launches,
                  int most);

/* Two programs of one kernel in turn on one machine, `turns` times: each time the bytes of all
 * tapes are the packer's, and a reply of `most` tokens and its logits those of a machine that was
 * opened with the program. */
void check_exchange(const mgl_graph *graph, const device_options *a, const device_options *b,
                    int turns, int most);

/* A program that lacks the last signal of that counter, launched past the validator: ends within
 * `most_s` seconds, says who waited for what, and the process goes on. */
void check_deadlock(const char *counter, double most_s);

/* The same of the second list's, in f32 and, as panels, in bf16. */
void check_deadlock_of_second(const char *counter, double most_s);
void check_deadlock_of_panels(const mgl_geometry *geometry, const device_options *options,
                              const char *counter, double most_s);

/* A program with flags, and words that nobody writes: the same. */
void check_missing_words(double most_s);

/* A machine one of whose tasks has become one of an op that the kernel does not have: the same. */
void check_unknown_op(double most_s);

/* A queue whose ring stands still, which the caller sees to: the same. */
void check_lost_page(double most_s);

#endif
