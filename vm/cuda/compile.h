/*
 * Internal interface of kernel compilation. A recipe describes what NVRTC compiles. NVRTC runs in
 * this process or in a child process. A kernel takes seconds to tens of seconds to compile, and
 * NVRTC cannot be interrupted, but a child can be killed.
 *
 * compile.c builds recipes and uses the cache; objects.c compiles and links separate objects;
 * compilation.c runs a compilation on a thread; child.c implements both ends of the child process;
 * report.c overrides sources and returns the compiler's log.
 */
#ifndef MGL_VM_CUDA_COMPILE_H
#define MGL_VM_CUDA_COMPILE_H

#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

/* Version of how objects.c links objects. It is part of a kernel's cache key, with the set of
 * objects and the threads per block. */
enum { MGL_OBJECTS_VERSION = 2 };

enum { MGL_RECIPE_OPTIONS = 64, MGL_RECIPE_OPTION = 64, MGL_RECIPE_SOURCES = 256 };

/* What to compile. */
typedef struct mgl_cuda_recipe {
    char arch[16];
    char options[MGL_RECIPE_OPTIONS][MGL_RECIPE_OPTION]; /* (option_count) compiler options */
    int option_count;
    const mgl_cuda_source
        *sources; /* (source_count) static storage: the first source includes the others */
    int source_count;
    bool kept;        /* whether the result is stored in the kernel cache */
    uint32_t objects; /* bits of the separately compiled objects (device/objects.h); 0: one
                         translation unit */
    int threads;      /* threads per block */
} mgl_cuda_recipe;

/* The recipe of a program's kernel, with overridden sources if any. */
void mgl_cuda_recipe_of(const mgl_program *program, const char *arch, unsigned extras,
                        mgl_cuda_recipe *out);
/* Adds -D<name>=<value>, or another option; at most MGL_RECIPE_OPTIONS options in total. */
void mgl_cuda_recipe_define(mgl_cuda_recipe *recipe, const char *name, int64_t value);
void mgl_cuda_recipe_add(mgl_cuda_recipe *recipe, const char *option);

/* Creates an NVRTC program from a recipe's sources. The caller destroys it. */
mgl_status mgl_cuda_recipe_create(const mgl_nvrtc *nvrtc, const mgl_cuda_recipe *recipe,
                                  void **program, mgl_error *err);

/* The sources of a program's kernel: built-in or overridden. */
const mgl_cuda_source *mgl_cuda_kernel_sources(const mgl_program *program);

/* Starts the compilation of a recipe, as mgl_cuda_compile_start does for a program. */
mgl_status mgl_cuda_recipe_start(const mgl_cuda_recipe *recipe, mgl_cuda_compilation **out,
                                 mgl_error *err);

/* Reads the recipe's kernel from the cache, or compiles and caches it, in a child if
 * mgl_cuda_compile_use_child set one. MGL_INTERRUPTED: `abort` was set, and the compilation could
 * be stopped. */
mgl_status mgl_cuda_recipe_make(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                                mgl_cuda_image *out, mgl_error *err);

/* Marks whether this thread compiles as part of a compilation. If the compiler exits the process on
 * such a thread, the exit does not wait for compilations. Returns the previous value. */
bool mgl_cuda_be_of_the_crowd(bool is);

/* Whether threads of this process compile, including abandoned ones. */
bool mgl_cuda_is_compiling(void);

/* Waits for abandoned compilations. */
void mgl_cuda_await_compilations(void);

/* Waits, at most `seconds`, until a compilation that starts in this process has registered its exit
 * handler (see `settle` in compile.c). */
void mgl_cuda_await_settling(double seconds);

/* Compiles in this process, as one translation unit. */
mgl_status mgl_cuda_recipe_compile(const mgl_cuda_recipe *recipe, mgl_cuda_image *out,
                                   mgl_error *err);

/* Bits of the objects of a program's kernel; 0: one translation unit is better. */
uint32_t mgl_cuda_objects_of(const mgl_program *program, const char *arch);

/* Compiles the objects of a recipe with `compile`, each on its own thread, and links them.
 * *compiled: all objects compiled, so an error comes from the linker. */
typedef mgl_status mgl_cuda_compile_fn(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                                       mgl_cuda_image *out, mgl_error *err);
mgl_status mgl_cuda_objects_compile(const mgl_jitlink *linker, const mgl_cuda_recipe *recipe,
                                    mgl_cuda_compile_fn *compile, const atomic_int *abort,
                                    mgl_cuda_image *out, bool *compiled, mgl_error *err);

/* The program that child processes run; NULL: none. */
const char *mgl_cuda_child_program(void);

/* Compiles in a child process, which has ended when this returns. MGL_INTERRUPTED: `abort` was set.
 * MGL_SYSTEM: the child could not be started. MGL_DEVICE: the child ended without a result
 * (out->died), or its result is an error. */
mgl_status mgl_cuda_child_compile(const char *program, const mgl_cuda_recipe *recipe,
                                  const atomic_int *abort, mgl_cuda_image *out, mgl_error *err);

#endif
