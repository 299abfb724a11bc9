/*
 * Implements NVRTC for the emulator. The sources are rewritten (rewrite.h) and compiled by the
 * host's C++ compiler: the kernel's between device/ptx.h and device/entry.h, the benchmark's
 * between device/plain.h and device/plain_entry.h. The "cubin" is the shared object, with its
 * length in front, because a cubin contains its length. driver.c opens it. The project's kernel
 * cache stores it under a version that covers the headers of this folder. Compiled libraries are
 * also stored here, under a hash of the sources and options, for callers without that cache.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/sha256.h"
#include "emulator.h"
#include "rewrite.h"
#include "vm/cuda/driver.h"

#define HERE   MGL_SOURCE_DIR "/tests/emulator"
#define STORED MGL_BINARY_DIR "/tests/emulator/objects"

enum {
    MOST_SOURCES = 128,
    MOST_ARGUMENTS = 80,
    PATH = 1400,
    LOG = 4000,
    FAILED = 6 /* NVRTC_ERROR_COMPILATION */,
    LARGEST = 1 << 26
};

static struct {
    const char *names[MOST_SOURCES], *texts[MOST_SOURCES];
    int count;
    char log[LOG];
    char *object; /* the compiled library */
    size_t length;
    bool broken; /* a kernel failed to compile, so the others will fail too */
} program;

/* -Og: less optimization slows the kernel's loops; more slows compilation. */
static const char *const flags[] = {"-x",
                                    "c++",
                                    "-std=gnu++17",
                                    "-Og",
                                    "-g1",
                                    "-w",
                                    "-fpermissive", /* traced: a member called as its type */
                                    "-fmax-errors=3",
                                    "-fPIC",
                                    "-shared",
                                    "-fno-strict-aliasing",
                                    "-fno-omit-frame-pointer",
                                    "-fno-gnu-unique", /* dlclose unloads the kernel */
                                    "-ffp-contract=off",
                                    "-fsanitize=alignment,bounds",
                                    "-fsanitize-undefined-trap-on-error",
                                    "-I" HERE};

static const char *const headers[] = {HERE "/device/engine.h", HERE "/device/cuda.h",
                                      HERE "/device/ptx.h",    HERE "/device/entry.h",
                                      HERE "/rewrite.c",       HERE "/compiler.c"};

static int read_text(const char *path, char **text)
{
    size_t length;
    mgl_error err;
    if (!mgl_file_read(path, LARGEST, text, &length, &err))
        return 0;
    snprintf(program.log, sizeof program.log, "%s: %s", err.where, err.message);
    return FAILED;
}

static void add_text(mgl_sha256 *hash, const char *text)
{
    mgl_sha256_add(hash, text, strlen(text) + 1);
}

/* Starts a hash with the emulator's headers and compiler options. */
static int start_hash(mgl_sha256 *hash)
{
    mgl_sha256_start(hash);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char *text;
        if (read_text(headers[i], &text))
            return FAILED;
        add_text(hash, text);
        mgl_free(text);
    }
    return 0;
}

/* The hash, besides the kernel's sources. */
static int version(int *major, int *minor)
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    if (start_hash(&hash))
        return FAILED;
    mgl_sha256_end(&hash, bytes);
    *major = 1;
    *minor = bytes[0] << 16 | bytes[1] << 8 | bytes[2];
    return 0;
}

static int create(void **out, const char *source, const char *name, int count,
                  const char *const *texts, const char *const *names)
{
    if (count >= MOST_SOURCES)
        emu_give_up("the kernel has too many sources: raise MOST_SOURCES of compiler.c");
    program.names[0] = name;
    program.texts[0] = source;
    program.count = count + 1;
    program.log[0] = 0;
    for (int i = 0; i < count; i++) {
        program.names[i + 1] = names[i];
        program.texts[i + 1] = texts[i];
    }
    *out = &program;
    return 0;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static int write_file(const char *path, const char *text)
{
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        mkdir(path, 0777);
        *p = '/';
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        snprintf(program.log, sizeof program.log, "%s cannot be written", path);
        return FAILED;
    }
    return 0;
}

static int rewrite_into(const char *folder, int i, const char *known)
{
    char path[PATH];
    char *text =
        emu_rewrite(program.names[i], program.texts[i], known, program.log, sizeof program.log);
    if (!text)
        return FAILED;
    snprintf(path, sizeof path, "%s/%s", folder, program.names[i]);
    int result = write_file(path, text);
    free(text);
    return result;
}

/* Writes the rewritten sources, and the file that includes them. */
static int write_sources(const char *folder)
{
    char path[PATH], main[PATH];
    char *known;
    bool plain = strncmp(program.names[0], "eval/", 5) == 0;
    int result = read_text(HERE "/device/ptx.h", &known);
    if (result)
        return result;
    for (int i = 0; i < program.count && !result; i++)
        result = rewrite_into(folder, i, known);
    mgl_free(known);
    snprintf(path, sizeof path, "%s/main.cpp", folder);
    snprintf(main, sizeof main,
             "#include \"device/%s.h\"\n#include \"%s\"\n#include \"device/%s.h\"\n",
             plain ? "plain" : "ptx", program.names[0], plain ? "plain_entry" : "entry");
    return result ? result : write_file(path, main);
}

/* -arch=sm_90a or compute_80 as __CUDA_ARCH__: 900 or 800. */
static void name_arch(const char *option, char to[64])
{
    const char *digits = option + strcspn(option, "0123456789");
    snprintf(to, 64, "-D__CUDA_ARCH__=%d", atoi(digits) * 10);
}

/* Runs the compiler. Its output goes to `log`. */
static int run(char *const *arguments, const char *log)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen(log, "w", stderr))
            _exit(126);
        execvp(arguments[0], arguments);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return FAILED;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : FAILED;
}

static int compile_in(const char *folder, int count, const char *const *options)
{
    char *arguments[MOST_ARGUMENTS];
    char arch[64] = "", include[PATH], map[PATH], source[PATH], object[PATH], log[PATH], *text;
    int n = 0;
    snprintf(include, sizeof include, "-I%s", folder);
    snprintf(map, sizeof map, "-ffile-prefix-map=%s/=", folder);
    snprintf(source, sizeof source, "%s/main.cpp", folder);
    snprintf(object, sizeof object, "%s/kernel.so", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    arguments[n++] = (char *)(uintptr_t)MGL_EMULATOR_CXX;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        arguments[n++] = (char *)(uintptr_t)flags[i];
    for (int i = 0; i < count; i++) {
        if (n >= MOST_ARGUMENTS - 8)
            emu_give_up("the kernel has too many options: raise MOST_ARGUMENTS of compiler.c");
        if (!strncmp(options[i], "-D", 2))
            arguments[n++] = (char *)(uintptr_t)options[i];
        else if (!strncmp(options[i], "-arch=", 6))
            name_arch(options[i], arch);
    }
    char *const last[] = {arch, include, map, source, (char *)(uintptr_t) "-o", object, NULL};
    memcpy(arguments + n, last, sizeof last);
    int result = run(arguments, log);
    if (result && !read_text(log, &text)) {
        snprintf(program.log, sizeof program.log, "%s", text);
        mgl_free(text);
        return result;
    }
    mgl_error err;
    return result ? result
                  : (int)mgl_file_read(object, LARGEST, &program.object, &program.length, &err);
}

/* The file of the compiled library: its name is a hash of the sources, options and compiler. */
static int stored_path(int count, const char *const *options, char path[PATH])
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    char hex[MGL_SHA256_HEX];
    if (start_hash(&hash))
        return FAILED;
    add_text(&hash, MGL_EMULATOR_CXX " " __VERSION__);
    for (int i = 0; i < program.count; i++) {
        add_text(&hash, program.names[i]);
        add_text(&hash, program.texts[i]);
    }
    for (int i = 0; i < count; i++)
        add_text(&hash, options[i]);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, hex);
    snprintf(path, PATH, "%s/%s", STORED, hex);
    return 0;
}

/* If this fails, the next process compiles again. */
static void store(const char *path)
{
    mgl_error err;
    mkdir(STORED, 0777);
    (void)mgl_output_write_file(path, program.object, program.length, &err);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static int compile(void *which, int count, const char *const *options)
{
    (void)which;
    char folder[] = "/tmp/megalith-emulator-XXXXXX", path[PATH];
    mgl_error err;
    if (!strcmp(program.names[0], "settle.cu")) /* its result is not used */
        return FAILED;
    if (program.broken)
        snprintf(program.log, sizeof program.log, "see the first kernel that did not compile");
    if (program.broken || stored_path(count, options, path))
        return FAILED;
    mgl_free(program.object);
    program.object = NULL;
    if (mgl_file_read(path, LARGEST, &program.object, &program.length, &err) == MGL_OK)
        return 0;
    if (!mkdtemp(folder))
        return FAILED;
    int result = write_sources(folder);
    if (!result)
        result = compile_in(folder, count, options);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (!result)
        store(path);
    program.broken = result != 0;
    return result;
}

/* ---- results --------------------------------------------------------------------------------- */

static int log_size(void *which, size_t *bytes)
{
    (void)which;
    *bytes = strlen(program.log) + 1;
    return 0;
}

static int get_log(void *which, char *to)
{
    (void)which;
    memcpy(to, program.log, strlen(program.log) + 1);
    return 0;
}

static int object_size(void *which, size_t *bytes)
{
    (void)which;
    *bytes = sizeof program.length + program.length;
    return program.object ? 0 : FAILED;
}

static int get_object(void *which, char *to)
{
    (void)which;
    memcpy(to, &program.length, sizeof program.length);
    memcpy(to + sizeof program.length, program.object, program.length);
    return 0;
}

static int destroy(void **which)
{
    mgl_free(program.object);
    program.object = NULL;
    *which = NULL;
    return 0;
}

void emu_fill_compiler(mgl_nvrtc *table)
{
    *table = (mgl_nvrtc){.version = version,
                         .create = create,
                         .compile = compile,
                         .log_size = log_size,
                         .log = get_log,
                         .cubin_size = object_size,
                         .cubin = get_object,
                         .ptx_size = object_size,
                         .ptx = get_object,
                         .destroy = destroy,
                         .path = MGL_EMULATOR_CXX};
}
