/*
 * Tests of a compiled model whose kernel was built from other sources than the program's. The
 * kernel is compiled again if NVRTC is found. Without NVRTC a GPU rejects the file with the
 * remedies. Other comments do not count as other sources.
 */
#include "tests/vm/cuda/cuda_support.h"
#include "tests/vm/cuda/fake_driver.h"
#include "tests/vm/cuda/reworded.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/scratch.h"
#include "vm/cuda/cuda.h"
#include "vm/image.h"
#include "vm/pipeline/device.h"

static char folder[] = "/tmp/megalith-old-XXXXXX", path[128];
static mgl_graph *graph;
static mgl_program *program;
static char key[MGL_SHA256_HEX];

/* NVRTC is searched first in $CUDA_HOME. This one has a library without its functions. */
static void hide_nvrtc(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    char place[160];
    Dl_info libc;
    ck_assert(dladdr(dlsym(RTLD_DEFAULT, "puts"), &libc));
    snprintf(place, sizeof place, "%s/lib64", folder);
    ck_assert_int_eq(mkdir(place, 0777), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(place, sizeof place, "%s/lib64/%s", folder, names[i]);
        ck_assert_int_eq(symlink(libc.dli_fname, place), 0);
    }
    setenv("CUDA_HOME", folder, 1);
}

static void set_up(void)
{
    reset_fake();
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/m.mega", folder);
    setenv("MEGALITH_CACHE", folder, 1);
    hide_nvrtc();
    mgl_cu_override(&fake_cu);
    graph = random_graph(&tiny_model, 64, true, MGL_F32, 1);
    program = program_for(graph, "sm_90a:4", &(device_options){.dtype = MGL_BF16, .capacity = 32});
    mgl_cuda_kernel_key(program, "sm_90a", 0, key);
}

static void tear_down(void)
{
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_cu_override(NULL);
    mgl_nvrtc_override(NULL);
    scratch_remove(folder);
}

/* Writes a compiled file of the program with a kernel of that key. */
static mgl_image *open_image(const char *arch, const char *of)
{
    mgl_error err;
    mgl_image *image;
    uint64_t bytes;
    const mgl_vm_kernel kernel = {.arch = arch, .key = of, .bytes = "machine code", .length = 12};
    const mgl_image_file config = {"config.json", "{}", 2};
    const mgl_image_content content = {.program = program,
                                       .graph = graph,
                                       .files = &config,
                                       .file_count = 1,
                                       .kernels = &kernel,
                                       .kernel_count = 1};
    ok(mgl_image_write(path, &content, &bytes, &err), err);
    ok(mgl_image_open(path, &image, &err), err);
    return image;
}

static mgl_image *open_old(void)
{
    char old[MGL_SHA256_HEX];
    memcpy(old, key, sizeof old);
    old[0] = old[0] == 'f' ? '0' : 'f';
    return open_image("sm_90a", old);
}

static mgl_vm_kind found(const mgl_image *image, const char *name)
{
    mgl_error err;
    mgl_device device;
    ok(mgl_device_find_for(image, name, &device, &err), err);
    return device.kind;
}

static const char *const gpus[] = {NULL, "auto", "cuda", "cuda:0"};
enum { GPUS = sizeof gpus / sizeof *gpus };

/* ---- without NVRTC --------------------------------------------------------------------------- */

START_TEST(an_old_kernel_is_rejected)
{
    static const char *const words[] = {"sm_90a", "other sources", "'megalith compile'", "NVRTC",
                                        "install"};
    mgl_image *image = open_old();
    mgl_device device;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_device_find_for(image, gpus[_i], &device, &err), MGL_DEVICE);
    ck_assert_str_eq(err.where, path);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(strstr(err.message, words[i]), "%s", err.message);
    ck_assert_int_eq(found(image, "cpu"), MGL_VM_CPU);
    mgl_image_close(image);
}
END_TEST

START_TEST(the_kernel_of_this_version_needs_no_compiler)
{
    mgl_image *image = open_image("sm_90a", key);
    ck_assert_int_eq(found(image, gpus[_i]), MGL_VM_CUDA);
    mgl_image_close(image);
}
END_TEST

START_TEST(other_comments_are_the_same_kernel)
{
    mgl_error err;
    mgl_image *image = open_image("sm_90a", key);
    ok(mgl_cuda_override_all_sources(reword_sources(_i), mgl_cuda_source_count, &err), err);
    ck_assert_int_eq(found(image, "auto"), MGL_VM_CUDA);
    ok(mgl_cuda_override_all_sources(NULL, 0, &err), err);
    mgl_image_close(image);
}
END_TEST

/* A file for another architecture has no outdated kernel: "auto" is the CPU, as without a
 * kernel. */
START_TEST(no_kernel_is_no_old_kernel)
{
    mgl_image *image = open_image("sm_80", key);
    ck_assert_int_eq(found(image, "auto"), MGL_VM_CPU);
    ck_assert_int_eq(found(image, "cuda"), MGL_VM_CUDA);
    mgl_image_close(image);
}
END_TEST

/* ---- with NVRTC ------------------------------------------------------------------------------ */

START_TEST(an_old_kernel_is_compiled_anew)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_image *image = open_old();
    mgl_nvrtc_override(&fake_nvrtc);
    ck_assert_int_eq(found(image, gpus[_i]), MGL_VM_CUDA);
    const mgl_vm_options options = {.kind = MGL_VM_CUDA,
                                    .weights = image->weights,
                                    .kernels = image->kernels,
                                    .kernel_count = image->kernel_count};
    nvrtc_compiles = 0;
    ok(mgl_vm_open(image->program, graph, &options, &vm, &err), err);
    ck_assert_int_eq(nvrtc_compiles, 1);
    mgl_vm_close(vm);
    nothing_is_left();
    mgl_image_close(image);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("old_kernel");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, an_old_kernel_is_rejected, 0, GPUS);
    tcase_add_loop_test(tests, the_kernel_of_this_version_needs_no_compiler, 0, GPUS);
    tcase_add_loop_test(tests, other_comments_are_the_same_kernel, 0, REWORDINGS);
    tcase_add_test(tests, no_kernel_is_no_old_kernel);
    tcase_add_loop_test(tests, an_old_kernel_is_compiled_anew, 0, GPUS);
    return fixture_main("old_kernel", tests);
}
