/*
 * Kills `compile` at random moments (SIGKILL) and checks the files that remain.
 *
 *     kill_compile MODEL KILLS [MEGALITH]
 *
 * With MEGALITH, runs that program. Without, runs a process that calls the library, as on a file
 * system without unnamed files. Before each kill the output X does not exist, or is an earlier
 * file. Afterwards X is missing, the earlier file, or complete, byte for byte; other files have the
 * name of a temporary file. Every tenth compilation runs to its end: only X exists, and it is
 * complete. Otherwise the exit code is 1.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

enum {
    LARGEST = 1 << 30,
    PATHS = 64,
    WHOLE_EVERY = 10,
    CAPACITY = 128, /* of the file X; the earlier file differs in it */
    EARLIER_CAPACITY = 64
};

/* A file with known contents. */
typedef struct known {
    char path[PATHS];
    char *bytes;
    size_t length;
} known;

typedef struct counts {
    int missing, earlier, whole; /* X after a kill */
    int finished;                /* ended before the kill */
    int left;                    /* kills that left a temporary */
    int most;                    /* maximum number of temporary files at once */
    int wrong;                   /* violations */
} counts;

static const char *model, *program; /* program: NULL for the library */
static char folder[] = "/tmp/megalith-kill-XXXXXX";
static char work[PATHS], output[PATHS]; /* the folder of X, and X */
static known earlier, whole;

static void fail(const char *what)
{
    fprintf(stderr, "kill_compile: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- compiling ------------------------------------------------------------------------------- */

static int call_library(const char *to, int capacity)
{
    mgl_error err;
    mgl_compile_report report = {.size = sizeof report};
    mgl_compile_options options = {.size = sizeof options, .target = "cpu:1", .capacity = capacity};
    mgl_output_use_names(true);
    if (!mgl_model_compile(model, &options, to, &report, &err))
        return 0;
    fprintf(stderr, "kill_compile: %s: %s\n", err.where, err.message);
    return 1;
}

static pid_t start(const char *to, int capacity)
{
    char number[16];
    pid_t child = fork();
    if (child < 0)
        fail("no process could be started");
    if (child > 0)
        return child;
    if (!program)
        _exit(call_library(to, capacity));
    int silence = open("/dev/null", O_WRONLY);
    dup2(silence, STDOUT_FILENO);
    snprintf(number, sizeof number, "%d", capacity);
    execl(program, program, "compile", model, "--target", "cpu:1", "--capacity", number, "--quiet",
          "-o", to, (char *)NULL);
    _exit(99);
}

static void compile(const char *to, int capacity)
{
    int status;
    if (waitpid(start(to, capacity), &status, 0) < 0 || status)
        fail("a compilation that nobody killed failed");
}

/* ---- what is left ---------------------------------------------------------------------------- */

static void read_known(known *file)
{
    mgl_error err;
    if (mgl_file_read(file->path, LARGEST, &file->bytes, &file->length, &err))
        fail(err.message);
}

static bool equals(const known *file)
{
    char *bytes;
    size_t length;
    if (mgl_file_read(output, LARGEST, &bytes, &length, NULL))
        return false;
    bool same = length == file->length && !memcmp(bytes, file->bytes, length);
    mgl_free(bytes);
    return same;
}

/* The number of temporary files in the folder; -1 if there is any other file besides them and X. */
static int count_temporaries(void)
{
    int count = 0;
    DIR *entries = opendir(work);
    if (!entries)
        fail("the folder cannot be listed");
    for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        const char *name = entry->d_name;
        if (!strncmp(name, "x.mega" MGL_OUTPUT_MARK, strlen("x.mega" MGL_OUTPUT_MARK)))
            count++;
        else if (strcmp(name, "x.mega") != 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            count = -LARGEST;
    }
    closedir(entries);
    return count < 0 ? -1 : count;
}

static void look(counts *c)
{
    int left = count_temporaries();
    if (access(output, F_OK))
        c->missing++;
    else if (equals(&whole))
        c->whole++;
    else if (equals(&earlier))
        c->earlier++;
    else
        c->wrong++;
    c->left += left > 0;
    c->wrong += left < 0;
    c->most = left > c->most ? left : c->most;
}

/* ---- killing --------------------------------------------------------------------------------- */

/* Half of the kills are in the last fifth of a compilation, when files are renamed. */
static double draw_moment(double length)
{
    double part = (double)random() / RAND_MAX;
    return length * (random() % 2 ? 1.1 * part : 0.8 + 0.3 * part);
}

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

static void kill_one(int number, double length, counts *c)
{
    int status;
    unlink(output);
    if (number % 2 && link(earlier.path, output))
        fail("the earlier file cannot be put in its place");
    double moment = draw_moment(length);
    pid_t child = start(output, CAPACITY);
    sleep_s(moment);
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child)
        fail("the process is lost");
    if (WIFEXITED(status)) {
        c->finished++;
        c->wrong += WEXITSTATUS(status) != 0;
    }
    look(c);
}

static void check_whole(counts *c)
{
    compile(output, CAPACITY);
    if (!equals(&whole) || count_temporaries() != 0)
        c->wrong++;
}

/* Makes the reference files of X. Returns the duration. */
static double prepare(void)
{
    if (!mkdtemp(folder))
        fail("no folder can be made");
    snprintf(work, sizeof work, "%s/work", folder);
    snprintf(output, sizeof output, "%s/work/x.mega", folder);
    snprintf(earlier.path, sizeof earlier.path, "%s/earlier.mega", folder);
    snprintf(whole.path, sizeof whole.path, "%s/whole.mega", folder);
    if (mkdir(work, 0777))
        fail("no folder can be made");
    compile(earlier.path, EARLIER_CAPACITY);
    double shortest = 1e9;
    for (int i = 0; i < 5; i++) {
        double began = mgl_clock_s();
        compile(whole.path, CAPACITY);
        double length = mgl_clock_s() - began;
        shortest = length < shortest ? length : shortest;
    }
    read_known(&earlier);
    read_known(&whole);
    return shortest;
}

static void clean_up(void)
{
    unlink(output);
    unlink(earlier.path);
    unlink(whole.path);
    mgl_free(earlier.bytes);
    mgl_free(whole.bytes);
    if (rmdir(work) || rmdir(folder))
        fprintf(stderr, "left behind: %s\n", folder);
}

int main(int argc, char **argv)
{
    counts c = {0};
    int kills = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 3 || argc > 4 || kills < 1) {
        fprintf(stderr, "usage: kill_compile MODEL KILLS [MEGALITH]\n");
        return EXIT_FAILURE;
    }
    model = argv[1];
    program = argc > 3 ? argv[3] : NULL;
    double length = prepare();
    for (int i = 0; i < kills; i++) {
        kill_one(i, length, &c);
        if (i % WHOLE_EVERY == WHOLE_EVERY - 1)
            check_whole(&c);
    }
    check_whole(&c);
    clean_up();
    printf("kills %d of a compilation of %.0f ms, %s\n", kills, 1e3 * length,
           program ? "by the program" : "by the library, with named temporaries");
    printf("  output missing %d, the earlier file %d, whole %d; ended before the kill %d\n",
           c.missing, c.earlier, c.whole, c.finished);
    printf("  kills that left a temporary %d, at most %d at once; wrong %d\n", c.left, c.most,
           c.wrong);
    return c.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
