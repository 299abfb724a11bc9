/*
 * Server of the Model Context Protocol (JSON-RPC 2.0): gives agents tools for schedules, campaigns
 * and micro-kernels. This module is independent of the transport: one message in, one message out.
 * The protocol is specified at modelcontextprotocol.io/specification; versions from 2024-11-05 on
 * are supported. `megalith mcp` connects it to a stream.
 *
 * Most tools only read. Tools that submit something are available only if `allow_trials` is set.
 * Files are read only in the listed folders. Arguments are checked against the schemas that
 * tools/list returns.
 */
#ifndef MGL_AUTOTUNE_MCP_MCP_H
#define MGL_AUTOTUNE_MCP_MCP_H

#include "base/error.h"
#include "base/text.h"

enum { MGL_MCP_MAX_MESSAGE = 80 << 20, MGL_MCP_MAX_FOLDERS = 16 };

typedef struct mgl_mcp mgl_mcp;

typedef struct mgl_mcp_options {
    const char *store;                        /* path of the store; NULL: the default */
    const char *kernels;                      /* folder of kernel sessions; NULL: the default */
    bool allow_trials;                        /* enables tools that submit something */
    const char *folders[MGL_MCP_MAX_FOLDERS]; /* (folder_count) folders in which files may be
                                               * read */
    int folder_count;
} mgl_mcp_options;

/* The options are copied. MGL_BAD_INPUT: a folder does not exist. Release with mgl_mcp_close. */
mgl_status mgl_mcp_open(const mgl_mcp_options *options, mgl_mcp **out, mgl_error *err);
void mgl_mcp_close(mgl_mcp *mcp); /* NULL is fine */

/* Handles one message and appends the answer to *out without a line end. A notification and a
 * cancelled request have no answer. Fails only if memory runs out: a fault of a message is
 * reported in the answer. */
mgl_status mgl_mcp_handle(mgl_mcp *mcp, const char *message, size_t length, mgl_text *out,
                          mgl_error *err);

/* Called by another thread for each message on arrival: a notification that cancels a request
 * ends it, whether it is running or waiting. */
void mgl_mcp_see(mgl_mcp *mcp, const char *message, size_t length);
/* Called by another thread after the last message: the client may be gone, so no tool waits for
 * a verdict from then on. */
void mgl_mcp_end_waits(mgl_mcp *mcp);

#endif
