import test from "ava";
import type { Facts } from "../../src/harden/facts.js";
import { slicesOf } from "../../src/harden/gather.js";
import { planHardening, type HardenPlan } from "../../src/harden/policy.js";
import { protectionOf } from "../../src/harden/settings.js";
import { BARE, bytes, factsOf, systemGateway, userGateway } from "./facts.js";

const plan = (changes: Partial<Facts> = {}): HardenPlan => planHardening(factsOf(changes));

/** `KEY=VALUE` of what is missing in one unit. */
const missing = (found: HardenPlan, unit = "hermes-gateway.service"): string[] =>
  (found.units.find((each) => each.unit === unit)?.settings ?? [])
    .filter(({ is_set }) => !is_set)
    .map(({ key, value }) => `${key}=${value}`);

const topics = (found: HardenPlan): string[] => found.advice.map(({ topic }) => topic);
const lines = (found: HardenPlan, topic: string): string[] =>
  found.advice.filter((each) => each.topic === topic).flatMap((each) => each.lines);

test("a user unit gets everything that its manager may give", (t) => {
  const found = plan();
  t.deepEqual(missing(found), [
    "OOMPolicy=continue",
    "MemoryMin=160M",
    "MemoryLow=240M",
    "ManagedOOMPreference=avoid",
    "OOMScoreAdjust=100",
  ]);
  t.is(
    found.units[0]?.path,
    "/home/hermes/.config/systemd/user/hermes-gateway.service.d/50-headroom.conf",
    "beside the unit, never in it",
  );
  t.deepEqual(
    found.gateways.map(({ situation }) => situation),
    ["user-unit"],
  );
});

test("every setting has a reason, and says when it is in force", (t) => {
  for (const { settings } of plan().units) {
    for (const { key, reason, from } of settings) {
      t.true(reason.length > 5, key);
      t.is(from, key === "OOMScoreAdjust" ? "restart" : "reload");
    }
  }
});

test("memory that is kept for a unit is kept by the slice above it as well", (t) => {
  const found = plan();
  t.deepEqual(missing(found, "app.slice"), ["MemoryMin=160M", "MemoryLow=240M"]);
  t.is(found.units.find(({ unit }) => unit === "app.slice")?.section, "Slice");
});

test("what only root may keep above a user's manager is told as lines to type", (t) => {
  const wanted = "MemoryMin=160M MemoryLow=240M";
  t.deepEqual(lines(plan(), "above"), [
    `sudo systemctl set-property user.slice ${wanted}`,
    `sudo systemctl set-property user-1000.slice ${wanted}`,
    `sudo systemctl set-property user@1000.service ${wanted}`,
  ]);
  const kept = { MemoryMin: bytes(160), MemoryLow: "infinity" };
  const above = Object.fromEntries(Object.keys(factsOf().above).map((unit) => [unit, kept]));
  t.deepEqual(lines(plan({ above }), "above"), []);
});

test("a unit that has all of it is left alone", (t) => {
  const properties = {
    ...BARE,
    OOMPolicy: "continue",
    MemoryMin: bytes(160),
    MemoryLow: bytes(240),
    ManagedOOMPreference: "omit",
    OOMScoreAdjust: "100",
  };
  t.deepEqual(missing(plan({ gateways: [userGateway({ properties, oom_score_adj: 100 })] })), []);
  const waiting = plan({ gateways: [userGateway({ properties })] });
  t.deepEqual(missing(waiting), [], "what waits for a start is not proposed again");
});

test("a working set that changes by some MB is no reason to write anew, a much larger one is", (t) => {
  const properties = { ...BARE, MemoryMin: bytes(160), MemoryLow: bytes(240) };
  const found = (rss_mb: number): string[] =>
    missing(plan({ gateways: [userGateway({ properties, rss_mb })] })).filter((line) => line.startsWith("Memory"));
  t.deepEqual(found(120), []);
  t.deepEqual(found(200), []);
  t.deepEqual(found(900), [], "this machine has no more to give");
  t.deepEqual(
    missing(planHardening(factsOf({ total_mb: 4000, gateways: [userGateway({ properties, rss_mb: 500 })] }))).filter(
      (line) => line.startsWith("Memory"),
    ),
    ["MemoryMin=512M", "MemoryLow=752M"],
  );
});

test("no more is kept than the machine can spare", (t) => {
  t.deepEqual(protectionOf(900, 960), { min_mb: 240, low_mb: 336 });
  t.deepEqual(protectionOf(150, 960), { min_mb: 160, low_mb: 240 });
  t.deepEqual(protectionOf(null, 2000), { min_mb: 192, low_mb: 288 }, "what is not running counts as usual");
  t.deepEqual(protectionOf(150, 10), { min_mb: 16, low_mb: 16 });
});

test("a system unit may have a lower score, whoever it runs as", (t) => {
  const found = plan({ uid: 0, user: "root", gateways: [systemGateway()] });
  t.true(missing(found).includes("OOMScoreAdjust=-250"));
  t.is(found.units[0]?.path, "/etc/systemd/system/hermes-gateway.service.d/50-headroom.conf");
  t.deepEqual(missing(found, "system.slice"), ["MemoryMin=160M", "MemoryLow=240M"]);
  t.deepEqual(lines(found, "above"), []);
  const lower = systemGateway({ properties: { ...BARE, OOMScoreAdjust: "-500" } });
  t.false(missing(plan({ gateways: [lower] })).some((line) => line.startsWith("OOMScoreAdjust")));
});

test("the user of a system unit needs a manager too, for Hermes' cron jobs", (t) => {
  const found = plan({ uid: 0, user: "root", linger: { hermes: false }, gateways: [systemGateway()] });
  t.deepEqual(lines(found, "linger"), ["sudo loginctl enable-linger hermes"]);
  t.is(found.linger, null);
  t.deepEqual(lines(plan({ linger: { hermes: true }, gateways: [systemGateway()] }), "linger"), []);
  const root = systemGateway({ properties: { ...BARE, User: "root" } });
  t.deepEqual(topics(plan({ uid: 0, linger: {}, gateways: [root] })), []);
});

const score = (changes: Parameters<typeof userGateway>[0]): string[] =>
  missing(plan({ gateways: [userGateway(changes)] })).filter((line) => line.startsWith("OOMScoreAdjust"));

test("a score is only proposed where the manager's own is known to be lower", (t) => {
  t.deepEqual(score({}), ["OOMScoreAdjust=100"]);
  t.deepEqual(score({ manager_oom_score_adj: null }), []);
  t.deepEqual(score({ oom_score_adj: 0, manager_oom_score_adj: 0 }), [], "systemd 247 starts users' units at 0");
  t.deepEqual(score({ pid: null, oom_score_adj: null, manager_oom_score_adj: null }), []);
});

test("what an old systemd does not know is not proposed", (t) => {
  const { ManagedOOMPreference: _unknown, ...properties } = BARE;
  const found = plan({ gateways: [userGateway({ properties })] });
  t.false(missing(found).some((line) => line.startsWith("ManagedOOM")));
  t.true(missing(found).includes("OOMPolicy=continue"), "services have had OOMPolicy since 243");
});

test("without a memory controller nothing is promised that it would have to keep", (t) => {
  const found = plan({ has_memory_controller: false, board: "Raspberry Pi 4 Model B Rev 1.4" });
  t.false(JSON.stringify(found.units).includes("MemoryMin"));
  t.deepEqual(
    found.units.map(({ unit }) => unit),
    ["hermes-gateway.service"],
  );
  t.regex(found.advice.find(({ topic }) => topic === "memory-controller")?.text ?? "", /cgroup_enable=memory/);
  t.regex(JSON.stringify(plan({ has_memory_controller: false, has_v1_memory: true }).advice), /cgroup_no_v1=memory/);
});

test("lingering is switched on for a user unit, and asked about where logind does not tell", (t) => {
  t.is(plan({ linger: { hermes: false } }).linger, "hermes");
  t.is(plan({ linger: { hermes: true } }).linger, null);
  const unknown = plan({ linger: {} });
  t.is(unknown.linger, null);
  t.deepEqual(lines(unknown, "linger"), ["loginctl enable-linger hermes"]);
});

test("profiles have a gateway each, and their slice keeps enough for all", (t) => {
  const work = userGateway({ unit: "hermes-gateway-work.service", rss_mb: 100, pid: 4712 });
  const found = plan({ gateways: [userGateway(), work] });
  t.deepEqual(
    found.units.map(({ unit }) => unit),
    ["hermes-gateway.service", "hermes-gateway-work.service", "app.slice"],
  );
  t.deepEqual(missing(found, "app.slice"), ["MemoryMin=272M", "MemoryLow=400M"]);
});

test("a unit that is installed and does not run is hardened as well", (t) => {
  const stopped = userGateway({ pid: null, rss_mb: null, oom_score_adj: null, manager_oom_score_adj: null });
  t.deepEqual(missing(plan({ gateways: [stopped] })), [
    "OOMPolicy=continue",
    "MemoryMin=192M",
    "MemoryLow=288M",
    "ManagedOOMPreference=avoid",
  ]);
});

test("a gateway in tmux or a login is told to become a unit", (t) => {
  const inSession = userGateway({
    unit: "session-3.scope",
    manager: "system",
    manager_uid: null,
    session: "3",
    properties: null,
  });
  const found = plan({ gateways: [inSession], linger: { hermes: false } });
  t.is(found.gateways[0]?.situation, "session");
  t.deepEqual(found.units, []);
  t.deepEqual(lines(found, "session"), [
    "hermes gateway install",
    "hermes gateway start",
    "loginctl enable-linger hermes",
  ]);
  t.notRegex(JSON.stringify(found.advice), /KillUserProcesses/);
  t.regex(JSON.stringify(plan({ gateways: [inSession], kills_user_processes: true }).advice), /KillUserProcesses=yes/);
  const inTmux = userGateway({ unit: "tmux-spawn-1.scope", properties: null });
  t.is(plan({ gateways: [inTmux] }).gateways[0]?.situation, "session");
});

test("a service that is not the gateway's own is not hardened for it", (t) => {
  const properties = { ...BARE, MainPID: "600" };
  const inCron = systemGateway({ unit: "cron.service", properties });
  const found = plan({ gateways: [inCron] });
  t.is(found.gateways[0]?.situation, "session");
  t.deepEqual(found.units, []);
  t.regex(found.advice[0]?.text ?? "", /runs in cron.service, not as a unit of its own/);
  const own = systemGateway({ unit: "bot.service", properties: { ...BARE, MainPID: "4711" } });
  t.is(plan({ gateways: [own] }).gateways[0]?.situation, "system-unit");
  t.is(plan({ gateways: [systemGateway({ unit: "my-hermes.service", properties })] }).units.length, 2);
});

const seen = (engine: string): HardenPlan =>
  plan({ gateways: [systemGateway({ unit: `${engine}-${"a1".repeat(32)}.scope`, properties: null })] });

test("a container that is seen from the host is told as one", (t) => {
  t.is(seen("docker").gateways[0]?.situation, "container");
  t.regex(lines(seen("docker"), "container").join("\n"), /^docker update/);
  t.regex(lines(seen("libpod"), "container").join("\n"), /^podman run/);
  t.deepEqual(seen("docker").units, []);
});

test("in a container it is told what to set outside", (t) => {
  const gateways = [userGateway({ unit: null, manager: null, manager_uid: null, slices: [], properties: null })];
  const of = (container: string): HardenPlan =>
    plan({ gateways, container, is_systemd: false, swap_total_mb: 0, has_memory_controller: false, total_mb: 2000 });
  t.deepEqual(lines(of("docker"), "container"), [
    "docker update --memory 1700m --memory-swap 2724m --restart unless-stopped NAME",
    "docker run --oom-score-adj -250 --security-opt writable-cgroups=true …",
  ]);
  t.regex(lines(of("podman"), "container").join(), /^podman run --memory 1700m .*--oom-score-adj -250/);
  t.regex(lines(of("lxc"), "container").join(), /^pct set ID --memory 1700 --swap 1024/);
  t.regex(JSON.stringify(of("kube").advice), /limit of 1700 MB/);
  t.deepEqual(topics(of("docker")), ["container"], "swap and kernel are the host's");
  t.is(of("docker").gateways[0]?.situation, "container");
});

test("outside of every unit its score can be lowered by hand", (t) => {
  const gateways = [userGateway({ unit: null, manager: null, manager_uid: null, slices: [], properties: null })];
  const found = plan({ gateways, is_systemd: false });
  t.is(found.gateways[0]?.situation, "bare");
  t.deepEqual(lines(found, "bare"), ["echo -250 | sudo tee /proc/4711/oom_score_adj"]);
});

test("a manager that cannot be asked is told, and nothing is proposed for it", (t) => {
  const other = plan({ gateways: [userGateway({ manager_uid: 1001, properties: null })] });
  t.deepEqual(topics(other), ["other-user"]);
  t.deepEqual(other.units, []);
  t.deepEqual(topics(plan({ gateways: [userGateway({ properties: null })] })), ["manager"]);
  t.deepEqual(topics(plan({ gateways: [systemGateway({ properties: null })] })), ["manager"]);
});

test("where there is no gateway, it is told how to get one", (t) => {
  const found = plan({ gateways: [], linger: {} });
  t.deepEqual(lines(found, "gateway"), ["hermes gateway install", "hermes gateway start"]);
  t.deepEqual([found.units, found.linger], [[], null]);
  t.deepEqual(lines(plan({ gateways: [], is_systemd: false }), "gateway"), []);
});

test("a machine without swap is told how to get some, sized for it", (t) => {
  const found = plan({ swap_total_mb: 0 });
  t.true(lines(found, "zram").includes("sudo apt install zram-tools"));
  t.is(lines(found, "swapfile")[0], "sudo fallocate -l 1024M /swapfile");
  t.is(lines(plan({ swap_total_mb: 0, total_mb: 1980 }), "swapfile")[0], "sudo fallocate -l 2048M /swapfile");
  t.is(lines(plan({ swap_total_mb: 0, total_mb: 3900 }), "swapfile")[0], "sudo fallocate -l 2048M /swapfile");
  t.false(topics(plan({ swap_total_mb: 0, total_mb: 16_000 })).includes("zram"));
  t.false(topics(plan({ swap_total_mb: 0, has_zram: true })).includes("zram"));
});

test("an SD card is spared a swap file", (t) => {
  const found = plan({ swap_total_mb: 0, board: "Raspberry Pi Zero 2 W Rev 1.0" });
  t.deepEqual(lines(found, "swapfile"), []);
  t.regex(found.advice.find(({ topic }) => topic === "zram")?.text ?? "", /\/etc\/rpi\/swap\.conf/);
});

test("slices are in each other by their names", (t) => {
  t.deepEqual(slicesOf("app-hermes.slice"), ["app.slice", "app-hermes.slice"]);
  for (const name of ["-.slice", "", "../x.slice", "a.service"]) t.deepEqual(slicesOf(name), [], name);
});
