/*
 * Philox4x32-10: the counter-based random number generator of sampling. The same (key, counter)
 * gives the same four words on every machine, in any order, without state.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011),
 * section 3.4, and table 2 for the multipliers and the Weyl increments.
 *
 * Plain C that NVRTC compiles too: no includes. MGL_PHILOX_FN is `static inline` on the host.
 */
#ifndef MGL_SAMPLE_PHILOX_H
#define MGL_SAMPLE_PHILOX_H

#ifndef MGL_PHILOX_FN
#define MGL_PHILOX_FN static inline
#endif

/* out = Philox4x32-10 of `counter` under `key`. `out` may be `counter`. */
MGL_PHILOX_FN void mgl_philox(const unsigned counter[4], const unsigned key[2], unsigned out[4])
{
    unsigned a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    unsigned k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        unsigned long long first = 0xD2511F53ull * a, second = 0xCD9E8D57ull * c;
        a = (unsigned)(second >> 32) ^ b ^ k0;
        b = (unsigned)second;
        c = (unsigned)(first >> 32) ^ d ^ k1;
        d = (unsigned)first;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* The 64 random bits for new token number `produced` (from 0) of a sequence: the key is its
 * seed, the counter (produced, 0, 0, 0), low word first. The sequence's place in a batch is not
 * used, so a reply does not depend on its neighbors. */
MGL_PHILOX_FN unsigned long long mgl_philox_token(unsigned seed_lo, unsigned seed_hi,
                                                  unsigned produced)
{
    unsigned counter[4] = {produced, 0, 0, 0}, key[2] = {seed_lo, seed_hi}, out[4];
    mgl_philox(counter, key, out);
    return (unsigned long long)out[1] << 32 | out[0];
}

#endif
