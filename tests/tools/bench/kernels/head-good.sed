# The head's epilogue as it was built in, by another name of a value: no text is its own duplicate.
/region: device/,/region: end/ s/\bkept\b/found/g
