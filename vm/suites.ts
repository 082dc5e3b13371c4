/**
 * The Debian releases a guest can be built from, and what sets each apart.
 */

/** A Debian release name: bullseye = 11, bookworm = 12, trixie = 13. */
export type Suite = "bullseye" | "bookworm" | "trixie";

export interface SuiteFacts {
  /** Debian's major version. */
  debian: number;
  /** Kernel arguments the release needs to boot like the others. */
  kernelArgs: readonly string[];
  /** Further mmdebstrap arguments. */
  mmdebstrapArgs: readonly string[];
  /** Debian packages beside those that every guest has. */
  packages: readonly string[];
}

/** Facts per suite, oldest first. */
export const SUITES: Readonly<Record<Suite, SuiteFacts>> = {
  bullseye: {
    debian: 11,
    // systemd 247 would mount the hybrid hierarchy, with the memory controller on v1.
    kernelArgs: ["systemd.unified_cgroup_hierarchy=1"],
    // Out of support: its Release file is not renewed any more.
    mmdebstrapArgs: ['--aptopt=Acquire::Check-Valid-Until "false"'],
    packages: [],
  },
  // The whole of Python 3.11, for a real Hermes.
  bookworm: { debian: 12, kernelArgs: [], mmdebstrapArgs: [], packages: ["python3"] },
  trixie: { debian: 13, kernelArgs: [], mmdebstrapArgs: [], packages: [] },
};

/** All suite names, oldest first. */
export const SUITE_NAMES: readonly Suite[] = ["bullseye", "bookworm", "trixie"];
