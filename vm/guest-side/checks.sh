# The script of one boot. Arguments: launches, then SITUATION:MODE …, `greedy`, `turns`, `watchdog`, `logins`, `hermes` or `unprotected`.
. "$BED/lib.sh"
NODE="node /mnt/host/target/guest-side"
launches=$1
shift

nothing_left() { # nothing of ours is left after idle
  sleep 1
  local units cgroups
  units=$(user-do systemctl --user list-units --all --no-legend 'headroom*' 2> /dev/null; systemctl list-units --all --no-legend 'headroom*' 2> /dev/null)
  cgroups=$(find /sys/fs/cgroup -name 'headroom-[jp]*' 2> /dev/null)
  if [ -z "$units$cgroups" ]; then echo "CHECK ok nothing is left: no unit, no cgroup"; else echo "CHECK FAIL nothing is left: $units $cgroups"; fi
}

run() { # SITUATION PROGRAM ARGUMENT…: a program that breaks off must not look like one with fewer checks
  "$@"
  local code=$?
  [ "$code" = 0 ] || echo "CHECK FAIL the checks ran to their end: exit code $code"
}

for word in "$@"; do
  if [ "$word" = greedy ] || [ "$word" = watchdog ]; then
    echo "CELL $word"
    run as_user_service $NODE/$word.js
    nothing_left
    continue
  fi
  if [ "$word" = hermes ] || [ "$word" = unprotected ]; then
    echo "CELL $word"
    # The chats and the model are not on the machine that is tested.
    run as_root -p OOMScoreAdjust=-900 $NODE/hermes.js "$word"
    user-do node /mnt/host/bin/hermes-headroom.js daemon stop
    nothing_left
    continue
  fi
  if [ "$word" = turns ]; then
    echo "CELL turns"
    run as_user_service $NODE/turns.js
    nothing_left
    continue
  fi
  if [ "$word" = logins ]; then
    echo "CELL logins"
    user-do mkdir /tmp/logout
    run as_session $NODE/logout.js leave /tmp/logout
    run as_user_service $NODE/logout.js look /tmp/logout
    nothing_left
    run as_system_service_user $NODE/linger.js
    nothing_left
    continue
  fi
  situation=${word%%:*} mode=${word#*:}
  echo "CELL $situation"
  run "$situation" $NODE/check.js "$mode" "$launches"
  if [ "$situation" = as_user_service ] && [ "$mode" = systemd-user ]; then
    run as_user_service $NODE/manager.js
  fi
  nothing_left
done
echo "CELL end"
