/* The programs of a candidate as the runner stores them, their kernel keys, and the device memory
 * that they need. Declared in runner_state.h. */
#include "autotune/runner/runner_state.h"

#include "base/memory.h"
#include "vm/cuda/canonical.h"
#include "vm/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

void mgl_runner_set_clear(mgl_runner_set *set)
{
    for (int p = 0; p < set->program_count; p++)
        mgl_free(set->texts[p]);
    for (int i = 0; i < set->source_count; i++)
        mgl_free(set->sources[i]);
    *set = (mgl_runner_set){0};
}

/* Bytes of the tapes and buffers of a program's machine. */
static uint64_t machine_bytes(const mgl_program *program)
{
    uint64_t bytes = 0;
    for (int q = 0; q < program->queue_count; q++)
        bytes += (uint64_t)program->queues[q].tape_bytes;
    for (int b = 0; b < program->buffer_count; b++)
        bytes +=
            (uint64_t)mgl_buffer_bytes(&program->buffers[b]) * (uint64_t)program->buffers[b].sets;
    return bytes;
}

/* Bytes that one step reads, for all sequences together: the tapes once, and the KV cache at its
 * mean length. */
static double streamed_bytes(const mgl_program *program, mgl_workload workload)
{
    const mgl_geometry *g = &program->geometry;
    double positions = workload.context + (MGL_WORKLOAD_TOKENS - 1) / 2.0, bytes = 0;
    for (int i = 0; i < program->segment_count; i++)
        bytes += (double)mgl_segment_bytes(program, &program->segments[i]);
    return bytes + 2.0 * g->layers * g->kv_heads * g->head_dim * workload.batch * positions *
                       (double)mgl_dtype_size(program->kv_dtype);
}

/* Whether the kernel of a candidate's program uses the replacement texts. */
static bool takes_sources(const mgl_candidate *candidate, int program)
{
    return candidate->everywhere || mgl_cuda_takes_sources(candidate->programs[program]);
}

/* Returns the key of a kernel. The key depends only on the canonical texts and the replacement
 * texts. Without replacement texts, the key is the compiler's key. */
void mgl_runner_kernel_key(const mgl_candidate *candidate, int program, const char *arch,
                           char key[MGL_SHA256_HEX])
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_cuda_kernel_key(candidate->programs[program], arch, 0, key);
    if (candidate->source_count == 0 || !takes_sources(candidate, program))
        return;
    mgl_sha256_start(&hash);
    mgl_sha256_add(&hash, key, MGL_SHA256_HEX);
    for (int i = 0; i < candidate->source_count; i++) {
        mgl_cuda_source_digest(&candidate->sources[i], bytes);
        mgl_sha256_add(&hash, candidate->sources[i].name, strlen(candidate->sources[i].name) + 1);
        mgl_sha256_add(&hash, bytes, sizeof bytes);
    }
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, key);
}

static mgl_status add_sources(mgl_runner_set *set, const mgl_candidate *candidate, mgl_error *err)
{
    if (candidate->source_count > MGL_WIRE_SOURCES)
        return mgl_fail(err, MGL_USAGE, "sources", "%d other texts; there may be %d",
                        candidate->source_count, (int)MGL_WIRE_SOURCES);
    for (int i = 0; i < candidate->source_count; i++) {
        const mgl_cuda_source *source = &candidate->sources[i];
        set->sources[i] = mgl_strdup((const char *)source->text);
        if (!set->sources[i])
            return mgl_fail_memory(err, strlen((const char *)source->text));
        set->source_count++;
        snprintf(set->files[i], sizeof set->files[i], "%s", source->name);
    }
    return MGL_OK;
}

mgl_status mgl_runner_set_write(const mgl_runner_set *set, int program, mgl_wire_set *fixed,
                                mgl_text *bytes, mgl_error *err)
{
    memset(fixed, 0, sizeof *fixed);
    fixed->source_count = set->takes[program] ? set->source_count : 0;
    for (int i = 0; i < fixed->source_count; i++) {
        memcpy(fixed->files[i], set->files[i], sizeof fixed->files[i]);
        fixed->lengths[i] = strlen(set->sources[i]);
        mgl_text_append(bytes, set->sources[i], strlen(set->sources[i]));
    }
    mgl_text_append(bytes, set->texts[program], set->lengths[program]);
    return bytes->failed ? mgl_fail_memory(err, set->lengths[program]) : MGL_OK;
}

static mgl_status add_program(mgl_runner_set *set, const mgl_candidate *candidate,
                              int program_number, const char *arch, mgl_error *err)
{
    const mgl_program *program = candidate->programs[program_number];
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    if (text.failed) {
        mgl_text_clear(&text);
        return mgl_fail_memory(err, MGL_SCHEDULE_MAX_TEXT);
    }
    int p = set->program_count++;
    set->texts[p] = text.bytes;
    set->lengths[p] = text.length;
    set->takes[p] = takes_sources(candidate, program_number);
    mgl_runner_kernel_key(candidate, program_number, arch, set->keys[p]);
    uint64_t bytes = machine_bytes(program);
    set->machine_bytes = bytes > set->machine_bytes ? bytes : set->machine_bytes;
    return MGL_OK;
}

mgl_status mgl_runner_set_make(const mgl_subject *subject, const mgl_candidate *candidate,
                               int serial, mgl_runner_set *out, mgl_error *err)
{
    *out = (mgl_runner_set){.serial = serial};
    mgl_status status = add_sources(out, candidate, err);
    for (int p = 0; p < candidate->program_count && !status; p++)
        status = add_program(out, candidate, p, subject->target.arch, err);
    for (int w = 0; w < subject->workloads.count && !status; w++) {
        int p = out->program_of[w] = candidate->program_of[w];
        out->streamed[w] = streamed_bytes(candidate->programs[p], subject->workloads.list[w]);
    }
    if (status)
        mgl_runner_set_clear(out);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* bytes of another process's GPU context, with a reserve */
static const uint64_t context_bytes = 1 << 30;

/* Bytes of the reference: its process, and the values, logits and cache of every step. Its weights
 * are generated on demand and are not included. */
static uint64_t reference_bytes(const mgl_subject *subject)
{
    const mgl_geometry *g = &subject->config.geometry;
    bool gpu = strcmp(subject->target.arch, "cpu") != 0;
    uint64_t most = 0;
    for (int w = 0; w < subject->workloads.count; w++) {
        const mgl_workload *load = &subject->workloads.list[w];
        uint64_t rows = (uint64_t)load->batch * MGL_WORKLOAD_TOKENS;
        uint64_t attended = (uint64_t)(g->heads + g->kv_heads) * (uint64_t)g->head_dim;
        uint64_t width =
            2 * ((uint64_t)g->hidden + attended + (uint64_t)g->ffn) + (uint64_t)g->vocab;
        uint64_t cache = 2 * (uint64_t)g->kv_heads * (uint64_t)g->head_dim * (uint64_t)load->batch *
                         (uint64_t)(load->context + MGL_WORKLOAD_TOKENS);
        uint64_t bytes = (rows * width + cache) * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return most + (gpu ? context_bytes : 0);
}

static uint64_t needed_bytes(const mgl_subject *subject, uint64_t machine)
{
    return 2 * machine + reference_bytes(subject);
}

uint64_t mgl_runner_bytes(const mgl_subject *subject, const mgl_candidate *candidate)
{
    uint64_t most = 0;
    for (int p = 0; p < candidate->program_count; p++) {
        uint64_t bytes = machine_bytes(candidate->programs[p]);
        most = bytes > most ? bytes : most;
    }
    return needed_bytes(subject, most);
}

mgl_status mgl_runner_set_fits(const mgl_runner_set *set, const mgl_subject *subject,
                               const mgl_paired_bench_device *device, mgl_error *err)
{
    uint64_t need = needed_bytes(subject, set->machine_bytes);
    if (device->memory_free == 0 || need <= device->memory_free)
        return MGL_OK;
    return mgl_fail(err, MGL_DEVICE, device->name,
                    "too little memory for a campaign: two machines of %llu bytes each and the "
                    "reference need %llu bytes, and %llu are free; a smaller capacity, fewer "
                    "sequences or less context need less",
                    (unsigned long long)set->machine_bytes, (unsigned long long)need,
                    (unsigned long long)device->memory_free);
}
