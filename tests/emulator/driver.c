/*
 * Implements the CUDA driver for the emulator. Device memory is host memory, poisoned, with a guard
 * page at either end. A module is a shared object (compiler.c). A launch runs in a thread of its
 * own, because the host reads what the kernel writes meanwhile. Calls that the project does not use
 * fail and print their names.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator.h"
#include "engine.h"
#include "tests/time_limit.h"
#include "vm/cuda/device/record.h"
#include "vm/cuda/driver.h"

enum {
    SMS = 4,            /* default number of queues of a program */
    BLOCKS_OF_SM = 64,  /* all blocks are co-resident */
    SHARED = 232448,    /* value of an H100 */
    STUCK_SECONDS = 20, /* seconds without a step: a thread loops without an emulated instruction */
    PAGE = 4096,
    INVALID = 1,         /* CUDA_ERROR_INVALID_VALUE */
    LAUNCH_FAILED = 719, /* CUDA_ERROR_LAUNCH_FAILED */
    NOT_SUPPORTED = 801  /* CUDA_ERROR_NOT_SUPPORTED */
};

struct module {
    void *library;
    const emu_kernel *kernel;
    const emu_plain_kernel *plain; /* instead: kernels of the benchmark's module */
    int file;
};

/* The current launch. */
static struct {
    pthread_t thread;
    bool running; /* the thread must be joined */
    atomic_bool done;
    bool good;
    double moved_s; /* time of the last step that was seen */
    uint64_t steps; /* number of steps at that time */
    const emu_kernel *kernel;
    mgl_device_launch arguments;
    unsigned blocks, threads;
    size_t shared_bytes;
} launch;
static const char *missing = ""; /* name of an unsupported function that was called */

/* ---- unsupported functions ------------------------------------------------------------------- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MGL_X(member, symbol, arguments)                                                           \
    static int missing_##member arguments                                                          \
    {                                                                                              \
        missing = symbol;                                                                          \
        return NOT_SUPPORTED;                                                                      \
    }
MGL_CU_FUNCTIONS(MGL_X)
#undef MGL_X
#pragma GCC diagnostic pop

static int error_name(int code, const char **name)
{
    *name = code == NOT_SUPPORTED ? missing : "emulated";
    return 0;
}

static int error_string(int code, const char **text)
{
    *text = code == NOT_SUPPORTED ? "tests/emulator/driver.c does not have this function"
                                  : "the emulator has said why";
    return 0;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Prints where the signal interrupted the thread. */
static void find_place(const ucontext_t *context, const void **pc, const void **frame)
{
#if defined(__x86_64__)
    *pc = (const void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    *frame = (const void *)(uintptr_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
    *pc = (const void *)(uintptr_t)context->uc_mcontext.pc;
    *frame = (const void *)(uintptr_t)context->uc_mcontext.regs[29];
#else
    *pc = *frame = NULL;
#endif
}

static void give_up(int number, siginfo_t *info, void *context)
{
    const void *pc, *frame;
    (void)info;
    find_place(context, &pc, &frame);
    emu_give_up_at(number == SIGALRM ? "a thread loops, and does nothing that lets others run"
                   : number == SIGILL || number == SIGTRAP
                       ? "an access that is misaligned, or beyond an array's end"
                       : "an access to memory that is not the kernel's",
                   pc, frame);
}

/* Signal handlers get their own stack, because the kernel's threads have small stacks. */
static void catch_signals(void)
{
    static char stack[1 << 18];
    const int signals[] = {SIGALRM, SIGILL, SIGTRAP, SIGSEGV, SIGBUS};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i],
                  &(struct sigaction){.sa_sigaction = give_up, .sa_flags = SA_ONSTACK | SA_SIGINFO},
                  NULL);
}

static void *run(void *unused)
{
    (void)unused;
    catch_signals();
    launch.good = emu_launch(launch.kernel, &launch.arguments, launch.blocks, launch.threads,
                             launch.shared_bytes);
    launch.done = true;
    return NULL;
}

static int join(void)
{
    if (launch.running)
        pthread_join(launch.thread, NULL);
    launch.running = false;
    return launch.good ? 0 : LAUNCH_FAILED;
}

static int launch_cooperative(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, void *stream, void **arguments)
{
    (void)stream;
    join();
    if (grid_y * grid_z * block_y * block_z != 1 || shared_bytes > SHARED)
        return INVALID;
    launch.kernel = ((struct module *)function)->kernel;
    memcpy(&launch.arguments, arguments[0], sizeof launch.arguments);
    launch.blocks = grid_x;
    launch.threads = block_x;
    launch.shared_bytes = shared_bytes;
    launch.done = false;
    launch.moved_s = mgl_clock_s();
    launch.running = pthread_create(&launch.thread, NULL, run, NULL) == 0;
    return launch.running ? 0 : LAUNCH_FAILED;
}

/* Ends the process if a thread loops without an emulated instruction. */
static void watch(void)
{
    uint64_t steps = emu_steps();
    if (steps != launch.steps)
        launch.moved_s = mgl_clock_s();
    launch.steps = steps;
    if (mgl_clock_s() - launch.moved_s > time_limit(STUCK_SECONDS))
        pthread_kill(launch.thread, SIGALRM);
}

static int stream_query(void *stream)
{
    (void)stream;
    if (!launch.running || launch.done)
        return join();
    watch();
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the kernel needs the processors */
    return MGL_CU_NOT_READY;
}

static int stream_synchronize(void *stream)
{
    (void)stream;
    return launch.running ? join() : 0;
}

static int event_elapsed(float *milliseconds, void *start, void *end)
{
    (void)start, (void)end;
    *milliseconds = 1;
    return 0;
}

/* ---- modules --------------------------------------------------------------------------------- */

static int module_unload(void *which)
{
    struct module *module = which;
    if (module->library)
        dlclose(module->library);
    close(module->file);
    free(module);
    return 0;
}

/* Each module has its own file, so that the loader does not confuse them. */
static int module_load(void **out, const void *image, unsigned count, int *options, void **values)
{
    struct module *module = calloc(1, sizeof *module);
    char path[64];
    size_t length;
    (void)count, (void)options, (void)values;
    memcpy(&length, image, sizeof length);
    module->file = memfd_create("megalith-kernel", MFD_CLOEXEC);
    bool good = write(module->file, (const char *)image + sizeof length, length) == (ssize_t)length;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), module->file);
    module->library = good ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    module->kernel = module->library ? dlsym(module->library, "emu_the_kernel") : NULL;
    module->plain = module->library ? dlsym(module->library, "emu_plain_kernels") : NULL;
    if (!module->kernel && !module->plain) {
        fprintf(stderr, "emulator: %s\n", dlerror());
        module_unload(module);
        return INVALID;
    }
    *out = module;
    return 0;
}

static int module_function(void **function, void *which, const char *name)
{
    struct module *module = which;
    *function = module;
    if (module->kernel)
        return strcmp(name, "megalith") == 0 ? 0 : INVALID;
    const emu_plain_kernel *kernel = module->plain;
    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    *function = (void *)(uintptr_t)kernel;
    return kernel->name ? 0 : INVALID;
}

static int function_get(int *value, int attribute, void *function)
{
    (void)attribute, (void)function;
    *value = 0;
    return 0;
}

static int function_set(void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return 0;
}

static int occupancy(int *blocks, void *function, int threads, size_t shared_bytes)
{
    (void)function, (void)threads;
    *blocks = shared_bytes <= SHARED ? BLOCKS_OF_SM : 0;
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t round_up(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Allocates a read-only page with the length, the memory, and an inaccessible page. The memory ends
 * at that page, except for alignment. */
static int memory_alloc(mgl_cu_address *address, size_t bytes)
{
    size_t rounded = round_up(bytes), whole = rounded + 2 * PAGE;
    char *at = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return MGL_CU_OUT_OF_MEMORY;
    memcpy(at, &whole, sizeof whole);
    memset(at + PAGE, 0xFF, rounded);
    mprotect(at, PAGE, PROT_READ);
    mprotect(at + PAGE + rounded, PAGE, PROT_NONE);
    *address = (uintptr_t)(at + PAGE + (rounded - bytes) / 256 * 256);
    emu_memory_add((void *)(uintptr_t)*address, bytes);
    return 0;
}

static int memory_free(mgl_cu_address address)
{
    size_t whole;
    char *at = (char *)(uintptr_t)(address / PAGE * PAGE) - PAGE;
    if (launch.running)
        join();
    emu_memory_remove((const void *)(uintptr_t)address);
    memcpy(&whole, at, sizeof whole);
    munmap(at, whole);
    return 0;
}

static int device_uuid(unsigned char *uuid, int device)
{
    memset(uuid, device + 1, 16);
    return 0;
}

static int memory_info(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)8 << 30;
    return 0;
}

static int memory_set(mgl_cu_address to, unsigned char value, size_t bytes)
{
    memset((void *)(uintptr_t)to, value, bytes);
    return 0;
}

static int memory_set_2d(mgl_cu_address to, size_t pitch, unsigned word, size_t words, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t w = 0; w < words; w++)
            memcpy((char *)(uintptr_t)to + r * pitch + w * sizeof word, &word, sizeof word);
    return 0;
}

static int copy_in(mgl_cu_address to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

static int copy_in_async(mgl_cu_address to, const void *from, size_t bytes, void *stream)
{
    (void)stream;
    return copy_in(to, from, bytes);
}

static int copy_out(void *to, mgl_cu_address from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

static int copy_within_async(mgl_cu_address to, mgl_cu_address from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return 0;
}

static int pinned_alloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    *memory = malloc(bytes);
    return *memory ? 0 : MGL_CU_OUT_OF_MEMORY;
}

static int pinned_free(void *memory)
{
    free(memory);
    return 0;
}

static int pinned_address(mgl_cu_address *address, void *memory, unsigned flags)
{
    (void)flags;
    *address = (uintptr_t)memory;
    return 0;
}

/* ---- device, and calls without effect -------------------------------------------------------- */

static int init(unsigned flags)
{
    (void)flags;
    return 0;
}

static int driver_version(int *version)
{
    *version = 13000;
    return 0;
}

static int device_count(int *count)
{
    *count = 1;
    return 0;
}

static int device_get(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

static int device_name(char *name, int length, int device)
{
    const char *other = getenv("EMULATOR_NAME");
    (void)device;
    snprintf(name, (size_t)length, "%s", other ? other : "emulator");
    return 0;
}

static int device_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == MGL_CU_DEVICE_MAJOR          ? 9
             : attribute == MGL_CU_DEVICE_SM_COUNT     ? SMS
             : attribute == MGL_CU_DEVICE_COOPERATIVE  ? 1
             : attribute == MGL_CU_DEVICE_SHARED_OPTIN ? SHARED
                                                       : 0;
    return 0;
}

static int device_memory(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)8 << 30;
    return 0;
}

/* There is one context, one stream and one event. */
static int give_one(void **out)
{
    *out = &launch;
    return 0;
}

static int context_retain(void **context, int device)
{
    (void)device;
    return give_one(context);
}

static int create_with_flags(void **out, unsigned flags)
{
    (void)flags;
    return give_one(out);
}

static int nothing(void *unused)
{
    (void)unused;
    return 0;
}

static int context_release(int device)
{
    (void)device;
    return 0;
}

static int event_record(void *event, void *stream)
{
    (void)event, (void)stream;
    return 0;
}

static void fill_device(mgl_cu *table)
{
    table->init = init;
    table->driver_version = driver_version;
    table->error_name = error_name;
    table->error_string = error_string;
    table->device_count = device_count;
    table->device_get = device_get;
    table->device_name = device_name;
    table->device_attribute = device_attribute;
    table->device_memory = device_memory;
    table->device_uuid = device_uuid;
    table->context_retain = context_retain;
    table->context_release = context_release;
    table->context_push = nothing;
    table->context_pop = give_one;
}

static void fill_memory(mgl_cu *table)
{
    table->memory_info = memory_info;
    table->memory_alloc = memory_alloc;
    table->memory_free = memory_free;
    table->memory_set = memory_set;
    table->memory_set_2d = memory_set_2d;
    table->copy_in = copy_in;
    table->copy_in_async = copy_in_async;
    table->copy_out = copy_out;
    table->copy_within_async = copy_within_async;
    table->pinned_alloc = pinned_alloc;
    table->pinned_free = pinned_free;
    table->pinned_address = pinned_address;
}

static void fill_launches(mgl_cu *table)
{
    table->module_load = module_load;
    table->module_unload = module_unload;
    table->module_function = module_function;
    table->function_get = function_get;
    table->function_set = function_set;
    table->occupancy = occupancy;
    table->launch_cooperative = launch_cooperative;
    table->stream_create = create_with_flags;
    table->stream_destroy = nothing;
    table->stream_query = stream_query;
    table->stream_synchronize = stream_synchronize;
    table->event_create = create_with_flags;
    table->event_destroy = nothing;
    table->event_record = event_record;
    table->event_synchronize = stream_synchronize;
    table->event_elapsed = event_elapsed;
}

void emu_fill_driver(mgl_cu *table)
{
#define MGL_X(member, symbol, arguments) table->member = missing_##member;
    MGL_CU_FUNCTIONS(MGL_X)
#undef MGL_X
    fill_device(table);
    fill_memory(table);
    fill_launches(table);
    emu_fill_plain(table);
    snprintf(table->path, sizeof table->path, "tests/emulator/driver.c");
}

bool emu_install(const char *test)
{
    static mgl_cu driver;
    static mgl_nvrtc compiler;
    if (strcmp(MGL_EMULATOR_CXX, "") == 0) {
        printf("SKIPPED %s: there is no C++ compiler for the kernel (package g++)\n", test);
        return false;
    }
    emu_fill_driver(&driver);
    emu_fill_compiler(&compiler);
    mgl_cu_override(&driver);
    mgl_nvrtc_override(&compiler);
    return true;
}
