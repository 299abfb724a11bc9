/*
 * A small subject for tests: the shape of tales-5m on an sm_90a with 16 queues and the costs of an
 * H200.
 */
#ifndef MGL_TESTS_AUTOTUNE_SEARCH_SUBJECT_H
#define MGL_TESTS_AUTOTUNE_SEARCH_SUBJECT_H

#include "autotune/candidates/gate.h"

/* `workloads`: for example "ctx=0;batch=1". Release the subject's graph with subject_free. */
void subject_make(const char *workloads, mgl_subject *out);
void subject_free(mgl_subject *subject);

#endif
