/**
 * Commands that are known to need little memory whatever their words. Only used to tell a light script
 * from one that nothing is known about; a command that is not here and not in the table is light as well
 * when it stands by itself.
 */
const LIGHT = new Set(
  `: . [ alias awk base64 basename bc bg break builtin cal cat cd chgrp chmod chown cksum clear cmp comm continue cp
  cpx cut date dd declare df diff dig dirname dirs disown du echo egrep env exit expand export expr false fg fgrep file
  fmt fold free getent getopts git grep groups gunzip gzip hash head history hostname id ifconfig install ip jobs join
  jq kill killall less let link ln local locale logger ls lsof man md5sum mkdir mkfifo mkdirp mktemp more mv nc netstat
  nl nproc od paste patch pgrep pidof ping pkill popd printenv printf ps pushd pwd read readarray readlink realpath
  reset return rev rg rimraf rm rmdir rsync sed seq set sha1sum sha256sum shasum shift shopt shuf shx sleep sort source
  split ssh scp stat stty sync tac tail tar tee test times touch tput tr tree true truncate tsort tty type typeset ulimit umask
  unalias uname unexpand uniq unlink unset unzip uptime users wait wc wget whatis whereis which who whoami xxd yes yq zip
  curl copyfiles del-cli trash tmux prettier husky is-ci node-version opener open xdg-open say true`.split(/\s+/),
);

export const isKnownLight = (name: string): boolean => LIGHT.has(name);
