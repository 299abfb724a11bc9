#include "values.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { MAX_BYTES = 16 << 20, MAX_FILES = 128, MAX_OUTPUTS = 32 };

typedef struct list {
    int count;
    double at[MAX_VALUES];
} list;

typedef struct nodes {
    int count;
    const cJSON *at[MAX_VALUES];
} nodes;

typedef struct parser {
    values *v;
    const char *at;
    char *why;
    size_t size;
    bool failed;
} parser;

/* Files and outputs of commands, read once. */
static struct {
    char *name;
    mgl_json json;
} files[MAX_FILES];
static int file_count;
static struct {
    char *command, *output;
} outputs[MAX_OUTPUTS];
static int output_count;

static void fail(parser *p, const char *what, const char *value)
{
    if (!p->failed)
        snprintf(p->why, p->size, "%s: %s", what, value);
    p->failed = true;
}

void values_define(values *v, const char *name, const char *text)
{
    if (v->name_count == MAX_NAMES)
        abort();
    v->names[v->name_count].name = strdup(name);
    v->names[v->name_count++].text = strdup(text);
}

void values_clear(values *v)
{
    for (int i = 0; i < v->name_count; i++) {
        free(v->names[i].name);
        free(v->names[i].text);
    }
    v->name_count = 0;
    while (file_count) {
        free(files[--file_count].name);
        mgl_json_clear(&files[file_count].json);
    }
    while (output_count) {
        free(outputs[--output_count].command);
        free(outputs[output_count].output);
    }
}

char *values_run(values *v, const char *command)
{
    char line[4096], buffer[4096];
    snprintf(line, sizeof line, "cd '%s' && PATH='%s':\"$PATH\" && %s", v->folder, v->tools,
             command);
    FILE *stream = popen(line, "r");
    size_t length = 0, got;
    char *text = calloc(1, 1);
    while (stream && text && (got = fread(buffer, 1, sizeof buffer, stream)) > 0) {
        char *more = realloc(text, length + got + 1);
        if (!more)
            abort();
        text = more;
        memcpy(text + length, buffer, got);
        text[length += got] = 0;
    }
    if (!stream || pclose(stream)) {
        free(text);
        return NULL;
    }
    return text;
}

static const char *find_output(parser *p, const char *command)
{
    for (int i = 0; i < output_count; i++)
        if (!strcmp(outputs[i].command, command))
            return outputs[i].output;
    char *text = values_run(p->v, command);
    if (!text || output_count == MAX_OUTPUTS) {
        free(text);
        fail(p, "the command failed", command);
        return NULL;
    }
    outputs[output_count].command = strdup(command);
    outputs[output_count].output = text;
    return outputs[output_count++].output;
}

static const cJSON *find_file(parser *p, const char *name)
{
    mgl_error err;
    char path[4096];
    for (int i = 0; i < file_count; i++)
        if (!strcmp(files[i].name, name))
            return files[i].json.root;
    snprintf(path, sizeof path, "%s/%s", p->v->folder, name);
    if (file_count == MAX_FILES ||
        mgl_json_read_file(path, MAX_BYTES, &files[file_count].json, &err)) {
        fail(p, "the result file cannot be read", path);
        return NULL;
    }
    files[file_count].name = strdup(name);
    return files[file_count++].json.root;
}

/* Finds a member by its path. The longest matching key is used, because keys may contain dots. */
static const cJSON *find_member(const cJSON *object, const char *path)
{
    for (size_t length = strlen(path); object && length > 0; length--) {
        if (path[length] && path[length] != '.')
            continue;
        char key[512];
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        const cJSON *member = mgl_json_member(object, key);
        if (member)
            return path[length] ? find_member(member, path + length + 1) : member;
    }
    return NULL;
}

static bool equals(const cJSON *value, const char *text)
{
    if (!value)
        return !strcmp(text, "missing");
    if (cJSON_IsString(value))
        return !strcmp(value->valuestring, text);
    if (cJSON_IsBool(value))
        return !strcmp(text, cJSON_IsTrue(value) ? "true" : "false");
    if (cJSON_IsNumber(value))
        return value->valuedouble == atof(text) && strspn(text, "+-.0123456789e") == strlen(text);
    return cJSON_IsNull(value) && !strcmp(text, "null");
}

/* Whether an element meets the conditions in brackets, which are separated by commas. */
static bool fits(const cJSON *element, const char *conditions)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", conditions);
    for (char *rest, *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char *sign = strchr(one, '=');
        if (!sign)
            return false;
        bool wanted = sign == one || sign[-1] != '!';
        char *value = sign + 1;
        sign[wanted ? 0 : -1] = 0;
        if (equals(find_member(element, one), value) != wanted)
            return false;
    }
    return true;
}

static void select_elements(parser *p, const nodes *from, const char *inside, nodes *to)
{
    to->count = 0;
    for (int i = 0; i < from->count; i++) {
        int place = 0;
        for (const cJSON *e = from->at[i]->child; e; e = e->next, place++) {
            bool chosen =
                !strcmp(inside, "*") ||
                (isdigit((unsigned char)*inside) ? atoi(inside) == place : fits(e, inside));
            if (chosen && to->count < MAX_VALUES)
                to->at[to->count++] = e;
        }
    }
    if (!to->count)
        fail(p, "no element is selected", inside);
}

/* Applies `member[...]` to each node, then the rest of the path. */
static void walk(parser *p, const char *path, nodes *found)
{
    static nodes next;
    while (*path && !p->failed) {
        char part[1024];
        size_t length;
        if (*path == '[') {
            length = strcspn(path, "]");
            snprintf(part, sizeof part, "%.*s", (int)length - 1, path + 1);
            select_elements(p, found, part, &next);
            path += length + (path[length] == ']');
        } else {
            path += *path == '.';
            length = strcspn(path, "[");
            snprintf(part, sizeof part, "%.*s", (int)length, path);
            next.count = 0;
            for (int i = 0; i < found->count; i++) {
                const cJSON *member = find_member(found->at[i], part);
                if (member)
                    next.at[next.count++] = member;
            }
            if (next.count != found->count)
                fail(p, "a member is missing", part);
            path += length;
        }
        *found = next;
    }
}

static void skip_blanks(parser *p)
{
    p->at += strspn(p->at, " \t\n");
}

/* The nodes selected by FILE.json:PATH. */
static void parse_nodes(parser *p, nodes *out)
{
    char token[2048], full[4096], name[256];
    size_t length = 0;
    int depth = 0;
    skip_blanks(p);
    for (; p->at[length]; length++) {
        char c = p->at[length];
        depth += (c == '[') - (c == ']');
        if (!depth && (isspace((unsigned char)c) || c == ')'))
            break;
    }
    snprintf(token, sizeof token, "%.*s", (int)length, p->at);
    p->at += length;
    snprintf(full, sizeof full, "%s", token);
    if (token[0] == '$') {
        size_t name_length = strcspn(token + 1, ".[");
        snprintf(name, sizeof name, "%.*s", (int)name_length, token + 1);
        const char *text = NULL;
        for (int i = 0; i < p->v->name_count; i++)
            if (!strcmp(p->v->names[i].name, name))
                text = p->v->names[i].text;
        if (!text) {
            fail(p, "the name is not defined", name);
            return;
        }
        snprintf(full, sizeof full, "%s%s", text, token + 1 + name_length);
    }
    char *colon = strstr(full, ".json:");
    if (!colon) {
        fail(p, "neither a number nor FILE.json:PATH", token);
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)(colon + 5 - full), full);
    out->at[0] = find_file(p, name);
    out->count = 1;
    if (!p->failed)
        walk(p, colon + 6, out);
}

static void parse_sum(parser *p, list *out);

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void apply(const char *name, list *l)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    int count = l->count;
    for (int i = 0; i < count; i++) {
        sum += l->at[i];
        low = fmin(low, l->at[i]);
        high = fmax(high, l->at[i]);
    }
    for (int i = 0; i < count; i++)
        l->at[i] = !strcmp(name, "exp")   ? exp(l->at[i])
                   : !strcmp(name, "log") ? log(l->at[i])
                   : !strcmp(name, "abs") ? fabs(l->at[i])
                                          : l->at[i];
    if (!strcmp(name, "exp") || !strcmp(name, "log") || !strcmp(name, "abs"))
        return;
    double one = !strcmp(name, "min")     ? low
                 : !strcmp(name, "max")   ? high
                 : !strcmp(name, "sum")   ? sum
                 : !strcmp(name, "mean")  ? sum / count
                 : !strcmp(name, "first") ? l->at[0]
                 : !strcmp(name, "last")  ? l->at[count - 1]
                                          : (double)count;
    if (!strcmp(name, "median")) {
        qsort(l->at, (size_t)count, sizeof *l->at, compare_doubles);
        one = (l->at[(count - 1) / 2] + l->at[count / 2]) / 2;
    }
    l->count = 1;
    l->at[0] = one;
}

static bool is_function(const char *name)
{
    static const char *const names[] = {"min", "max", "sum", "mean",  "median",
                                        "exp", "log", "abs", "first", "last"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static void parse_text(parser *p, char *out, size_t size)
{
    skip_blanks(p);
    const char *end = *p->at == '"' ? strchr(p->at + 1, '"') : NULL;
    if (!end) {
        fail(p, "a text in quotes is missing", p->at);
        out[0] = 0;
        return;
    }
    snprintf(out, size, "%.*s", (int)(end - p->at - 1), p->at + 1);
    p->at = end + 1;
}

static void close_bracket(parser *p)
{
    skip_blanks(p);
    if (*p->at != ')')
        fail(p, "`)` is missing", p->at);
    else
        p->at++;
}

static void find_after(parser *p, list *out)
{
    static nodes found;
    char text[256];
    parse_text(p, text, sizeof text);
    parse_nodes(p, &found);
    out->count = 0;
    for (int i = 0; i < found.count && !p->failed; i++) {
        const char *place =
            cJSON_IsString(found.at[i]) ? strstr(found.at[i]->valuestring, text) : NULL;
        if (place)
            out->at[out->count++] = atof(place + strlen(text));
    }
    if (!out->count)
        fail(p, "the text is not in the strings", text);
    close_bracket(p);
}

static void find_printed(parser *p, list *out)
{
    char command[1024], begin[256];
    parse_text(p, command, sizeof command);
    parse_text(p, begin, sizeof begin);
    skip_blanks(p);
    char *end;
    long wanted = strtol(p->at, &end, 10);
    p->at = end;
    out->count = 0;
    const char *line = p->failed ? NULL : find_output(p, command);
    for (; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, begin, strlen(begin)) != 0)
            continue;
        const char *at = line + strlen(begin);
        for (long n = 0; *at && *at != '\n';) {
            bool number =
                isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1]));
            if (!number) {
                at++;
                continue;
            }
            double value = strtod(at, &end);
            if (++n == wanted && out->count < MAX_VALUES)
                out->at[out->count++] = value;
            at = end;
        }
    }
    if (!out->count)
        fail(p, "no such number in the output", command);
    close_bracket(p);
}

static void parse_atom(parser *p, list *out)
{
    static nodes found;
    char name[32];
    skip_blanks(p);
    out->count = 1;
    out->at[0] = 0;
    if (*p->at == '(') {
        p->at++;
        parse_sum(p, out);
        close_bracket(p);
        return;
    }
    char *end;
    double number = strtod(p->at, &end);
    if (end > p->at && (!*end || strchr(" )\n\t", *end))) {
        p->at = end;
        out->at[0] = number;
        return;
    }
    size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz_");
    if (p->at[length] == '(' && length < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)length, p->at);
        p->at += length + 1;
        if (!strcmp(name, "number_after")) {
            find_after(p, out);
            return;
        }
        if (!strcmp(name, "tool")) {
            find_printed(p, out);
            return;
        }
        if (!strcmp(name, "count")) {
            parse_nodes(p, &found);
            out->at[0] = found.count;
        } else if (is_function(name)) {
            parse_sum(p, out);
            if (!p->failed)
                apply(name, out);
        } else {
            fail(p, "no such function", name);
        }
        close_bracket(p);
        return;
    }
    parse_nodes(p, &found);
    out->count = found.count;
    for (int i = 0; i < found.count && !p->failed; i++) {
        if (!cJSON_IsNumber(found.at[i]))
            fail(p, "a value is no number", found.at[i]->string ? found.at[i]->string : "element");
        out->at[i] = found.at[i]->valuedouble;
    }
}

static void combine(parser *p, char sign, list *a, const list *b)
{
    if (a->count != b->count && a->count != 1 && b->count != 1) {
        fail(p, "lists of different lengths", (char[]){sign, 0});
        return;
    }
    int count = a->count > b->count ? a->count : b->count;
    double only = a->at[0];
    for (int i = 0; i < count; i++) {
        double x = a->count == 1 ? only : a->at[i], y = b->at[b->count == 1 ? 0 : i];
        a->at[i] = sign == '+' ? x + y : sign == '-' ? x - y : sign == '*' ? x * y : x / y;
    }
    a->count = count;
}

static void parse_product(parser *p, list *out)
{
    parse_atom(p, out);
    list *next = malloc(sizeof *next);
    if (!next)
        abort();
    for (;;) {
        skip_blanks(p);
        char sign = *p->at;
        if (p->failed || (sign != '*' && sign != '/'))
            break;
        p->at++;
        parse_atom(p, next);
        combine(p, sign, out, next);
    }
    free(next);
}

static void parse_sum(parser *p, list *out)
{
    parse_product(p, out);
    list *next = malloc(sizeof *next);
    if (!next)
        abort();
    for (;;) {
        skip_blanks(p);
        char sign = *p->at;
        if (p->failed || (sign != '+' && sign != '-'))
            break;
        p->at++;
        parse_product(p, next);
        combine(p, sign, out, next);
    }
    free(next);
}

bool values_compute(values *v, const char *formula, double *out, char *why, size_t size)
{
    parser p = {.v = v, .at = formula, .why = why, .size = size};
    list *found = malloc(sizeof *found);
    if (!found)
        abort();
    parse_sum(&p, found);
    skip_blanks(&p);
    if (*p.at)
        fail(&p, "text behind the formula", p.at);
    if (!p.failed && found->count != 1)
        fail(&p, "more than one number", formula);
    *out = p.failed ? 0 : found->at[0];
    free(found);
    return !p.failed;
}

bool values_text(values *v, const char *path, int i, const char *member, char *out, size_t size,
                 char *why, size_t why_size)
{
    static nodes found;
    parser p = {.v = v, .at = path, .why = why, .size = why_size};
    *why = 0;
    parse_nodes(&p, &found);
    if (p.failed || i >= found.count)
        return false;
    const cJSON *value = find_member(found.at[i], member);
    if (cJSON_IsString(value))
        snprintf(out, size, "%s", value->valuestring);
    else if (cJSON_IsNumber(value))
        snprintf(out, size, "%.10g", value->valuedouble);
    else
        fail(&p, "a member is missing", member);
    return !p.failed;
}
