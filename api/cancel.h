/* Declares a cancel switch (struct mgl_cancel). api/model.c implements it. */
#ifndef MGL_API_CANCEL_H
#define MGL_API_CANCEL_H

#include <stdatomic.h>

#include "megalith.h"

struct mgl_cancel {
    atomic_int set; /* the machines poll this word */
};

/* The word of the switch that the machines poll; NULL if `cancel` is NULL. */
const atomic_int *mgl_cancel_flag(const mgl_cancel *cancel);

#endif
