# From an unpacked root ($1) to disk.img, vmlinuz and initrd in $2; $3 is the disk's size in MiB.
set -eu
PATH=$PATH:/usr/sbin:/sbin
root=$1 out=$2 size_mb=$3
cp "$root"/boot/bed/* "$out/"
rm -rf "$root/boot/bed"
truncate -s "${size_mb}M" "$out/disk.img"
mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -m 0 -d "$root" "$out/disk.img"
