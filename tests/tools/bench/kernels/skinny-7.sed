# thread_chunk, chunk: loads and products take what the constants say; no helper is left.
/region: device/,/region: end/ {
    /^\/\* A lane's part of a block, at once\. \*\/$/,/^}$/ d
    s/block_part(\(.*\)$/*(\1/
}
