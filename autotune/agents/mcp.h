/*
 * A server of the Model Context Protocol: what an agent can ask of schedules, campaigns and
 * micro-kernels, as tools, in JSON-RPC 2.0. This is the part that knows no stream: one message in,
 * one message out. See modelcontextprotocol.io/specification for the protocol; versions from
 * 2024-11-05 on are spoken.
 *
 * Tools read; those that hand something in are there where that was allowed. Files are read within
 * the folders that were named, and nowhere else. Arguments are checked against the schemas that
 * tools/list tells.
 */
#ifndef MGL_AUTOTUNE_AGENTS_MCP_H
#define MGL_AUTOTUNE_AGENTS_MCP_H

#include "base/error.h"
#include "base/text.h"

enum { MGL_MCP_MAX_MESSAGE = 80 << 20, MGL_MCP_MAX_FOLDERS = 16 };

typedef struct mgl_mcp mgl_mcp;

typedef struct mgl_mcp_options {
    const char *store;                        /* path of the store; NULL: the default */
    const char *kernels;                      /* folder of workbenches; NULL: the default */
    bool allow_trials;                        /* tools that hand something in are there */
    const char *folders[MGL_MCP_MAX_FOLDERS]; /* (folder_count) in which files may be read */
    int folder_count;
} mgl_mcp_options;

/* The options are copied. MGL_BAD_INPUT: a folder that is none. Release with mgl_mcp_close. */
mgl_status mgl_mcp_open(const mgl_mcp_options *options, mgl_mcp **out, mgl_error *err);
void mgl_mcp_close(mgl_mcp *mcp); /* NULL is fine */

/* Takes one message and appends its answer to *out, without a line end: nothing for a notification,
 * and for a request that was cancelled. Fails only where memory ran out: what is wrong with a
 * message is told in the answer. */
mgl_status mgl_mcp_handle(mgl_mcp *mcp, const char *message, size_t length, mgl_text *out,
                          mgl_error *err);

/* For another thread, of each message as soon as it has come: a notification that cancels a request
 * ends that, whether it is at work or still waits. */
void mgl_mcp_see(mgl_mcp *mcp, const char *message, size_t length);
/* For another thread, when no message will come any more: who asked may be gone, so that nothing
 * waits for a verdict from then on. */
void mgl_mcp_end_waits(mgl_mcp *mcp);

#endif
