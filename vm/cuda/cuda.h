/*
 * CUDA interface besides the virtual machine (vm/vm.h): device and toolkit detection (`doctor`),
 * the target to lower for, compilation of kernels with and without a device, source overrides for
 * micro-kernel candidates, the kernel cache path, and traces. cli/, autotune/, eval/ and vm/image.c
 * call it.
 */
#ifndef MGL_VM_CUDA_CUDA_H
#define MGL_VM_CUDA_CUDA_H

#include "base/sha256.h"
#include "schedule/program.h"
#include "vm/cuda/device/record.h"
#include "vm/cuda/sources.h"
#include "vm/vm.h"

enum { MGL_CUDA_MAX_DEVICES = 16, MGL_CUDA_REASON = 400 };

typedef struct mgl_cuda_device {
    char name[128];
    char arch[16];       /* "sm_90a" */
    int major, minor;    /* compute capability */
    int sms;             /* multiprocessors: maximum queues of a program */
    size_t memory_bytes; /* total device memory */
    size_t shared_bytes; /* maximum shared memory of a block */
} mgl_cuda_device;

/* Result of the detection. Each missing item has a reason: one sentence with a remedy. */
typedef struct mgl_cuda_probe {
    bool driver; /* libcuda.so.1 was opened and initialized */
    char driver_path[256];
    int driver_version; /* 13000: CUDA 13.0 */
    char driver_reason[MGL_CUDA_REASON];
    bool nvrtc;
    char nvrtc_path[256];
    int nvrtc_major, nvrtc_minor;
    char nvrtc_reason[MGL_CUDA_REASON];
    bool linker; /* nvJitLink is usable: kernels of two lists are compiled in parallel parts */
    char linker_path[256];
    char linker_reason[MGL_CUDA_REASON];
    int device_count;
    mgl_cuda_device devices[MGL_CUDA_MAX_DEVICES];
    bool cache; /* the cache of compiled kernels is usable */
    char cache_path[1024];
    char cache_reason[MGL_CUDA_REASON];
} mgl_cuda_probe;

/* Detects driver, toolkit, devices and cache. Never fails: errors are in *out. Reads CUDA_HOME and
 * the environment of the kernel cache (mgl_cuda_cache_path). */
void mgl_cuda_get_probe(mgl_cuda_probe *out);

/* The target of device `ordinal`: its architecture, and one queue per SM (at most
 * MGL_MAX_QUEUES). */
mgl_status mgl_cuda_live_target(int ordinal, mgl_target *out, mgl_error *err);

/* A compiled kernel. Release with mgl_cuda_image_clear. */
typedef struct mgl_cuda_image {
    void *bytes;
    size_t length;
    bool ptx;         /* 0-terminated PTX for the driver to compile; else machine code */
    bool cached;      /* read from the cache */
    double compile_s; /* compile time in s; 0 if read from the cache */
    double total_s;   /* total time in s until the kernel was available */
    bool died;        /* no kernel: the compiler process ended early */
    char log[2048];   /* compiler warnings */
    char cache_note[MGL_CUDA_REASON]; /* why the kernel could not be cached; "" if it was */
} mgl_cuda_image;

/* Cancellation and progress of waiting for a kernel. All fields may be zero. */
typedef struct mgl_cuda_watch {
    const atomic_int *abort; /* set by any thread; may be NULL */
    mgl_stage_fn *on_stage;  /* progress of MGL_STAGE_KERNEL; may be NULL */
    void *stage_user;
} mgl_cuda_watch;

/* Optional features of a kernel: bits. */
enum {
    MGL_CUDA_TRACE = 1, /* tasks write trace events */
    MGL_CUDA_DELAYS = 2 /* random delays: device/delay.cuh */
};

/* Compiles the kernel of a program for an architecture: "sm_90a" gives machine code, "compute_80"
 * PTX. `extras`: MGL_CUDA_... bits. `watch` may be NULL. Needs NVRTC, but no device. */
mgl_status mgl_cuda_compile(const mgl_program *program, const char *arch, unsigned extras,
                            const mgl_cuda_watch *watch, mgl_cuda_image *out, mgl_error *err);
void mgl_cuda_image_clear(mgl_cuda_image *image);

/* mgl_cuda_compile in two steps, so that the caller works in parallel: start, then wait and
 * release. If the watch aborts (MGL_INTERRUPTED), a compiling child process is killed. NVRTC in
 * this process cannot be stopped: its thread runs on and stores the result in the cache, and a
 * process that exits meanwhile waits for the thread. */
typedef struct mgl_cuda_compilation mgl_cuda_compilation;
mgl_status mgl_cuda_compile_start(const mgl_program *program, const char *arch, unsigned extras,
                                  mgl_cuda_compilation **out, mgl_error *err);
mgl_status mgl_cuda_compile_finish(mgl_cuda_compilation *compilation, const mgl_cuda_watch *watch,
                                   mgl_cuda_image *out, mgl_error *err);

/* Makes later compilations run in a child process that executes `program` (static storage; NULL: in
 * this process), such as "/proc/self/exe". The main function of that program must pass the argument
 * after MGL_CUDA_WORKER_FLAG (its first argument) to mgl_cuda_compile_worker, and return the
 * result. Called from main; not thread-safe. */
#define MGL_CUDA_WORKER_FLAG "--compile-kernel"
void mgl_cuda_compile_use_child(const char *program);
int mgl_cuda_compile_worker(const char *parent);

/* Limits how many parts of kernels are compiled at once; 0: the number of processors. */
void mgl_cuda_compile_use_processors(int count);

/* Key of what mgl_cuda_compile would compile. Any kernel with this key, from any compiler version,
 * runs the program. Comments and layout of the sources do not change the key (canonical.h). */
void mgl_cuda_kernel_key(const mgl_program *program, const char *arch, unsigned extras,
                         char key[MGL_SHA256_HEX]);

/* Replaces the built-in sources of the same names by these texts (count), which are copied, in
 * later compilations of programs. 0: use the built-in sources. The kernel cache distinguishes them.
 * Not thread-safe. MGL_USAGE: the kernel has no source of that name. */
mgl_status mgl_cuda_override_sources(const mgl_cuda_source *sources, int count, mgl_error *err);
/* Whether a program's kernel uses the replaced sources: only programs with one list and without
 * biases, q/k norms, penalties, and merges in o. Other programs keep the built-in sources, because
 * the replacements are not timed in them. */
bool mgl_cuda_takes_sources(const mgl_program *program);
/* Like mgl_cuda_override_sources, but for all programs: the correctness check of a micro-kernel
 * also runs it in programs of the other kinds. */
mgl_status mgl_cuda_override_all_sources(const mgl_cuda_source *sources, int count, mgl_error *err);

/* Compiler output for a program's kernel. Release with mgl_cuda_report_clear. */
typedef struct mgl_cuda_report {
    bool compiled;
    char *log; /* owned: errors and warnings, then ptxas statistics for each function */
    char *ptx; /* (ptx_length) owned, 0-terminated; NULL if compilation failed */
    size_t ptx_length;
    double compile_s;
} mgl_cuda_report;

/* Compiles in this process, without the cache, with `values` (value_count) as -D<name>=<value>. A
 * compile error is not an error of this function: out->compiled is then false. */
typedef struct mgl_cuda_value {
    const char *name;
    int64_t value;
} mgl_cuda_value;
mgl_status mgl_cuda_compile_report(const mgl_program *program, const char *arch,
                                   const mgl_cuda_value *values, int value_count,
                                   mgl_cuda_report *out, mgl_error *err);
void mgl_cuda_report_clear(mgl_cuda_report *report);

/* A constant of a compilation: defines MGL_<name>. */
typedef struct mgl_cuda_constant {
    const char *name;
    uint32_t value;
} mgl_cuda_constant;

/* Compiles a kernel other than the machine's: the first of `sources` (static storage), which
 * includes the others by name. Not cached. `watch` may be NULL. */
mgl_status mgl_cuda_compile_sources(const mgl_cuda_source *sources, int count, const char *arch,
                                    const mgl_cuda_constant *constants, int constant_count,
                                    const mgl_cuda_watch *watch, mgl_cuda_image *out,
                                    mgl_error *err);

/* Folder of compiled kernels: $MEGALITH_CACHE, or $XDG_CACHE_HOME/megalith, or ~/.cache/megalith.
 * XDG_CACHE_HOME and HOME count if they are absolute paths. False if none is set, or the path is
 * too long. */
bool mgl_cuda_cache_path(char *path, size_t length);

/* Events of the last launch of a machine opened with trace_epochs: (trace_epochs, task_count).
 * Epoch e is in row e mod trace_epochs. With two lists, the tasks of the second list follow those
 * of the first (schedule/lists.h). Release with mgl_free. */
mgl_status mgl_cuda_get_trace(mgl_vm *vm, mgl_device_event **out, mgl_error *err);

/* Shared memory bytes of a block of the program's kernel. */
size_t mgl_cuda_shared_bytes(const mgl_program *program);

#endif
