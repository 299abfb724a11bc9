/*
 * Traces: what the tasks of a launch did when, from the events that a CUDA machine opened with
 * `trace_epochs` leaves. From them come a timeline that Perfetto and Chrome show, and a summary:
 * the time of a task by step, where the time of a layer goes, and the longest chain of tasks that
 * waited for each other.
 *
 * A trace is plain data. Its times are ns from its first event; an epoch of it is a `row`, oldest
 * first. Of a program with two lists a row has the tasks of one of them; steps, chains and
 * summaries are of one list each.
 */
#ifndef MGL_EVAL_TRACE_H
#define MGL_EVAL_TRACE_H

#include "base/text.h"
#include "schedule/lists.h"
#include "schedule/program.h"
#include "vm/cuda/device/record.h"
#include "vm/vm.h"

enum {
    MGL_TRACE_NAME = 192, /* bytes of the longest name of a step or a task */
    MGL_TRACE_LISTS = 2   /* task lists of a program, at most */
};

/* "few", "many". */
const char *mgl_trace_list_name(int list);

/* What the time of a task goes into, in this order.  enum, name */
#define MGL_TRACE_KINDS(X)                                                                         \
    X(BETWEEN, "between")     /* from the end of the queue's task before it to its begin */        \
    X(EDGE, "edge")           /* for counters, and until the last flagged word was written */      \
    X(INPUT, "input")         /* reading the input */                                              \
    X(STARVED, "starved")     /* for the tape */                                                   \
    X(ACT_TILES, "trays")     /* for activations, of panels */                                     \
    X(COMPUTING, "computing") /* up to the last product */                                         \
    X(WRITING, "writing")     /* of the outputs, and what comes before that behind the products */

typedef enum mgl_trace_kind {
#define MGL_X(id, name) MGL_TRACE_##id,
    MGL_TRACE_KINDS(MGL_X)
#undef MGL_X
        MGL_TRACE_KIND_COUNT
} mgl_trace_kind;
const char *mgl_trace_kind_name(mgl_trace_kind kind);

/* What is told of the tasks of a step, in us but for the pages.  enum, name */
#define MGL_TRACE_METRICS(X)                                                                       \
    X(OF_WAIT, "wait")         /* for counters */                                                  \
    X(OF_INPUT, "input")       /* from there until the input was there */                          \
    X(OF_PRODUCTS, "products") /* from there to the last product */                                \
    X(OF_OUTPUT, "output")     /* from there to the end */                                         \
    X(OF_STARVED, "starved")   /* for the tape, as a part of `products` */                         \
    X(OF_ACT_TILES, "trays")   /* for activations of panels, as another part of it */              \
    X(OF_AHEAD, "pages_ahead") /* that had landed, and were not yet needed, with the input */

typedef enum mgl_trace_metric {
#define MGL_X(id, name) MGL_TRACE_##id,
    MGL_TRACE_METRICS(MGL_X)
#undef MGL_X
        MGL_TRACE_METRIC_COUNT
} mgl_trace_metric;
const char *mgl_trace_metric_name(mgl_trace_metric metric);

/* When a task of an epoch did what. begin <= go <= ready <= input <= products <= end. */
typedef struct mgl_trace_time {
    bool known;        /* it left an event; the rest is 0 otherwise */
    bool tape;         /* it told the pages ahead */
    int64_t begin;     /* the queue turned to it */
    int64_t go;        /* its counters were there */
    int64_t ready;     /* and the last of its flagged words had been written */
    int64_t input;     /* its input was there */
    int64_t products;  /* its last product */
    int64_t end;       /* its outputs were written */
    int64_t starved;   /* of the time between input and products, for the tape, */
    int64_t act_tiles; /* and for activations of panels */
    int ahead;         /* pages that had landed and were not yet needed, at `input` */
} mgl_trace_time;

/* Tasks that do the same for each layer, or epoch. */
typedef struct mgl_trace_step {
    char name[MGL_TRACE_NAME]; /* "norm_linear", "linear_add down" */
    int list;                  /* whose */
    bool layered;              /* a layer's */
    int number;                /* its index */
    int tasks;                 /* of an epoch that leave events */
    int64_t first_end;         /* when the first of them ended */
} mgl_trace_step;

/* A task of the longest chain, and what the one that it could not start before is to it. */
typedef struct mgl_trace_link {
    int task;
    int64_t from, end;                /* the end of the task before it in the chain, and its own */
    int64_t ns[MGL_TRACE_KIND_COUNT]; /* end - from, by kind */
} mgl_trace_link;

/* The longest chain of the last whole epoch of a list, its sample first. */
typedef struct mgl_trace_chain {
    mgl_trace_link *links; /* (count) */
    int count;
    int row; /* of that epoch; -1: there is none */
} mgl_trace_chain;

typedef struct mgl_trace {
    const mgl_program *program; /* not owned; of two lists both in one, of `joined` */
    mgl_joined joined;
    int lists;             /* of it */
    int first_tasks;       /* of the first one; those of the second stand behind them */
    mgl_run *runs;         /* (lists, queue_count) of tasks */
    mgl_trace_step *steps; /* (step_count) by list, and in the order of their first ends */
    int step_count, layers;
    int *step_of, *layer_of, *queue_of; /* (task_count); layer -1: of none */
    mgl_run *signallers;                /* (lists, counter_count) runs of `edges`: tasks */
    mgl_run *writers;                   /* (buffer_count) runs of `edges`: flagged output regions */
    int *edges;
    int *task_of_region;   /* (region_count) */
    int rows;              /* epochs that left events */
    int64_t *epochs;       /* (rows) their numbers, ascending */
    int *list;             /* (rows) whose tasks they have: 0 the first list's, 1 the second's */
    bool *whole;           /* (rows) every task of it left its event */
    mgl_trace_time *times; /* (rows, task_count) */
    mgl_trace_chain chains[MGL_TRACE_LISTS];
} mgl_trace;

/* What a task of a row did when. */
static inline mgl_trace_time *mgl_trace_at(const mgl_trace *trace, int row, int task)
{
    return &trace->times[(size_t)row * (size_t)trace->program->task_count + (size_t)task];
}

/* The list of a task. */
static inline int mgl_trace_list_of(const mgl_trace *trace, int task)
{
    return task >= trace->first_tasks;
}

/* The tasks of a queue, of a list. */
static inline mgl_run mgl_trace_tasks(const mgl_trace *trace, int list, int queue)
{
    return trace->runs[list * trace->program->queue_count + queue];
}

/* Whether the row is a whole epoch of the list. */
static inline bool mgl_trace_is_of(const mgl_trace *trace, int row, int list)
{
    return trace->whole[row] && trace->list[row] == list;
}

/* The last row that is; -1: there is none. */
int mgl_trace_last_row(const mgl_trace *trace, int list);

/* Makes a trace of events (epochs, task_count) as mgl_cuda_get_trace hands them out. MGL_DEVICE
 * when there is no epoch of which every task left its event. The program must outlive it. Release
 * with mgl_trace_free. */
mgl_status mgl_trace_new(const mgl_program *program, const mgl_device_event *events, int epochs,
                         mgl_trace **out, mgl_error *err);
/* The same of the last launch of a machine that was opened with so many `trace_epochs`. */
mgl_status mgl_trace_take(mgl_vm *vm, int epochs, mgl_trace **out, mgl_error *err);
void mgl_trace_free(mgl_trace *trace); /* NULL is fine */

/* The name of a task, at most MGL_TRACE_NAME bytes: "linear_add l3.down", "merge l3",
 * "sample". */
void mgl_trace_task_name(const mgl_trace *trace, int task, char *name);

/* The time of a task in a row, by kind, in ns. `before`: when the queue's task before it ended. */
void mgl_trace_split(const mgl_trace_time *time, int64_t before, int64_t ns[MGL_TRACE_KIND_COUNT]);
/* The task before it on its queue that left an event in the row; -1: there is none. */
int mgl_trace_before(const mgl_trace *trace, int row, int task);
/* The writer of its flagged inputs that ended last in the row; -1: there is none. */
int mgl_trace_last_writer(const mgl_trace *trace, int row, int task);

/* Walks back from the sample of the last whole epoch of a list: each time to what ended last of the
 * tasks that had to end first, by a counter, by flagged words or by queue order, up to the sample
 * of the epoch before. Fills the list's chain; called by mgl_trace_new. */
mgl_status mgl_trace_find_chain(mgl_trace *trace, int list, mgl_error *err);

/* The timeline, as JSON in Chrome's trace event format: one process, a thread a queue, a slice a
 * task with slices of its parts within; and one thread more with the longest chain. Of a program
 * with two lists a slice has its list as category, and says it. */
void mgl_trace_print_timeline(const mgl_trace *trace, mgl_text *out);

/* ---- the summary
 * --------------------------------------------------------------------------------- */

typedef struct mgl_trace_spread {
    double mean, p90;
} mgl_trace_spread;

/* Of a step, over the whole epochs of its list. */
typedef struct mgl_trace_part {
    mgl_trace_spread metrics[MGL_TRACE_METRIC_COUNT]; /* of a task; us, pages */
    double span_us;                                   /* of a layer: first begin to last end */
    double layer_us[MGL_TRACE_KIND_COUNT];            /* of a layer, an average queue's */
    int links;                                        /* tasks of the longest chain */
    double chain_us;                                  /* and their share of its time */
} mgl_trace_part;

typedef struct mgl_trace_summary {
    int list;
    int epochs;            /* whole ones of that list */
    double epoch_us;       /* from the sample of the epoch before, mean; 0: none had a whole one */
    mgl_trace_part *parts; /* (trace->step_count), owned; 0 of the other list */
    double layer_us;       /* first begin to last end of a layer, mean */
    double layer_kinds[MGL_TRACE_KIND_COUNT]; /* us of a layer, an average queue's */
    double chain_us;
    double chain_kinds[MGL_TRACE_KIND_COUNT];
    int64_t tape_bytes;     /* an epoch, all queues */
    double gbps;            /* of the tape, at epoch_us; 0 without */
    double ahead_bytes;     /* that had landed with the input of a task, a queue; mean */
    double starved_percent; /* of the queues' time */
} mgl_trace_summary;

/* Release with mgl_trace_summary_clear. */
mgl_status mgl_trace_sum_up(const mgl_trace *trace, int list, mgl_trace_summary *out,
                            mgl_error *err);
void mgl_trace_summary_clear(mgl_trace_summary *summary);
void mgl_trace_print_summary(const mgl_trace *trace, const mgl_trace_summary *summary,
                             mgl_text *out);
/* The summaries of all lists that have a whole epoch, as text. */
mgl_status mgl_trace_print_lists(const mgl_trace *trace, mgl_text *out, mgl_error *err);
/* The same of a machine's last launch (mgl_trace_take). */
mgl_status mgl_trace_describe(mgl_vm *vm, int epochs, mgl_text *out, mgl_error *err);

#endif
