/*
 * State of lowering, shared by its files: declare.c declares tensors, buffers and counters, lower.c
 * emits the tasks, and entry.c calls them.
 */
#ifndef MGL_SCHEDULE_LOWER_LOWER_H
#define MGL_SCHEDULE_LOWER_LOWER_H

#include "schedule/lower/choose.h"
#include "schedule/schedule.h"
#include "schedule/step.h"

/* The exchange buffers of a layer; without flags, of all layers. */
typedef struct mgl_lowering_exchange {
    int x;    /* layer input, normalized by qkv */
    int qkv;  /* q, k and v */
    int part; /* partial results of attention splits, else -1 */
    int att;  /* attention output; -1 if o merges the splits */
    int y;    /* x + o, normalized by gate and up; without flags the buffer x */
    int h;    /* output of gate/up */
} mgl_lowering_exchange;

/* The declarations of one layer. Counters are -1 if unused: with flags, all of them. */
typedef struct mgl_lowering_layer {
    int q, k, v, o, gate, up, down;                                         /* tensors on the
                                                                               tapes */
    int attn_g, ffn_g;                                                      /* const buffers */
    int qkv_b[3], o_b, gate_b, up_b, down_b, q_g, k_g;                      /* the same, or -1 */
    int k_cache, v_cache;                                                   /* kv buffers */
    mgl_lowering_exchange act;                                              /* its activations */
    int qkv_done, attend_done, merge_done, o_done, gate_up_done, down_done; /* counters */
} mgl_lowering_layer;

typedef struct mgl_lowering {
    const mgl_graph *graph;
    mgl_program *program;
    mgl_choices choices;
    mgl_lowering_layer *layers; /* (layers) */
    int head;                   /* program tensor of the head */
    int embedding, rope, g;     /* const buffers */
    int residual, x;            /* the residual sum, and the input of the head; one buffer
                                   without flags */
    int n, x_s, y_s; /* gamma_scaled value, squares of a layer's input, squares of the input of
                        gate and up; else -1 */
    int control, table, sequence, prompt, output, score, logits, best_value, best_id;
    int counts, penalized;            /* with penalties; else -1 */
    int embedded, head_done, sampled; /* counters; embedded: -1 with flags */
    int drawn;                        /* counter of draw tasks; -1: sample draws */
    int idle, done;                   /* counters of queues without a head; -1: none */
    int64_t tape;                     /* bytes so far on the newest queue's tape */
    const char *prefix;               /* prefix of the list's own names */
    bool penalties;                   /* from the options */
    bool gamma_scaled;                /* queues exchange gamma_scaled values */
    bool shares_rows;                 /* an attention task has a share of the rows */
    bool second;                      /* the second list, which has no tapes */
    mgl_status status;
    mgl_error *err;
} mgl_lowering;

/* Declares everything of the first list, from the embedding to the sample. `status` and `err`
 * report a graph that is no decoder. mgl_program_failed reports that memory ran out. */
void mgl_lowering_declare(mgl_lowering *w);
/* Whether two tensors have different formats or column maps. */
bool mgl_lowering_differ(const mgl_lowering *w, int first, int second);

/* Declares what the second list has of its own: edges, activations, and results of its head. */
void mgl_lowering_declare_second(mgl_lowering *w);

/* Number of draw tasks: each draws tokens for a share of the rows, on the queues of the first
 * head tasks. 0 if a launch has one sequence. */
int mgl_lowering_draws(const mgl_lowering *w);

/* Whether merge tasks merge the splits of attention. */
bool mgl_lowering_has_merges(const mgl_lowering *w);

/* The norm weight at the start of a layer; for layer = layers, the norm of the head. */
int mgl_lowering_norm(const mgl_lowering *w, int layer);

/* Declares everything and emits all queues of both lists. Errors as for mgl_lowering_declare. */
void mgl_lowering_emit(mgl_lowering *w);

/* Number of tasks of a step: its queues with a share. */
int mgl_lowering_tasks(const mgl_lowering *w, mgl_step step);

#endif
