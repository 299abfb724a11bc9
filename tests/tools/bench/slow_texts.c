/*
 * Writes the schedules of tests/validator/slow_texts.h, which are short to write and expensive to
 * prove, to FOLDER/NAME.mls:
 *
 *     slow_texts FOLDER [PERCENT]     PERCENT of the sizes in slow_texts.h (100)
 */
#include "tests/validator/slow_texts.h"

#include <stdio.h>
#include <stdlib.h>

static int write_one(const char *folder, const slow_kind *kind, int percent)
{
    char path[1024];
    mgl_text text = {0};
    snprintf(path, sizeof path, "%s/%s.mls", folder, kind->name);
    slow_write(kind, (int)((long long)kind->count * percent / 100), &text);
    FILE *file = fopen(path, "w");
    int good = file && !text.failed && fwrite(text.bytes, 1, text.length, file) == text.length;
    if (file && fclose(file))
        good = 0;
    printf("%-10s %9zu bytes%s\n", kind->name, text.length, good ? "" : ": not written");
    mgl_text_clear(&text);
    return good;
}

int main(int argc, char **argv)
{
    int percent = argc > 2 ? atoi(argv[2]) : 100;
    if (argc < 2 || argc > 3 || percent < 1) {
        fprintf(stderr, "usage: slow_texts FOLDER [PERCENT]\n");
        return 1;
    }
    for (int i = 0; i < slow_kind_count; i++)
        if (!write_one(argv[1], &slow_kinds[i], percent))
            return 1;
    return 0;
}
