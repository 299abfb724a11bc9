/*
 * Making and writing programs: ScheduleConfig, deterministic lowering, and the text form.
 */
#ifndef MGL_SCHEDULE_SCHEDULE_H
#define MGL_SCHEDULE_SCHEDULE_H

#include "base/json.h"
#include "base/text.h"
#include "schedule/program.h"

const char *mgl_step_name(mgl_step step); /* "qkv", "attend", ... */

/* How tasks learn of each other's results inside an epoch. */
enum { MGL_EXCHANGE_COUNTERS = 1, MGL_EXCHANGE_FLAGS = 2 };

/* Who merges the splits of attention. */
enum { MGL_MERGE_TASKS = 1, MGL_MERGE_IN_O = 2 };

/* What queues of the second list exchange. */
enum { MGL_GAMMA_NO = 1, MGL_GAMMA_YES = 2 };

/* Who multiplies them. */
enum { MGL_WARPGROUPS_NO = 1, MGL_WARPGROUPS_YES = 2 };

/* What a search may choose. One list of fields, ranges and defaults: schedule/config.def. */
typedef struct mgl_schedule_config {
    int rows;           /* rows of an epoch, 1 to 16; 0: chosen */
    int many;           /* rows of an epoch of the second list, up to 128; 0: there is none */
    int weighed;        /* its queues exchange weighed values: MGL_GAMMA_...; 0: chosen */
    int warpgroups;     /* who multiplies them: MGL_WARPGROUPS_...; 0: chosen */
    int splits;         /* KV splits of attention; 0: chosen from capacity and queues */
    int exchange;       /* MGL_EXCHANGE_...; 0: chosen from target and model */
    int narrow;         /* what is exchanged in 16 bits with flags, 0 to 3 */
    int merge;          /* MGL_MERGE_...; 0: chosen */
    int share;          /* positions for which one more split is used; 0: chosen */
    int page_bytes;     /* of the tape ring */
    int ring_pages;     /* 0: fitted to the target's shared memory */
    int warps;          /* consumer warps */
    int stage_bytes;    /* shared memory for activations; 0: fitted likewise */
    int flight_bytes;   /* of the tape on their way at most */
    int pending_bytes;  /* the same while an edge is waited for */
    int prefetch_bytes; /* ahead of a full ring; 0: none */
    struct {
        int first, count; /* queues [first, first + count); count 0: chosen, see config.def */
    } queues[MGL_STEP_COUNT];
} mgl_schedule_config;

void mgl_schedule_config_default(mgl_schedule_config *out);
/* {"schema":"megalith.config/1", ...}: every field optional, unknown keys refused. */
mgl_status mgl_schedule_config_parse(const char *text, size_t length, const char *file,
                                     mgl_schedule_config *out, mgl_error *err);
/* The same of an object that stands within another file, at `path` ("config."; a message names keys
 * by it): the schema may be left out, and a knob that is left out stays as it is in *out. */
mgl_status mgl_schedule_config_merge(const mgl_json *json, const cJSON *object, const char *path,
                                     mgl_schedule_config *out, mgl_error *err);
mgl_status mgl_schedule_config_read(const char *path, mgl_schedule_config *out, mgl_error *err);
void mgl_schedule_config_print(const mgl_schedule_config *config, mgl_text *out);

/* "sm_90a:132", "cpu:1". Shared memory comes from a table of architectures. */
mgl_status mgl_target_parse(const char *text, mgl_target *out, mgl_error *err);

typedef struct mgl_lower_options {
    mgl_dtype dtype; /* of weights and KV cache */
    int capacity;    /* positions of a sequence */
    int sequences;   /* of a launch */
    bool penalties;  /* tokens can have penalties: it counts them */
    int prompt;      /* tokens that are read at once before a reply; 0: few, or not known */
    int reply;       /* tokens of a reply behind them; 0: not known */
} mgl_lower_options;

/* The sequences of the options, at most as many as a launch of this config allows. */
int mgl_schedule_fit_sequences(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *config);

/* The same graph, target, options and config give the same program, bit for bit. */
mgl_status mgl_schedule_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, const mgl_schedule_config *config,
                              mgl_program **out, mgl_error *err);

/* The text form (schedule/text/text.c has its grammar): parse(print(p)) == p, print(parse(t)) is
 * stable. Errors carry file:line:column, the source line and a caret. */
mgl_status mgl_schedule_parse(const char *text, size_t length, const char *file, mgl_program **out,
                              mgl_error *err);
/* Whether the first line that is not a comment begins like a schedule: `megalith` and a version.
 * Messages may quote such a text; other files stay unquoted, because they may hold secrets. */
bool mgl_schedule_begins(const char *text, size_t length);
enum { MGL_SCHEDULE_MAX_TEXT = 64 << 20 }; /* bytes of a text that is read */
mgl_status mgl_schedule_read(const char *path, mgl_program **out, mgl_error *err);
void mgl_schedule_print(const mgl_program *program, mgl_text *out);

/* One task as one line of the text form, without its line end. */
void mgl_schedule_print_task(const mgl_program *program, int task, mgl_text *out);

#endif
