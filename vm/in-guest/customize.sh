# mmdebstrap's customize hook (given as text, run by sh with the new root as $1):
# the user, a fast boot, the start service of the test bed, kernel and initrd in /boot/bed.
set -eu
root=$1

# --- user
chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash hermes
echo 'hermes ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/hermes"
chmod 0440 "$root/etc/sudoers.d/hermes"
mkdir -p "$root/var/lib/systemd/linger"
: > "$root/var/lib/systemd/linger/hermes"

# --- identity: no first-boot work
echo guest > "$root/etc/hostname"
echo '127.0.0.1 localhost guest' > "$root/etc/hosts"
echo 4d6f6e6f746f6e6520746573742d6265 > "$root/etc/machine-id"
: > "$root/etc/fstab"

# --- a boot without what tests do not need
rm -f "$root"/etc/systemd/system/timers.target.wants/*
for unit in getty.target serial-getty@.service getty@.service tmp.mount \
  systemd-firstboot.service systemd-binfmt.service systemd-pstore.service systemd-repart.service \
  systemd-journal-flush.service systemd-machine-id-commit.service systemd-random-seed.service \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-hwdb-update.service \
  systemd-network-generator.service systemd-networkd.service systemd-resolved.service \
  systemd-remount-fs.service systemd-fsck-root.service systemd-tmpfiles-clean.timer \
  systemd-boot-random-seed.service systemd-pcrphase.service systemd-pcrphase-sysinit.service \
  systemd-pcrmachine.service systemd-tpm2-setup.service systemd-tpm2-setup-early.service \
  systemd-ask-password-console.path systemd-ask-password-wall.path proc-sys-fs-binfmt_misc.automount \
  sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
  dev-hugepages.mount dev-mqueue.mount modprobe@.service e2scrub_reap.service fstrim.timer \
  systemd-initctl.socket systemd-journald-audit.socket systemd-udev-trigger.service hwclock-save.service \
  systemd-rfkill.socket systemd-sysupdate.timer systemd-modules-load.service \
  systemd-sysusers.service kmod-static-nodes.service systemd-udev-load-credentials.service run-lock.mount \
  ldconfig.service systemd-journal-catalog-update.service systemd-update-done.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
touch "$root/etc/.updated" "$root/var/.updated"
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\nAudit=no\n' > "$root/etc/systemd/journald.conf.d/bed.conf"

# --- the start service: mounts the host's folders, runs what they hold
cat > "$root/usr/local/sbin/bed-start" <<'EOF'
#!/bin/bash
mkdir -p /mnt/host-bed
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host-bed /mnt/host-bed
exec /bin/bash /mnt/host-bed/runner.sh
EOF
chmod 0755 "$root/usr/local/sbin/bed-start"
cat > "$root/etc/systemd/system/bed.service" <<'EOF'
[Unit]
Description=Script of the test bed
Requires=multi-user.target
After=multi-user.target
[Service]
Type=simple
ExecStart=/usr/local/sbin/bed-start
StandardInput=null
OOMPolicy=continue
Environment=HOME=/root
EOF
cat > "$root/etc/systemd/system/bed.target" <<'EOF'
[Unit]
Description=Test bed
Requires=multi-user.target
Wants=bed.service
AllowIsolate=yes
EOF
ln -sf bed.target "$root/etc/systemd/system/default.target"

# --- kernel and initrd
version=$(ls "$root/usr/lib/modules" 2>/dev/null || ls "$root/lib/modules")
mkdir -p "$root/boot/bed" "$root/boot/initrd/bin" "$root/boot/initrd/lib" "$root/boot/initrd/dev" "$root/boot/initrd/newroot"
cp "$root/boot/vmlinuz-$version" "$root/boot/bed/vmlinuz"
echo "$version" > "$root/boot/bed/kernel-version"
cp "$root/bin/busybox" "$root/boot/initrd/bin/busybox"
chroot "$root" depmod "$version"
for module in virtio_pci virtio_blk ext4 virtio_console 9p 9pnet_virtio; do
  chroot "$root" modprobe -S "$version" --show-depends "$module"
done | while read -r action file _; do
  [ "$action" = insmod ] || continue
  name=$(basename "$file")
  [ -e "$root/boot/initrd/lib/$name" ] && continue
  case $name in
    *.ko.xz) name=${name%.xz}; chroot "$root" busybox unxz -c "$file" > "$root/boot/initrd/lib/$name" ;;
    *.ko.zst) name=${name%.zst}; chroot "$root" zstd -dcq "$file" > "$root/boot/initrd/lib/$name" ;;
    *) cp "$root/$file" "$root/boot/initrd/lib/$name" ;;
  esac
  grep -qsx "$name" "$root/boot/initrd/lib/order" || echo "$name" >> "$root/boot/initrd/lib/order"
done
cat > "$root/boot/initrd/init" <<'EOF'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "/lib/$module"; done < /lib/order
until [ -b /dev/vda ]; do $b usleep 20000; done
$b mount -t ext4 -o noatime /dev/vda /newroot
$b mount -o move /dev /newroot/dev
exec $b switch_root /newroot /sbin/init
EOF
chmod 0755 "$root/boot/initrd/init"
chroot "$root" sh -c 'cd /boot/initrd && busybox find . | busybox cpio -o -H newc > /boot/bed/initrd' 2> /dev/null
rm -rf "$root/boot/initrd" "$root"/boot/vmlinuz-* "$root"/boot/initrd.img-* "$root"/vmlinuz* "$root"/initrd.img*
chroot "$root" /usr/local/bin/node --version > "$root/boot/bed/node-version"
chroot "$root" systemctl --version | sed -n 1p > "$root/boot/bed/systemd-version"
