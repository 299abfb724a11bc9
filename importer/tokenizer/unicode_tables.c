/* Tables of Unicode character properties, and their lookup. See unicode_tables.h. */
#include "importer/tokenizer/unicode_tables.h"

#include <stddef.h>
#include <strings.h>
#include <utf8proc.h>

/* Characters that Unicode 15, 15.1 and 16 added to a category after PCRE2 10.42. In a newer
 * PCRE2 they are listed twice, which is harmless. */
#define NEWER_LU "\\x{1C89}\\x{A7CB}-\\x{A7CC}\\x{A7DA}\\x{A7DC}\\x{10D50}-\\x{10D65}"
#define NEWER_LL "\\x{1C8A}\\x{A7CD}\\x{A7DB}\\x{10D70}-\\x{10D85}\\x{1DF25}-\\x{1DF2A}"
#define NEWER_LM                                                                                   \
    "\\x{10D4E}\\x{10D6F}\\x{16D40}-\\x{16D42}\\x{16D6B}-\\x{16D6C}\\x{1E030}-\\x{1E06D}"          \
    "\\x{1E4EB}"
#define NEWER_LO                                                                                   \
    "\\x{105C0}-\\x{105F3}\\x{10D4A}-\\x{10D4D}\\x{10D4F}\\x{10EC2}-\\x{10EC4}"                    \
    "\\x{1123F}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138B}\\x{1138E}\\x{11390}-\\x{113B5}"          \
    "\\x{113B7}\\x{113D1}\\x{113D3}\\x{11BC0}-\\x{11BE0}\\x{11F02}\\x{11F04}-\\x{11F10}"           \
    "\\x{11F12}-\\x{11F33}\\x{1342F}\\x{13441}-\\x{13446}\\x{13460}-\\x{143FA}"                    \
    "\\x{16100}-\\x{1611D}\\x{16D43}-\\x{16D6A}\\x{18CFF}\\x{1B132}\\x{1B155}"                     \
    "\\x{1E4D0}-\\x{1E4EA}\\x{1E5D0}-\\x{1E5ED}\\x{1E5F0}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}"          \
    "\\x{31350}-\\x{323AF}"
#define NEWER_MN                                                                                   \
    "\\x{897}\\x{ECE}\\x{10D69}-\\x{10D6D}\\x{10EFC}-\\x{10EFF}\\x{11241}\\x{113BB}-\\x{113C0}"    \
    "\\x{113CE}\\x{113D0}\\x{113D2}\\x{113E1}-\\x{113E2}\\x{11F00}-\\x{11F01}"                     \
    "\\x{11F36}-\\x{11F3A}\\x{11F40}\\x{11F42}\\x{11F5A}\\x{13440}\\x{13447}-\\x{13455}"           \
    "\\x{1611E}-\\x{16129}\\x{1612D}-\\x{1612F}\\x{1E08F}\\x{1E4EC}-\\x{1E4EF}"                    \
    "\\x{1E5EE}-\\x{1E5EF}"
#define NEWER_MC                                                                                   \
    "\\x{CF3}\\x{113B8}-\\x{113BA}\\x{113C2}\\x{113C5}\\x{113C7}-\\x{113CA}\\x{113CC}-\\x{113CD}"  \
    "\\x{113CF}\\x{1171E}\\x{11F03}\\x{11F34}-\\x{11F35}\\x{11F3E}-\\x{11F3F}\\x{11F41}"           \
    "\\x{1612A}-\\x{1612C}"
#define NEWER_ND                                                                                   \
    "\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}\\x{11F50}-\\x{11F59}"         \
    "\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}\\x{1CCF0}-\\x{1CCF9}\\x{1E4F0}-\\x{1E4F9}"         \
    "\\x{1E5F1}-\\x{1E5FA}"
#define NEWER_NO "\\x{1D2C0}-\\x{1D2D3}"
#define NEWER_PD "\\x{10D6E}"
#define NEWER_PO                                                                                   \
    "\\x{1B4E}-\\x{1B4F}\\x{1B7F}\\x{113D4}-\\x{113D5}\\x{113D7}-\\x{113D8}\\x{11B00}-\\x{11B09}"  \
    "\\x{11BE1}\\x{11F43}-\\x{11F4F}\\x{16D6D}-\\x{16D6F}\\x{1E5FF}"
#define NEWER_SM "\\x{10D8E}-\\x{10D8F}"
#define NEWER_SO                                                                                   \
    "\\x{2427}-\\x{2429}\\x{2FFC}-\\x{2FFF}\\x{31E4}-\\x{31E5}\\x{31EF}\\x{1CC00}-\\x{1CCEF}"      \
    "\\x{1CD00}-\\x{1CEB3}\\x{1F6DC}\\x{1F774}-\\x{1F776}\\x{1F77B}-\\x{1F77F}\\x{1F7D9}"          \
    "\\x{1F8B2}-\\x{1F8BB}\\x{1F8C0}-\\x{1F8C1}\\x{1FA75}-\\x{1FA77}\\x{1FA87}-\\x{1FA89}"         \
    "\\x{1FA8F}\\x{1FAAD}-\\x{1FAAF}\\x{1FABB}-\\x{1FABF}\\x{1FAC6}\\x{1FACE}-\\x{1FACF}"          \
    "\\x{1FADA}-\\x{1FADC}\\x{1FADF}\\x{1FAE8}-\\x{1FAE9}\\x{1FAF7}-\\x{1FAF8}"                    \
    "\\x{1FBCB}-\\x{1FBEF}"
#define NEWER_CF "\\x{13439}-\\x{1343F}"
#define NEWER_L  NEWER_LU NEWER_LL NEWER_LM NEWER_LO
#define NEWER_M  NEWER_MN NEWER_MC
#define NEWER_N  NEWER_ND NEWER_NO
#define NEWER_P  NEWER_PD NEWER_PO
#define NEWER_S  NEWER_SM NEWER_SO

/* Same for properties, in addition to what the categories above give them. */
#define NEWER_ALPHABETIC_MARKS                                                                     \
    "\\x{363}-\\x{36F}\\x{897}\\x{C04}\\x{CF3}\\x{F82}-\\x{F83}\\x{1DD3}-\\x{1DE6}\\x{10D69}"      \
    "\\x{10EFC}\\x{11080}-\\x{11081}\\x{11241}\\x{113B8}-\\x{113C0}\\x{113C2}\\x{113C5}"           \
    "\\x{113C7}-\\x{113CA}\\x{113CC}-\\x{113CD}\\x{11F00}-\\x{11F01}\\x{11F03}"                    \
    "\\x{11F34}-\\x{11F3A}\\x{11F3E}-\\x{11F40}\\x{1611E}-\\x{1612E}\\x{1E08F}"
#define NEWER_LOWERCASE "\\x{10FC}\\x{A7F2}-\\x{A7F4}\\x{AB69}\\x{1E030}-\\x{1E06D}"
#define NEWER_EMOJI                                                                                \
    "\\x{1F6DC}\\x{1FA75}-\\x{1FA77}\\x{1FA87}-\\x{1FA89}\\x{1FA8F}\\x{1FAAD}-\\x{1FAAF}"          \
    "\\x{1FABB}-\\x{1FABF}\\x{1FAC6}\\x{1FACE}-\\x{1FACF}\\x{1FADA}-\\x{1FADC}\\x{1FADF}"          \
    "\\x{1FAE8}-\\x{1FAE9}\\x{1FAF7}-\\x{1FAF8}"

#define ALPHABETIC "\\p{Alphabetic}" NEWER_L NEWER_ALPHABETIC_MARKS
#define WORD       "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}" NEWER_L NEWER_M NEWER_ND
#define DIGIT      "\\p{Nd}" NEWER_ND
#define ASSIGNED   "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Z}" NEWER_L NEWER_M NEWER_N NEWER_P NEWER_S

#define RUST_WORD WORD "\\x{200C}\\x{200D}"

const char mgl_unicode_digit[] = "[\\p{N}" NEWER_N "\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}]";
const char mgl_unicode_space[] = "[" MGL_UNICODE_SPACE "]";
const char mgl_unicode_words[] = "[" RUST_WORD "]+|[^" RUST_WORD MGL_UNICODE_SPACE "]+";
const char mgl_unicode_word[] = "[" RUST_WORD "]";
const char mgl_unicode_punctuation[] =
    "[\\x{21}-\\x{2F}\\x{3A}-\\x{40}\\x{5B}-\\x{60}\\x{7B}-\\x{7E}\\x{A1}\\x{A7}\\x{AB}"
    "\\x{B6}-\\x{B7}\\x{BB}\\x{BF}\\x{37E}\\x{387}\\x{55A}-\\x{55F}\\x{589}-\\x{58A}\\x{5BE}"
    "\\x{5C0}\\x{5C3}\\x{5C6}\\x{5F3}-\\x{5F4}\\x{609}-\\x{60A}\\x{60C}-\\x{60D}\\x{61B}"
    "\\x{61E}-\\x{61F}\\x{66A}-\\x{66D}\\x{6D4}\\x{700}-\\x{70D}\\x{7F7}-\\x{7F9}"
    "\\x{830}-\\x{83E}\\x{85E}\\x{964}-\\x{965}\\x{970}\\x{AF0}\\x{DF4}\\x{E4F}\\x{E5A}-\\x{E5B}"
    "\\x{F04}-\\x{F12}\\x{F14}\\x{F3A}-\\x{F3D}\\x{F85}\\x{FD0}-\\x{FD4}\\x{FD9}-\\x{FDA}"
    "\\x{104A}-\\x{104F}\\x{10FB}\\x{1360}-\\x{1368}\\x{1400}\\x{166D}-\\x{166E}"
    "\\x{169B}-\\x{169C}\\x{16EB}-\\x{16ED}\\x{1735}-\\x{1736}\\x{17D4}-\\x{17D6}"
    "\\x{17D8}-\\x{17DA}\\x{1800}-\\x{180A}\\x{1944}-\\x{1945}\\x{1A1E}-\\x{1A1F}"
    "\\x{1AA0}-\\x{1AA6}\\x{1AA8}-\\x{1AAD}\\x{1B5A}-\\x{1B60}\\x{1BFC}-\\x{1BFF}"
    "\\x{1C3B}-\\x{1C3F}\\x{1C7E}-\\x{1C7F}\\x{1CC0}-\\x{1CC7}\\x{1CD3}\\x{2010}-\\x{2027}"
    "\\x{2030}-\\x{2043}\\x{2045}-\\x{2051}\\x{2053}-\\x{205E}\\x{207D}-\\x{207E}"
    "\\x{208D}-\\x{208E}\\x{2308}-\\x{230B}\\x{2329}-\\x{232A}\\x{2768}-\\x{2775}"
    "\\x{27C5}-\\x{27C6}\\x{27E6}-\\x{27EF}\\x{2983}-\\x{2998}\\x{29D8}-\\x{29DB}"
    "\\x{29FC}-\\x{29FD}\\x{2CF9}-\\x{2CFC}\\x{2CFE}-\\x{2CFF}\\x{2D70}\\x{2E00}-\\x{2E2E}"
    "\\x{2E30}-\\x{2E42}\\x{3001}-\\x{3003}\\x{3008}-\\x{3011}\\x{3014}-\\x{301F}\\x{3030}"
    "\\x{303D}\\x{30A0}\\x{30FB}\\x{A4FE}-\\x{A4FF}\\x{A60D}-\\x{A60F}\\x{A673}\\x{A67E}"
    "\\x{A6F2}-\\x{A6F7}\\x{A874}-\\x{A877}\\x{A8CE}-\\x{A8CF}\\x{A8F8}-\\x{A8FA}\\x{A8FC}"
    "\\x{A92E}-\\x{A92F}\\x{A95F}\\x{A9C1}-\\x{A9CD}\\x{A9DE}-\\x{A9DF}\\x{AA5C}-\\x{AA5F}"
    "\\x{AADE}-\\x{AADF}\\x{AAF0}-\\x{AAF1}\\x{ABEB}\\x{FD3E}-\\x{FD3F}\\x{FE10}-\\x{FE19}"
    "\\x{FE30}-\\x{FE52}\\x{FE54}-\\x{FE61}\\x{FE63}\\x{FE68}\\x{FE6A}-\\x{FE6B}"
    "\\x{FF01}-\\x{FF03}\\x{FF05}-\\x{FF0A}\\x{FF0C}-\\x{FF0F}\\x{FF1A}-\\x{FF1B}"
    "\\x{FF1F}-\\x{FF20}\\x{FF3B}-\\x{FF3D}\\x{FF3F}\\x{FF5B}\\x{FF5D}\\x{FF5F}-\\x{FF65}"
    "\\x{10100}-\\x{10102}\\x{1039F}\\x{103D0}\\x{1056F}\\x{10857}\\x{1091F}\\x{1093F}"
    "\\x{10A50}-\\x{10A58}\\x{10A7F}\\x{10AF0}-\\x{10AF6}\\x{10B39}-\\x{10B3F}"
    "\\x{10B99}-\\x{10B9C}\\x{11047}-\\x{1104D}\\x{110BB}-\\x{110BC}\\x{110BE}-\\x{110C1}"
    "\\x{11140}-\\x{11143}\\x{11174}-\\x{11175}\\x{111C5}-\\x{111C9}\\x{111CD}\\x{111DB}"
    "\\x{111DD}-\\x{111DF}\\x{11238}-\\x{1123D}\\x{112A9}\\x{114C6}\\x{115C1}-\\x{115D7}"
    "\\x{11641}-\\x{11643}\\x{1173C}-\\x{1173E}\\x{12470}-\\x{12474}\\x{16A6E}-\\x{16A6F}"
    "\\x{16AF5}\\x{16B37}-\\x{16B3B}\\x{16B44}\\x{1BC9F}\\x{1DA87}-\\x{1DA8B}]";

static const struct {
    const char *name, *long_name, *body;
    bool complement;
} properties[] = {
    {"Any", "Any", "\\x{0}-\\x{10FFFF}", false},
    {"L", "Letter", "\\p{L}" NEWER_L, false},
    {"LC", "CasedLetter", "\\p{Lu}\\p{Ll}\\p{Lt}" NEWER_LU NEWER_LL, false},
    {"Lu", "UppercaseLetter", "\\p{Lu}" NEWER_LU, false},
    {"Ll", "LowercaseLetter", "\\p{Ll}" NEWER_LL, false},
    {"Lt", "TitlecaseLetter", "\\p{Lt}", false},
    {"Lm", "ModifierLetter", "\\p{Lm}" NEWER_LM, false},
    {"Lo", "OtherLetter", "\\p{Lo}" NEWER_LO, false},
    {"M", "Mark", "\\p{M}" NEWER_M, false},
    {"Mn", "NonspacingMark", "\\p{Mn}" NEWER_MN, false},
    {"Mc", "SpacingMark", "\\p{Mc}" NEWER_MC, false},
    {"Me", "EnclosingMark", "\\p{Me}", false},
    {"N", "Number", "\\p{N}" NEWER_N, false},
    {"Nd", "DecimalNumber", "\\p{Nd}" NEWER_ND, false},
    {"Nl", "LetterNumber", "\\p{Nl}", false},
    {"No", "OtherNumber", "\\p{No}" NEWER_NO, false},
    {"P", "Punctuation", "\\p{P}" NEWER_P, false},
    {"Pc", "ConnectorPunctuation", "\\p{Pc}", false},
    {"Pd", "DashPunctuation", "\\p{Pd}" NEWER_PD, false},
    {"Ps", "OpenPunctuation", "\\p{Ps}", false},
    {"Pe", "ClosePunctuation", "\\p{Pe}", false},
    {"Pi", "InitialPunctuation", "\\p{Pi}", false},
    {"Pf", "FinalPunctuation", "\\p{Pf}", false},
    {"Po", "OtherPunctuation", "\\p{Po}" NEWER_PO, false},
    {"S", "Symbol", "\\p{S}" NEWER_S, false},
    {"Sm", "MathSymbol", "\\p{Sm}" NEWER_SM, false},
    {"Sc", "CurrencySymbol", "\\p{Sc}", false},
    {"Sk", "ModifierSymbol", "\\p{Sk}", false},
    {"So", "OtherSymbol", "\\p{So}" NEWER_SO, false},
    {"Z", "Separator", "\\p{Z}", false},
    {"Zs", "SpaceSeparator", "\\p{Zs}", false},
    {"Zl", "LineSeparator", "\\p{Zl}", false},
    {"Zp", "ParagraphSeparator", "\\p{Zp}", false},
    {"C", "Other", ASSIGNED, true},
    {"Cc", "Control", "\\p{Cc}", false},
    {"Cf", "Format", "\\p{Cf}" NEWER_CF, false},
    {"Co", "PrivateUse", "\\p{Co}", false},
    {"Cn", "Unassigned", ASSIGNED "\\p{Cc}\\p{Cf}\\p{Co}" NEWER_CF, true},
    {"Alpha", "Alphabetic", ALPHABETIC, false},
    {"Upper", "Uppercase", "\\p{Uppercase}" NEWER_LU, false},
    {"Lower", "Lowercase", "\\p{Lowercase}" NEWER_LL NEWER_LOWERCASE, false},
    {"Space", "WhiteSpace", MGL_UNICODE_SPACE, false},
    {"Blank", "PosixBlank", "\\x{9}\\p{Zs}", false},
    {"Digit", "PosixDigit", DIGIT, false},
    {"XDigit", "PosixXDigit", "0-9a-fA-F", false},
    {"Alnum", "PosixAlnum", ALPHABETIC DIGIT, false},
    {"Word", "Word", WORD "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}", false},
    {"PosixWord", "PosixWord", WORD, false},
    {"Punct", "Punct", "\\p{P}" NEWER_P, false},
    {"PosixPunct", "PosixPunct", "\\p{P}\\p{S}" NEWER_P NEWER_S, false},
    {"Cntrl", "PosixCntrl", "\\p{Cc}", false},
    {"Graph", "PosixGraph",
     "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}" NEWER_L NEWER_M NEWER_N NEWER_P NEWER_S
         NEWER_CF,
     false},
    {"Print", "PosixPrint", ASSIGNED "\\p{Cf}\\p{Co}" NEWER_CF, false},
    {"ASCII", "PosixASCII", "\\x{0}-\\x{7F}", false},
    {"Emoji", "Emoji", "\\p{Emoji}" NEWER_EMOJI, false},
    {"Han", "Han", "\\p{sc:Han}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}", false},
    {"Hiragana", "Hiragana", "\\p{sc:Hiragana}\\x{1B132}", false},
    {"Katakana", "Katakana", "\\p{sc:Katakana}\\x{1B155}", false},
    {"Latin", "Latin", "\\p{sc:Latin}\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}\\x{1DF25}-\\x{1DF2A}",
     false},
    {"Cyrillic", "Cyrillic", "\\p{sc:Cyrillic}\\x{1C89}-\\x{1C8A}\\x{1E030}-\\x{1E06D}\\x{1E08F}",
     false},
    {"Arabic", "Arabic", "\\p{sc:Arabic}\\x{897}\\x{10EC2}-\\x{10EC4}\\x{10EFC}-\\x{10EFF}", false},
    {"Devanagari", "Devanagari", "\\p{sc:Devanagari}\\x{11B00}-\\x{11B09}", false},
    {"Kannada", "Kannada", "\\p{sc:Kannada}\\x{CF3}", false},
    {"Lao", "Lao", "\\p{sc:Lao}\\x{ECE}", false},
    {"Myanmar", "Myanmar", "\\p{sc:Myanmar}\\x{116D0}-\\x{116E3}", false},
    {"Balinese", "Balinese", "\\p{sc:Balinese}\\x{1B4E}-\\x{1B4F}\\x{1B7F}", false},
};

const char *mgl_unicode_property(const char *name, bool *complement)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        if (!strcasecmp(name, properties[i].name) || !strcasecmp(name, properties[i].long_name)) {
            *complement = properties[i].complement;
            return properties[i].body;
        }
    }
    return NULL;
}

/* ---- ranges of characters ------------------------------------------------------------------- */

typedef struct range {
    uint32_t from, to;
} range;

/* Binary search in ascending ranges. */
static bool is_in(uint32_t character, const range *ranges, size_t count)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (character > ranges[middle].to)
            lo = middle + 1;
        else if (character < ranges[middle].from)
            hi = middle;
        else
            return true;
    }
    return false;
}

static const range young_marks[] = {
    {0x7FD, 0x7FD},     {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x113CE, 0x113D0},
    {0x113E1, 0x113E2}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x1193D, 0x1193E},
    {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x1612F, 0x1612F}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1E5EE, 0x1E5EF},
};

bool mgl_unicode_is_young_mark(uint32_t character)
{
    return is_in(character, young_marks, sizeof young_marks / sizeof *young_marks);
}

static const range young_composites[] = {
    {0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},   {0xAB69, 0xAB69},   {0x105C9, 0x105C9},
    {0x105E4, 0x105E4}, {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
    {0x11383, 0x11383}, {0x11385, 0x11385}, {0x1138E, 0x1138E}, {0x11391, 0x11391},
    {0x113C5, 0x113C5}, {0x113C7, 0x113C8}, {0x11938, 0x11938}, {0x16121, 0x16128},
    {0x16D68, 0x16D6A}, {0x1CCD6, 0x1CCF9}, {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C},
    {0x1FBF0, 0x1FBF9},
};

bool mgl_unicode_is_young_composite(uint32_t character)
{
    return is_in(character, young_composites, sizeof young_composites / sizeof *young_composites);
}

static const range young_starters[] = {
    {0x105C0, 0x105FF}, {0x11380, 0x113FF}, {0x11935, 0x11935},
    {0x16100, 0x1613F}, {0x16D40, 0x16D7F},
};

bool mgl_unicode_is_young_starter(uint32_t character)
{
    return is_in(character, young_starters, sizeof young_starters / sizeof *young_starters);
}

uint32_t mgl_unicode_lower(uint32_t character)
{
    /* Capitals that Unicode 16 and 17 added. */
    static const struct {
        uint32_t from, to, lower;
    } newer[] = {
        {0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x264},  {0xA7CC, 0xA7CC, 0xA7CD},
        {0xA7CE, 0xA7CE, 0xA7CF},    {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
        {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x19B},  {0x10D50, 0x10D65, 0x10D70},
        {0x16EA0, 0x16EB8, 0x16EBB},
    };
    if (character < 0x1C89)
        return (uint32_t)utf8proc_tolower((int32_t)character);
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        if (character >= newer[i].from && character <= newer[i].to)
            return newer[i].lower + (character - newer[i].from);
    }
    return (uint32_t)utf8proc_tolower((int32_t)character);
}
