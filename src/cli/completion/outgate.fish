# fish completion for outgate: outgate completion fish | source
function __outgate_proposals
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    outgate complete -- $before[2..-1] "$word" 2>/dev/null | string match --invert --regex '^:\d+$'
end
function __outgate_takes_files
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    test (outgate complete -- $before[2..-1] "$word" 2>/dev/null)[-1] = ':0'
end
complete --command outgate --erase
complete --command outgate --no-files --keep-order --arguments '(__outgate_proposals)'
complete --command outgate --condition __outgate_takes_files --force-files
