/*
 * Launch traces: when each task did what, from the events of a CUDA machine opened with
 * `trace_epochs`. A trace gives a timeline for Perfetto and Chrome, and a summary: the time per
 * task by step, the breakdown of a layer's time, and the critical path (longest chain of dependent
 * tasks). cli/ calls it for `trace`.
 *
 * A trace is plain data. Times are ns from its first event. A `row` is one epoch, oldest first.
 * With a two-list program, a row has the tasks of one list; steps, chains and summaries belong to
 * one list each.
 */
#ifndef MGL_EVAL_TRACE_H
#define MGL_EVAL_TRACE_H

#include "base/text.h"
#include "schedule/lists.h"
#include "schedule/program.h"
#include "vm/cuda/device/record.h"
#include "vm/vm.h"

enum {
    MGL_TRACE_NAME = 192, /* maximum bytes of a step's or task's name */
    MGL_TRACE_LISTS = 2   /* maximum task lists of a program */
};

/* Names of the first and the second list: "first", "second". */
const char *mgl_trace_list_name(int list);
/* The same in JSON, where values keep their published names. */
const char *mgl_trace_list_value(int list);

/* Parts of a task's time, in order.  enum, name */
#define MGL_TRACE_KINDS(X)                                                                         \
    X(BETWEEN, "between")     /* after the end of the queue's previous task */                     \
    X(EDGE, "edge")           /* waiting for counters and flag words */                            \
    X(INPUT, "input")         /* reading the input */                                              \
    X(STARVED, "starved")     /* waiting for the tape */                                           \
    X(ACT_TILES, "trays")     /* waiting for activation tiles of panels */                         \
    X(COMPUTING, "computing") /* up to the last product */                                         \
    X(WRITING, "writing")     /* from the last product to the end of the outputs */

typedef enum mgl_trace_kind {
#define MGL_X(id, name) MGL_TRACE_##id,
    MGL_TRACE_KINDS(MGL_X)
#undef MGL_X
        MGL_TRACE_KIND_COUNT
} mgl_trace_kind;
const char *mgl_trace_kind_name(mgl_trace_kind kind);

/* Statistics of a step's tasks, in us except pages.  enum, name */
#define MGL_TRACE_METRICS(X)                                                                       \
    X(OF_WAIT, "wait")         /* waiting for counters */                                          \
    X(OF_INPUT, "input")       /* from there until the input was read */                           \
    X(OF_PRODUCTS, "products") /* from there to the last product */                                \
    X(OF_OUTPUT, "output")     /* from there to the end */                                         \
    X(OF_STARVED, "starved")   /* waiting for the tape, part of `products` */                      \
    X(OF_ACT_TILES, "trays")   /* waiting for activation tiles, part of it too */                  \
    X(OF_AHEAD, "pages_ahead") /* loaded but unused pages at the input */

typedef enum mgl_trace_metric {
#define MGL_X(id, name) MGL_TRACE_##id,
    MGL_TRACE_METRICS(MGL_X)
#undef MGL_X
        MGL_TRACE_METRIC_COUNT
} mgl_trace_metric;
const char *mgl_trace_metric_name(mgl_trace_metric metric);

/* Times of a task in an epoch. begin <= go <= ready <= input <= products <= end. */
typedef struct mgl_trace_time {
    bool known;        /* the task wrote an event, and was not left out; otherwise all other fields
                          are 0 */
    bool tape;         /* the event has the pages ahead */
    int64_t begin;     /* the queue came to the task */
    int64_t go;        /* its counters were reached */
    int64_t ready;     /* its last flag words were written */
    int64_t input;     /* its input was read */
    int64_t products;  /* its last product was done */
    int64_t end;       /* its outputs were written */
    int64_t starved;   /* time between input and products spent waiting for the tape */
    int64_t act_tiles; /* and for activation tiles of panels */
    int ahead;         /* loaded but unused pages at `input` */
} mgl_trace_time;

/* A step: tasks that do the same in each layer or epoch. */
typedef struct mgl_trace_step {
    char name[MGL_TRACE_NAME]; /* "norm_linear", "linear_add down" */
    int list;                  /* task list */
    bool layered;              /* whether it belongs to a layer */
    int number;                /* index */
    int tasks;                 /* tasks with events in an epoch */
    int64_t first_end;         /* end of the first of them */
} mgl_trace_step;

/* A task on the critical path, with its time after the task that it depended on. */
typedef struct mgl_trace_link {
    int task;
    int64_t from, end;                /* end of the previous task on the path; end of this
                                         task */
    int64_t ns[MGL_TRACE_KIND_COUNT]; /* end - from, split by kind */
} mgl_trace_link;

/* Critical path of the last complete epoch of a list, starting with its sample task. */
typedef struct mgl_trace_chain {
    mgl_trace_link *links; /* (count) */
    int count;
    int row; /* row of that epoch; -1: none */
} mgl_trace_chain;

typedef struct mgl_trace {
    const mgl_program *program; /* not owned; both lists joined (`joined`) if there are two */
    mgl_joined joined;
    int lists;             /* number of lists */
    int first_tasks;       /* tasks of the first list; those of the second follow */
    mgl_run *runs;         /* (lists, queue_count) of tasks */
    mgl_trace_step *steps; /* (step_count) by list, then by first end */
    int step_count, layers;
    int *step_of, *layer_of, *queue_of; /* (task_count); layer -1: none */
    mgl_run *signallers;                /* (lists, counter_count) runs of `edges`: signaling
                                           tasks */
    mgl_run *writers;                   /* (buffer_count) runs of `edges`: flagged output regions */
    int *edges;
    int *task_of_region;   /* (region_count) */
    int rows;              /* epochs with events */
    int64_t *epochs;       /* (rows) epoch numbers, ascending */
    int *list;             /* (rows) list of the row's tasks: 0 the first, 1 the second */
    bool *whole;           /* (rows) whether all of its tasks wrote events */
    mgl_trace_time *times; /* (rows, task_count) */
    mgl_trace_chain chains[MGL_TRACE_LISTS];
} mgl_trace;

/* Times of a task in a row. */
static inline mgl_trace_time *mgl_trace_at(const mgl_trace *trace, int row, int task)
{
    return &trace->times[(size_t)row * (size_t)trace->program->task_count + (size_t)task];
}

/* List of a task. */
static inline int mgl_trace_list_of(const mgl_trace *trace, int task)
{
    return task >= trace->first_tasks;
}

/* Tasks of a queue in a list. */
static inline mgl_run mgl_trace_tasks(const mgl_trace *trace, int list, int queue)
{
    return trace->runs[list * trace->program->queue_count + queue];
}

/* Whether the row is a complete epoch of the list. */
static inline bool mgl_trace_is_of(const mgl_trace *trace, int row, int list)
{
    return trace->whole[row] && trace->list[row] == list;
}

/* Last row that is a complete epoch of the list; -1: none. */
int mgl_trace_last_row(const mgl_trace *trace, int list);

/* Builds a trace from events (epochs, task_count) in the form of mgl_cuda_get_trace. MGL_DEVICE: no
 * epoch is complete. The program must outlive the trace. Release with mgl_trace_free. */
mgl_status mgl_trace_new(const mgl_program *program, const mgl_device_event *events, int epochs,
                         mgl_trace **out, mgl_error *err);
/* Builds a trace of the last launch of a machine that was opened with this number of
 * `trace_epochs`. */
mgl_status mgl_trace_take(mgl_vm *vm, int epochs, mgl_trace **out, mgl_error *err);
void mgl_trace_free(mgl_trace *trace); /* NULL is allowed */

/* Name of a task, at most MGL_TRACE_NAME bytes: "linear_add l3.down", "merge l3", "sample". */
void mgl_trace_task_name(const mgl_trace *trace, int task, char *name);

/* Splits the time of a task by kind, in ns. `before`: end of the queue's previous task. */
void mgl_trace_split(const mgl_trace_time *time, int64_t before, int64_t ns[MGL_TRACE_KIND_COUNT]);
/* The previous task of the queue with an event in the row; -1: none. */
int mgl_trace_before(const mgl_trace *trace, int row, int task);
/* The writer of the task's flagged inputs that ended last in the row; -1: none. */
int mgl_trace_last_writer(const mgl_trace *trace, int row, int task);

/* Finds the critical path of a list: walks back from the sample task of the last complete epoch to
 * the sample task of the epoch before. Each step goes to the latest of the tasks that had to end
 * first, by a counter, by flag words or by queue order. Fills the list's chain. mgl_trace_new calls
 * it. */
mgl_status mgl_trace_find_chain(mgl_trace *trace, int list, mgl_error *err);

/* Prints the timeline as JSON in Chrome's trace event format: one process, one thread per queue,
 * one slice per task with slices of its parts, and one thread with the critical path. With two
 * lists, a slice has its list as category and argument. */
void mgl_trace_print_timeline(const mgl_trace *trace, mgl_text *out);

/* ---- summary -------------------------------------------------------------------------------- */

typedef struct mgl_trace_spread {
    double mean, p90;
} mgl_trace_spread;

/* A step, over the complete epochs of its list. */
typedef struct mgl_trace_part {
    mgl_trace_spread metrics[MGL_TRACE_METRIC_COUNT]; /* per task; us, pages */
    double span_us;                                   /* per layer: first begin to last end */
    double layer_us[MGL_TRACE_KIND_COUNT];            /* per layer, averaged over queues */
    int links;                                        /* tasks on the critical path */
    double chain_us;                                  /* and their time on it */
} mgl_trace_part;

typedef struct mgl_trace_summary {
    int list;
    int epochs;            /* complete epochs of the list */
    double epoch_us;       /* mean time from sample to sample; 0: no epoch before a complete one
                              is complete */
    mgl_trace_part *parts; /* (trace->step_count), owned; 0 for steps of the other list */
    double layer_us;       /* mean time of a layer from first begin to last end */
    double layer_kinds[MGL_TRACE_KIND_COUNT]; /* us per layer, averaged over queues */
    double chain_us;
    double chain_kinds[MGL_TRACE_KIND_COUNT];
    int64_t tape_bytes;     /* per epoch, all queues */
    double gbps;            /* of the tape, at epoch_us; 0 if unknown */
    double ahead_bytes;     /* mean bytes of a queue loaded but unused at a task's input */
    double starved_percent; /* of the queues' total time */
} mgl_trace_summary;

/* Release with mgl_trace_summary_clear. */
mgl_status mgl_trace_sum_up(const mgl_trace *trace, int list, mgl_trace_summary *out,
                            mgl_error *err);
void mgl_trace_summary_clear(mgl_trace_summary *summary);
void mgl_trace_print_summary(const mgl_trace *trace, const mgl_trace_summary *summary,
                             mgl_text *out);
/* Prints the summaries of all lists that have a complete epoch. */
mgl_status mgl_trace_print_lists(const mgl_trace *trace, mgl_text *out, mgl_error *err);
/* Prints the summaries of a machine's last launch (mgl_trace_take). */
mgl_status mgl_trace_describe(mgl_vm *vm, int epochs, mgl_text *out, mgl_error *err);

#endif
