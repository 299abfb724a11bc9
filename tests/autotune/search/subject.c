/* Makes the small subject of the search tests. See subject.h. */
#include "tests/autotune/search/subject.h"

#include "eval/synthetic.h"

#include <check.h>

void subject_make(const char *workloads, mgl_subject *out)
{
    mgl_error err = {0};
    *out = (mgl_subject){.dtype = MGL_BF16, .capacity = 256, .has_costs = true};
    ck_assert_msg(mgl_synthetic_read_config(MGL_SOURCE_DIR "/tests/models/tales-5m", &out->config,
                                            &err) == MGL_OK,
                  "%s", err.message);
    ck_assert_int_eq(mgl_target_parse("sm_90a:16", &out->target, &err), MGL_OK);
    ck_assert_int_eq(mgl_subject_open(out, &err), MGL_OK);
    ck_assert_int_eq(mgl_workloads_parse(workloads, &out->workloads, &err), MGL_OK);
    ck_assert_int_eq(mgl_costs_find("NVIDIA H200", &out->costs, &err), MGL_OK);
    mgl_schedule_config_default(&out->start);
    mgl_search_space_default(&out->target, false, &out->space);
}

void subject_free(mgl_subject *subject)
{
    mgl_subject_close(subject);
}
