/* merge_add: linear_add whose input the consumers merge from attention's partials while they read
 * it (linear/merged.cuh). Its operands have the numbers of linear_add's. Consumers:
 * consume_product.
 */
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
