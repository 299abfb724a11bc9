/*
 * Sampling: temperature, then top-k, top-p and min-p, then one draw. The definition gives the same
 * token for the same logits on every machine. Ties go to the lowest id. The reference runs these
 * functions in sequence; the CUDA kernel computes the same result in other steps (draw_row.cuh).
 *
 *   value    l = logit / temperature, one f32 division.
 *   rank     (key descending, id ascending), key = mgl_sampler_key(l): u32, ordered like l.
 *   numbers  A NaN has the largest key, so a NaN among the logits is the best of them. If the best
 *            is not finite (mgl_sampler_is_finite), there is no token; callers check it first.
 *   weight   w = floor(2^40 exp(l - max)) in integer arithmetic (mgl_sampler_weight): integer sums
 *            do not depend on their order, so a parallel sum has the same bits.
 *   cut      a prefix of the ranking: all with key > cut.key, and of those with key == cut.key the
 *            first cut.ties in id order. {0, 0} is everything.
 *   top-k    the cut of the first k. (Hugging Face's TopKLogitsWarper keeps all ties of the k-th;
 *            here the lowest ids win, so exactly k remain.)
 *   top-p    of the tokens left by top-k, with weights summing to `total`: a token is kept if the
 *            sum of those ranked strictly before it is less than p total; the first is always
 *            kept (Hugging Face's TopPLogitsWarper with min_tokens_to_keep = 1). p total is
 *            computed as max(1, floor(total floor(p 2^32) / 2^32)).
 *   min-p    of the rest, a token is kept if its weight is at least p times the largest weight,
 *            2^40 (Hugging Face's MinPLogitsWarper); the others get weight 0.
 *   draw     target = floor(random total / 2^64) with the kept `total` and 64 bits of Philox
 *            (instructions/sample/philox.h); in id order, the kept token at which the running sum
 *            first exceeds the target.
 *
 * Both cuts are one selection: the item at which a running sum over the ranking reaches `limit`,
 * with unit 1 (top-k) or w (top-p). It is a radix select: four histogram passes over 8 bits of the
 * key, most significant first, each over the keys that match the digits found so far.
 *
 * Plain C that NVRTC compiles too: no includes. Divisions must be IEEE (no fast math). No
 * floating-point product is added to anything, so contraction cannot change a bit.
 */
#ifndef MGL_SAMPLE_SAMPLER_H
#define MGL_SAMPLE_SAMPLER_H

#ifndef MGL_SAMPLER_FN
#define MGL_SAMPLER_FN static inline
#endif

#ifndef MGL_SAMPLER_TABLE
#define MGL_SAMPLER_TABLE static const
#endif

/* The bits of a float and back. The kernel defines them as __float_as_uint, __uint_as_float. */
#ifndef MGL_FLOAT_BITS
#define MGL_FLOAT_BITS mgl_float_bits
#define MGL_BITS_FLOAT mgl_bits_float
static inline unsigned mgl_float_bits(float value)
{
    unsigned bits;
    __builtin_memcpy(&bits, &value, 4);
    return bits;
}
static inline float mgl_bits_float(unsigned bits)
{
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}
#endif

/* The high word of a product. The kernel defines it as __umulhi. */
#ifndef MGL_HIGH_WORD
#define MGL_HIGH_WORD mgl_high_word
static inline unsigned mgl_high_word(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
#endif

/* The keys of -inf, +inf and NaN; no value has a key below the first. */
#define MGL_KEY_LOWEST  0x007FFFFFu
#define MGL_KEY_HIGHEST 0xFF800000u
#define MGL_KEY_NAN     0xFFFFFFFFu

/* A u32 ordered like the floats: -inf < ... < -0 = +0 < ... < +inf < NaN. Greedy sampling
 * compares keys too (largest key, lowest id), so that a NaN always wins and is detected. */
MGL_SAMPLER_FN unsigned mgl_sampler_key(float value)
{
    unsigned bits = MGL_FLOAT_BITS(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return MGL_KEY_NAN;
    if (bits == 0x80000000u)
        bits = 0;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Whether logits with this largest key allow a choice: none is NaN or +inf, and not all are
 * -inf. */
MGL_SAMPLER_FN int mgl_sampler_is_finite(unsigned key)
{
    return key > MGL_KEY_LOWEST && key < MGL_KEY_HIGHEST;
}

/* The value of a key. */
MGL_SAMPLER_FN float mgl_sampler_value(unsigned key)
{
    return MGL_BITS_FLOAT(key & 0x80000000u ? key & 0x7FFFFFFFu : ~key);
}

/* The distance of a value with weight 0. */
#define MGL_SAMPLER_FAR 0xFFFFFFFFu

/* The distance of a value below the maximum, in units of 2^-27. MGL_SAMPLER_FAR from 28 on and
 * for NaN. value <= max. */
MGL_SAMPLER_FN unsigned mgl_sampler_distance(float value, float max)
{
    float distance = value == max ? 0.0f : max - value;
    return distance < 28.0f ? (unsigned)(distance * 134217728.0f) : MGL_SAMPLER_FAR;
}

/* 2^-(i / 256) in 2^-31. */
MGL_SAMPLER_TABLE unsigned mgl_sampler_powers[256] = {
    2147483648u, 2141676973u, 2135885998u, 2130110682u, 2124350982u, 2118606857u, 2112878262u,
    2107165158u, 2101467502u, 2095785251u, 2090118366u, 2084466803u, 2078830522u, 2073209480u,
    2067603638u, 2062012954u, 2056437387u, 2050876895u, 2045331439u, 2039800978u, 2034285470u,
    2028784876u, 2023299156u, 2017828268u, 2012372174u, 2006930832u, 2001504204u, 1996092249u,
    1990694927u, 1985312200u, 1979944027u, 1974590370u, 1969251188u, 1963926443u, 1958616096u,
    1953320108u, 1948038440u, 1942771053u, 1937517909u, 1932278970u, 1927054196u, 1921843549u,
    1916646992u, 1911464486u, 1906295993u, 1901141476u, 1896000896u, 1890874216u, 1885761398u,
    1880662405u, 1875577199u, 1870505744u, 1865448001u, 1860403934u, 1855373507u, 1850356681u,
    1845353420u, 1840363688u, 1835387448u, 1830424663u, 1825475297u, 1820539314u, 1815616678u,
    1810707353u, 1805811301u, 1800928489u, 1796058879u, 1791202437u, 1786359126u, 1781528911u,
    1776711757u, 1771907628u, 1767116489u, 1762338305u, 1757573041u, 1752820662u, 1748081133u,
    1743354420u, 1738640488u, 1733939301u, 1729250827u, 1724575029u, 1719911875u, 1715261330u,
    1710623359u, 1705997930u, 1701385007u, 1696784557u, 1692196547u, 1687620943u, 1683057710u,
    1678506817u, 1673968228u, 1669441912u, 1664927835u, 1660425963u, 1655936265u, 1651458706u,
    1646993254u, 1642539877u, 1638098541u, 1633669214u, 1629251865u, 1624846459u, 1620452965u,
    1616071351u, 1611701585u, 1607343634u, 1602997467u, 1598663052u, 1594340357u, 1590029350u,
    1585730000u, 1581442275u, 1577166143u, 1572901575u, 1568648537u, 1564406999u, 1560176931u,
    1555958300u, 1551751076u, 1547555228u, 1543370725u, 1539197537u, 1535035634u, 1530884983u,
    1526745556u, 1522617322u, 1518500250u, 1514394310u, 1510299473u, 1506215708u, 1502142985u,
    1498081275u, 1494030547u, 1489990772u, 1485961921u, 1481943963u, 1477936870u, 1473940611u,
    1469955159u, 1465980482u, 1462016553u, 1458063343u, 1454120821u, 1450188960u, 1446267730u,
    1442357104u, 1438457051u, 1434567544u, 1430688553u, 1426820052u, 1422962010u, 1419114401u,
    1415277195u, 1411450365u, 1407633882u, 1403827719u, 1400031848u, 1396246240u, 1392470869u,
    1388705706u, 1384950723u, 1381205894u, 1377471191u, 1373746586u, 1370032052u, 1366327563u,
    1362633090u, 1358948606u, 1355274085u, 1351609500u, 1347954824u, 1344310030u, 1340675091u,
    1337049980u, 1333434672u, 1329829140u, 1326233356u, 1322647296u, 1319070932u, 1315504238u,
    1311947188u, 1308399756u, 1304861917u, 1301333643u, 1297814910u, 1294305692u, 1290805962u,
    1287315695u, 1283834865u, 1280363448u, 1276901417u, 1273448747u, 1270005413u, 1266571390u,
    1263146652u, 1259731174u, 1256324931u, 1252927899u, 1249540052u, 1246161366u, 1242791816u,
    1239431376u, 1236080024u, 1232737732u, 1229404479u, 1226080238u, 1222764986u, 1219458698u,
    1216161350u, 1212872918u, 1209593378u, 1206322705u, 1203060876u, 1199807867u, 1196563654u,
    1193328213u, 1190101520u, 1186883552u, 1183674286u, 1180473697u, 1177281762u, 1174098458u,
    1170923762u, 1167757650u, 1164600099u, 1161451085u, 1158310587u, 1155178580u, 1152055042u,
    1148939949u, 1145833280u, 1142735011u, 1139645120u, 1136563583u, 1133490379u, 1130425485u,
    1127368878u, 1124320536u, 1121280436u, 1118248556u, 1115224875u, 1112209370u, 1109202018u,
    1106202798u, 1103211687u, 1100228665u, 1097253708u, 1094286796u, 1091327906u, 1088377016u,
    1085434106u, 1082499153u, 1079572136u, 1076653033u};

/* 2^40 exp(-distance) to within 1 + w / 2^27, for distances below 28 (beyond, 2^40 e^-28 < 1).
 * Monotonic: never larger for a larger distance. exp(-d) = 2^-(n + i / 256 + g) with d log2(e) =
 * n + i / 256 + g, log2(e) as a 1.31 fixed-point number. 1 - 2^-g, g < 2^-8, is approximated by
 * g (a - b g), where a and b minimize the largest error, 2^-32.8; a in 2^-32, b in 2^-24, each
 * product rounded down. `powers`: mgl_sampler_powers or a faster copy. */
MGL_SAMPLER_FN unsigned long long mgl_sampler_exp(unsigned distance, const unsigned *powers)
{
    const unsigned long long y = distance * 3098164009ull; /* in 2^-58 */
    const unsigned fraction = (unsigned)(y >> 26), power = powers[fraction >> 24];
    const unsigned g = fraction << 8;                                                 /* in 2^-40 */
    const unsigned rest = MGL_HIGH_WORD(g, 2977042926u - MGL_HIGH_WORD(g, 4025299u)); /* as g */
    return (unsigned long long)(power - (MGL_HIGH_WORD(power, rest) >> 8)) << 9 >> (y >> 58);
}

/* floor(a b / 2^64). */
MGL_SAMPLER_FN unsigned long long mgl_sampler_scale(unsigned long long a, unsigned long long b)
{
    unsigned long long a0 = a & 0xFFFFFFFFull, a1 = a >> 32, b0 = b & 0xFFFFFFFFull, b1 = b >> 32;
    unsigned long long low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1;
    return a1 * b1 + (middle >> 32) + (((middle & 0xFFFFFFFFull) + other) >> 32);
}

/* The limit of top-p: the sum at which a prefix of the ranking is complete. 0 < p < 1. */
MGL_SAMPLER_FN unsigned long long mgl_sampler_limit(unsigned long long total, float p)
{
    unsigned long long share = (unsigned long long)(p * 4294967296.0f);
    unsigned long long limit = mgl_sampler_scale(total, share << 32);
    return limit ? limit : 1;
}

/* The smallest weight that min-p keeps: p 2^40, rounded up. 0 <= p <= 1. */
MGL_SAMPLER_FN unsigned long long mgl_sampler_least(float p)
{
    float least = p * 1099511627776.0f;
    unsigned long long whole = (unsigned long long)least;
    return whole + ((float)whole < least);
}

typedef struct mgl_sampler_cut {
    unsigned key;
    unsigned ties;
} mgl_sampler_cut;

/* One digit of the radix select: the largest d at which the sum of bins 255..d, plus *before,
 * reaches limit. Adds the bins above d to *before. */
MGL_SAMPLER_FN unsigned mgl_sampler_digit(const unsigned long long bins[256],
                                          unsigned long long limit, unsigned long long *before)
{
    unsigned digit = 255;
    while (digit > 0 && *before + bins[digit] < limit)
        *before += bins[digit--];
    return digit;
}

/* Whether a key takes part in the pass over bits [shift, shift + 8): its higher digits are those
 * of `prefix`. */
MGL_SAMPLER_FN int mgl_sampler_matches(unsigned key, unsigned prefix, int shift)
{
    return shift == 24 || key >> (shift + 8) == prefix >> (shift + 8);
}

/* The cut for a known key: the number of tied items needed to reach the limit, each adding
 * `unit` (not 0). */
MGL_SAMPLER_FN mgl_sampler_cut mgl_sampler_finish(unsigned key, unsigned long long unit,
                                                  unsigned long long limit,
                                                  unsigned long long before)
{
    mgl_sampler_cut cut;
    cut.key = key;
    cut.ties = (unsigned)((limit - before + unit - 1) / unit);
    return cut;
}

/* A log-probability as the host reads it: no word is 0. */
MGL_SAMPLER_FN int mgl_sampler_word(float logprob)
{
    return (int)(MGL_FLOAT_BITS(logprob) | 0x80000000u);
}

/* ---- the reference, item by item ------------------------------------------------------------- */

typedef struct mgl_sampler_input {
    const float *logits; /* (count) */
    int count;
    float temperature;        /* above 0 */
    float max;                /* the largest value, logit / temperature */
    unsigned long long least; /* items with less weight count as 0 */
} mgl_sampler_input;

/* The weight of a value: 2^40 exp(value - max), or 0 if it is far. */
MGL_SAMPLER_FN unsigned long long mgl_sampler_weight(float value, float max)
{
    unsigned distance = mgl_sampler_distance(value, max);
    return distance == MGL_SAMPLER_FAR ? 0 : mgl_sampler_exp(distance, mgl_sampler_powers);
}

/* The contribution of item `key` to a sum: 1, or its weight. */
MGL_SAMPLER_FN unsigned long long mgl_sampler_unit(const mgl_sampler_input *in, unsigned key,
                                                   int by_weight)
{
    if (!by_weight)
        return 1;
    unsigned long long weight = mgl_sampler_weight(mgl_sampler_value(key), in->max);
    return weight < in->least ? 0 : weight;
}

/* The sum of weights over a cut. Ties at the cut's key have equal weights. */
MGL_SAMPLER_FN unsigned long long mgl_sampler_sum(const mgl_sampler_input *in, mgl_sampler_cut cut)
{
    unsigned long long sum = cut.ties ? cut.ties * mgl_sampler_unit(in, cut.key, 1) : 0;
    for (int i = 0; i < in->count; i++) {
        unsigned key = mgl_sampler_key(in->logits[i] / in->temperature);
        if (key > cut.key)
            sum += mgl_sampler_unit(in, key, 1);
    }
    return sum;
}

/* The prefix of `within` at which the running sum reaches limit: 1 <= limit <= the sum of
 * within. */
MGL_SAMPLER_FN mgl_sampler_cut mgl_sampler_select(const mgl_sampler_input *in,
                                                  mgl_sampler_cut within, int by_weight,
                                                  unsigned long long limit)
{
    unsigned prefix = 0;
    unsigned long long before = 0, bins[256];
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = 0; i < 256; i++)
            bins[i] = 0;
        for (int i = 0; i < in->count; i++) {
            unsigned key = mgl_sampler_key(in->logits[i] / in->temperature);
            if (key > within.key && mgl_sampler_matches(key, prefix, shift))
                bins[key >> shift & 255] += mgl_sampler_unit(in, key, by_weight);
        }
        if (within.ties && mgl_sampler_matches(within.key, prefix, shift))
            bins[within.key >> shift & 255] +=
                within.ties * mgl_sampler_unit(in, within.key, by_weight);
        prefix |= mgl_sampler_digit(bins, limit, &before) << shift;
    }
    return mgl_sampler_finish(prefix, mgl_sampler_unit(in, prefix, by_weight), limit, before);
}

/* The token in the cut, in id order, at which the running sum first exceeds target. */
MGL_SAMPLER_FN int mgl_sampler_walk(const mgl_sampler_input *in, mgl_sampler_cut cut,
                                    unsigned long long target)
{
    unsigned ties = cut.ties;
    for (int i = 0; i < in->count; i++) {
        unsigned key = mgl_sampler_key(in->logits[i] / in->temperature);
        if (key < cut.key || (key == cut.key && ties == 0))
            continue;
        ties -= key == cut.key;
        unsigned long long weight = mgl_sampler_unit(in, key, 1);
        if (target < weight)
            return i;
        target -= weight;
    }
    return 0;
}

/* The token that `random` draws from the logits (count). temperature > 0. top_k <= 0, top_p
 * outside (0, 1) and min_p 0 disable the filters. Returns 0 if no logit is above -inf, or one is
 * NaN. */
MGL_SAMPLER_FN int mgl_sampler_draw(const float *logits, int count, float temperature, int top_k,
                                    float top_p, float min_p, unsigned long long random)
{
    mgl_sampler_input in = {logits, count, temperature, 0.0f, 0};
    mgl_sampler_cut cut = {0, 0};
    unsigned best = 0;
    for (int i = 0; i < count; i++) {
        unsigned key = mgl_sampler_key(logits[i] / temperature);
        best = key > best ? key : best;
    }
    if (best <= MGL_KEY_LOWEST || best == MGL_KEY_NAN)
        return 0;
    in.max = mgl_sampler_value(best);
    if (top_k > 0 && top_k < count)
        cut = mgl_sampler_select(&in, cut, 0, (unsigned long long)top_k);
    if (top_p > 0.0f && top_p < 1.0f)
        cut = mgl_sampler_select(&in, cut, 1, mgl_sampler_limit(mgl_sampler_sum(&in, cut), top_p));
    in.least = mgl_sampler_least(min_p);
    return mgl_sampler_walk(&in, cut, mgl_sampler_scale(random, mgl_sampler_sum(&in, cut)));
}

#endif
