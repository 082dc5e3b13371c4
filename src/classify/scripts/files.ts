/** Script files of a project: read only, bounded, never run. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Larger ones are generated, and reading them would hold up the command. */
const LARGEST_BYTES = 262_144;

export interface ProjectFiles {
  /** The text of a file in a directory; `undefined` when it cannot be had. */
  read(directory: string, name: string): string | undefined;
}

/** Files from the disk. Anything but a regular file is left alone: a pipe would block. */
export const diskFiles: ProjectFiles = {
  read(directory, name) {
    try {
      const path = join(directory, name);
      const stat = statSync(path);
      if (!stat.isFile() || stat.size > LARGEST_BYTES) return undefined;
      return readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  },
};

export const noFiles: ProjectFiles = { read: () => undefined };
