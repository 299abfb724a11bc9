/* Writes every damaged model into its own folder below FOLDER. Prints a line for each: its name, a
 * tab, and the words that the error message must contain. */
#include "tests/damaged/models.h"

#include <stdio.h>

int main(int count, char **arguments)
{
    char path[1024];
    if (count != 2) {
        fprintf(stderr, "usage: write_damaged_models FOLDER\n");
        return 1;
    }
    for (size_t i = 0; i < damaged_model_count; i++) {
        snprintf(path, sizeof path, "%s/%s", arguments[1], damaged_models[i].name);
        if (!write_damaged_model(&damaged_models[i], path)) {
            fprintf(stderr, "%s cannot be written\n", path);
            return 2;
        }
        printf("%s\t%s\n", damaged_models[i].name, damaged_models[i].message);
    }
    return 0;
}
