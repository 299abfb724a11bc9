#compdef megalith
# zsh completion of megalith @version@, made of the tables of its command line by its build.

# Words, or files that match a pattern.
_megalith_either() {
    local -a offered=(${=1})
    _alternative 'words:word:compadd -a offered' "files:file:_files -g '$2(-.)'"
}

@tables@
_megalith() {
    local curcontext=$curcontext state state_descr line
    local -a words_of
    typeset -A opt_args
    _arguments -C \
        '(- *)'{-h,--help}'[the verbs]' \
        '(- *)'{-V,--version}'[the version]' \
        '1:verb:_megalith_verbs' \
        '*::argument:->verb' && return
    [[ $state == verb ]] || return 1
    local verb=$words[1]
    if [[ $verb == help ]]; then
        if (( CURRENT == 2 )); then
            _megalith_verbs
        elif _megalith_words "${words[2,CURRENT-1]}"; then
            _describe -t words word words_of
        fi
    else
        while _megalith_words $verb && (( CURRENT > 2 )); do
            shift words
            (( CURRENT-- ))
            verb+=" $words[1]"
        done
        if _megalith_words $verb; then
            _arguments '(- *)'{-h,--help}'[its words]' '1: : _describe -t words word words_of'
        else
            _megalith_verb $verb
        fi
    fi
}

if [[ $funcstack[1] == _megalith ]]; then
    _megalith "$@"
else
    compdef _megalith megalith
fi
