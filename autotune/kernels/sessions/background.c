/* Implements background.h: reads the files of the folder, and writes a paragraph for each part. */
#include "autotune/kernels/sessions/background.h"

#include "autotune/kernels/methods/profile.h"
#include "autotune/kernels/ptx/hardware.h"
#include "autotune/kernels/ptx/ideas.h"
#include "autotune/kernels/versions/experiment_log.h"
#include "base/file.h"

/* Appends a paragraph, unless it is empty. */
static void put_part(const char *title, mgl_text *part, mgl_text *out)
{
    if (part->length)
        mgl_text_format(out, "%s%s:\n%s", out->length ? "\n" : "", title, part->bytes);
    out->failed = out->failed || part->failed;
    mgl_text_clear(part);
}

static void put_hardware(const mgl_background *b, mgl_text *out)
{
    mgl_text part = {0};
    mgl_ptx_hardware_put(b->arch, true, &part);
    put_part("What the hardware offers", &part, out);
}

static mgl_status put_ideas(const mgl_background *b, mgl_text *out, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_text part = {0};
    mgl_ptx_ideas ideas = {0};
    mgl_status status = mgl_file_path(path, err, "%s/%s", b->folder, MGL_BACKGROUND_IDEAS);
    if (!status)
        status = mgl_ptx_ideas_read(path, &ideas, err);
    if (!status)
        status = mgl_ptx_ideas_put(&ideas, b->arch, &part, err);
    put_part("Changes of features of the PTX, and their measured gains", &part, out);
    mgl_ptx_ideas_clear(&ideas);
    return status;
}

static mgl_status put_tried(const mgl_background *b, mgl_text *out, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_text part = {0};
    mgl_experiment_log log = {0};
    mgl_play plays[MGL_EXPERIMENT_LOG_IDEAS];
    mgl_status status = mgl_file_path(path, err, "%s/%s", b->folder, MGL_BACKGROUND_LOG);
    if (!status)
        status = mgl_experiment_log_read(path, &log, err);
    int count = mgl_experiment_log_playbook(&log, b->op, plays, MGL_EXPERIMENT_LOG_IDEAS);
    for (int i = 0; i < count; i++)
        mgl_text_format(&part, "%s: tried %d, kept %d, mean gain %+.2f %%\n", plays[i].name,
                        plays[i].tried, plays[i].kept, 100 * plays[i].mean_gain);
    put_part("What was tried on this op", &part, out);
    mgl_experiment_log_clear(&log);
    return status;
}

static void put_bottleneck(const mgl_background *b, mgl_text *out)
{
    mgl_text part = {0};
    mgl_profile before = mgl_profile_unknown(), after = mgl_profile_unknown();
    mgl_profile_add_facts(&before, &b->before);
    mgl_profile_add_facts(&after, &b->after);
    mgl_profile_put(&before, &after, &part);
    put_part("What is in the way of the text that this work started from", &part, out);
}

mgl_status mgl_background_put(const mgl_background *background, mgl_text *out, mgl_error *err)
{
    put_hardware(background, out);
    mgl_status status = put_ideas(background, out, err);
    if (!status)
        status = put_tried(background, out, err);
    if (!status)
        put_bottleneck(background, out);
    return !status && out->failed ? mgl_fail_memory(err, 1) : status;
}
