import test from "ava";
import type { Native } from "../../src/native.js";
import { gatherFacts, type Host } from "../../src/harden/gather.js";
import type { RunTool } from "../../src/harden/systemctl.js";

const UID = process.getuid?.() ?? 0;
const MB = 1_048_576;

type UnitView = NonNullable<NonNullable<ReturnType<Native["unitOf"]>>["unit"]>;

interface FakeProcess {
  pid: number;
  ppid: number;
  argv: string;
  unit?: Partial<UnitView>;
  score?: number;
  rss_mb?: number;
}

const GATEWAY = "python3 /v/bin/hermes gateway run";

/** An addon that knows these processes, and a systemd that knows one gateway, which may be running. */
const hostOf = (processes: FakeProcess[], calls: string[] = []): Host => {
  const run: RunTool = (program, words) => {
    calls.push([program, ...words].join(" "));
    const stdout = words.includes("list-unit-files")
      ? words.includes("--user")
        ? "hermes-gateway.service enabled enabled\n"
        : ""
      : words.includes("UnitPath")
        ? "UnitPath=/h/.config/systemd/user.control /h/.config/systemd/user\n"
        : "OOMPolicy=stop\nMemoryMin=0\nMemoryLow=0\nSlice=app.slice\nUser=\n";
    return Promise.resolve({ ok: true, stdout, problem: "" });
  };
  const native = {
    listProcesses: () =>
      processes.map(({ pid, ppid, argv, rss_mb = 10 }) => ({
        pid,
        ppid,
        name: "x",
        argv: argv.split(" "),
        rssBytes: rss_mb * MB,
      })),
    unitOf: (pid: number) => {
      const found = processes.find((each) => each.pid === pid);
      if (found === undefined) return null;
      const unit = { manager: "user", managerUid: UID, unit: "", slices: ["app.slice"], ...found.unit };
      return { uid: UID, oomScoreAdj: found.score ?? 0, ...(found.unit === undefined ? {} : { unit }) };
    },
    measureMemory: () => ({ totalBytes: 1000 * MB, availableBytes: 0, swapFreeBytes: 0, swapTotalBytes: 0 }),
    surroundings: () => ({ isSystemd: true, hasZram: false }),
    probeModes: () => [{ mode: "systemd-user", available: true }],
  } as unknown as Native;
  return { native, run, environment: {}, systemUnitDirectory: "/etc/systemd/system" };
};

const MANAGER: FakeProcess = { pid: 5, ppid: 1, argv: "systemd --user", unit: { unit: "init.scope" }, score: 100 };
const RUNNING: FakeProcess = {
  pid: 10,
  ppid: 5,
  argv: GATEWAY,
  unit: { unit: "hermes-gateway.service" },
  score: 200,
  rss_mb: 150,
};

test("a unit that is installed and runs is one gateway, with its manager's score", async (t) => {
  const { gateways, unit_directories, above } = await gatherFacts(hostOf([MANAGER, RUNNING]));
  t.is(gateways.length, 1);
  const [gateway] = gateways;
  t.deepEqual(
    [gateway?.unit, gateway?.pid, gateway?.rss_mb, gateway?.oom_score_adj, gateway?.manager_oom_score_adj],
    ["hermes-gateway.service", 10, 150, 200, 100],
  );
  t.is(gateway?.properties?.["OOMPolicy"], "stop");
  t.is(unit_directories.user, "/h/.config/systemd/user");
  t.deepEqual(Object.keys(above).toSorted(), [
    `system user-${UID}.slice`,
    "system user.slice",
    `system user@${UID}.service`,
    "user app.slice",
  ]);
});

test("of several processes in one unit the largest counts", async (t) => {
  const launcher = { ...RUNNING, pid: 9, rss_mb: 2 };
  const { gateways } = await gatherFacts(hostOf([MANAGER, launcher, { ...RUNNING, ppid: 9 }]));
  t.deepEqual(
    gateways.map(({ pid }) => pid),
    [10],
  );
  t.is(gateways[0]?.manager_oom_score_adj, null, "its parent is no manager");
});

test("a unit that does not run is found by its file, with its slice", async (t) => {
  const { gateways } = await gatherFacts(hostOf([MANAGER]));
  t.deepEqual(
    gateways.map(({ unit, pid, slices }) => [unit, pid, slices]),
    [["hermes-gateway.service", null, ["app.slice"]]],
  );
});

test("another user's manager is not asked, and a login is no unit to look at", async (t) => {
  const calls: string[] = [];
  const other = { ...RUNNING, unit: { unit: "hermes-gateway-b.service", managerUid: UID + 1 } };
  const login = { ...RUNNING, pid: 11, unit: { manager: "system", unit: "session-3.scope", session: "3", slices: [] } };
  const { gateways } = await gatherFacts(hostOf([other, login, { pid: 12, ppid: 1, argv: GATEWAY }], calls));
  const foreign = gateways.find(({ pid }) => pid === 10);
  t.deepEqual([foreign?.manager_uid, foreign?.properties], [UID + 1, null]);
  t.is(gateways.find(({ pid }) => pid === 11)?.session, "3");
  t.is(gateways.find(({ pid }) => pid === 12)?.unit, null);
  t.false(calls.some((call) => /show .*(hermes-gateway-b|session-3)/.test(call)));
});

test("what is no gateway is not counted as one", async (t) => {
  const { gateways } = await gatherFacts(hostOf([{ ...RUNNING, argv: "hermes gateway status" }]));
  t.deepEqual(
    gateways.map(({ pid }) => pid),
    [null],
  );
});
