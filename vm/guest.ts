/**
 * One run of a guest: boots a suite's image from a throw-away overlay, runs a bash script as root after
 * multi-user.target, hands back its exit code and output. Software emulation unless
 * HERMES_HEADROOM_TEST_ACCEL=kvm; one guest at a time on a host, by a lock.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fillBedDir, type SwapKind, type UserManager } from "./bed-dir.js";
import { splitLines } from "./command.js";
import { ensureImage } from "./image.js";
import { withLock } from "./lock.js";
import { cacheDir } from "./paths.js";
import { qemuCommand } from "./qemu.js";
import type { Suite } from "./suites.js";

export interface GuestOptions {
  suite: Suite;
  /** The script: a path inside `shareDir`, or `{ text }` for one given here. */
  script: string | { text: string };
  /** Arguments of the script. */
  args?: readonly string[];
  /** Environment variables of the script. */
  env?: Readonly<Record<string, string>>;
  /** Host folder mounted read-only at /mnt/host. */
  shareDir?: string;
  /** Host folder mounted writable at /mnt/out, for results. */
  outDir?: string;
  memoryMb?: number;
  cpus?: number;
  /** Appended to the kernel's command line; the last value of a repeated argument wins. */
  kernelArgs?: readonly string[];
  /** A file system image with the label `bed-data`, mounted read-only at /mnt/data. */
  dataDisk?: string;
  swap?: SwapKind;
  swapMb?: number;
  /** `linger`: user@1000 runs with its bus. `no-bus`: it runs, without D-Bus. `none`: no linger, no manager. */
  userManager?: UserManager;
  /** Counted from the start of QEMU; waiting for the lock or building the image is not included. */
  timeoutMs?: number;
  /** Told every line of both the script and the kernel's console; null is silence. */
  onLine?: ((line: string) => void) | null;
}

export interface GuestResult {
  /** Null when the script never ended: time limit, kernel panic, or it powered the guest off. */
  exitCode: number | null;
  /** What the script printed, stdout and stderr in order. */
  consoleText: string;
  /** The serial console: kernel messages, systemd's words, QEMU's own errors. */
  kernelText: string;
  /** From the start of QEMU to the start of the script. */
  bootMs: number;
  /** From there to the script's end. */
  runMs: number;
  timedOut: boolean;
}

/** Ten times what a boot takes. Emulation was seen to hang before the script, both processors spinning. */
const BOOT_LIMIT_MS = 180_000;
const MOST_BOOTS = 2;

/** Boots, runs, ends. Rejects only when the guest could not be started at all. */
export const bootGuest = async (options: GuestOptions): Promise<GuestResult> => {
  const onLine = options.onLine === undefined ? toStderr : (options.onLine ?? (() => {}));
  const image = await ensureImage(options.suite, (line) => onLine(`${options.suite}: ${line}`));
  const boot = async (): Promise<GuestResult> => {
    removeOrphans();
    const runDir = mkdtempSync(join(tmpdir(), `hr-vm-${process.pid}-`));
    try {
      const nonce = fillBedDir(join(runDir, "bed"), {
        ...options,
        swap: options.swap ?? "none",
        swapMb: options.swapMb ?? 512,
      });
      const command = qemuCommand({
        image,
        runDir,
        memoryMb: options.memoryMb ?? 1024,
        cpus: options.cpus ?? 2,
        kernelArgs: options.kernelArgs ?? [],
        diskSwapMb: options.swap === "disk" ? (options.swapMb ?? 512) : 0,
        dataDisk: options.dataDisk ?? null,
        shareDir: options.shareDir === undefined ? null : resolve(options.shareDir),
        outDir: options.outDir === undefined ? null : resolve(options.outDir),
      });
      for (let boots = 1; ; boots += 1) {
        const { isStuck, ...result } = await session(options, runDir, nonce, onLine, command);
        // Nothing of the script has run, so a second boot hides nothing that is tested.
        if (!isStuck || boots === MOST_BOOTS) return result;
        onLine(`${options.suite}: the guest did not come up in ${BOOT_LIMIT_MS / 1000} s, booting once more`);
      }
    } finally {
      rmSync(runDir, { recursive: true, force: true });
    }
  };
  return await withLock(join(cacheDir(), "guest.lock"), boot, (pid) =>
    onLine(`waiting for the guest of process ${pid}`),
  );
};

const session = async (
  options: GuestOptions,
  runDir: string,
  nonce: string,
  onLine: (line: string) => void,
  command: readonly string[],
): Promise<GuestResult & { isStuck: boolean }> => {
  const scriptLines: string[] = [];
  const kernelLines: string[] = [];
  const startedMs = performance.now();
  let readyMs: number | null = null;
  let endedMs: number | null = null;
  let exitCode: number | null = null;
  let timedOut = false;
  let isStuck = false;
  let qemu: ChildProcess | null = null;

  const onKernelLine = (raw: string): void => {
    const line = withoutTerminalCodes(raw);
    kernelLines.push(line);
    onLine(`${options.suite} kernel| ${line}`);
  };
  const onScriptLine = (line: string): void => {
    // A marker may follow a last line without its line end.
    const at = line.indexOf(`${nonce} `);
    if (at !== 0) {
      const text = at < 0 ? line : line.slice(0, at);
      scriptLines.push(text);
      onLine(`${options.suite}| ${text}`);
    }
    if (at >= 0) onMarker(line.slice(at + nonce.length + 1));
  };
  const onMarker = (text: string): void => {
    const [kind, value = ""] = text.split(" ");
    if (kind === "ready") readyMs = performance.now();
    else if (kind === "exit") {
      endedMs = performance.now();
      exitCode = Number(value);
      // Nothing in the overlay is of use: no orderly shutdown.
      qemu?.kill("SIGKILL");
    } else onLine(`${options.suite} bed| ${text}`);
  };

  const servers = [
    await listen(join(runDir, "script.sock"), onScriptLine),
    await listen(join(runDir, "console.sock"), onKernelLine),
  ];
  try {
    const [program = "", ...args] = command;
    qemu = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, TMPDIR: runDir } });
    splitLines(qemu.stdout!, onKernelLine);
    splitLines(qemu.stderr!, onKernelLine);
    const timer = setTimeout(() => {
      timedOut = true;
      qemu?.kill("SIGKILL");
    }, options.timeoutMs ?? 300_000);
    const bootTimer = setTimeout(() => {
      if (readyMs !== null) return;
      isStuck = true;
      qemu?.kill("SIGKILL");
    }, BOOT_LIMIT_MS);
    try {
      await new Promise<void>((done, reject) => {
        qemu?.once("error", reject);
        qemu?.once("close", () => done());
      });
    } finally {
      clearTimeout(timer);
      clearTimeout(bootTimer);
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
  const stoppedMs = performance.now();
  return {
    exitCode,
    consoleText: scriptLines.join("\n"),
    kernelText: kernelLines.join("\n"),
    bootMs: Math.round((readyMs ?? stoppedMs) - startedMs),
    runMs: readyMs === null ? 0 : Math.round((endedMs ?? stoppedMs) - readyMs),
    timedOut: timedOut || isStuck,
    isStuck,
  };
};

/** Run folders of processes which were killed; their QEMU died with them. */
const removeOrphans = (): void => {
  for (const name of readdirSync(tmpdir())) {
    const pid = /^hr-vm-(\d+)-/.exec(name)?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
};

const toStderr = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

// SeaBIOS and systemd colour and clear the console.
const withoutTerminalCodes = (line: string): string =>
  // oxlint-disable-next-line no-control-regex -- terminal codes are control characters
  line.replace(/\x1b(\[[0-9;?!]*[A-Za-z]|\]104(\x07|\x1b\\)?|c)/g, "");

/** A unix socket which QEMU connects one of its character devices to; `stop` resolves when all was read. */
const listen = async (path: string, onLine: (line: string) => void): Promise<{ stop: () => Promise<void> }> => {
  const ends: Promise<void>[] = [];
  const server: Server = createServer((socket) => {
    ends.push(new Promise((done) => socket.once("close", () => done())));
    socket.on("error", () => {}); // QEMU was killed
    splitLines(socket, onLine);
  });
  await new Promise<void>((done, reject) => {
    server.once("error", reject);
    server.listen(path, done);
  });
  return {
    stop: async () => {
      server.close();
      await Promise.all(ends);
    },
  };
};
