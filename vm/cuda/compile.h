/*
 * What NVRTC is to compile, and the two places where it can: this process, and a child, which can
 * be ended. NVRTC itself can not be: a kernel takes it seconds to tens of seconds, in which it
 * listens to nobody. compile.c says what is compiled, objects.c compiles it in objects,
 * compilation.c waits for it, child.c has both ends of the child.
 */
#ifndef MGL_VM_CUDA_COMPILE_H
#define MGL_VM_CUDA_COMPILE_H

#include "vm/cuda/cuda.h"
#include "vm/cuda/driver.h"

/* Of how objects.c links what it compiles: part of a kernel's key in the cache, beside which
 * objects it has and the threads of a block. */
enum { MGL_OBJECTS_VERSION = 2 };

enum { MGL_RECIPE_OPTIONS = 64, MGL_RECIPE_OPTION = 64, MGL_RECIPE_SOURCES = 256 };

/* A kernel to be. */
typedef struct mgl_cuda_recipe {
    char arch[16];
    char options[MGL_RECIPE_OPTIONS][MGL_RECIPE_OPTION]; /* (option_count) of the compiler */
    int option_count;
    const mgl_cuda_source
        *sources; /* (source_count) static storage: the first includes the others */
    int source_count;
    bool kept;        /* in the cache of compiled kernels */
    uint32_t objects; /* of device/objects.h that it has, bits, each of which may be compiled by
                       itself; 0: it is one text */
    int threads;      /* of a block */
} mgl_cuda_recipe;

/* The kernel of a program, of the sources as they are overridden. */
void mgl_cuda_recipe_of(const mgl_program *program, const char *arch, unsigned extras,
                        mgl_cuda_recipe *out);
/* -D<name>=<value>, and other options: MGL_RECIPE_OPTIONS of all. */
void mgl_cuda_recipe_define(mgl_cuda_recipe *recipe, const char *name, int64_t value);
void mgl_cuda_recipe_add(mgl_cuda_recipe *recipe, const char *option);

/* A program of NVRTC's of a recipe's first source, which includes the others; the caller destroys
 * it. */
mgl_status mgl_cuda_recipe_create(const mgl_nvrtc *nvrtc, const mgl_cuda_recipe *recipe,
                                  void **program, mgl_error *err);

/* The sources of a program's kernel: the built-in sources, or their replacements. */
const mgl_cuda_source *mgl_cuda_kernel_sources(const mgl_program *program);

/* Starts the compilation of a recipe, as mgl_cuda_compile_start does that of a program. */
mgl_status mgl_cuda_recipe_start(const mgl_cuda_recipe *recipe, mgl_cuda_compilation **out,
                                 mgl_error *err);

/* Finds the recipe's kernel in the cache, or compiles it where mgl_cuda_compile_use_child said and
 * keeps it. Ends with MGL_INTERRUPTED when `abort` is set, if it can be ended. */
mgl_status mgl_cuda_recipe_make(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                                mgl_cuda_image *out, mgl_error *err);

/* Whether this thread compiles for one of them: should the compiler exit the process, nobody waits
 * for it. Returns what it was before. */
bool mgl_cuda_be_of_the_crowd(bool is);

/* Whether threads of this process compile, those that were left among them. */
bool mgl_cuda_is_compiling(void);

/* Waits for the compilations that were left. */
void mgl_cuda_await_compilations(void);

/* Waits, but no longer than that, while a compilation in this process begins: until an exit of the
 * process would wait for it. */
void mgl_cuda_await_settling(double seconds);

/* Compiles in this process, as one text. */
mgl_status mgl_cuda_recipe_compile(const mgl_cuda_recipe *recipe, mgl_cuda_image *out,
                                   mgl_error *err);

/* The objects that the kernel of a program has; 0: it is better compiled as one text. */
uint32_t mgl_cuda_objects_of(const mgl_program *program, const char *arch);

/* Compiles the objects of a recipe, each by `compile` from a thread of its own, and links them.
 * *compiled: all were compiled, and the linker is what failed. */
typedef mgl_status mgl_cuda_compile_fn(const mgl_cuda_recipe *recipe, const atomic_int *abort,
                                       mgl_cuda_image *out, mgl_error *err);
mgl_status mgl_cuda_objects_compile(const mgl_jitlink *linker, const mgl_cuda_recipe *recipe,
                                    mgl_cuda_compile_fn *compile, const atomic_int *abort,
                                    mgl_cuda_image *out, bool *compiled, mgl_error *err);

/* The program whose child compiles; NULL: none. */
const char *mgl_cuda_child_program(void);

/* Compiles in a child, which is gone when this returns. MGL_INTERRUPTED: `abort` was set.
 * MGL_SYSTEM: it could not be started. MGL_DEVICE: it ended before it had a result (out->died), or
 * its result is an error. */
mgl_status mgl_cuda_child_compile(const char *program, const mgl_cuda_recipe *recipe,
                                  const atomic_int *abort, mgl_cuda_image *out, mgl_error *err);

#endif
