/*
 * What a name means at a place of the text: names are numbers, and each has the register that the
 * innermost open block declares under it. A declaration `.reg .f32 %f<100>` declares the stem %f.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_NAMES_H
#define MGL_AUTOTUNE_KERNELS_PTX_NAMES_H

#include "autotune/kernels/ptx/ptx.h"

typedef struct mgl_ptx_name {
    mgl_ptx_slice text;
    int32_t id;   /* of a register; MGL_PTX_NONE */
    int32_t base; /* of a stem: the register %f0 */
    int64_t most; /* of a stem: registers %f0 to %f(most - 1); 0: it is none */
} mgl_ptx_name;

/* What a name meant before a block declared it. */
typedef struct mgl_ptx_undo {
    size_t name;
    mgl_ptx_name before;
} mgl_ptx_undo;

typedef struct mgl_ptx_names {
    mgl_ptx_name *names;
    mgl_ptx_undo *undo;
    uint32_t *table; /* (table_size) 1 + a name, by its hash; 0: free */
    size_t count, capacity, table_size, undo_count, undo_capacity;
} mgl_ptx_names;

/* The name's number, made where there was none; SIZE_MAX: memory ran out. */
size_t mgl_ptx_names_find(mgl_ptx_names *names, mgl_ptx_slice text);
/* Before a name is changed. False: memory ran out. */
bool mgl_ptx_names_save(mgl_ptx_names *names, size_t name);
/* All changes since there were `count` of them are taken back. */
void mgl_ptx_names_restore(mgl_ptx_names *names, size_t count);
void mgl_ptx_names_clear(mgl_ptx_names *names);

#endif
