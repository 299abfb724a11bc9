/* embed, run by the controller: gathers a slice of each row's embedding. */
#include "vm/cuda/device/flags.cuh"
#include "vm/cuda/device/ops.cuh"

/* pairs that a lane loads before it stores the first, to hide memory latency */
enum { EMBED_AHEAD = MGL_ROWS > 1 ? 4 : 1 };

/* Two adjacent values of a row's slice. */
struct embedded {
    int row, column;
    bool real, both; /* the pair exists; it has a second value */
    float first, second;
};

/* Loads pair number e of all rows, with `half` pairs a row. */
static __device__ __forceinline__ embedded load_embedded(const machine &m, int e, int half,
                                                         int width)
{
    const mgl_device_operand &embedding = operand(m, MGL_OPERAND(embed, embedding));
    embedded v = {e / half, e % half * 2, e < rows_of(m) * half};
    v.both = v.column + 1 < width;
    if (!v.real)
        return v;
    long long token = own().table[v.row * MGL_TABLE_WORDS + MGL_TABLE_TOKEN];
    long long at = token * embedding.stride0 + v.column;
    v.first = embedding_format::load((const u8 *)embedding.at, at);
    v.second = v.both ? embedding_format::load((const u8 *)embedding.at, at + 1) : 0.0f;
    return v;
}

static __device__ __forceinline__ void do_embed(machine &m)
{
    const int first = MGL_OPERAND(embed, y); /* the first output; all outputs get the same values */
    const int width = operand(m, first).count[1], half = (width + 1) / 2;
    const u64 policy = keep_policy();
    for (int e = m.lane; e < rows_of(m) * half; e += 32 * EMBED_AHEAD) {
        embedded v[EMBED_AHEAD];
#pragma unroll
        for (int i = 0; i < EMBED_AHEAD; i++)
            v[i] = load_embedded(m, e + 32 * i, half, width);
#pragma unroll
        for (int i = 0; i < EMBED_AHEAD; i++)
            for (int o = first; v[i].real && o < first + task_of(m)->outputs; o++)
                store_pair(view_of(m, operand(m, o)), v[i].row, v[i].column, v[i].first,
                           v[i].second, v[i].both, policy);
    }
}
