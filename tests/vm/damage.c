/* Draws damages (damage.def) by their weights and applies them to a schedule text. See damage.h. */
#include "damage.h"

#include "damage_parts.h"

static const struct damage {
    const char *name;
    void (*damage)(schedule_text *text, uint64_t *random);
    int weight;
    bool reshapes;
    damage_kind kind;
} damages[DAMAGES] = {
#define DAMAGE(function, name, weight, reshapes, kind) {name, function, weight, reshapes, kind},
#include "damage.def"
};

int schedule_text_damage(schedule_text *text, damage_kind kind, uint64_t *random, bool *reshaped)
{
    int total = 0, i = -1;
    for (int d = 0; d < DAMAGES; d++)
        total += damages[d].kind == kind ? damages[d].weight : 0;
    for (int at = damage_draw(random, total); at >= 0;)
        at -= damages[++i].kind == kind ? damages[i].weight : 0;
    damages[i].damage(text, random);
    *reshaped = *reshaped || damages[i].reshapes;
    return i;
}

const char *damage_name(int damage)
{
    return damages[damage].name;
}
