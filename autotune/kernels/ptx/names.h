/*
 * Symbol table of the parser: maps a name to the register that the innermost open block declares
 * for it. Names are numbers; an undo list restores outer meanings at the end of a block. A
 * declaration `.reg .f32 %f<100>` declares the stem %f.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_NAMES_H
#define MGL_AUTOTUNE_KERNELS_PTX_NAMES_H

#include "autotune/kernels/ptx/ptx.h"

typedef struct mgl_ptx_name {
    mgl_ptx_slice text;
    int32_t id;   /* id of a register; MGL_PTX_NONE */
    int32_t base; /* for a stem: the register %f0 */
    int64_t most; /* for a stem: registers %f0 to %f(most - 1); 0: not a stem */
} mgl_ptx_name;

/* The previous meaning of a name that a block redeclares. */
typedef struct mgl_ptx_undo {
    size_t name;
    mgl_ptx_name before;
} mgl_ptx_undo;

typedef struct mgl_ptx_names {
    mgl_ptx_name *names;
    mgl_ptx_undo *undo;
    uint32_t *table; /* (table_size) 1 + a name's number, at its hash; 0: free */
    size_t count, capacity, table_size, undo_count, undo_capacity;
} mgl_ptx_names;

/* The number of a name; a new name is added. SIZE_MAX: out of memory. */
size_t mgl_ptx_names_find(mgl_ptx_names *names, mgl_ptx_slice text);
/* Call before a name is changed. False: out of memory. */
bool mgl_ptx_names_save(mgl_ptx_names *names, size_t name);
/* Undoes all changes after the first `count` ones. */
void mgl_ptx_names_restore(mgl_ptx_names *names, size_t count);
void mgl_ptx_names_clear(mgl_ptx_names *names);

#endif
