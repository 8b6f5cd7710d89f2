// Scripts for shells. Each asks `outgate complete -- <words>` and evaluates nothing of what was typed: a `$(…)` that stands in
// a command line is not run by the Tab key. Not those of @bomb.sh/tab (tried with 0.0.22) but for PowerShell: in bash they
// evaluate the command line, need the package bash-completion and fail when they are sourced twice; in zsh they need compinit.

/** Bash 3.2 and later, without the package bash-completion. `=` and `:` are words of their own there. */
const BASH = `# bash completion for outgate: source <(outgate completion bash)
_outgate() {
    local IFS=$'\\n' word line start="" files=""
    local -a words=()
    local at
    for ((at = 1; at <= COMP_CWORD; at++)); do
        word=\${COMP_WORDS[at]}
        if [[ \${#words[@]} -gt 0 && ( $word == "=" || \${COMP_WORDS[at-1]} == "=" ) && \${words[\${#words[@]}-1]} == --* ]]; then
            words[\${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
    done
    word=\${words[\${#words[@]}-1]}
    if [[ $word == --*=* ]]; then start="\${word%%=*}="; fi
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :0) files=1 ;;
            :*) ;;
            *) line=\${line%%$'\\t'*}; COMPREPLY+=("\${line#"$start"}") ;;
        esac
    done < <(outgate complete -- "\${words[@]}" 2>/dev/null)
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    elif [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _outgate outgate
`;

const ZSH = `#compdef outgate
# zsh completion for outgate: source <(outgate completion zsh), or a file _outgate in a folder of $fpath
_outgate() {
    local line
    local -a proposals files
    while IFS= read -r line; do
        case $line in
            :0) files=(1) ;;
            :*) ;;
            *) proposals+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
        esac
    done < <(outgate complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $#files )); then
        _files
    elif (( $#proposals )); then
        _describe -V outgate proposals
    fi
}
if [[ \${funcstack[1]} == _outgate ]]; then
    _outgate "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _outgate outgate
fi
`;

const FISH = `# fish completion for outgate: outgate completion fish | source
function __outgate_proposals
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    outgate complete -- $before[2..-1] "$word" 2>/dev/null | string match --invert --regex '^:\\d+$'
end
function __outgate_takes_files
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    test (outgate complete -- $before[2..-1] "$word" 2>/dev/null)[-1] = ':0'
end
complete --command outgate --erase
complete --command outgate --no-files --keep-order --arguments '(__outgate_proposals)'
complete --command outgate --condition __outgate_takes_files --force-files
`;

export const COMPLETION_SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
