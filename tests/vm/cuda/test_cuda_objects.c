/*
 * Tests of kernels compiled in several objects, with a fake compiler and linker: the calls, their
 * concurrency, and failures. The fake compiler's result names its object, and the linker's result
 * names all objects.
 */
#include "tests/vm/cuda/cuda_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "schedule/variant_shapes.h"
#include "tests/scratch.h"
#include "vm/cuda/compile.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/device/objects.h"
#include "vm/cuda/driver.h"
#include "vm/cuda/sources.h"

enum { FAILED = 6, NONE = -1, ONE_TEXT = MGL_OBJECTS };

/* ---- a compiler ------------------------------------------------------------------------------ */

static struct {
    int major, minor, linker_major, linker_minor;
    int bad;           /* the object that cannot be compiled */
    int pause_ms;      /* duration of a compilation */
    bool refuses;      /* the linker rejects all input */
    atomic_int *abort; /* set by the first compilation; may be NULL */

    atomic_int at_once, most_at_once, texts, compiled, links;
    atomic_int registers; /* -maxrregcount of the last object */
} fake;

/* The running compilations. */
typedef struct making {
    int object;
    char log[64];
    char result[32];
} making;

static int nvrtc_version(int *major, int *minor)
{
    *major = fake.major, *minor = fake.minor;
    return 0;
}

static int nvrtc_create(void **program, const char *source, const char *name, int count,
                        const char *const *headers, const char *const *names)
{
    (void)source, (void)name, (void)count, (void)headers, (void)names;
    *program = calloc(1, sizeof(making));
    return *program ? 0 : FAILED;
}

static void pause_for(int ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

static void read_options(making *m, int count, const char *const *options)
{
    int registers;
    m->object = ONE_TEXT;
    for (int i = 0; i < count; i++) {
        sscanf(options[i], "-DMGL_OBJECT=%d", &m->object);
        if (sscanf(options[i], "-maxrregcount=%d", &registers) == 1)
            fake.registers = registers;
    }
}

static int nvrtc_compile(void *program, int count, const char *const *options)
{
    making *m = program;
    const int at_once = ++fake.at_once;
    if (at_once > fake.most_at_once)
        fake.most_at_once = at_once;
    read_options(m, count, options);
    if (m->object == ONE_TEXT)
        fake.texts++;
    else
        fake.compiled++;
    if (fake.abort)
        atomic_store(fake.abort, 1);
    pause_for(fake.pause_ms);
    snprintf(m->result, sizeof m->result, "[%d]", m->object);
    if (m->object == fake.bad)
        snprintf(m->log, sizeof m->log, "object %d is bad", m->object);
    fake.at_once--;
    return m->object == fake.bad ? FAILED : 0;
}

static int nvrtc_log_size(void *program, size_t *bytes)
{
    *bytes = strlen(((making *)program)->log) + 1;
    return 0;
}

static int nvrtc_log(void *program, char *log)
{
    strcpy(log, ((making *)program)->log);
    return 0;
}

static int nvrtc_cubin_size(void *program, size_t *bytes)
{
    *bytes = strlen(((making *)program)->result);
    return 0;
}

static int nvrtc_cubin(void *program, char *cubin)
{
    const char *result = ((making *)program)->result;
    memcpy(cubin, result, strlen(result));
    return 0;
}

static int nvrtc_destroy(void **program)
{
    free(*program);
    *program = NULL;
    return 0;
}

#define nvrtc_ptx_size nvrtc_cubin_size
#define nvrtc_ptx      nvrtc_cubin

static const mgl_nvrtc compiler = {
#define MGL_X(member, symbol, arguments) .member = nvrtc_##member,
    MGL_NVRTC_FUNCTIONS(MGL_X)
#undef MGL_X
};

/* ---- a linker -------------------------------------------------------------------------------- */

static char linked[1024];

static int link_version(unsigned *major, unsigned *minor)
{
    *major = (unsigned)fake.linker_major, *minor = (unsigned)fake.linker_minor;
    return 0;
}

static int link_create(void **link, uint32_t count, const char **options)
{
    ck_assert_int_eq(count, 1);
    ck_assert_str_eq(options[0], "-arch=sm_90a");
    fake.links++;
    *linked = 0;
    *link = linked;
    return 0;
}

static int link_destroy(void **link)
{
    *link = NULL;
    return 0;
}

static int link_add(void *link, int kind, const void *data, size_t bytes, const char *name)
{
    (void)name;
    ck_assert_ptr_eq(link, linked);
    ck_assert_int_eq(kind, MGL_JITLINK_CUBIN);
    strncat(linked, data, bytes);
    return 0;
}

static int link_complete(void *link)
{
    ck_assert_ptr_eq(link, linked);
    return fake.refuses ? FAILED : 0;
}

static int link_cubin_size(void *link, size_t *bytes)
{
    *bytes = strlen(link);
    return 0;
}

static int link_cubin(void *link, void *cubin)
{
    memcpy(cubin, link, strlen(link));
    return 0;
}

static const char complaint[] = "the linker is out of sorts";

static int link_error_size(void *link, size_t *bytes)
{
    (void)link;
    *bytes = sizeof complaint;
    return 0;
}

static int link_error_log(void *link, char *log)
{
    (void)link;
    memcpy(log, complaint, sizeof complaint);
    return 0;
}

static const mgl_jitlink linker = {
#define MGL_X(member, symbol, arguments) .member = link_##member,
    MGL_JITLINK_FUNCTIONS(MGL_X)
#undef MGL_X
};

/* ---- kernels --------------------------------------------------------------------------------- */

static mgl_graph *graph;
static mgl_program *program;
static char folder[] = "/tmp/megalith-objects-XXXXXX"; /* folder of the cache */

static const char *const kept[] = {"MEGALITH_CACHE", "XDG_CACHE_HOME", "HOME"};

static mgl_program *lower_with(int warps)
{
    const device_options options = {.dtype = MGL_BF16,
                                    .capacity = 160,
                                    .sequences = 16,
                                    .rows = 8,
                                    .second_rows = 32,
                                    .gamma_scaled = MGL_GAMMA_YES,
                                    .warps = warps};
    return program_for(graph, "sm_90a:132", &options);
}

static void set_up(void)
{
    static const mgl_geometry tales = {256, 1, 4, 2, 64, 768, 913, 1e-5f};
    memset(&fake, 0, sizeof fake);
    fake.major = fake.linker_major = 13;
    fake.bad = NONE;
    for (int i = 0; i < 3; i++)
        unsetenv(kept[i]);
    mgl_nvrtc_override(&compiler);
    mgl_jitlink_override(&linker);
    graph = random_family(&tales, 0, 4096, true, MGL_F32, 1);
    program = lower_with(0);
}

static void tear_down(void)
{
    mgl_cuda_compile_use_processors(0);
    mgl_nvrtc_override(NULL);
    mgl_jitlink_override(NULL);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

static mgl_status compile_it(mgl_cuda_image *out, atomic_int *abort, mgl_error *err)
{
    const mgl_cuda_watch watch = {.abort = abort};
    return mgl_cuda_compile(program, "sm_90a", 0, &watch, out, err);
}

static void expect(const mgl_cuda_image *image, const char *wanted)
{
    ck_assert_msg(image->length == strlen(wanted) && !memcmp(image->bytes, wanted, image->length),
                  "%.*s", (int)image->length, (const char *)image->bytes);
}

/* Compiles the kernel: *out is released by the caller. */
static void compile_well(mgl_cuda_image *out)
{
    mgl_error err;
    ok(compile_it(out, NULL, &err), err);
}

static const char all[] = "[0][1][2][3][4][5][6][7][8][9][10][11][12][13][14][15][16]";

START_TEST(objects_are_linked_in_their_order)
{
    mgl_cuda_image image;
    compile_well(&image);
    expect(&image, all);
    ck_assert_int_eq(fake.compiled, MGL_OBJECTS);
    mgl_cuda_image_clear(&image);
}
END_TEST

/* A linker reads objects of compilers of its version and of older ones. */
START_TEST(an_older_linker_is_not_asked)
{
    static const struct {
        int major, minor, linker_major, linker_minor;
        bool links;
    } cases[] = {{13, 0, 13, 0, true},  {13, 0, 13, 1, true},  {13, 1, 13, 0, false},
                 {13, 1, 12, 9, false}, {13, 1, 14, 0, true},  {12, 9, 13, 0, false},
                 {14, 2, 14, 1, false}, {14, 2, 14, 10, true}, {13, 10, 13, 9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_cuda_image image;
        mgl_error err;
        fake.major = cases[i].major, fake.minor = cases[i].minor;
        fake.linker_major = cases[i].linker_major, fake.linker_minor = cases[i].linker_minor;
        ck_assert_int_eq(mgl_jitlink_for(&compiler, &err) != NULL, cases[i].links);
        if (!cases[i].links)
            ck_assert_msg(strstr(err.message, "install"), "%s", err.message);
        compile_well(&image);
        expect(&image, cases[i].links ? all : "[17]");
        mgl_cuda_image_clear(&image);
    }
}
END_TEST

START_TEST(what_is_said_of_a_bad_object_is_told)
{
    mgl_cuda_image image;
    mgl_error err;
    fake.bad = MGL_OBJECT_SMALL_M;
    ck_assert_int_eq(compile_it(&image, NULL, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "object 8 is bad"), "%s", err.message);
    ck_assert_int_eq(fake.links, 0);
    ck_assert_int_le(fake.texts, 1); /* at most the minimal kernel that an exit needs */
    ck_assert_ptr_null(image.bytes);
}
END_TEST

START_TEST(no_more_are_at_work_than_processors)
{
    for (int processors = 1; processors <= 3; processors++) {
        mgl_cuda_image image;
        fake.most_at_once = 0;
        fake.pause_ms = 2;
        mgl_cuda_compile_use_processors(processors);
        compile_well(&image);
        ck_assert_int_le(fake.most_at_once, processors);
        mgl_cuda_image_clear(&image);
    }
}
END_TEST

/* A compilation that waits for a processor is cancelled too, and so are those that have not
 * started. */
START_TEST(an_abort_ends_all_objects)
{
    mgl_cuda_image image;
    mgl_error err;
    atomic_int abort = 0;
    mgl_cuda_compile_use_processors(1);
    fake.abort = &abort;
    fake.pause_ms = 50;
    ck_assert_int_eq(compile_it(&image, &abort, &err), MGL_INTERRUPTED);
    mgl_cuda_await_compilations();
    ck_assert_int_le(fake.compiled, 1);
    ck_assert_int_eq(fake.links, 0);
}
END_TEST

/* 65,536 registers, allocated per four warps, in multiples of eight; at most 255. */
START_TEST(objects_know_the_registers_of_a_block)
{
    static const int warps[][2] = {{1, 248}, {4, 248}, {5, 168}, {8, 168}, {10, 128}, {16, 96}};
    for (size_t i = 0; i < sizeof warps / sizeof *warps; i++) {
        mgl_cuda_image image;
        mgl_program_free(program);
        program = lower_with(warps[i][0]);
        compile_well(&image);
        ck_assert_msg(fake.registers == warps[i][1] ||
                          (warps[i][1] == 248 && fake.registers == 255),
                      "%d consumer warps: %d registers", warps[i][0], fake.registers);
        mgl_cuda_image_clear(&image);
    }
}
END_TEST

/* ---- the cache ------------------------------------------------------------------------------- */

static void remove_folder(void)
{
    DIR *open = opendir(folder);
    for (const struct dirent *e; open && (e = readdir(open));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(open), e->d_name, 0);
    if (open)
        closedir(open);
    rmdir(folder);
}

static void use_folder(void)
{
    scratch_make(folder);
    setenv("MEGALITH_CACHE", folder, 1);
}

/* Compiles with this expected result; true: it was cached. */
static bool find(const char *wanted)
{
    mgl_cuda_image image;
    compile_well(&image);
    expect(&image, wanted);
    const bool cached = image.cached;
    mgl_cuda_image_clear(&image);
    return cached;
}

START_TEST(what_was_linked_is_kept)
{
    use_folder();
    ck_assert(!find(all));
    ck_assert(find(all));
    ck_assert_int_eq(fake.compiled, MGL_OBJECTS);
    fake.linker_minor = 1; /* another linker gives another kernel */
    ck_assert(!find(all));
    remove_folder();
}
END_TEST

START_TEST(what_could_not_be_linked_is_kept_as_one_text)
{
    mgl_cuda_image image;
    use_folder();
    fake.refuses = true;
    compile_well(&image);
    expect(&image, "[17]");
    ck_assert(!image.cached);
    ck_assert_msg(strstr(image.log, "rejected the kernel's objects"), "%s", image.log);
    ck_assert_msg(strstr(image.log, complaint), "%s", image.log);
    mgl_cuda_image_clear(&image);
    ck_assert(find("[17]"));
    fake.refuses = false;
    ck_assert(find("[17]"));
    ck_assert_int_eq(fake.compiled, MGL_OBJECTS);
    ck_assert_int_eq(fake.links, 1);
    remove_folder();
}
END_TEST

/* Overridden sources that are restored while an abandoned compilation still reads them. */
START_TEST(what_was_left_is_kept_under_its_own_key)
{
    const mgl_cuda_source other = {mgl_cuda_sources[1].name, (const unsigned char *)"other"};
    const device_options options = {.dtype = MGL_BF16, .capacity = 160};
    mgl_cuda_image image;
    mgl_error err;
    atomic_int abort = 0;
    use_folder();
    mgl_program_free(program);
    program = program_for(graph, "sm_90a:132", &options);
    ck_assert(mgl_cuda_takes_sources(program));
    fake.abort = &abort;
    fake.pause_ms = 100;
    ok(mgl_cuda_override_sources(&other, 1, &err), err);
    ck_assert_int_eq(compile_it(&image, &abort, &err), MGL_INTERRUPTED);
    ok(mgl_cuda_override_sources(NULL, 0, &err), err);
    mgl_cuda_await_compilations();
    fake.abort = NULL;
    ck_assert(!find("[17]"));
    ok(mgl_cuda_override_sources(&other, 1, &err), err);
    ck_assert(find("[17]")); /* it was cached */
    ok(mgl_cuda_override_sources(NULL, 0, &err), err);
    remove_folder();
}
END_TEST

/* The key depends on the objects that the program needs, and on the threads of a block, which limit
 * the registers. */
START_TEST(other_objects_have_another_key)
{
    use_folder();
    ck_assert(!find(all));
    mgl_program_free(program);
    program = lower_with(10); /* neither warpgroups nor attention that shares rows */
    ck_assert(!find("[0][2][3][4][5][6][7][8][9][11][12][13][14][16]"));
    remove_folder();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cuda_objects");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, objects_are_linked_in_their_order);
    tcase_add_test(tests, an_older_linker_is_not_asked);
    tcase_add_test(tests, what_is_said_of_a_bad_object_is_told);
    tcase_add_test(tests, no_more_are_at_work_than_processors);
    tcase_add_test(tests, an_abort_ends_all_objects);
    tcase_add_test(tests, objects_know_the_registers_of_a_block);
    tcase_add_test(tests, what_was_linked_is_kept);
    tcase_add_test(tests, what_could_not_be_linked_is_kept_as_one_text);
    tcase_add_test(tests, what_was_left_is_kept_under_its_own_key);
    tcase_add_test(tests, other_objects_have_another_key);
    return fixture_main("cuda_objects", tests);
}
