/*
 * Tests of packing: bytes at the positions of the layout, unpacking as the inverse, const buffers,
 * and errors.
 */
#include "fixture.h"

#include <math.h>
#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "tests/vm/tapes.h"
#include "vm/image.h"

static const mgl_geometry shapes[] = {
    {72, 1, 3, 1, 32, 500, 1213, 1e-5f},
    {36, 1, 2, 1, 10, 52, 61, 1e-5f}, /* rows and columns that do not fill a group or a block */
    {64, 2, 4, 2, 16, 96, 75, 1e-5f},
};

/* Row `row` of the program's tensor, as f32 after rounding to the packed dtype. */
static void read_row(const mgl_program *program, const mgl_graph *graph, int tensor, int64_t row,
                     float *to)
{
    mgl_error err;
    char raw[4096], packed[4096];
    const mgl_program_tensor *t = &program->tensors[tensor];
    int index = mgl_graph_find_tensor(graph, t->checkpoint);
    ok(graph->read(graph, index, row, 1, raw, &err), err);
    mgl_weight_code_encode(t->format.code, packed, raw, graph->tensors[index].dtype,
                           (size_t)t->cols);
    mgl_weight_code_decode(t->format.code, to, packed, (size_t)t->cols);
}

static void check_segment(const mgl_program *program, const mgl_graph *graph,
                          const mgl_segment *segment, const char *tape)
{
    int64_t width = segment->col_hi - segment->col_lo, rows = mgl_segment_rows(segment);
    float *unpacked = mgl_alloc((size_t)(rows * width) * sizeof *unpacked), wanted[1024];
    for (int which = 0; which < (segment->layout == MGL_LAYOUT_G8X2 ? 2 : 1); which++) {
        int tensor = which ? segment->tensor2 : segment->tensor;
        unpack_segment(program, segment, tape, which, unpacked);
        for (int64_t r = 0; r < rows; r++) {
            read_row(program, graph, tensor, segment->row_lo + r, wanted);
            ck_assert_mem_eq(unpacked + r * width, wanted + segment->col_lo,
                             (size_t)width * sizeof *wanted);
        }
    }
    mgl_free(unpacked);
}

/* Packs every dtype from every dtype, over three queues. */
START_TEST(unpacking_is_the_inverse)
{
    mgl_error err;
    mgl_dtype from = (mgl_dtype)(_i % 3), to = (mgl_dtype)(_i / 3);
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        mgl_graph *graph = random_graph(&shapes[shape], 64, shape == 2, from, 5);
        mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 3, .dtype = to});
        for (int q = 0; q < program->queue_count; q++) {
            size_t bytes = (size_t)program->queues[q].tape_bytes;
            char *tape = mgl_alloc(bytes);
            memset(tape, 0xAA, bytes);
            ok(pack_tape(program, graph, q, tape, &err), err);
            const mgl_run *run = &program->queues[q].tasks;
            for (int t = run->first; t < run->first + run->count; t++)
                for (int s = 0; s < program->tasks[t].segments.count; s++)
                    check_segment(program, graph,
                                  &program->segments[program->tasks[t].segments.first + s], tape);
            for (int64_t i = (int64_t)bytes - program->queues[q].tape_pad; i < (int64_t)bytes; i++)
                ck_assert_int_eq(tape[i], 0);
            mgl_free(tape);
        }
        mgl_program_free(program);
        mgl_graph_free(graph);
    }
}
END_TEST

/* A program of one queue and one task with one segment of k_proj, or of gate and up. */
static mgl_program *one_segment(const mgl_graph *graph, mgl_dtype dtype, mgl_segment segment)
{
    mgl_error err;
    mgl_program *program;
    const mgl_geometry *m = &graph->geometry;
    ok(mgl_program_new(&program, &err), err);
    program->geometry = *m;
    program->weight_dtype = dtype;
    const mgl_weight_format format = mgl_weight_format_of(dtype);
    program->exec.warps = 1; /* which keeps the blocks in order */
    if (segment.layout == MGL_LAYOUT_G8) {
        mgl_program_add_tensor(program, "k", "model.layers.0.self_attn.k_proj.weight", format, 2,
                               m->kv_heads * m->head_dim, m->hidden);
    } else {
        mgl_program_add_tensor(program, "gate", "model.layers.0.mlp.gate_proj.weight", format, 2,
                               m->ffn, m->hidden);
        mgl_program_add_tensor(program, "up", "model.layers.0.mlp.up_proj.weight", format, 2,
                               m->ffn, m->hidden);
    }
    mgl_program_add_queue(program);
    mgl_program_add_task(program, MGL_OP_NORM_LINEAR);
    mgl_program_add_segment(program, &segment);
    program->queues[0].tape_bytes = segment.offset + mgl_segment_bytes(program, &segment) + 512;
    return program;
}

/* The place of each element, by the formula of program.h: [row group][k block][8 rows][64
 * bytes]. */
START_TEST(bytes_lie_where_the_layout_says)
{
    mgl_error err;
    mgl_graph *graph = random_graph(&shapes[1], 64, true, MGL_F32, 6);
    bool pair = _i == 1;
    mgl_segment segment = {.tensor = 0,
                           .tensor2 = pair ? 1 : -1,
                           .layout = pair ? MGL_LAYOUT_G8X2 : MGL_LAYOUT_G8,
                           .row_lo = pair ? 8 : 0,
                           .row_hi = pair ? 52 : 10,
                           .col_lo = 3,
                           .col_hi = 36,
                           .offset = 1024};
    mgl_program *program = one_segment(graph, MGL_F32, segment);
    int64_t blocks = 3 /* 33 columns of 16 */, groups = pair ? 6 : 2, tensors = pair ? 2 : 1;
    int64_t bytes = program->queues[0].tape_bytes;
    ck_assert_int_eq(mgl_segment_bytes(program, &segment), groups * blocks * 512 * tensors);
    float *tape = mgl_alloc_zero((size_t)bytes, 1);
    ok(pack_tape(program, graph, 0, tape, &err), err);
    for (int64_t i = 0; i < groups * tensors * blocks * 128; i++) {
        int64_t element = i % 16, row = i / 16 % 8, block = i / 128 % blocks;
        int64_t run = i / 128 / blocks, group = run / tensors;
        int64_t r = segment.row_lo + group * 8 + row, c = segment.col_lo + block * 16 + element;
        float wanted[64] = {0};
        if (r < segment.row_hi && c < segment.col_hi)
            read_row(program, graph, (int)(run % tensors), r, wanted);
        else
            c = 0;
        ck_assert_float_eq(tape[256 + i], wanted[c]);
    }
    mgl_free(tape);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Compiled models contain tapes. If these sums change, older files would be misread, and
 * MGL_TAPE_LAYOUT must be increased. */
START_TEST(the_layout_has_a_number)
{
    static const uint64_t sums[2] = {553358778826901050, 12048001928100897221u};
    mgl_error err;
    mgl_graph *graph = random_graph(&shapes[0], 64, true, MGL_BF16, 6);
    mgl_segment segment = {.tensor = 0,
                           .tensor2 = _i ? 1 : -1,
                           .layout = _i ? MGL_LAYOUT_G8X2 : MGL_LAYOUT_G8,
                           .row_hi = 30,
                           .col_hi = 72};
    mgl_program *program = one_segment(graph, MGL_BF16, segment);
    program->exec.warps = 2;
    size_t bytes = (size_t)program->queues[0].tape_bytes;
    char *tape = mgl_alloc_zero(bytes, 1);
    ok(pack_tape(program, graph, 0, tape, &err), err);
    ck_assert_int_eq(MGL_TAPE_LAYOUT, 3);
    ck_assert_uint_eq(mgl_checksum(tape, bytes), sums[_i]);
    mgl_free(tape);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(const_buffers_hold_their_source)
{
    mgl_error err;
    mgl_graph *graph = random_graph(&shapes[1], 64, true, MGL_BF16, 7);
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = MGL_F16});
    for (int i = 0; i < program->buffer_count; i++) {
        const mgl_buffer *buffer = &program->buffers[i];
        if (buffer->space != MGL_SPACE_CONST)
            continue;
        char *bytes = mgl_alloc(mgl_buffer_bytes(buffer));
        ok(mgl_pack_const(program, graph, i, bytes, &err), err);
        int64_t cols = buffer->extents[buffer->rank - 1].count;
        int64_t rows = mgl_buffer_elements(buffer) / cols;
        for (int64_t r = 0; r < rows; r++) {
            float found[64], wanted[64];
            mgl_convert(found, MGL_F32, bytes + (size_t)(r * cols) * mgl_dtype_size(buffer->dtype),
                        buffer->dtype, (size_t)cols);
            if (buffer->source == MGL_SOURCE_TENSOR)
                read_row(program, graph, buffer->tensor, r, wanted);
            for (int64_t c = 0; c < cols && buffer->source == MGL_SOURCE_ROPE; c++) {
                double angle = (double)(graph->inv_freq[c % (cols / 2)] * (float)r);
                wanted[c] = (float)(c < cols / 2 ? cos(angle) : sin(angle));
            }
            ck_assert_mem_eq(found, wanted, (size_t)cols * sizeof *found);
        }
        mgl_free(bytes);
    }
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

static mgl_status failing_read(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                               void *to, mgl_error *err)
{
    (void)row, (void)count, (void)to;
    return mgl_fail(err, MGL_BAD_INPUT, graph->tensors[tensor].name, "the file shrank");
}

/* Another model's weights, no weights, a file error, and failed allocations: an error each. */
START_TEST(errors_name_the_tensor)
{
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 8);
    mgl_graph *other = random_graph(&tiny_model, 64, true, MGL_F32, 8);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    mgl_vm_options options = {.kind = MGL_VM_CPU, .unchecked = true};
    ck_assert_int_eq(mgl_vm_open(program, other, &options, &vm, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "model.layers.0.self_attn.q_proj.weight");
    graph->read = failing_read;
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.message, "the file shrank");
    graph->read = NULL;
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_USAGE);
    graph->read = other->read;
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status != MGL_OK; n++) {
        mgl_alloc_fail_at(n, false);
        status = mgl_vm_open(program, graph, &options, &vm, &err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_graph_free(other);
}
END_TEST

/* A finite weight that a format makes infinite: the error names the weight, its value, and a
 * remedy. */
START_TEST(a_weight_too_large_is_rejected)
{
    static const mgl_dtype formats[] = {MGL_BF16, MGL_F32, MGL_F16};
    const char *name = "model.layers.0.mlp.down_proj.weight";
    mgl_error err = {0};
    mgl_vm *vm = NULL;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 8);
    mgl_vm_options options = {.kind = MGL_VM_CPU};
    mgl_dtype format = formats[_i];
    spoil_row(graph, name, 3, 99840);
    graph->any_numbers = false;
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2, .dtype = format});
    mgl_status status = mgl_vm_open(program, graph, &options, &vm, &err);
    ck_assert_int_eq(status, format == MGL_F16 ? MGL_BAD_INPUT : MGL_OK);
    ck_assert_str_eq(err.where, format == MGL_F16 ? name : "");
    ck_assert_str_eq(err.message, format == MGL_F16
                                      ? "row 3, column 0 is 99840, which is too large for f16; "
                                        "lower with dtype bf16, in which the checkpoint has it"
                                      : "");
    if (vm)
        mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pack");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, unpacking_is_the_inverse, 0, 9);
    tcase_add_loop_test(tests, bytes_lie_where_the_layout_says, 0, 2);
    tcase_add_loop_test(tests, the_layout_has_a_number, 0, 2);
    tcase_add_test(tests, const_buffers_hold_their_source);
    tcase_add_test(tests, errors_name_the_tensor);
    tcase_add_loop_test(tests, a_weight_too_large_is_rejected, 0, 3);
    return fixture_main("pack", tests);
}
