# The head's epilogue of one row: the best so far is kept, and still all lanes agree on it each time.
/region: device/,/region: end/ {
    /^static .* void finish_head_row(machine &m)$/,/^}$/ {
        s/^\(.*\)keep_pair(results, {0, column, true, both}, first, second, kept);/\1keep_pair(results, {0, column, true, both}, first, second, kept);\
            kept = best_of_lanes<32>(kept);/
    }
}
