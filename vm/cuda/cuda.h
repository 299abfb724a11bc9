/*
 * The CUDA machine for those who are not a virtual machine: what is there (`doctor`), what to lower
 * for, and compiling without a device. The machine itself stands behind vm/vm.h.
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
    int sms;             /* multiprocessors: queues that a program can have */
    size_t memory_bytes; /* in all */
    size_t shared_bytes; /* that a block may have */
} mgl_cuda_device;

/* What was found. Whatever is missing has its reason, one sentence with what to do. */
typedef struct mgl_cuda_probe {
    bool driver; /* libcuda.so.1 was opened and started */
    char driver_path[256];
    int driver_version; /* 13000: CUDA 13.0 */
    char driver_reason[MGL_CUDA_REASON];
    bool nvrtc;
    char nvrtc_path[256];
    int nvrtc_major, nvrtc_minor;
    char nvrtc_reason[MGL_CUDA_REASON];
    bool linker; /* kernels of two lists are compiled in parts, side by side */
    char linker_path[256];
    char linker_reason[MGL_CUDA_REASON];
    int device_count;
    mgl_cuda_device devices[MGL_CUDA_MAX_DEVICES];
    bool cache; /* compiled kernels can be kept */
    char cache_path[1024];
    char cache_reason[MGL_CUDA_REASON];
} mgl_cuda_probe;

/* Looks at the machine. Never fails: what is wrong is in *out. Reads CUDA_HOME and the environment
 * of the kernel cache (mgl_cuda_cache_path). */
void mgl_cuda_get_probe(mgl_cuda_probe *out);

/* The target of device `ordinal`: its architecture, one queue an SM (at most MGL_MAX_QUEUES). */
mgl_status mgl_cuda_live_target(int ordinal, mgl_target *out, mgl_error *err);

/* A compiled kernel. Release with mgl_cuda_image_clear. */
typedef struct mgl_cuda_image {
    void *bytes;
    size_t length;
    bool ptx;         /* 0-terminated text for the driver to compile, else machine code */
    bool cached;      /* came from the cache */
    double compile_s; /* 0 when it came from the cache */
    double total_s;   /* until it was there, from wherever it came */
    bool died;        /* there is none: the compiler's process ended before it was done */
    char log[2048];   /* of the compiler: warnings */
    char cache_note[MGL_CUDA_REASON]; /* why it could not be kept; "" when it could */
} mgl_cuda_image;

/* What ends the wait for a kernel, and who hears of it; of zeros: nothing and nobody. */
typedef struct mgl_cuda_watch {
    const atomic_int *abort; /* set by anybody; may be NULL */
    mgl_stage_fn *on_stage;  /* of MGL_STAGE_KERNEL; may be NULL */
    void *stage_user;
} mgl_cuda_watch;

/* What a kernel has beside what it computes with: bits. */
enum {
    MGL_CUDA_TRACE = 1, /* tasks leave events */
    MGL_CUDA_DELAYS = 2 /* random delays: device/delay.cuh */
};

/* Compiles the kernel for a program and an architecture: "sm_90a" gives machine code, "compute_80"
 * PTX. `extras`: MGL_CUDA_... bits. `watch` may be NULL. Needs NVRTC, but no device. */
mgl_status mgl_cuda_compile(const mgl_program *program, const char *arch, unsigned extras,
                            const mgl_cuda_watch *watch, mgl_cuda_image *out, mgl_error *err);
void mgl_cuda_image_clear(mgl_cuda_image *image);

/* The same in two steps, between which it goes on beside the caller: started, and waited for and
 * released. When the watch is told to end (MGL_INTERRUPTED), a child that compiles is killed. NVRTC
 * in this process can not be stopped: it is left to its thread, which keeps the result in the
 * cache; a process that exits meanwhile waits for it. */
typedef struct mgl_cuda_compilation mgl_cuda_compilation;
mgl_status mgl_cuda_compile_start(const mgl_program *program, const char *arch, unsigned extras,
                                  mgl_cuda_compilation **out, mgl_error *err);
mgl_status mgl_cuda_compile_finish(mgl_cuda_compilation *compilation, const mgl_cuda_watch *watch,
                                   mgl_cuda_image *out, mgl_error *err);

/* From now on kernels are compiled in a child of this process that runs `program` (static storage;
 * NULL: no more), such as "/proc/self/exe". Its main must hand what stands behind
 * MGL_CUDA_WORKER_FLAG, its first argument, to mgl_cuda_compile_worker, and return that. For the
 * main of a program; not thread safe. */
#define MGL_CUDA_WORKER_FLAG "--compile-kernel"
void mgl_cuda_compile_use_child(const char *program);
int mgl_cuda_compile_worker(const char *parent);

/* From now on at most so many parts of kernels are compiled at once; 0: as many as there are
 * processors. */
void mgl_cuda_compile_use_processors(int count);

/* Names what mgl_cuda_compile would compile: a kernel of the same name, whichever compiler made it,
 * does for the program. Comments and layout of the sources do not count (canonical.h). */
void mgl_cuda_kernel_key(const mgl_program *program, const char *arch, unsigned extras,
                         char key[MGL_SHA256_HEX]);

/* From now on the kernels of programs are compiled with these texts (count) in the place of the
 * sources of the same names; they are copied. 0: as they were built in.
 * The cache of compiled kernels tells them apart. Not thread safe. MGL_USAGE: the kernel has no
 * such source. */
mgl_status mgl_cuda_override_sources(const mgl_cuda_source *sources, int count, mgl_error *err);
/* Whether a program's kernel is compiled with such texts: programs of one list without biases,
 * norms of q and k, penalties, and merges in o. Other programs keep the built-in sources, because
 * the texts are not timed in them. */
bool mgl_cuda_takes_sources(const mgl_program *program);
/* The same as mgl_cuda_override_sources, but all programs take the texts: the correctness check of
 * a micro-kernel also runs it in programs of the other kinds. */
mgl_status mgl_cuda_override_all_sources(const mgl_cuda_source *sources, int count, mgl_error *err);

/* What the compiler says of a program's kernel. Release with mgl_cuda_report_clear. */
typedef struct mgl_cuda_report {
    bool compiled;
    char *log; /* owned: errors and warnings, then what ptxas says of each function */
    char *ptx; /* (ptx_length) owned, 0-terminated; NULL: it did not compile */
    size_t ptx_length;
    double compile_s;
} mgl_cuda_report;

/* Compiles in this process, past the cache, with `values` (value_count) as -D<name>=<value>. That
 * the compiler refuses it is no failure. */
typedef struct mgl_cuda_value {
    const char *name;
    int64_t value;
} mgl_cuda_value;
mgl_status mgl_cuda_compile_report(const mgl_program *program, const char *arch,
                                   const mgl_cuda_value *values, int value_count,
                                   mgl_cuda_report *out, mgl_error *err);
void mgl_cuda_report_clear(mgl_cuda_report *report);

/* A constant of a compilation: MGL_<name>. */
typedef struct mgl_cuda_constant {
    const char *name;
    uint32_t value;
} mgl_cuda_constant;

/* Compiles other kernels than the machine's: the first of `sources` (static storage), which
 * includes the others by their names. Not cached. `watch` may be NULL. */
mgl_status mgl_cuda_compile_sources(const mgl_cuda_source *sources, int count, const char *arch,
                                    const mgl_cuda_constant *constants, int constant_count,
                                    const mgl_cuda_watch *watch, mgl_cuda_image *out,
                                    mgl_error *err);

/* The folder of compiled kernels: $MEGALITH_CACHE, or $XDG_CACHE_HOME/megalith, or
 * ~/.cache/megalith. False: none of these is set, or the path is too long. */
bool mgl_cuda_cache_path(char *path, size_t length);

/* The events of the last launch of a machine that was opened with trace_epochs: (trace_epochs,
 * task_count), of two lists the tasks of the second behind those of the first (schedule/lists.h);
 * epoch e in row e mod trace_epochs; release with mgl_free. */
mgl_status mgl_cuda_get_trace(mgl_vm *vm, mgl_device_event **out, mgl_error *err);

/* Shared memory that a block of the program's kernel needs. */
size_t mgl_cuda_shared_bytes(const mgl_program *program);

#endif
