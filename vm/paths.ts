/**
 * Where the test bed keeps its cache on the host, and where its guest-side files lie.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of everything kept between runs: images, node, locks. */
export const cacheDir = (): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "hermes-headroom-test");

/**
 * A file of `in-guest/`. Found from the compiled location too: tsc does not copy shell files,
 * so the search walks up until it meets `vm/in-guest` or `in-guest`.
 */
export const inGuestFile = (name: string): string => {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let dir = start; ; dir = dirname(dir)) {
    for (const candidate of [
      join(dir, "in-guest", name),
      join(dir, "vm/in-guest", name),
      join(dir, "test/vm/in-guest", name),
    ]) {
      if (existsSync(candidate)) return candidate;
    }
    if (dir === dirname(dir)) throw new Error(`in-guest/${name} was not found above ${start}`);
  }
};
