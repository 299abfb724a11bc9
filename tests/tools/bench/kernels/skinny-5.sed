# vector_loads, stores: those of sums stay words, since slots have them so; the load is one word now.
/region: device/,/region: end/ {
    s/\bfour_words\b/block_part/g
    s/\bwords_at\b/part_place_of/g
}
