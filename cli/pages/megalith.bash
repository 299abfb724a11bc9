# bash completion of megalith @version@, made of the tables of its command line by its build.

@tables@
# Offers what may be given: of the variables of _megalith_argument, with `lead` in front.
_megalith_offer() {
    case $paths in
    file)
        compopt -o filenames 2>/dev/null
        if [ -n "$suffix" ]; then
            mapfile -t found < <(compgen -d -- "$current"; compgen -f -X "!*.$suffix" -- "$current")
        else
            mapfile -t found < <(compgen -f -- "$current")
        fi
        ;;
    model)
        compopt -o filenames 2>/dev/null
        mapfile -t found < <(compgen -d -- "$current"; compgen -f -X '!*.mega' -- "$current")
        ;;
    folder)
        compopt -o filenames 2>/dev/null
        mapfile -t found < <(compgen -d -- "$current")
        ;;
    program) mapfile -t found < <(compgen -c -- "$current") ;;
    *) found=() ;;
    esac
    if [ -n "$words" ]; then
        mapfile -t -O "${#found[@]}" found < <(compgen -W "$words" -- "$current")
    fi
}

# Readline ends words at = and : too; the line's words, up to the one that is completed.
_megalith_split() {
    local token last=''
    line=()
    for token in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#line[@]} -gt 0 && ($token == [:=]* || $last == *[:=]) &&
            (-n $token || ${COMP_LINE:COMP_POINT-1:1} != ' ') ]]; then
            line[-1]+=$token
        else
            line+=("$token")
        fi
        last=$token
    done
}

# Flags that do not stand on the line yet.
_megalith_unused() {
    local flag word
    for flag in $flags; do
        for word in "${line[@]}"; do
            [[ $word == "$flag" || $word == "$flag"=* ]] && continue 2
        done
        printf '%s ' "$flag"
    done
}

_megalith() {
    local line found=() current lead='' typed i word verb='' pending='' given=0 ended=0
    local flags='' operand='' takes='' paths='' suffix='' words=''
    _megalith_split
    current=${line[-1]}
    typed=$current
    unset 'line[-1]'
    verb=${line[1]-}
    i=2
    if [ "$verb" = help ]; then
        if [ "${#line[@]}" -eq 2 ]; then words=$_megalith_verbs; else _megalith_words "${line[*]:2}"; fi
        verb=''
    elif [ -z "$verb" ]; then
        words=$_megalith_verbs
        [[ $current == -* ]] && words='-h --help -V --version'
    else
        _megalith_words "$verb"
        while [ -n "$words" ] && [ "${#line[@]}" -gt "$i" ]; do
            verb+=" ${line[i]}"
            words=''
            i=$((i + 1))
            _megalith_words "$verb"
        done
        if [ -n "$words" ]; then
            [[ $current == -* ]] && words='-h --help'
            verb=''
        fi
    fi
    if [ -n "$verb" ]; then
        _megalith_flags "$verb"
        for word in "${line[@]:i}"; do
            takes=''
            if [ -n "$pending" ]; then
                pending=''
            elif [ "$ended" = 1 ] || [[ $word != -?* ]]; then
                given=1
            elif [ "$word" = -- ]; then
                ended=1
            elif [[ $word != *=* ]]; then
                _megalith_argument "$verb $word"
                [ -n "$takes" ] && pending=$word
            fi
        done
        takes='' paths='' suffix='' words=''
        if [ -n "$pending" ]; then
            _megalith_argument "$verb $pending"
        elif [ "$ended" = 0 ] && [[ $current == --*=* ]]; then
            lead=${current%%=*}=
            current=${current#*=}
            _megalith_argument "$verb ${lead%=}"
        elif [ "$ended" = 0 ] && [[ $current == -* ]]; then
            words=$(_megalith_unused)
        elif [ "$operand" = 1 ] && [ "$given" = 0 ]; then
            _megalith_argument "$verb"
            [ -z "$paths$words" ] && words=$(_megalith_unused)
        elif [ "$ended" = 0 ]; then
            words=$(_megalith_unused)
        fi
    fi
    _megalith_offer
    # Readline keeps what stands before its last : or =, where it ends words there.
    local breaks='' cut=''
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
    [ -n "$breaks" ] && [[ $typed == *["$breaks"]* ]] && cut=${typed%"${typed##*["$breaks"]}"}
    COMPREPLY=()
    for word in "${found[@]}"; do
        word=$lead$word
        COMPREPLY+=("${word#"$cut"}")
    done
}

complete -F _megalith megalith
