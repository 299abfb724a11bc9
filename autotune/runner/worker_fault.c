/* Implements worker_fault.h: the injected faults. */
#include "autotune/runner/worker_fault.h"

#include "base/memory.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEP_BYTES = 16 << 20, STEPS = 512 };
#define SLOW_S 0.02

void mgl_worker_fault_arm(mgl_worker_fault *fault, mgl_fault kind)
{
    *fault = (mgl_worker_fault){.kind = kind};
}

static void hang(void)
{
    for (;;)
        pause();
}

/* Allocates and touches memory until the process is killed. */
static void grow(void)
{
    struct timespec time = {.tv_nsec = 1000000};
    for (int i = 0; i < STEPS; i++) {
        char *bytes = mgl_alloc(STEP_BYTES);
        if (bytes)
            memset(bytes, i + 1, STEP_BYTES);
        nanosleep(&time, NULL);
    }
    hang();
}

mgl_status mgl_worker_fault_before(mgl_fault fault, const mgl_wire *wire, mgl_error *err)
{
    static const char garbage[64] = "this is no reply";
    switch (fault) {
    case MGL_FAULT_HANG:
        hang();
        break;
    case MGL_FAULT_CRASH:
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        break;
    case MGL_FAULT_GARBAGE:
        mgl_wire_send(wire, garbage, sizeof garbage);
        hang();
        break;
    case MGL_FAULT_MEMORY:
        grow();
        break;
    case MGL_FAULT_CANARY:
        return mgl_fail(err, MGL_GATE, "x", "written outside of every buffer (planted)");
    case MGL_FAULT_WATCHDOG:
        return mgl_fail(err, MGL_WATCHDOG, NULL, "the watchdog stopped the kernel (planted)");
    case MGL_FAULT_ADDRESS:
        return mgl_fail(err, MGL_DEVICE, NULL,
                        "running the kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): planted");
    default:
        break;
    }
    return MGL_OK;
}

void mgl_worker_fault_behind(mgl_fault fault, int32_t *tokens, int vocab, double *seconds)
{
    if (fault == MGL_FAULT_SLOW)
        *seconds += SLOW_S;
    else if (fault == MGL_FAULT_WRONG_TOKEN)
        tokens[0] = (tokens[0] + 1) % vocab;
    else if (fault == MGL_FAULT_NO_TOKEN)
        tokens[0] = vocab;
}

void mgl_worker_fault_logits(mgl_worker_fault *fault, float *logits, size_t count)
{
    fault->looks++;
    switch (fault->kind) {
    case MGL_FAULT_WRONG_LOGITS:
        for (size_t i = 0; i < count; i++)
            logits[i] *= 1.5f;
        break;
    case MGL_FAULT_NAN:
        logits[count / 2] = NAN;
        break;
    case MGL_FAULT_SECOND_DIFFERS:
        if (fault->looks == 2)
            logits[0] = nextafterf(logits[0], INFINITY);
        break;
    case MGL_FAULT_POISON:
        memcpy(&logits[count / 2], &(uint32_t){0xA5A5A5A5u}, sizeof *logits);
        break;
    default:
        break;
    }
}
