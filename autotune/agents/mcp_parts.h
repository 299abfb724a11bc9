/* What the files of the MCP server share: mcp.c speaks the protocol, mcp_tools.c has the tools of
 * schedules and campaigns, mcp_kernel.c those of micro-kernels, mcp_transform.c, mcp_ptx.c and
 * mcp_experiments.c those of what is done to them, what they are compiled to, and what was tried.
 */
#ifndef MGL_AUTOTUNE_AGENTS_MCP_PARTS_H
#define MGL_AUTOTUNE_AGENTS_MCP_PARTS_H

#include "autotune/agents/mcp.h"
#include "base/json.h"
#include "base/json_out.h"

#include <limits.h>
#include <pthread.h>

enum { MCP_CANCELLED = 64, MCP_MAX_ID = 128 };

struct mgl_mcp {
    char store[PATH_MAX];   /* "": the default */
    char kernels[PATH_MAX]; /* likewise */
    bool allow_trials;
    char folders[MGL_MCP_MAX_FOLDERS][PATH_MAX]; /* (folder_count) as realpath has them */
    int folder_count;
    pthread_mutex_t lock;                      /* of the three that follow */
    char current[MCP_MAX_ID];                  /* id of the request at work; "": none */
    char cancelled[MCP_CANCELLED][MCP_MAX_ID]; /* the last ids that were cancelled, a ring */
    int next;                                  /* of the ring */
    atomic_int abort;                          /* of what is at work */
    atomic_bool over;                          /* mgl_mcp_end_waits */
};

/* The kinds of an argument, by their names in JSON schema. */
typedef enum mcp_kind { MCP_STRING, MCP_INTEGER, MCP_OBJECT, MCP_BOOLEAN, MCP_ARRAY } mcp_kind;

typedef struct mcp_param {
    const char *name;
    mcp_kind kind;
    bool required;
    int64_t lo, hi; /* of a number; of a string its most bytes */
    const char *what;
} mcp_param;

/* Arguments that were checked. */
typedef struct mcp_call {
    mgl_mcp *mcp;
    const mgl_json *json;
    const cJSON *arguments; /* an object; NULL: none were given */
} mcp_call;

typedef struct mcp_tool {
    const char *name, *title, *what;
    const mcp_param *params; /* (count) */
    int count;
    bool writes; /* only with allow_trials */
    /* Puts the members of the answer's object; failing: what the agent is told. */
    mgl_status (*run)(const mcp_call *call, mgl_json_out *out, mgl_error *err);
} mcp_tool;

/* Tools by number, those of all files; NULL: there are no more. */
const mcp_tool *mcp_tool_get(int index);
/* Those of a file. */
typedef struct mcp_tool_list {
    const mcp_tool *tools; /* (count) */
    int count;
} mcp_tool_list;
extern const mcp_tool_list mcp_kernel_tools, mcp_transform_tools, mcp_ptx_tools,
    mcp_experiment_log_tools;

bool mcp_is_given(const mcp_call *call, const char *name);
/* An argument, or what stands for one that was not given. */
const char *mcp_text_of(const mcp_call *call, const char *name);
int64_t mcp_number_of(const mcp_call *call, const char *name, int64_t otherwise);
bool mcp_flag_of(const mcp_call *call, const char *name);

/* A text that is an argument, or the JSON of an object or array that is one, or the file that the
 * argument `path` names, which has to lie in the folders that may be read: one of the two. `place`
 * says which. Release *out with mgl_free. */
mgl_status mcp_read_either(const mcp_call *call, const char *name, const char *path, size_t most,
                           char place[PATH_MAX], char **out, size_t *length, mgl_error *err);
/* The same with "path". */
mgl_status mcp_read_text(const mcp_call *call, const char *name, size_t most, char place[PATH_MAX],
                         char **out, size_t *length, mgl_error *err);

/* The folder or file of a model that an argument names, which has to lie in the folders that may be
 * read, with all that it links to; "" where it was not given. */
mgl_status mcp_find_model(const mcp_call *call, const char *key, char path[PATH_MAX],
                          mgl_error *err);

enum { MCP_MAX_NAME = 200, MCP_MAX_PATH = 4000 };
#define MCP_PARAMS(list) list, (int)(sizeof list / sizeof *list)

#endif
