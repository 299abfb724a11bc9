/* Common arguments of the MCP tools for micro-kernels. */
#ifndef MGL_AUTOTUNE_MCP_MCP_KERNEL_H
#define MGL_AUTOTUNE_MCP_MCP_KERNEL_H

#include "autotune/mcp/mcp_parts.h"

#define MCP_UNIT                                                                                   \
    {                                                                                              \
        "unit", MCP_STRING, true, 0, MCP_MAX_NAME,                                                 \
            "name of the micro-kernel, as kernel_list prints it"                                   \
    }
#define MCP_REGION(what)                                                                           \
    {                                                                                              \
        "region", MCP_STRING, false, 0, MCP_MAX_NAME, what                                         \
    }
#define MCP_ARCH                                                                                   \
    {                                                                                              \
        "arch", MCP_STRING, false, 0, 31, "sm_80, sm_90a, sm_100a (the device's, or sm_90a)"       \
    }
#define MCP_DEVICE(what)                                                                           \
    {                                                                                              \
        "device", MCP_STRING, false, 0, 31, what                                                   \
    }
#define MCP_SCAN_ONLY                                                                              \
    {                                                                                              \
        "scan_only", MCP_BOOLEAN, false, 0, 0, "stop before the compiler (false)"                  \
    }

#endif
