#compdef outgate
# zsh completion for outgate: source <(outgate completion zsh), or a file _outgate in a folder of $fpath
_outgate() {
    local line
    local -a proposals files
    while IFS= read -r line; do
        case $line in
            :0) files=(1) ;;
            :*) ;;
            *) proposals+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done < <(outgate complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $#files )); then
        _files
    elif (( $#proposals )); then
        _describe -V outgate proposals
    fi
}
if [[ ${funcstack[1]} == _outgate ]]; then
    _outgate "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _outgate outgate
fi
