# fish completion of megalith @version@, made of the tables of its command line by its build.

# The words of the line behind the command, up to the one that is completed; the verb of them:
# "run", "campaign list", "kernel ptx diff", "campaign", "help run", or nothing.
function __megalith_verb
    set -l words (commandline -opc)
    set -e words[1]
    if not set -q words[1]
        echo
    else if test "$words[1]" = help
        echo $words
    else
        set -l last 1
        while contains -- "$words[1..$last]" $__megalith_groups; and set -q words[(math $last + 1)]
            set last (math $last + 1)
        end
        echo $words[1..$last]
    end
end

# Is it this verb?
function __megalith_at
    test (__megalith_verb) = "$argv"
end

# Is it this verb, and is its operand missing?
function __megalith_wants
    __megalith_at $argv; or return 1
    set -l words (commandline -opc)
    set -e words[1]
    set -l valued (__megalith_valued $argv)
    set -l pending 0
    for word in $words[(math (count $argv) + 1)..-1]
        if test $pending = 1
            set pending 0
        else if contains -- $word $valued
            set pending 1
        else if not string match -q -- '-?*' $word
            return 1
        end
    end
end

# Folders, and files that end so; without an end all files.
function __megalith_files
    set -l typed (commandline -ct | string replace -r -- '^-[^=]*=' '')
    if set -q argv[1]
        __fish_complete_directories $typed
        for file in $typed*.$argv[1]
            echo $file
        end
    else
        __fish_complete_path $typed
    end
end

complete -c megalith -f
@tables@
complete -c megalith -s h -l help -d 'the flags of the verb and an example'
complete -c megalith -n '__megalith_at' -s V -l version -d 'the version'
