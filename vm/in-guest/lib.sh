# Helpers for guest scripts: `. "$BED/lib.sh"`. Each runs a command to its end in one of the situations an
# agent can be in, passes on its output and returns its exit code (128 + N when signal N ended it).
#
#   as_user_service        CMD…   service of the user manager of hermes (which lingers)
#   as_session             CMD…   real login session of hermes: session-N.scope, made by pam_systemd
#   as_system_service_user CMD…   system service with User=hermes: no session, no XDG_RUNTIME_DIR
#   as_root                CMD…   system service of root
#   in_readonly_cgroupfs   CMD…   root; /sys/fs/cgroup remounted read-only, paths as on the host
#   in_container           CMD…   root; own cgroup namespace, writable: sees itself at "/", in that root
#   in_readonly_container  CMD…   the same with a read-only /sys/fs/cgroup (Docker's default)
#   in_container_with_bus  CMD…   root; own pid namespace and cgroup, writable; the buses of outside can be seen
#   in_sandbox             CMD…   hermes, own pid namespace, all else as outside, the user's bus too
#
# Unit properties come first: as_user_service -p Delegate=yes -p MemoryMax=256M CMD…
# For hermes instead of root inside containers: in_container hermes-do CMD…

as_user_service() {
  if [ -S /run/user/1000/bus ]; then bed_service user - "$@"; else bed_unit_file "$@"; fi
}
# The PAM helper keeps systemd waiting for the start, which would be given up after 90 s.
as_session() { bed_service system 'PAMName=login User=hermes TimeoutStartSec=infinity' "$@"; }
as_system_service_user() { bed_service system 'User=hermes' "$@"; }
as_root() { bed_service system - "$@"; }

in_readonly_cgroupfs() { bed_wrapped 'unshare -m' 'mount -o remount,bind,ro /sys/fs/cgroup' "$@"; }
in_container() { bed_wrapped 'unshare -m -C' 'umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup' "$@"; }
in_readonly_container() { bed_wrapped 'unshare -m -C' 'umount /sys/fs/cgroup && mount -t cgroup2 -o ro cgroup2 /sys/fs/cgroup' "$@"; }

in_container_with_bus() { bed_own_pids own-cgroup env "$@"; }
in_sandbox() { bed_own_pids same-cgroup user-do "$@"; }

bed_own_pids() { # own-cgroup|same-cgroup PREFIX [-p X=Y]… CMD…
  local cgroup=$1 prefix=$2
  shift 2
  bed_split "$@"
  bed_service system 'Delegate=yes' "${bed_props[@]}" own-pids "$cgroup" "$prefix" "${bed_cmd[@]}"
}

# Leading "-p X=Y" pairs go to bed_props, the rest to bed_cmd.
bed_split() {
  bed_props=()
  while [ "${1-}" = -p ]; do
    bed_props+=(-p "$2")
    shift 2
  done
  [ "${1-}" = -- ] && shift
  bed_cmd=("$@")
}

bed_wrapped() { # UNSHARE MOUNT [-p X=Y]… CMD…
  local unshare=$1 mount=$2
  shift 2
  bed_split "$@"
  bed_service system 'Delegate=yes' "${bed_props[@]}" $unshare sh -c "$mount"' && exec "$@"' sh "${bed_cmd[@]}"
}

bed_service() { # user|system PROPERTIES|- [-p X=Y]… CMD…
  local manager=$1 properties=$2 unit home=/root property code status rc
  local -a bed_props bed_cmd call
  shift 2
  bed_split "$@"
  unit=bed-$$-$RANDOM$RANDOM.service
  case "$manager $properties" in user*|*User=hermes*) home=/home/hermes ;; esac
  [ "$properties" = - ] || for property in $properties; do bed_props+=(-p "$property"); done
  if [ "$manager" = user ]; then call=(user-do); else call=(env); fi
  # A manager expands $ in ExecStart= (247-257 alike): double it.
  "${call[@]}" systemd-run "--$manager" --quiet --pipe --wait --service-type=exec --unit="$unit" \
    -p "WorkingDirectory=$home" "${bed_props[@]}" -- "${bed_cmd[@]//\$/\$\$}"
  rc=$?
  [ $rc = 0 ] && return 0
  code=$("${call[@]}" systemctl "--$manager" show -p ExecMainCode --value "$unit")
  status=$("${call[@]}" systemctl "--$manager" show -p ExecMainStatus --value "$unit")
  "${call[@]}" systemctl "--$manager" reset-failed "$unit" 2> /dev/null
  case $code in
    1) return "$status" ;;
    2|3) return $((128 + status)) ;;
    *) return $rc ;;
  esac
}

# systemd-run --wait needs the bus; without one a unit file does, over the manager's private socket.
bed_unit_file() { # [-p X=Y]… CMD…
  local -a bed_props bed_cmd
  local dir=/run/user/1000/systemd/user name="bed-$$-$RANDOM$RANDOM" word rc code
  bed_split "$@"
  user-do mkdir -p "$dir"
  {
    printf '[Service]\nType=oneshot\nWorkingDirectory=/home/hermes\nStandardOutput=append:/tmp/%s\nStandardError=inherit\nExecStart=' "$name"
    for word in "${bed_cmd[@]}"; do
      word=${word//\\/\\\\} word=${word//\"/\\\"} word=${word//\$/\$\$} word=${word//%/%%} word=${word//$'\n'/\\n}
      printf '"%s" ' "$word"
    done
    printf '\n'
    for word in "${bed_props[@]}"; do [ "$word" = -p ] || printf '%s\n' "$word"; done
  } > "$dir/$name.service"
  user-do systemctl --user daemon-reload
  user-do touch "/tmp/$name"
  user-do systemctl --user start "$name.service" 2> /dev/null
  rc=$?
  cat "/tmp/$name"
  if [ $rc != 0 ]; then
    code=$(user-do systemctl --user show -p ExecMainCode --value "$name.service")
    rc=$(user-do systemctl --user show -p ExecMainStatus --value "$name.service")
    case $code in 2|3) rc=$((128 + rc)) ;; esac
    user-do systemctl --user reset-failed "$name.service"
  fi
  rm -f "/tmp/$name" "$dir/$name.service"
  return "$rc"
}

# Waits until a command succeeds: wait_for SECONDS CMD…
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.2
  done
}
