/* A duel on a GPU: the device, its reference, its stream and its clocks. */
#include "eval/duel_state.h"

mgl_status mgl_duel_cuda_open(mgl_duel *d, mgl_error *err)
{
    (void)d;
    return mgl_fail(err, MGL_DEVICE, "cuda", "duels on a GPU are not there yet");
}

void mgl_duel_cuda_close(mgl_duel *d)
{
    (void)d;
}

mgl_status mgl_duel_cuda_refer(mgl_duel *d, const mgl_duel_load *load, const int32_t *made,
                               const mgl_duel_reference *out, mgl_error *err)
{
    (void)d, (void)load, (void)made, (void)out;
    return mgl_fail(err, MGL_DEVICE, "cuda", "duels on a GPU are not there yet");
}

mgl_status mgl_duel_cuda_describe(mgl_duel *d, mgl_duel_device *out, mgl_error *err)
{
    (void)d, (void)out;
    return mgl_fail(err, MGL_DEVICE, "cuda", "duels on a GPU are not there yet");
}

mgl_status mgl_duel_stream(mgl_duel *d, double bytes, int count, double *seconds, mgl_error *err)
{
    (void)d, (void)bytes, (void)count, (void)seconds;
    return mgl_fail(err, MGL_DEVICE, "cpu", "only a GPU's memory is timed");
}

void mgl_duel_look(mgl_duel *d, mgl_duel_clocks *out)
{
    (void)d;
    *out = (mgl_duel_clocks){.processes = -1};
}
