import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import test from "ava";
import { loadNative, nativeStatus, ownVersion, resolveNative, type LoaderHost } from "../src/native.js";

const HOST: LoaderHost = {
  platform: "linux",
  arch: "x64",
  libc: "gnu",
  packageVersion: "1.2.3",
  require: () => ({ version: () => "1.2.3" }),
};

const notFound = (id: string): never => {
  throw Object.assign(new Error(`Cannot find module '${id}'`), { code: "MODULE_NOT_FOUND" });
};

const doesNotLoad = (): never => {
  throw new Error("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found");
};

const reasonOf = (host: Partial<LoaderHost>): string => {
  const { native, status } = resolveNative({ ...HOST, ...host });
  if (native !== undefined || status.available) return "available";
  return status.reason;
};

test("a matching addon is available", (t) => {
  t.is(reasonOf({}), "available");
});

test("other systems are named, not thrown", (t) => {
  t.is(reasonOf({ platform: "darwin" }), "unsupported-platform");
  t.is(reasonOf({ platform: "win32" }), "unsupported-platform");
  t.is(reasonOf({ arch: "riscv64" }), "unsupported-architecture");
});

test("a package that is not installed is told from one that does not load", (t) => {
  t.is(reasonOf({ require: notFound }), "package-missing");
  t.is(reasonOf({ require: doesNotLoad }), "load-failed");
});

test("the checkout's own build is tried first, then the platform package of this libc", (t) => {
  const asked: string[] = [];
  const require = (id: string): never => {
    asked.push(id);
    return notFound(id);
  };
  resolveNative({ ...HOST, arch: "arm64", libc: "musl", require });
  t.deepEqual(asked, ["../native/headroom.linux-arm64-musl.node", "hermes-headroom-linux-arm64-musl"]);
});

test("an addon of another version is refused and the message says what to do", (t) => {
  const { status } = resolveNative({ ...HOST, require: () => ({ version: () => "1.2.2" }) });
  if (status.available) return t.fail();
  t.is(status.reason, "version-mismatch");
  t.regex(status.detail, /1\.2\.2.*1\.2\.3/);
  t.regex(status.fix, /npm/);
});

test("the addon of this checkout loads and has the package's version", (t) => {
  t.is(loadNative()?.version(), ownVersion());
  t.true(nativeStatus().available);
});

test("a wrong argument throws an error with a code and the process lives on", (t) => {
  const native = loadNative();
  t.throws(() => native?.JobBox.create("no-such-mode", null, 1 << 26, 0), { message: /^E_ARGUMENT: / });
  t.throws(() => native?.JobBox.create("userspace", null, Number.NaN, 0), { message: /^E_ARGUMENT: / });
  t.throws(() => native?.listJobs("/nowhere/at/all", false), { message: /^E_IO: / });
});

test("worker threads load the addon, use it and end", async (t) => {
  const file = createRequire(import.meta.url).resolve(`../native/headroom.linux-${process.arch}-gnu.node`);
  const source = `require("node:worker_threads").parentPort.postMessage(require(${JSON.stringify(file)}).measureMemory().totalBytes)`;
  const results = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const worker = new Worker(source, { eval: true });
      const [[message], [exitCode]] = await Promise.all([once(worker, "message"), once(worker, "exit")]);
      return Number(message) > 0 && exitCode === 0;
    }),
  );
  t.deepEqual(results, [true, true, true, true]);
});

test("a process that exits while a job runs ends with its own code and no signal", (t) => {
  const source = `
    import { loadNative } from ${JSON.stringify(new URL("../dist/native.js", import.meta.url).href)};
    const native = loadNative();
    const words = ["sleep", "0.3"].map((word) => Buffer.from(word));
    const job = native.startJob(
      { mode: "userspace", base: null, memoryBytes: 2 ** 28, swapBytes: 0, poolMemoryBytes: 2 ** 30, poolSwapBytes: 0 },
      { argv: words, env: [], cwd: null, stdio: ["null", "null", "null"], oomScoreAdj: 900 },
      { runtimeDir: null, commandText: "sleep", kind: "custom", collectsOrphans: false },
      null,
    );
    if (job.pid === null) throw new Error(job.message);
    process.exit(7);
  `;
  for (let round = 0; round < 10; round += 1) {
    const { status, signal } = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
    t.deepEqual({ status, signal }, { status: 7, signal: null });
  }
});
