/*
 * Tests of compiled models: a machine opened from the file gives the same results as one from the
 * graph, its sections equal the packer's bytes, and damage anywhere, other layouts and other
 * schedules are rejected.
 */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "importer/mega.h"
#include "schedule/digest.h"
#include "schedule/moves/moves.h"
#include "schedule/schedule.h"
#include "tests/scratch.h"
#include "tests/vm/tapes.h"
#include "vm/cuda/cuda.h"
#include "vm/image.h"
#include "vm/pipeline/device.h"

enum { QUEUES = 3, PROMPT = 3, TOKENS = 12 };

static char folder[] = "/tmp/megalith-image-XXXXXX";
static char path[64];
static mgl_graph *graph;
static mgl_program *program;
static char key[MGL_SHA256_HEX];

static mgl_status write_image(mgl_error *err)
{
    uint64_t bytes;
    mgl_vm_kernel kernel = {.arch = "sm_90a", .key = key, .bytes = "machine code", .length = 12};
    mgl_image_file file = {"config.json", "{}", 2};
    mgl_image_content content = {.program = program,
                                 .graph = graph,
                                 .files = &file,
                                 .file_count = 1,
                                 .kernels = &kernel,
                                 .kernel_count = 1};
    return mgl_image_write(path, &content, &bytes, err);
}

static void set_up(void)
{
    mgl_error err;
    snprintf(path, sizeof path, "%s/m.mega", folder);
    graph = random_graph(&odd_model, 64, true, MGL_BF16, 11);
    program = fixture_program(graph, &(fixture_options){.queues = QUEUES, .dtype = MGL_BF16});
    mgl_cuda_kernel_key(program, "sm_90a", 0, key);
    ok(write_image(&err), err);
}

static void tear_down(void)
{
    unlink(path);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

static mgl_image *open_image(void)
{
    mgl_error err;
    mgl_image *image;
    ok(mgl_image_open(path, &image, &err), err);
    return image;
}

/* Opens the file and reads all of it, as a machine does. */
static mgl_status read_image(mgl_error *err)
{
    mgl_image *image;
    mgl_status status = mgl_image_open(path, &image, err);
    if (status)
        return status;
    char *room = mgl_alloc(image->weights->largest);
    if (!room)
        status = mgl_fail_memory(err, image->weights->largest);
    for (size_t i = 0; i < image->weights->count && !status; i++)
        status = image->weights->make(image->weights, i, room, err);
    mgl_free(room);
    mgl_image_close(image);
    return status;
}

static void refused(const char *words)
{
    mgl_error err = {0};
    ck_assert_int_eq(read_image(&err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, words) != NULL, "says '%s', without '%s'", err.message,
                  words);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Every part, made in pieces, equals the packer's output. */
static void compare_parts(const mgl_weights *weights)
{
    mgl_error err;
    for (int part = 0; part < mgl_weights_parts(program); part++) {
        size_t bytes = weights->sizes[part];
        char *wanted = mgl_alloc(bytes + 1), *made = mgl_alloc(bytes + 1);
        memset(made, 0xAA, bytes + 1);
        if (part < QUEUES)
            ok(pack_tape(program, graph, part, wanted, &err), err);
        else if (bytes)
            ok(mgl_pack_const(program, graph, part - QUEUES, wanted, &err), err);
        ok(mgl_weights_write(weights, part, made, NULL, &err), err);
        ck_assert_mem_eq(made, wanted, bytes);
        ck_assert_int_eq((unsigned char)made[bytes], 0xAA);
        mgl_free(wanted);
        mgl_free(made);
    }
}

START_TEST(pieces_of_a_graph_are_the_packers_bytes)
{
    mgl_error err;
    mgl_weights *weights;
    ok(mgl_weights_pack(program, graph, &weights, &err), err);
    compare_parts(weights);
    mgl_weights_close(weights);
}
END_TEST

START_TEST(pieces_of_a_file_are_the_packers_bytes)
{
    mgl_image *image = open_image();
    compare_parts(image->weights);
    mgl_image_close(image);
}
END_TEST

/* Part after part, without a gap, none larger than it should be. */
START_TEST(pieces_cover_every_byte_once)
{
    mgl_error err;
    mgl_weights *weights;
    mgl_graph *large = random_graph(&(mgl_geometry){1024, 1, 16, 4, 64, 2048, 4000, 1e-5f}, 64,
                                    false, MGL_BF16, 3);
    mgl_program *p = fixture_program(large, &(fixture_options){.queues = 2, .dtype = MGL_BF16});
    int part = 0;
    size_t offset = 0;
    ok(mgl_weights_pack(p, large, &weights, &err), err);
    for (size_t i = 0; i < weights->count; i++) {
        const mgl_piece *piece = &weights->pieces[i];
        for (; part < piece->part; part++, offset = 0)
            ck_assert_uint_eq(offset, weights->sizes[part]);
        ck_assert_uint_eq(piece->offset, offset);
        ck_assert_uint_gt(piece->bytes, 0);
        ck_assert_uint_le(piece->bytes, MGL_PIECE_BYTES);
        offset += piece->bytes;
    }
    for (; part < mgl_weights_parts(p); part++, offset = 0)
        ck_assert_uint_eq(offset, weights->sizes[part]);
    mgl_weights_close(weights);
    mgl_program_free(p);
    mgl_graph_free(large);
}
END_TEST

/* ---- round trip ------------------------------------------------------------------------------ */

/* Greedy tokens on the CPU, with the weights of the file or, where it is NULL, of the graph. */
static void generate(const mgl_image *image, bool plain, int32_t *tokens)
{
    mgl_error err;
    mgl_vm *vm;
    static const int32_t prompt[PROMPT] = {5, 700, 31};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = PROMPT, .max_new = TOKENS};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_vm_options options = {.kind = MGL_VM_CPU, .plain = plain};
    mgl_vm_report report;
    if (image)
        options.weights = image->weights;
    ok(mgl_vm_open(image ? image->program : program, graph, &options, &vm, &err), err);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], TOKENS);
    memcpy(tokens, report.output[0], TOKENS * sizeof *tokens);
    mgl_vm_close(vm);
}

START_TEST(a_machine_of_the_file_says_the_same)
{
    int32_t wanted[TOKENS], found[TOKENS];
    mgl_image *image = open_image();
    ck_assert(mgl_program_equal(image->program, program));
    generate(NULL, _i == 1, wanted);
    generate(image, _i == 1, found);
    ck_assert_mem_eq(found, wanted, sizeof wanted);
    mgl_image_close(image);
}
END_TEST

START_TEST(weights_of_another_program_are_rejected)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_image *image = open_image();
    mgl_vm_options options = {.kind = MGL_VM_CPU, .weights = image->weights};
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_USAGE);
    mgl_image_close(image);
}
END_TEST

START_TEST(a_kernel_is_known_by_what_it_was_made_of)
{
    mgl_image *image = open_image();
    ck_assert_int_eq(image->kernel_count, 1);
    ck_assert_str_eq(image->kernels[0].arch, "sm_90a");
    ck_assert_str_eq(image->kernels[0].bytes, "machine code");
    ck_assert_uint_eq(image->kernels[0].length, 12);
    ck_assert(mgl_image_has_kernel(image, "sm_90a"));
    ck_assert(!mgl_image_has_kernel(image, "sm_100a"));
    image->program->exec.warps++;
    ck_assert(!mgl_image_has_kernel(image, "sm_90a"));
    image->program->exec.warps--;
    image->program->exec.page_bytes = 0;
    ck_assert(!mgl_image_has_kernel(image, "sm_90a"));
    mgl_image_close(image);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static void flip(uint64_t offset)
{
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, (long)offset, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, (long)offset, SEEK_SET);
    fputc(byte ^ 1 << offset % 8, file);
    fclose(file);
}

/* The first, a middle and the last byte of every section, and of every part of the weights. */
START_TEST(damage_to_any_section_is_rejected)
{
    mgl_mega *mega;
    mgl_mega_table table;
    ck_assert_int_eq(mgl_mega_open(path, &mega, NULL), MGL_OK);
    table = *mgl_mega_get_table(mega);
    mgl_mega_close(mega);
    int checked = 0;
    for (int i = 0; i < table.count; i++) {
        const mgl_mega_section *section = &table.sections[i];
        const uint64_t places[3] = {0, section->bytes / 3, section->bytes - 1};
        bool weights = !strcmp(section->name, "weights");
        if (!strcmp(section->name, "config.json") || !strcmp(section->name, "tensors"))
            continue; /* the importer's */
        for (int p = 0; p < (weights ? 2 : 3); p++, checked++) {
            flip(section->offset + places[p]);
            refused("is damaged: its section");
            flip(section->offset + places[p]);
        }
    }
    ck_assert_int_eq(checked, 11);
    mgl_error err;
    ok(read_image(&err), err);
}
END_TEST

START_TEST(damage_to_any_piece_is_rejected)
{
    mgl_error err;
    mgl_image *image = open_image();
    const mgl_mega_section *section = mgl_mega_find(image->file, "weights");
    uint64_t place = section->offset;
    size_t next = 0;
    for (int part = 0; part < mgl_weights_parts(program); part++) {
        for (; next < image->weights->count && image->weights->pieces[next].part == part; next++) {
            const mgl_piece *piece = &image->weights->pieces[next];
            flip(place + piece->offset + piece->bytes - 1);
            refused("its section weights has wrong checksums");
            flip(place + piece->offset + piece->bytes - 1);
        }
        place = (place + image->weights->sizes[part] + 4095) / 4096 * 4096;
    }
    ck_assert_uint_eq(next, image->weights->count);
    mgl_image_close(image);
    ok(read_image(&err), err);
}
END_TEST

/* A machine that verifies damaged weights is not opened. */
START_TEST(a_machine_rejects_damaged_weights)
{
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_image *image = open_image();
    flip(mgl_mega_find(image->file, "weights")->offset + 100);
    mgl_vm_options options = {.kind = MGL_VM_CPU, .weights = image->weights, .verify = true};
    ck_assert_int_eq(mgl_vm_open(image->program, graph, &options, &vm, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, path);
    mgl_image_close(image);
}
END_TEST

/* A file that is truncated, at any page, while a machine uses it: no token is computed from
 * zeros. */
START_TEST(a_file_that_shrinks_ends_the_reply)
{
    static const int32_t prompt[PROMPT] = {3, 14, 15};
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_vm_report report;
    mgl_image *image = open_image();
    mgl_vm_options options = {.kind = MGL_VM_CPU, .weights = image->weights, .threads = 2};
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = PROMPT, .max_new = TOKENS};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    const mgl_mega_section *section = mgl_mega_find(image->file, "weights");
    ok(mgl_vm_open(image->program, graph, &options, &vm, &err), err);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    uint64_t end = section->offset + section->bytes;
    off_t size = (off_t)(_i == 0 ? end - 1 : _i == 1 ? section->offset + section->bytes / 2 : 4096);
    ck_assert_int_eq(truncate(path, size), 0);
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "the file shrank"), "%s", err.message);
    mgl_vm_close(vm);
    mgl_image_close(image);
}
END_TEST

/* ---- other files ----------------------------------------------------------------------------- */

/* Copies the file with another section instead of `name`; NULL bytes: without it. */
static void rewrite(const char *name, const void *bytes, size_t length)
{
    mgl_error err;
    mgl_mega *mega;
    mgl_mega_writer *writer;
    ok(mgl_mega_open(path, &mega, &err), err);
    ok(mgl_mega_create(path, &writer, &err), err);
    const mgl_mega_table *table = mgl_mega_get_table(mega);
    for (int i = 0; i < table->count; i++) {
        const mgl_mega_section *section = &table->sections[i];
        char *old = mgl_alloc((size_t)section->bytes + 1);
        ok(mgl_mega_read_part(mega, section, 0, (size_t)section->bytes, old, &err), err);
        if (strcmp(section->name, name) != 0)
            ok(mgl_mega_add(writer, section->name, old, (size_t)section->bytes, &err), err);
        else if (bytes)
            ok(mgl_mega_add(writer, name, bytes, length, &err), err);
        mgl_free(old);
    }
    ok(mgl_mega_finish(writer, NULL, &err), err);
    mgl_mega_close(mega);
}

START_TEST(a_missing_section_is_rejected)
{
    static const char *const names[] = {"schedule", "pieces", "weights"};
    rewrite(names[_i], NULL, 0);
    refused(_i == 2 ? "weights does not fit the schedule" : "is missing");
}
END_TEST

START_TEST(weights_of_another_length_are_rejected)
{
    static const char few[4096];
    rewrite("weights", few, sizeof few);
    refused("its section weights does not fit the schedule");
}
END_TEST

START_TEST(a_schedule_that_is_none_is_rejected)
{
    mgl_error err;
    rewrite("schedule", "megalith 1", 10);
    ck_assert_int_eq(read_image(&err), MGL_BAD_INPUT);
    ck_assert_int_eq(strncmp(err.where, path, strlen(path)), 0);
}
END_TEST

/* A file with the schedule of another, valid program. */
static void exchange_schedule(const mgl_program *other)
{
    mgl_error err;
    mgl_text text = {0};
    ok(mgl_vm_check(other, graph, &err), err);
    mgl_schedule_print(other, &text);
    rewrite("schedule", text.bytes, text.length);
    mgl_text_clear(&text);
}

/* The next task that streams rows of the tensor, after task `after`. */
static mgl_task *find_task(mgl_program *p, const char *tensor, int after)
{
    for (int t = after + 1; t < p->task_count; t++)
        if (p->tasks[t].segments.count == 1 &&
            !strcmp(p->tensors[p->segments[p->tasks[t].segments.first].tensor].name, tensor))
            return &p->tasks[t];
    ck_abort_msg("no task streams %s", tensor);
    return NULL;
}

/* Exchanges the rows and slices of two tasks of one op; each stays in its place. */
static void exchange_rows(mgl_program *p, const mgl_task *a, const mgl_task *b)
{
    mgl_segment *s = &p->segments[a->segments.first], *t = &p->segments[b->segments.first];
    mgl_segment kept = *s;
    ck_assert_int_eq(mgl_segment_rows(s), mgl_segment_rows(t));
    s->row_lo = t->row_lo, s->row_hi = t->row_hi;
    t->row_lo = kept.row_lo, t->row_hi = kept.row_hi;
    for (int i = 0; i < a->in.count + a->out.count; i++) {
        mgl_region region = p->regions[a->in.first + i];
        p->regions[a->in.first + i] = p->regions[b->in.first + i];
        p->regions[b->in.first + i] = region;
    }
}

/* Exchanges the rows of l1.o of two queues: all lengths are unchanged. */
START_TEST(a_schedule_with_other_rows_is_rejected)
{
    mgl_program *other =
        fixture_program(graph, &(fixture_options){.queues = QUEUES, .dtype = MGL_BF16});
    mgl_task *first = find_task(other, "l1.o", -1);
    exchange_rows(other, first, find_task(other, "l1.o", (int)(first - other->tasks)));
    exchange_schedule(other);
    refused("its section schedule is not the one that the weights were packed for");
    mgl_program_free(other);
}
END_TEST

/* Each warp gets another run of blocks, so rows have another order. */
START_TEST(a_schedule_with_other_warps_is_rejected)
{
    program->exec.warps = 4;
    exchange_schedule(program);
    refused("its section schedule is not the one that the weights were packed for");
}
END_TEST

START_TEST(a_schedule_in_another_format_is_rejected)
{
    mgl_program *other =
        fixture_program(graph, &(fixture_options){.queues = QUEUES, .dtype = MGL_F16});
    exchange_schedule(other);
    refused("its section schedule is not the one that the weights were packed for");
    mgl_program_free(other);
}
END_TEST

/* Edges, order and sizes of the ring do not affect the place of weights. */
START_TEST(a_schedule_of_the_same_rows_runs)
{
    program->exec.ring_pages = 5;
    program->exec.flight_bytes = 4096;
    exchange_schedule(program);
    mgl_image_close(open_image());
}
END_TEST

START_TEST(a_kernel_without_a_key_is_rejected)
{
    rewrite("kernel sm_90a", "short", 5);
    refused("its section kernel sm_90a is too short");
}
END_TEST

/* Changes one number in the list of pieces and corrects its hash. */
static void forge_pieces(size_t entry, uint64_t value)
{
    mgl_mega *mega;
    char *bytes;
    size_t length;
    ck_assert_int_eq(mgl_mega_open(path, &mega, NULL), MGL_OK);
    ck_assert_int_eq(mgl_mega_read(mega, "pieces", &bytes, &length, NULL), MGL_OK);
    mgl_mega_close(mega);
    for (size_t i = 0; i < 8; i++)
        bytes[8 * entry + i] = (char)(value >> (8 * i));
    rewrite("pieces", bytes, length);
    mgl_free(bytes);
}

START_TEST(another_layout_of_the_tape_is_rejected)
{
    forge_pieces(0, MGL_TAPE_LAYOUT + 1);
    refused("layout 4 of the tape, and this Megalith has layout 3");
}
END_TEST

START_TEST(pieces_that_do_not_fit_are_rejected)
{
    static const uint64_t sizes[] = {0, 1, 1 << 27, UINT64_MAX};
    forge_pieces(5, sizes[_i]); /* after the layout and its digest */
    refused("its section pieces does not fit the schedule");
}
END_TEST

START_TEST(half_a_list_of_pieces_is_rejected)
{
    unsigned char bytes[56] = {MGL_TAPE_LAYOUT};
    static const size_t lengths[] = {0, 7, 8, 39, 40, 55};
    mgl_program_layout(program, bytes + 8);
    rewrite("pieces", bytes, lengths[_i]);
    refused(lengths[_i] == 40 ? "its section pieces does not fit"
                              : "its section pieces is not a list");
}
END_TEST

/* ---- writing fails --------------------------------------------------------------------------- */

START_TEST(every_operation_of_writing_may_fail)
{
    mgl_error err;
    mgl_status status = MGL_SYSTEM;
    for (uint64_t n = 1; status; n++) {
        unlink(path);
        mgl_file_fail_at(n);
        status = write_image(&err);
        mgl_file_fail_at(0);
        ck_assert(status == MGL_OK || status == MGL_SYSTEM);
        if (status == MGL_OK || !access(path, F_OK)) /* the whole file or none */
            ok(read_image(&err), err);
    }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        mgl_alloc_fail_at(n, false);
        status = _i ? read_image(&err) : write_image(&err);
        mgl_alloc_fail_at(0, false);
        ck_assert(status == MGL_OK || status == MGL_NO_MEMORY);
    }
}
END_TEST

/* Simulates a full disk in the middle of the weights. */
START_TEST(a_full_disk_leaves_nothing)
{
    mgl_error err;
    struct rlimit before, small = {100000, 0};
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    mgl_status status = write_image(&err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(status, MGL_SYSTEM);
    ck_assert_int_eq(rmdir(folder), 0); /* it is empty */
    scratch_make(folder);
}
END_TEST

/* Progress calls received during writing, and the reaction. */
static struct {
    atomic_int abort;
    bool stops; /* cancel from half on */
    int calls, ends;
    uint64_t done;
} heard;

static void hear(void *user, mgl_stage stage, uint64_t done, uint64_t total)
{
    (void)user;
    ck_assert_int_eq(stage, MGL_STAGE_WEIGHTS);
    ck_assert_uint_gt(done, heard.done);
    ck_assert_uint_le(done, total);
    heard.done = done;
    heard.calls++;
    heard.ends += done == total;
    if (heard.stops && done >= total / 2)
        atomic_store(&heard.abort, 1);
}

static mgl_status write_heard(mgl_error *err)
{
    uint64_t bytes;
    mgl_image_content content = {
        .program = program, .graph = graph, .abort = &heard.abort, .on_stage = hear};
    return mgl_image_write(path, &content, &bytes, err);
}

START_TEST(writing_can_be_stopped)
{
    mgl_error err;
    memset(&heard, 0, sizeof heard);
    heard.stops = true;
    unlink(path);
    ck_assert_int_eq(write_heard(&err), MGL_INTERRUPTED);
    ck_assert_str_eq(err.message, "interrupted");
    ck_assert_int_ge(heard.calls, 1);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(the_end_of_writing_is_told_once)
{
    mgl_error err;
    memset(&heard, 0, sizeof heard);
    ok(write_heard(&err), err);
    ck_assert_int_eq(heard.ends, 1);
}
END_TEST

/* A switch set before anything is written is not lost. */
START_TEST(writing_that_was_stopped_before_leaves_no_file)
{
    mgl_error err;
    memset(&heard, 0, sizeof heard);
    atomic_store(&heard.abort, 1);
    unlink(path);
    ck_assert_int_eq(write_heard(&err), MGL_INTERRUPTED);
    ck_assert_int_eq(heard.calls, 0);
    ck_assert_int_eq(rmdir(folder), 0); /* it is empty */
    scratch_make(folder);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("image");
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, pieces_of_a_graph_are_the_packers_bytes);
    tcase_add_test(tests, pieces_of_a_file_are_the_packers_bytes);
    tcase_add_test(tests, pieces_cover_every_byte_once);
    tcase_add_loop_test(tests, a_machine_of_the_file_says_the_same, 0, 2);
    tcase_add_test(tests, weights_of_another_program_are_rejected);
    tcase_add_test(tests, a_kernel_is_known_by_what_it_was_made_of);
    tcase_add_test(tests, damage_to_any_section_is_rejected);
    tcase_add_test(tests, damage_to_any_piece_is_rejected);
    tcase_add_test(tests, a_machine_rejects_damaged_weights);
    tcase_add_loop_test(tests, a_file_that_shrinks_ends_the_reply, 0, 3);
    tcase_add_loop_test(tests, a_missing_section_is_rejected, 0, 3);
    tcase_add_test(tests, weights_of_another_length_are_rejected);
    tcase_add_test(tests, a_schedule_that_is_none_is_rejected);
    tcase_add_test(tests, a_schedule_with_other_rows_is_rejected);
    tcase_add_test(tests, a_schedule_with_other_warps_is_rejected);
    tcase_add_test(tests, a_schedule_in_another_format_is_rejected);
    tcase_add_test(tests, a_schedule_of_the_same_rows_runs);
    tcase_add_test(tests, a_kernel_without_a_key_is_rejected);
    tcase_add_test(tests, another_layout_of_the_tape_is_rejected);
    tcase_add_loop_test(tests, pieces_that_do_not_fit_are_rejected, 0, 4);
    tcase_add_loop_test(tests, half_a_list_of_pieces_is_rejected, 0, 6);
    tcase_add_test(tests, every_operation_of_writing_may_fail);
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, 2);
    tcase_add_test(tests, a_full_disk_leaves_nothing);
    tcase_add_test(tests, writing_can_be_stopped);
    tcase_add_test(tests, the_end_of_writing_is_told_once);
    tcase_add_test(tests, writing_that_was_stopped_before_leaves_no_file);
    int code = fixture_main("image", tests);
    rmdir(folder);
    return code;
}
