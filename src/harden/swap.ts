/** Swap for machines that have none: how much, and the lines to type. Pure. */
import type { Advice } from "./advice.js";
import type { Facts } from "./facts.js";

/** Above that a machine without swap has been set up so on purpose. */
const SMALL_MACHINE_MB = 8192;
const ZRAM_PERCENT = 50;
const SMALLEST_FILE_MB = 1024;
const LARGEST_FILE_MB = 2048;

const isPi = (board: string | null): boolean => board?.startsWith("Raspberry Pi") ?? false;

export const swapAdvice = ({ total_mb, swap_total_mb, has_zram, board, container }: Facts): Advice[] => {
  if (swap_total_mb > 0 || has_zram || container !== null || total_mb > SMALL_MACHINE_MB) return [];
  // An SD card is slow, and worn out by swapping.
  return isPi(board) ? [zramAdvice(total_mb, ON_PI)] : [zramAdvice(total_mb, ELSEWHERE), fileAdvice(total_mb)];
};

const ON_PI = "where /etc/rpi/swap.conf is there (Raspberry Pi OS from trixie on), set it up in that file instead";
const ELSEWHERE = "Debian and Ubuntu; elsewhere systemd-zram-generator with zram-size = ram / 2";

const zramAdvice = (total_mb: number, note: string): Advice => ({
  topic: "zram",
  text: `There is no swap: what is not used cannot be moved out of the way. Compressed memory for at most half of the ${total_mb} MB makes room at once (${note}):`,
  lines: [
    "sudo apt install zram-tools",
    `printf 'ALGO=lz4\\nPERCENT=${ZRAM_PERCENT}\\n' | sudo tee -a /etc/default/zramswap`,
    "sudo systemctl restart zramswap",
  ],
});

const fileAdvice = (total_mb: number): Advice => {
  const whole = Math.ceil(total_mb / 1024) * 1024;
  const size = Math.min(LARGEST_FILE_MB, Math.max(SMALLEST_FILE_MB, whole));
  return {
    topic: "swapfile",
    text: "Or, where the disk is an SSD and has room, a file (not on btrfs or ZFS):",
    lines: [
      `sudo fallocate -l ${size}M /swapfile`,
      "sudo chmod 600 /swapfile",
      "sudo mkswap /swapfile",
      "sudo swapon /swapfile",
      "echo '/swapfile none swap sw 0 0' | sudo tee -a /etc/fstab",
    ],
  };
};
