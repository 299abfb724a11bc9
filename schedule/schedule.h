/*
 * Construction and serialization of programs: the ScheduleConfig (JSON), deterministic lowering
 * from graph to program, and the text form (*.mls). Called by api, cli, autotune and the tests.
 */
#ifndef MGL_SCHEDULE_SCHEDULE_H
#define MGL_SCHEDULE_SCHEDULE_H

#include "base/json.h"
#include "base/text.h"
#include "schedule/program.h"

const char *mgl_step_name(mgl_step step); /* "qkv", "attend", ... */

/* Synchronization of tasks inside an epoch. */
enum { MGL_EXCHANGE_COUNTERS = 1, MGL_EXCHANGE_FLAGS = 2 };

/* Where the splits of attention are merged: in separate merge tasks, or in the o tasks. */
enum { MGL_MERGE_TASKS = 1, MGL_MERGE_IN_O = 2 };

/* Whether queues of the second list exchange gamma_scaled values. */
enum { MGL_GAMMA_NO = 1, MGL_GAMMA_YES = 2 };

/* Whether warpgroups (else warp teams) multiply gamma_scaled values. */
enum { MGL_WARPGROUPS_NO = 1, MGL_WARPGROUPS_YES = 2 };

/* The choices of a schedule: an int for each knob of schedule/config.def, which describes them. */
typedef struct mgl_schedule_config {
#define MGL_KNOB(field, open, lowest, highest, multiple, preset, what) int field;
#define MGL_KNOB_STEP(id, key, what)
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
    struct {
        int first, count; /* queues [first, first + count); count 0: chosen, see config.def */
    } queues[MGL_STEP_COUNT];
} mgl_schedule_config;

void mgl_schedule_config_default(mgl_schedule_config *out);
/* Parses {"schema":"megalith.config/1", ...}. Every field is optional. Unknown keys are rejected
 * with MGL_BAD_INPUT. */
mgl_status mgl_schedule_config_parse(const char *text, size_t length, const char *file,
                                     mgl_schedule_config *out, mgl_error *err);
/* The same for an object inside another file. `path` ("config.") prefixes keys in messages. The
 * schema may be omitted. An omitted knob keeps its value in *out. */
mgl_status mgl_schedule_config_merge(const mgl_json *json, const cJSON *object, const char *path,
                                     mgl_schedule_config *out, mgl_error *err);
mgl_status mgl_schedule_config_read(const char *path, mgl_schedule_config *out, mgl_error *err);
void mgl_schedule_config_print(const mgl_schedule_config *config, mgl_text *out);
/* The same with the first published names of the knobs (base/aliases.def): for digests. */
void mgl_schedule_config_print_published(const mgl_schedule_config *config, mgl_text *out);

/* Parses "sm_90a:132" or "cpu:1". A table of architectures gives the shared memory. */
mgl_status mgl_target_parse(const char *text, mgl_target *out, mgl_error *err);

typedef struct mgl_lower_options {
    mgl_dtype dtype; /* of weights and KV cache */
    int capacity;    /* positions of a sequence */
    int sequences;   /* sequences of a launch */
    bool penalties;  /* requests may use repetition penalties, so sample counts tokens */
    int prompt;      /* length of the prompt that is read before a reply; 0: short or unknown */
    int reply;       /* length of the reply; 0: unknown */
} mgl_lower_options;

/* options->sequences, limited to the sequences of a launch under this config. */
int mgl_schedule_fit_sequences(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *config);

/* Lowers a graph to a program. The same graph, target, options and config give the same program,
 * bit for bit. */
mgl_status mgl_schedule_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, const mgl_schedule_config *config,
                              mgl_program **out, mgl_error *err);

/* Parses the text form (grammar in schedule/text/text.c). parse(print(p)) == p, and
 * print(parse(t)) is stable. Errors contain file:line:column, the source line and a caret. */
mgl_status mgl_schedule_parse(const char *text, size_t length, const char *file, mgl_program **out,
                              mgl_error *err);
/* Whether the first line that is no comment begins like a schedule: `megalith` and a version.
 * Messages may quote such a text. Other files are not quoted, because they may contain secrets. */
bool mgl_schedule_begins(const char *text, size_t length);
enum { MGL_SCHEDULE_MAX_TEXT = 64 << 20 }; /* limit for a text in bytes */
mgl_status mgl_schedule_read(const char *path, mgl_program **out, mgl_error *err);
void mgl_schedule_print(const mgl_program *program, mgl_text *out);

/* Prints one task as one line of the text form, without a newline. */
void mgl_schedule_print_task(const mgl_program *program, int task, mgl_text *out);

#endif
