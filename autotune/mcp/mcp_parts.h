/* Shared parts of the MCP server. mcp.c implements the protocol. mcp_tools.c contains the tools
 * for schedules and campaigns, and mcp_kernel.c those for micro-kernels. mcp_transform.c,
 * mcp_ptx.c and mcp_experiments.c contain the tools for transformations, PTX and the experiment
 * log. */
#ifndef MGL_AUTOTUNE_MCP_MCP_PARTS_H
#define MGL_AUTOTUNE_MCP_MCP_PARTS_H

#include "autotune/kernels/sessions/kernel_store.h"
#include "autotune/mcp/mcp.h"
#include "autotune/store/store.h"
#include "base/json.h"
#include "base/json_out.h"

#include <limits.h>
#include <pthread.h>

enum { MCP_CANCELLED = 64, MCP_MAX_ID = 128 };

struct mgl_mcp {
    char store[PATH_MAX];   /* "": the default */
    char kernels[PATH_MAX]; /* "": the default */
    bool allow_trials;
    char folders[MGL_MCP_MAX_FOLDERS][PATH_MAX]; /* (folder_count) resolved by realpath */
    int folder_count;
    pthread_mutex_t lock;                      /* protects the next three members */
    char current[MCP_MAX_ID];                  /* id of the running request; "": none */
    char cancelled[MCP_CANCELLED][MCP_MAX_ID]; /* ring of the last cancelled ids */
    int next;                                  /* next position in the ring */
    atomic_int abort;                          /* aborts the running request */
    atomic_bool over;                          /* set by mgl_mcp_end_waits */
};

/* Kinds of arguments, named as in JSON Schema. */
typedef enum mcp_kind { MCP_STRING, MCP_INTEGER, MCP_OBJECT, MCP_BOOLEAN, MCP_ARRAY } mcp_kind;

typedef struct mcp_param {
    const char *name;
    mcp_kind kind;
    bool required;
    int64_t lo, hi; /* range of a number; hi: largest length of a string in bytes */
    const char *what;
} mcp_param;

/* Checked arguments. */
typedef struct mcp_call {
    mgl_mcp *mcp;
    const mgl_json *json;
    const cJSON *arguments; /* an object; NULL: no arguments */
} mcp_call;

/* The open campaign of a call. */
typedef struct mcp_campaign {
    mgl_store *store;
    mgl_campaign_record record;
} mcp_campaign;

typedef struct mcp_tool {
    const char *name, *title, *what;
    const mcp_param *params; /* (count) */
    int count;
    bool writes; /* available only with allow_trials; its session or campaign is opened for writing
                  */
    /* Exactly one function is set: `run` for a tool that opens nothing, `in_campaign` for a tool on
     * the campaign that the arguments name, or `in_store` for a tool on a kernel store. It writes
     * the members of the answer's object. An error message goes to the agent. */
    mgl_status (*run)(const mcp_call *call, mgl_json_out *out, mgl_error *err);
    mgl_status (*in_campaign)(const mcp_call *call, mcp_campaign *campaign, mgl_json_out *out,
                              mgl_error *err);
    mgl_status (*in_store)(const mcp_call *call, mgl_kernel_store *shop, mgl_json_out *out,
                           mgl_error *err);
} mcp_tool;

mgl_status mcp_run_in_campaign(const mcp_tool *tool, const mcp_call *call, mgl_json_out *out,
                               mgl_error *err);
/* The store has the arguments unit, arch, device and scan_only. */
mgl_status mcp_run_in_store(const mcp_tool *tool, const mcp_call *call, mgl_json_out *out,
                            mgl_error *err);

/* The tool with this number, over all files; NULL: past the end. */
const mcp_tool *mcp_tool_get(int index);
/* The tools of one file. */
typedef struct mcp_tool_list {
    const mcp_tool *tools; /* (count) */
    int count;
} mcp_tool_list;
extern const mcp_tool_list mcp_kernel_tools, mcp_transform_tools, mcp_ptx_tools,
    mcp_experiment_log_tools;

/* The argument under its name or its first published name; NULL: not given. */
const cJSON *mcp_argument_of(const mcp_call *call, const char *name);
bool mcp_is_given(const mcp_call *call, const char *name);
/* The value of an argument, or a default. */
const char *mcp_text_of(const mcp_call *call, const char *name);
int64_t mcp_number_of(const mcp_call *call, const char *name, int64_t otherwise);
bool mcp_flag_of(const mcp_call *call, const char *name);

/* Reads a text from exactly one of two arguments: `name` contains the text (or a JSON object or
 * array), `path` names a file in the readable folders. `place` gets the source. Release *out
 * with mgl_free. */
mgl_status mcp_read_either(const mcp_call *call, const char *name, const char *path, size_t most,
                           char place[PATH_MAX], char **out, size_t *length, mgl_error *err);
/* Reads a text from the argument `name` or "path", as mcp_read_either does. */
mgl_status mcp_read_text(const mcp_call *call, const char *name, size_t most, char place[PATH_MAX],
                         char **out, size_t *length, mgl_error *err);

/* The folder or file of a model that an argument names. It and all its link targets must be in
 * the readable folders; "" if the argument is missing. */
mgl_status mcp_find_model(const mcp_call *call, const char *key, char path[PATH_MAX],
                          mgl_error *err);

enum { MCP_MAX_NAME = 200, MCP_MAX_PATH = 4000 };
#define MCP_PARAMS(list) list, (int)(sizeof list / sizeof *list)

#endif
