# bash completion for outgate: source <(outgate completion bash)
_outgate() {
    local IFS=$'\n' word line start="" files=""
    local -a words=()
    local at
    for ((at = 1; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ ${#words[@]} -gt 0 && ( $word == "=" || ${COMP_WORDS[at-1]} == "=" ) && ${words[${#words[@]}-1]} == --* ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
    done
    word=${words[${#words[@]}-1]}
    if [[ $word == --*=* ]]; then start="${word%%=*}="; fi
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :0) files=1 ;;
            :*) ;;
            *) line=${line%%$'\t'*}; COMPREPLY+=("${line#"$start"}") ;;
        esac
    done < <(outgate complete -- "${words[@]}" 2>/dev/null)
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    elif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _outgate outgate
