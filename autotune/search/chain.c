/* Implements chain.h: replay of the chain of incumbents. */
#include "autotune/search/chain.h"

void mgl_chain_begin(mgl_chain *chain, double value)
{
    *chain = (mgl_chain){.value = value, .right_value = value};
}

void mgl_chain_reach(mgl_chain *chain, const mgl_trial *trial)
{
    if (!chain->until || trial->id <= chain->until)
        return;
    chain->number = chain->right_number;
    chain->value = chain->right_value;
    chain->until = 0;
}

bool mgl_chain_has(const mgl_trial *trial)
{
    return !trial->control && (trial->verdict.outcome == MGL_OUTCOME_OK || trial->quarantined > 0);
}

void mgl_chain_add(mgl_chain *chain, const mgl_trial *trial, double value)
{
    chain->number = trial->number;
    chain->value = value;
    chain->until = trial->quarantined;
    if (trial->quarantined)
        return;
    chain->right_number = trial->number;
    chain->right_value = value;
}
