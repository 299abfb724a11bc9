#include "tests/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool test_part_read(const char *text, test_part *out)
{
    int number, length = 0;
    *out = (test_part){0, 1};
    if (!text)
        return true;
    if (strspn(text, "0123456789/") != strlen(text) || strlen(text) > 9 ||
        sscanf(text, "%d/%d%n", &number, &out->count, &length) != 2 || text[length])
        return false;
    out->index = number - 1;
    return number >= 1 && number <= out->count;
}

bool test_part_has(test_part part, int number)
{
    return number % part.count == part.index;
}

bool next_is_in_part(void)
{
    static int number;
    test_part part;
    const char *text = getenv("MGL_TEST_PART");
    if (!test_part_read(text, &part)) {
        fprintf(stderr, "wrong MGL_TEST_PART: \"%s\"; write K/N, with K from 1 to N\n", text);
        exit(EXIT_FAILURE);
    }
    return test_part_has(part, number++);
}

void add_cases(TCase *tests, const TTest *test, int count)
{
    for (int i = 0; i < count; i++)
        if (next_is_in_part())
            tcase_add_loop_test(tests, test, i, i + 1);
}
