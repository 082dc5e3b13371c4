import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import test, { type ExecutionContext } from "ava";
import type { SelftestResult } from "../../src/selftest/selftest.js";
import { runCli } from "../support/run-cli.js";

/** A runtime directory with something at the place of the bus. */
const busDir = async (t: ExecutionContext, onConnection: (socket: Socket) => void): Promise<string> => {
  const dir = mkdtempSync(join(tmpdir(), "headroom-bus-"));
  chmodSync(dir, 0o700);
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  server.listen(join(dir, "bus"));
  await once(server, "listening");
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return dir;
};

/** The command runs in another mode, with one line about the bus. */
const runsAllTheSame = async (t: ExecutionContext, dir: string, reason: RegExp): Promise<void> => {
  const env = { XDG_RUNTIME_DIR: dir };
  const run = await runCli(["run", "--", "sh", "-c", "echo ran; exit 5"], { env });
  t.is(run.code, 5);
  t.is(run.stdout, "ran\n");
  t.is(run.stderr.match(/mode systemd-user cannot be used/g)?.length, 1, run.stderr);
  t.regex(run.stderr, reason);
  const result = JSON.parse((await runCli(["selftest", "--json"], { env })).stdout) as SelftestResult;
  t.not(result.result, "fail");
  t.not(result.mode, "systemd-user");
  t.regex(result.checks.find(({ name }) => name === "mode systemd-user")?.detail ?? "", reason);
};

test("a bus that never answers costs some time and a mode", async (t) => {
  await runsAllTheSame(t, await busDir(t, () => {}), /timed out/);
});

test("a bus that hangs up costs a mode", async (t) => {
  const dir = await busDir(t, (socket) => socket.destroy());
  await runsAllTheSame(t, dir, /connecting to the bus/);
});

test("a bus that talks nonsense costs a mode", async (t) => {
  const dir = await busDir(t, (socket) => socket.write(Buffer.alloc(100_000, 0xff)));
  await runsAllTheSame(t, dir, /connecting to the bus/);
});

test("a runtime directory that others may write to is not trusted", async (t) => {
  const dir = await busDir(t, () => {});
  chmodSync(dir, 0o777);
  await runsAllTheSame(t, dir, /can be written to by others/);
});

test("a plain file is no bus", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "headroom-bus-"));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, "bus"));
  await runsAllTheSame(t, dir, /not of the kind/);
});

if (process.getuid?.() === 0) {
  test("a bus of another user is not trusted", async (t) => {
    const dir = await busDir(t, () => {});
    chownSync(join(dir, "bus"), 65_534, 65_534);
    await runsAllTheSame(t, dir, /belongs to another user/);
  });
} else {
  test.skip("a bus of another user is not trusted (skipped: only root can make one)", () => {});
}
