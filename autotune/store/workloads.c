/*
 * Workloads as text: "ctx=0,8192;batch=1,8" means every context with every batch. The printed form
 * is sorted and contains each number once, so equal workloads have equal texts. The store compares
 * them by text. Implements mgl_workloads_parse and mgl_workloads_print.
 */
#include "autotune/store/record.h"

#include <string.h>

/* The numbers of one key. */
typedef struct number_list {
    const char *key;
    int lowest, highest;
    int numbers[MGL_MAX_WORKLOADS]; /* (count) ascending, each once */
    int count;                      /* 0: the key was left out */
} number_list;

static mgl_status fail_form(const char *at, mgl_error *err)
{
    return mgl_fail(err, MGL_USAGE, "workloads",
                    "`invalid workloads at `%.40s`; give ctx= or batch= and numbers separated by "
                    "commas: ctx=0,8192;batch=1,8",
                    at);
}

/* Parses an unsigned decimal number; *end is the position after it. -1: there is none, or it has
 * more than 9 digits. */
static int scan_number(const char *at, const char **end)
{
    int number = 0;
    size_t digits = strspn(at, "0123456789");
    *end = at + digits;
    if (digits < 1 || digits > 9)
        return -1;
    for (; at < *end; at++)
        number = number * 10 + (*at - '0');
    return number;
}

/* Inserts a number in order. A number that is already in the list is skipped. */
static mgl_status add_number(number_list *list, int number, mgl_error *err)
{
    int place = 0;
    while (place < list->count && list->numbers[place] < number)
        place++;
    if (place < list->count && list->numbers[place] == number)
        return MGL_OK;
    if (list->count == MGL_MAX_WORKLOADS)
        return mgl_fail(err, MGL_USAGE, "workloads",
                        "%s has too many numbers; at most %d are allowed", list->key,
                        MGL_MAX_WORKLOADS);
    memmove(&list->numbers[place + 1], &list->numbers[place],
            (size_t)(list->count - place) * sizeof *list->numbers);
    list->numbers[place] = number;
    list->count++;
    return MGL_OK;
}

/* Parses the numbers after "ctx=", up to a semicolon or the end; *at is the position after them. */
static mgl_status parse_numbers(const char **at, number_list *list, mgl_error *err)
{
    for (;;) {
        const char *end;
        int number = scan_number(*at, &end);
        if (end == *at || (*end && *end != ',' && *end != ';'))
            return fail_form(*at, err);
        if (number < list->lowest || number > list->highest)
            return mgl_fail(err, MGL_USAGE, "workloads", "%s=%.*s is not between %d and %d",
                            list->key, (int)(end - *at), *at, list->lowest, list->highest);
        mgl_status status = add_number(list, number, err);
        *at = end;
        if (status || *end != ',')
            return status;
        ++*at;
    }
}

static mgl_status parse_key(const char **at, number_list *lists, int count, mgl_error *err)
{
    for (int i = 0; i < count; i++) {
        size_t length = strlen(lists[i].key);
        if (strncmp(*at, lists[i].key, length) != 0 || (*at)[length] != '=')
            continue;
        if (lists[i].count)
            return mgl_fail(err, MGL_USAGE, "workloads", "%s is given twice", lists[i].key);
        *at += length + 1;
        return parse_numbers(at, &lists[i], err);
    }
    return fail_form(*at, err);
}

mgl_status mgl_workloads_parse(const char *text, mgl_workloads *out, mgl_error *err)
{
    number_list lists[] = {
        {.key = "ctx", .lowest = 0, .highest = MGL_MAX_CAPACITY - MGL_WORKLOAD_TOKENS},
        {.key = "batch", .lowest = 1, .highest = MGL_MAX_SEQUENCES},
    };
    number_list *contexts = &lists[0], *batches = &lists[1];
    mgl_status status = parse_key(&text, lists, 2, err);
    while (*text == ';' && !status) {
        text++;
        status = parse_key(&text, lists, 2, err);
    }
    if (!status && !contexts->count)
        status = add_number(contexts, 0, err);
    if (!status && !batches->count)
        status = add_number(batches, 1, err);
    if (status)
        return status;
    if (contexts->count * batches->count > MGL_MAX_WORKLOADS)
        return mgl_fail(err, MGL_USAGE, "workloads",
                        "%d contexts with %d batches are %d workloads; at most %d are allowed",
                        contexts->count, batches->count, contexts->count * batches->count,
                        MGL_MAX_WORKLOADS);
    *out = (mgl_workloads){0};
    for (int b = 0; b < batches->count; b++)
        for (int c = 0; c < contexts->count; c++)
            out->list[out->count++] =
                (mgl_workload){.batch = batches->numbers[b], .context = contexts->numbers[c]};
    return MGL_OK;
}

/* Prints the contexts of the first batch, and all batches. In the list, a new batch begins where
 * the number changes. */
void mgl_workloads_print(const mgl_workloads *workloads, mgl_text *out)
{
    const mgl_workload *list = workloads->list;
    mgl_text_put(out, "ctx=");
    for (int i = 0; i < workloads->count && list[i].batch == list[0].batch; i++)
        mgl_text_format(out, "%s%d", i ? "," : "", list[i].context);
    mgl_text_put(out, ";batch=");
    for (int i = 0; i < workloads->count; i++)
        if (!i || list[i].batch != list[i - 1].batch)
            mgl_text_format(out, "%s%d", i ? "," : "", list[i].batch);
}
