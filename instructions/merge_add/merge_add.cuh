/* merge_add: linear_add whose consumers merge their input from the partial results of split
 * attention while reading it (linear/merged.cuh). The operands have the numbers of linear_add's
 * operands. The consumers run consume_product, and the epilogue warp runs finish_merge_add. */
#include "instructions/linear_add/linear_add.cuh"

static __device__ __forceinline__ void prepare_merge_add(const machine &m)
{
    if (MERGES)
        prepare_linear_add(m);
}

static __device__ __forceinline__ bool finish_merge_add(machine &m)
{
    return MERGES && finish_linear_add(m);
}
