# Runs inside the guest as root, started by bed.service: mounts the shares, prepares swap and the user,
# runs the script with its output on the virtio port, reports its exit code. Sourced settings: params.sh.
export BED=/mnt/host-bed SYSTEMD_COLORS=0
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
. "$BED/params.sh"

# A global OOM kill must not take the messenger; the script itself starts at 0 below.
echo -900 > /proc/self/oom_score_adj

# One opener only is allowed on the port, and scripts may reopen /dev/stdout: hence the pipe.
exec > >(exec cat > /dev/vport0p1) 2>&1

say() { printf '%s %s\n' "$BED_NONCE" "$*"; }

finish() {
  say "exit $1"
  # The host stops the guest as soon as it reads the line; this is for a host which went away.
  sleep 20
  systemctl poweroff --force --force
}

wait_for_user() { # the manager and (unless masked) the bus of uid 1000
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    [ -S /run/user/1000/systemd/private ] && systemctl is-active --quiet user@1000.service && return 0
    sleep 0.1
  done
  say "note user@1000 did not come up"
}

ln -s "$BED"/bin/* /usr/local/bin/
share_options=trans=virtio,version=9p2000.L,msize=262144
if [ "$BED_SHARE" = 1 ]; then
  mkdir -p /mnt/host && mount -t 9p -o "$share_options,cache=loose,ro" host /mnt/host
fi
if [ "$BED_OUT" = 1 ]; then
  mkdir -p /mnt/out && mount -t 9p -o "$share_options" out /mnt/out
fi

if [ "$BED_DATA" = 1 ]; then
  mkdir -p /mnt/data && mount -o ro "$(findfs LABEL=bed-data)" /mnt/data || say 'note the data disk was not mounted'
fi

case $BED_SWAP in
  zram)
    modprobe zram num_devices=1 && echo "${BED_SWAP_MB}M" > /sys/block/zram0/disksize &&
      mkswap /dev/zram0 > /dev/null && swapon --priority 100 /dev/zram0 || say 'note zram failed' ;;
  disk) mkswap /dev/vdb > /dev/null && swapon /dev/vdb || say 'note disk swap failed' ;;
esac

case $BED_USER_MANAGER in
  none)
    rm -f /var/lib/systemd/linger/hermes
    loginctl disable-linger hermes
    systemctl stop user@1000.service ;;
  no-bus)
    wait_for_user
    systemctl --global mask --quiet dbus.socket dbus.service
    systemctl stop user@1000.service
    rm -f /run/user/1000/bus # dbus.socket leaves its file behind
    systemctl start user@1000.service
    wait_for_user ;;
  *)  wait_for_user ;;
esac

say "ready $(cut -d' ' -f1 /proc/uptime)"
cd /root
( echo 0 > /proc/self/oom_score_adj; exec bash "$BED_SCRIPT" "${BED_ARGS[@]}" < /dev/null )
finish $?
