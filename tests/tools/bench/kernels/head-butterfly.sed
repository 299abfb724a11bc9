# Of the plain text: all lanes learn the best at once, by a butterfly.
/region: device/,/region: end/ {
    /^template <int N> .* best best_of_lanes(best b)$/,/^}$/ {
        s/for (int offset = N \/ 2; offset > 0; offset \/= 2) {/for (int offset = 1; offset < N; offset *= 2) {/
        s/__shfl_down_sync(\(.*\), offset, N)/__shfl_xor_sync(\1, offset)/
        /__shfl_sync(/ d
    }
}
