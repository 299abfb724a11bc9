/* Implements the check for neutral values. See neutral.h. */
#include "importer/neutral.h"

#include <stdio.h>
#include <string.h>

bool mgl_is_neutral(const cJSON *item, mgl_neutral neutral)
{
    if (item && neutral == MGL_NEUTRAL_TRUE)
        return cJSON_IsTrue(item);
    if (!item || cJSON_IsNull(item))
        return true;
    if (neutral == MGL_NEUTRAL_ONE)
        return cJSON_IsNumber(item) && !(item->valuedouble < 1) && !(item->valuedouble > 1);
    if (cJSON_IsNumber(item))
        return !(item->valuedouble < 0) && !(item->valuedouble > 0);
    return cJSON_IsFalse(item) || (cJSON_IsArray(item) && !item->child);
}

const char *mgl_value_print(const cJSON *item, char *text, size_t size)
{
    char *printed = cJSON_PrintUnformatted(item);
    snprintf(text, size, "%s", printed ? printed : "?");
    if (printed && strlen(printed) >= size)
        snprintf(text + size - 4, 4, "...");
    cJSON_free(printed);
    return text;
}
