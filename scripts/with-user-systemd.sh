#!/usr/bin/env bash
# with-user-systemd.sh COMMAND…: runs a command beside a real `systemd --user` and its bus, on a machine whose
# first process is something else. Needs root, and the packages systemd and dbus. All mounts are made in a
# private mount namespace; processes, cgroups and files are gone afterwards.
set -euo pipefail

if [[ ${1-} != --inside ]]; then
  [[ $# -gt 0 ]] || { echo "usage: $0 COMMAND…" >&2; exit 2; }
  [[ $EUID -eq 0 ]] || { echo "$0: needs root" >&2; exit 1; }
  for program in dbus-daemon busctl unshare; do
    command -v "$program" >/dev/null || { echo "$0: $program is missing: apt-get install systemd dbus util-linux" >&2; exit 1; }
  done
  exec unshare --mount --propagation private bash "$(realpath "$0")" --inside "$@"
fi
shift

work=$(mktemp -d /tmp/headroom-systemd.XXXXXX)
mkdir -p -m 700 "$work/runtime" "$work/home"
# A pure v2 view, also where the machine mounts v1 beside it; and the mark by which sd_booted(3) knows systemd.
umount --lazy /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mkdir /run/systemd/system

cgroup=/sys/fs/cgroup/headroom-systemd-$$
# Named as in a real system: by that name a unit's path tells whose it is.
manager_cgroup=$cgroup/user@$EUID.service
mkdir -p "$manager_cgroup" "$cgroup/command"
export XDG_RUNTIME_DIR=$work/runtime DBUS_SESSION_BUS_ADDRESS=unix:path=$work/runtime/bus
dbus-daemon --session --address="$DBUS_SESSION_BUS_ADDRESS" --nofork --nopidfile 2>"$work/bus.log" &
bus=$!
(
  echo "$BASHPID" >"$manager_cgroup/cgroup.procs"
  HOME=$work/home SYSTEMD_LOG_TARGET=console exec /lib/systemd/systemd --user --unit=basic.target
) </dev/null >"$work/manager.log" 2>&1 &
manager=$!

clean_up() {
  kill "$manager" 2>/dev/null
  for _ in {1..50}; do kill -0 "$manager" 2>/dev/null || break; sleep 0.1; done
  echo 1 >"$manager_cgroup/cgroup.kill" 2>/dev/null
  kill "$bus" 2>/dev/null
  wait "$bus" 2>/dev/null
  cd /
  echo "$BASHPID" >/sys/fs/cgroup/cgroup.procs 2>/dev/null
  find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
  rm -rf "$work"
}
trap 'code=$?; clean_up || true; exit $code' EXIT

for _ in {1..200}; do
  busctl --user status org.freedesktop.systemd1 >/dev/null 2>&1 && break
  kill -0 "$manager" 2>/dev/null || { cat "$work/manager.log" >&2; exit 1; }
  sleep 0.05
done
echo "$BASHPID" >"$cgroup/command/cgroup.procs"
"$@"
