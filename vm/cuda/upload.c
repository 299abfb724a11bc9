/*
 * Uploads weights to the device with double buffering. Each thread takes the next piece, makes it
 * in one half of its pinned memory, and starts an asynchronous copy. During the copy it makes the
 * next piece in the other half. Making pieces (packing, or reading and checking) and copying thus
 * overlap. The pinned memory of all threads is one allocation, which saves driver calls. machine.c
 * and exchange.c call mgl_cuda_upload.
 */
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "vm/cuda/machine.h"

enum { HALF_UNIT = 4096 }; /* page size, so that no two threads share a page */

/* Resources of one thread. */
typedef struct lane {
    void *stream;
    void *halves[2]; /* in the upload's pinned memory, each of the size of the largest piece */
    void *events[2]; /* recorded after the copy of each half */
    bool busy[2];    /* whether a copy of the half was started */
    int next;        /* index of the next half */
} lane;

typedef struct upload {
    mgl_cuda_vm *vm;
    const mgl_weights *weights;
    const mgl_vm_options *options;
    void *room; /* pinned */
    lane lanes[MGL_MAX_THREADS];
    int count;          /* number of open lanes */
    atomic_ullong done; /* bytes submitted */
    uint64_t total;     /* bytes to submit */
} upload;

static mgl_status open_lane(const mgl_cu *cu, lane *l, mgl_error *err)
{
    mgl_status status = mgl_cu_check(cu, cu->stream_create(&l->stream, MGL_CU_STREAM_NON_BLOCKING),
                                     "making a stream", err);
    for (int i = 0; i < 2 && !status; i++)
        status = mgl_cu_check(cu, cu->event_create(&l->events[i], MGL_CU_EVENT_DEFAULT),
                              "making an event", err);
    return status;
}

/* Allocates the pinned memory and opens `count` lanes. */
static mgl_status open_lanes(upload *u, int count, mgl_error *err)
{
    const mgl_cu *cu = u->vm->cu;
    size_t half = (u->weights->largest + HALF_UNIT - 1) / HALF_UNIT * HALF_UNIT;
    void *room = NULL;
    if (count == 0)
        return MGL_OK;
    mgl_status status = mgl_cu_check(
        cu, cu->pinned_alloc(&room, half * 2 * (size_t)count, MGL_CU_PINNED_PORTABLE_MAPPED),
        "allocating pinned memory", err);
    u->room = status ? NULL : room;
    for (; u->count < count && !status; u->count++) {
        lane *l = &u->lanes[u->count];
        for (int i = 0; i < 2; i++)
            l->halves[i] = (char *)room + half * (size_t)(2 * u->count + i);
        status = open_lane(cu, l, err);
    }
    return status;
}

/* Closes a lane; works on a partially opened one. */
static void close_lane(const mgl_cu *cu, lane *l)
{
    for (int i = 0; i < 2; i++)
        if (l->events[i])
            cu->event_destroy(l->events[i]);
    if (l->stream)
        cu->stream_destroy(l->stream);
}

/* Starts the copy of a filled half. */
static mgl_status start_copy(const mgl_cu *cu, lane *l, int half, mgl_cu_address to, size_t bytes,
                             mgl_error *err)
{
    int result = cu->copy_in_async(to, l->halves[half], bytes, l->stream);
    if (!result)
        result = cu->event_record(l->events[half], l->stream);
    l->busy[half] = !result;
    return mgl_cu_check(cu, result, "copying to the device", err);
}

/* Reports progress, on the calling thread. */
static void tell(const upload *u, uint64_t done)
{
    if (u->options->on_stage)
        u->options->on_stage(u->options->stage_user, MGL_STAGE_WEIGHTS, done, u->total);
}

static mgl_status send_piece(void *user, int worker, size_t item, mgl_error *err)
{
    upload *u = user;
    lane *l = &u->lanes[worker];
    const mgl_cu *cu = u->vm->cu;
    const mgl_piece *piece = &u->weights->pieces[item];
    int half = l->next;
    if (piece->origin.part != MGL_ORIGIN_NONE)
        return MGL_OK;
    l->next = 1 - half;
    mgl_status status = mgl_check_abort(u->options->abort, err);
    if (!status)
        status = mgl_cuda_enter(u->vm, err);
    if (status)
        return status;
    if (l->busy[half])
        status =
            mgl_cu_check(cu, cu->event_synchronize(l->events[half]), "copying to the device", err);
    if (!status)
        status = u->weights->make(u->weights, item, l->halves[half], err);
    if (!status)
        status = start_copy(cu, l, half, mgl_cuda_part_address(u->vm, piece->part) + piece->offset,
                            piece->bytes, err);
    mgl_cuda_leave(u->vm);
    uint64_t done = atomic_fetch_add(&u->done, piece->bytes) + piece->bytes;
    if (!status && worker == 0 && done < u->total)
        tell(u, done);
    return status;
}

mgl_status mgl_cuda_upload(mgl_cuda_vm *vm, const mgl_weights *weights,
                           const mgl_vm_options *options, mgl_error *err)
{
    upload u = {.vm = vm, .weights = weights, .options = options};
    for (size_t i = 0; i < weights->count; i++)
        if (weights->pieces[i].origin.part == MGL_ORIGIN_NONE)
            u.total += weights->pieces[i].bytes;
    if (u.total == 0)
        return MGL_OK;
    int threads = mgl_parallel_threads();
    /* the default stream clears the memory; the lanes' streams do not wait for it */
    mgl_status status =
        mgl_cu_check(vm->cu, vm->cu->stream_synchronize(NULL), "clearing device memory", err);
    if (weights->count < (size_t)threads)
        threads = (int)weights->count;
    if (!status)
        status = open_lanes(&u, threads, err);
    if (!status)
        status = mgl_parallel(threads, weights->count, send_piece, &u, err);
    for (int i = 0; i < u.count; i++) { /* even after an error, no copy may outlive its memory */
        int result = u.lanes[i].stream ? vm->cu->stream_synchronize(u.lanes[i].stream) : 0;
        if (!status)
            status = mgl_cu_check(vm->cu, result, "copying to the device", err);
        close_lane(vm->cu, &u.lanes[i]);
    }
    if (u.room)
        vm->cu->pinned_free(u.room);
    if (!status)
        tell(&u, u.total);
    return status;
}
