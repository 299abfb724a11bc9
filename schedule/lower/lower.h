/*
 * What lowering knows while it makes a program. Private to its two files: declare.c declares what
 * the program has, and lower.c emits the tasks.
 */
#ifndef MGL_SCHEDULE_LOWER_LOWER_H
#define MGL_SCHEDULE_LOWER_LOWER_H

#include "schedule/lower/choose.h"
#include "schedule/schedule.h"
#include "schedule/step.h"

/* The buffers of a layer in which tasks exchange values; without flags, of all layers. */
typedef struct mgl_lowering_exchange {
    int x;    /* its input, normed by qkv */
    int qkv;  /* q, k and v */
    int part; /* of attention, when that is split; else -1 */
    int att;  /* of the heads; -1 where o merges them itself */
    int y;    /* x and o's part, normed by gate and up; without flags, x itself */
    int h;    /* of the ffn */
} mgl_lowering_exchange;

/* What one layer has in the program. The counters are -1 where there is nothing to count: with
 * flags, all. */
typedef struct mgl_lowering_layer {
    int q, k, v, o, gate, up, down;                                         /* on the tapes */
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
    int residual, x;            /* what is summed up, and what the head reads: one without flags */
    int n, x_s, y_s; /* of weighed values: them, and the squares of a layer's input and of
                        what gate and up read; else -1 */
    int control, table, sequence, prompt, output, score, logits, best_value, best_id;
    int counts, penalized;            /* with penalties; else -1 */
    int embedded, head_done, sampled; /* counters; embedded: -1 with flags */
    int drawn;                        /* counter of draws; -1: sample draws */
    int idle, done;                   /* counters of queues without a head; -1: none */
    int64_t tape;                     /* bytes so far on the tape of the newest queue */
    const char *prefix;               /* of what the list declares for itself */
    bool penalties;                   /* of the options */
    bool weighed;                     /* queues exchange weighed values */
    bool shares_rows;                 /* a task of attention has a share of the rows */
    bool second;                      /* it is the second list: without tapes of its own */
    mgl_status status;
    mgl_error *err;
} mgl_lowering;

/* Declares all that the first list has, walking the graph from the embedding to the sample. Where
 * the graph is no decoder, `status` and `err` say why; the program knows whether memory ran out. */
void mgl_lowering_declare(mgl_lowering *w);

/* What the second list has of its own: edges, activations, and what its head makes. */
void mgl_lowering_declare_second(mgl_lowering *w);

/* The dtype in which values are exchanged: exchange_dtype from that level on. */
mgl_dtype mgl_lowering_exchange_dtype(const mgl_lowering *w, int level);

/* Tasks that draw tokens: a share of the rows each, behind the head's first tasks, where a launch
 * may have several sequences; else 0. */
int mgl_lowering_draws(const mgl_lowering *w);

/* Whether tasks of their own merge the splits of attention. */
bool mgl_lowering_has_merges(const mgl_lowering *w);

/* The weight of the norm that a layer begins with; behind the last layer, that of the head. */
int mgl_lowering_norm(const mgl_lowering *w, int layer);

/* Queues with a share: the tasks of a step. */
int mgl_lowering_tasks(const mgl_lowering *w, mgl_step step);

#endif
