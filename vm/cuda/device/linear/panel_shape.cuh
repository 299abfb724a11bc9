/*
 * What loader, epilogue and consumers know alike of a panel: how its row groups lie on pages, how
 * they are shared among pairs of warps or warpgroups, and what a tray has of the activations.
 */
#ifndef MGL_DEVICE_LINEAR_PANEL_SHAPE_CUH
#define MGL_DEVICE_LINEAR_PANEL_SHAPE_CUH

#include "vm/cuda/device/ring.cuh"

#if MGL_PANELS

struct panel_shape {
    int groups;  /* row groups of the panel */
    int piece;   /* k blocks of one of them that lie together on a page; the last may be fewer */
    int per;     /* row groups of a page, */
    int pages;   /* and pages of the same k blocks */
    int columns; /* pairs, or warpgroups, side by side: each has OWN_GROUPS row groups, */
    int shares;  /* and so many share their k blocks, one in so many each */
};

/* The panel of a task with so many row groups left. */
static __device__ __forceinline__ panel_shape panel_shape_of(int left)
{
    panel_shape s;
    s.groups = min(left, (int)PANEL_GROUPS);
    s.piece = mgl_panel_piece(s.groups, PAGE_BLOCKS, TRAY_BLOCKS, PANEL_PAGES, MGL_WARPGROUPS);
    s.per = PAGE_BLOCKS / s.piece;
    s.pages = mgl_panel_pages(s.groups, s.piece, PAGE_BLOCKS);
    s.columns = (s.groups + OWN_GROUPS - 1) / OWN_GROUPS;
    s.shares = PANEL_GROUPS / OWN_GROUPS / s.columns;
    return s;
}

/* k blocks of a tray, and bytes from one to the next, where so many rows are multiplied. */
struct tray_shape {
    int blocks;
    u32 stride;
};

static __device__ __forceinline__ tray_shape tray_shape_of(int rows)
{
    return {mgl_panel_tray_blocks(MGL_ROWS, rows, MGL_WARPGROUPS),
            (u32)(MGL_PANEL_ROOM(rows, MGL_WARPGROUPS) * MGL_PANEL_ROW_BYTES)};
}

#endif

#endif
