/* Implements the fake driver and compiler. See fake_driver.h. */
#include "tests/vm/cuda/fake_driver.h"

#include <check.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a driver -------------------------------------------------------------------------------- */

struct fake_driver fake;

atomic_int nvrtc_compiles;

static int result(void)
{
    int call = ++fake.calls;
    if (call == fake.abort_at)
        fake.abort = 1;
    return call == fake.fail_at ? fake.failure : 0;
}

/* Checks that a call that must not be interrupted is inside the brackets (mgl_cu_begin). */
static int bracketed(void)
{
    ck_assert(mgl_cu_is_busy());
    return result();
}

static int fake_init(unsigned flags)
{
    (void)flags;
    return result();
}
static int fake_driver_version(int *version)
{
    *version = 13000;
    return 0;
}
static int fake_error_name(int code, const char **name)
{
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_PLANTED";
    return 0;
}
static int fake_error_string(int code, const char **text)
{
    (void)code;
    *text = "planted by a test";
    return 0;
}
static int fake_device_count(int *count)
{
    *count = 1;
    return result();
}
static int fake_device_get(int *device, int ordinal)
{
    *device = ordinal;
    return result();
}
static int fake_device_name(char *name, int length, int device)
{
    (void)device;
    snprintf(name, (size_t)length, "Planted GPU");
    return 0;
}
static int fake_device_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == MGL_CU_DEVICE_MAJOR          ? 9
             : attribute == MGL_CU_DEVICE_MINOR        ? 0
             : attribute == MGL_CU_DEVICE_SM_COUNT     ? fake.sms
             : attribute == MGL_CU_DEVICE_COOPERATIVE  ? 1
             : attribute == MGL_CU_DEVICE_SHARED_OPTIN ? 232448
                                                       : 0;
    return 0;
}
static int fake_device_memory(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return result();
}
static int fake_context_retain(void **context, int device)
{
    (void)device;
    *context = &fake;
    int code = bracketed();
    fake.contexts += !code;
    return code;
}
static int fake_context_release(int device)
{
    ck_assert(mgl_cu_is_busy());
    (void)device;
    fake.contexts--;
    return 0;
}
static int fake_context_push(void *context)
{
    ck_assert_ptr_eq(context, &fake);
    return 0;
}
static int fake_context_pop(void **context)
{
    *context = &fake;
    return 0;
}
static int fake_module_load(void **module, const void *image, unsigned count, int *options,
                            void **values)
{
    (void)count, (void)options, (void)values;
    ck_assert_str_eq(image, "machine code");
    *module = &fake.modules;
    int code = bracketed();
    fake.modules += !code;
    return code;
}
static int fake_module_unload(void *module)
{
    ck_assert(mgl_cu_is_busy());
    ck_assert_ptr_eq(module, &fake.modules);
    fake.modules--;
    return 0;
}
static int fake_module_function(void **function, void *module, const char *name)
{
    (void)module;
    ck_assert_str_eq(name, "megalith");
    *function = &fake.kernel;
    return result();
}
static int fake_function_get(int *value, int attribute, void *function)
{
    (void)function;
    *value = attribute == MGL_CU_FUNCTION_REGISTERS ? 168 : 0;
    return 0;
}
static int fake_function_set(void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return result();
}
static int fake_occupancy(int *blocks, void *function, int threads, size_t shared_bytes)
{
    (void)function, (void)threads, (void)shared_bytes;
    *blocks = fake.blocks;
    return result();
}
static int fake_launch_cooperative(void *function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, void *stream,
                                   void **arguments)
{
    (void)function, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)grid_x;
    int code = bracketed();
    memcpy(&fake.launch, arguments[0], sizeof fake.launch);
    if (!code && fake.kernel)
        fake.kernel(&fake.launch);
    fake.launches += !code;
    return code;
}
static int fake_memory_info(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = fake.free_bytes;
    return result();
}
static int fake_memory_alloc(mgl_cu_address *address, size_t bytes)
{
    int code = bracketed();
    if (!code)
        *address = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    fake.allocations += !code;
    return code;
}
static int fake_memory_free(mgl_cu_address address)
{
    ck_assert(mgl_cu_is_busy());
    free((void *)(uintptr_t)address);
    fake.allocations--;
    return 0;
}
static int fake_memory_set(mgl_cu_address to, unsigned char value, size_t bytes)
{
    memset((void *)(uintptr_t)to, value, bytes);
    return bracketed();
}
static int fake_memory_set_2d(mgl_cu_address to, size_t pitch, unsigned word, size_t words,
                              size_t rows)
{
    ck_assert(words * sizeof word <= pitch && pitch % sizeof word == 0 && to % sizeof word == 0);
    for (size_t r = 0; r < rows; r++)
        for (size_t w = 0; w < words; w++)
            memcpy((char *)(uintptr_t)to + r * pitch + w * sizeof word, &word, sizeof word);
    return bracketed();
}
static int fake_copy_in(mgl_cu_address to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return bracketed();
}
static int fake_copy_in_async(mgl_cu_address to, const void *from, size_t bytes, void *stream)
{
    ck_assert_ptr_eq(stream, &fake.streams);
    fake.copies++;
    while (fake.meet && nvrtc_compiles == 0)
        sched_yield();
    return fake_copy_in(to, from, bytes);
}
static int fake_copy_out(void *to, mgl_cu_address from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return bracketed();
}
static int fake_copy_within_async(mgl_cu_address to, mgl_cu_address from, size_t bytes,
                                  void *stream)
{
    ck_assert_ptr_null(stream); /* the default stream, so ordered after the clearing of memory */
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    fake.moved += bytes;
    return bracketed();
}
static int fake_pinned_alloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    int code = bracketed();
    *memory = code ? NULL : malloc(bytes);
    fake.allocations += !code;
    return code;
}
static int fake_pinned_free(void *memory)
{
    free(memory);
    fake.allocations--;
    return 0;
}
static int fake_pinned_address(mgl_cu_address *address, void *memory, unsigned flags)
{
    (void)flags;
    *address = (uintptr_t)memory;
    return result();
}
static int fake_stream_create(void **stream, unsigned flags)
{
    (void)flags;
    *stream = &fake.streams;
    int code = result();
    fake.streams += !code;
    if (code)
        *stream = NULL;
    return code;
}
static int fake_stream_destroy(void *stream)
{
    ck_assert_ptr_eq(stream, &fake.streams);
    fake.streams--;
    return 0;
}
static int fake_stream_query(void *stream)
{
    (void)stream;
    if (fake.queries > 0)
        return fake.queries--, MGL_CU_NOT_READY;
    return result();
}
static int fake_stream_synchronize(void *stream)
{
    (void)stream;
    return result();
}

static int fake_event_create(void **event, unsigned flags)
{
    (void)flags;
    int code = result();
    *event = code ? NULL : &fake.events;
    fake.events += !code;
    return code;
}
static int fake_event_destroy(void *event)
{
    ck_assert_ptr_eq(event, &fake.events);
    fake.events--;
    return 0;
}
static int fake_event_record(void *event, void *stream)
{
    ck_assert_ptr_eq(event, &fake.events);
    ck_assert_ptr_eq(stream, &fake.streams);
    return result();
}
static int fake_event_synchronize(void *event)
{
    ck_assert_ptr_eq(event, &fake.events);
    return result();
}
static int fake_event_elapsed(float *milliseconds, void *start, void *end)
{
    (void)start, (void)end;
    *milliseconds = 2;
    return result();
}

/* Functions that the machine never calls. */
static int fake_device_uuid(unsigned char *uuid, int device)
{
    (void)uuid, (void)device;
    ck_abort_msg("called");
}
static int fake_device_bus_id(char *id, int length, int device)
{
    (void)id, (void)length, (void)device;
    ck_abort_msg("called");
}
static int fake_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       void *stream, void **arguments, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes, (void)stream, (void)arguments, (void)extra;
    ck_abort_msg("called");
}
static int fake_capture_begin(void *stream, int mode)
{
    (void)stream, (void)mode;
    ck_abort_msg("called");
}
static int fake_capture_end(void *stream, void **graph)
{
    (void)stream, (void)graph;
    ck_abort_msg("called");
}
static int fake_graph_instantiate(void **executable, void *graph, unsigned long long flags)
{
    (void)executable, (void)graph, (void)flags;
    ck_abort_msg("called");
}
static int fake_graph_launch(void *executable, void *stream)
{
    (void)executable, (void)stream;
    ck_abort_msg("called");
}
static int fake_graph_destroy(void *graph)
{
    (void)graph;
    ck_abort_msg("called");
}
static int fake_graph_release(void *executable)
{
    (void)executable;
    ck_abort_msg("called");
}

const mgl_cu fake_cu = {
#define MGL_X(member, symbol, arguments) .member = fake_##member,
    MGL_CU_FUNCTIONS(MGL_X)
#undef MGL_X
        .path = "planted"};

/* ---- a compiler ------------------------------------------------------------------------------ */

static int fake_nvrtc_version(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return 0;
}
static int fake_nvrtc_create(void **program, const char *source, const char *name, int count,
                             const char *const *headers, const char *const *names)
{
    ck_assert_ptr_nonnull(strstr(source, "__global__"));
    if (!strcmp(name, "settle.cu")) /* its result is not used */
        return 1;
    ck_assert_str_eq(name, "vm/cuda/device/megakernel.cu");
    for (int i = 0; i < count; i++)
        ck_assert(strlen(headers[i]) > 0 && strlen(names[i]) > 0);
    *program = &nvrtc_compiles;
    return result();
}
static int fake_nvrtc_compile(void *program, int count, const char *const *options)
{
    (void)program;
    ck_assert_int_gt(count, 5);
    ck_assert_int_eq(strncmp(options[0], "-arch=", 6), 0);
    ck_assert_str_eq(options[0] + 6, fake.arch);
    nvrtc_compiles++;
    while ((fake.meet && fake.copies == 0) || fake.hold)
        sched_yield();
    return result();
}
static int fake_nvrtc_log_size(void *program, size_t *bytes)
{
    (void)program;
    *bytes = 4;
    return 0;
}
static int fake_nvrtc_log(void *program, char *log)
{
    (void)program;
    memcpy(log, "log", 4);
    return 0;
}
static int fake_nvrtc_cubin_size(void *program, size_t *bytes)
{
    (void)program;
    *bytes = 13;
    return result();
}
static int fake_nvrtc_cubin(void *program, char *cubin)
{
    (void)program;
    memcpy(cubin, "machine code", 13);
    return result();
}
#define fake_nvrtc_ptx_size fake_nvrtc_cubin_size
#define fake_nvrtc_ptx      fake_nvrtc_cubin
static int fake_nvrtc_destroy(void **program)
{
    *program = NULL;
    return 0;
}

const mgl_nvrtc fake_nvrtc = {
#define MGL_X(member, symbol, arguments) .member = fake_nvrtc_##member,
    MGL_NVRTC_FUNCTIONS(MGL_X)
#undef MGL_X
        .path = "planted"};

void reset_fake(void)
{
    memset(&fake, 0, sizeof fake);
    fake.free_bytes = (size_t)1 << 28;
    fake.sms = 8;
    fake.blocks = 1;
    fake.failure = 719;
    fake.arch = "sm_90a";
}

void nothing_is_left(void)
{
    ck_assert(!mgl_cu_is_busy());
    ck_assert_int_eq(fake.contexts, 0);
    ck_assert_int_eq(fake.allocations, 0);
    ck_assert_int_eq(fake.modules, 0);
    ck_assert_int_eq(fake.streams, 0);
    ck_assert_int_eq(fake.events, 0);
}
