/** Against a real `systemd --user`: a process that looks like a gateway, in a unit that is called like one. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import test from "ava";
import type { HardenResult } from "../../src/harden/harden.js";
import { native } from "../support/modes.js";
import { CLI, finishCli, HERMES_HOME, ROOT } from "../support/run-cli.js";

const hasTools = ["dbus-daemon", "busctl", "unshare", "python3", "systemctl"].every(
  (tool) => spawnSync("sh", ["-c", 'command -v "$1"', "sh", tool]).status === 0,
);
const canRun = process.getuid?.() === 0 && hasTools;

/** `$1` is node, `$2` the command line. Prints one line of JSON for each step, and what systemd says between them. */
const SCRIPT = `
set -u
work=$(mktemp -d)
units=$(systemctl --user show -p UnitPath --value | cut -d' ' -f1)
units=\${units%.control}
mkdir -p "$units"
printf 'import time\\ntime.sleep(600)\\n' > "$work/hermes"
for name in hermes-gateway hermes-gateway-work; do
  printf '[Service]\\nType=exec\\nOOMScoreAdjust=950\\nExecStart=%s %s/hermes gateway run\\n' "$(command -v python3)" "$work" > "$units/$name.service"
done
cp "$units/hermes-gateway.service" "$work/before"
systemctl --user daemon-reload
systemctl --user start hermes-gateway.service
pid() { systemctl --user show -p MainPID --value hermes-gateway.service; }
score() { cat "/proc/$(pid)/oom_score_adj"; }
policy() { systemctl --user show -p OOMPolicy --value "hermes-gateway$1.service"; }
harden() { "$1" "$2" harden --json "\${@:3}"; echo "code $?"; }
first=$(pid)
harden "$@";                                        echo "policy $(policy "") $(policy -work)"
harden "$@" --write;                                echo "policy $(policy "") $(policy -work)"
file=$units/hermes-gateway.service.d/50-headroom.conf
stat -c 'inode %i %a' "$file"
harden "$@" --write; stat -c 'inode %i %a' "$file"
echo "score $(score)"
[ "$first" = "$(pid)" ] && echo "never restarted"
systemctl --user restart hermes-gateway.service
echo "score $(score)"
echo '# mine' >> "$file"
harden "$@" --undo;                                 echo "policy $(policy "") $(policy -work)"
sed -i '$d' "$file"
harden "$@" --undo;                                 echo "policy $(policy "") $(policy -work)"
cmp "$units/hermes-gateway.service" "$work/before" && echo "unit untouched"
find "$units" -name '*.d'
systemctl --user stop hermes-gateway.service
rm -r "$work"
`;

const ours = (result: HardenResult | undefined) =>
  (result?.gateways ?? []).filter(({ unit }) => unit?.startsWith("hermes-gateway"));

const title = "a real manager has the drop-in in force, then not again";
(canRun ? test : test.skip)(canRun ? title : `${title} (skipped: needs root, systemd, dbus, python3)`, async (t) => {
  const child = spawn(
    "bash",
    [join(ROOT, "scripts", "with-user-systemd.sh"), "bash", "-c", SCRIPT, "bash", process.execPath, CLI],
    { cwd: ROOT, env: { ...process.env, NO_COLOR: "1", HERMES_HOME }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const { stdout, stderr, code } = await finishCli(child);
  t.is(code, 0, stderr);
  const lines = stdout.trimEnd().split("\n");
  const results = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as HardenResult);
  const notes = lines.filter((line) => !line.startsWith("{"));
  const [proposed, written, again, refused, undone] = results;
  const lowest = native.ownOomScoreAdj();
  const inode = notes.find((line) => line.startsWith("inode")) ?? "none";
  t.deepEqual(notes, [
    "code 0",
    "policy stop stop",
    "code 0",
    "policy continue continue",
    inode,
    "code 0",
    inode,
    "score 950",
    "never restarted",
    `score ${lowest}`,
    "code 1",
    "policy continue stop",
    "code 0",
    "policy stop stop",
    "unit untouched",
  ]);
  t.regex(inode, / 644$/);

  t.deepEqual(
    ours(proposed)
      .map(({ unit, situation }) => [unit, situation])
      .toSorted(),
    [
      ["hermes-gateway-work.service", "user-unit"],
      ["hermes-gateway.service", "user-unit"],
    ],
  );
  t.true((ours(proposed).find(({ unit }) => unit === "hermes-gateway.service")?.pid ?? 0) > 0);
  t.is(ours(proposed).find(({ unit }) => unit === "hermes-gateway-work.service")?.pid, null);
  const settings = proposed?.units.find(({ unit }) => unit === "hermes-gateway.service")?.settings ?? [];
  t.true(settings.some(({ key, is_set }) => key === "OOMPolicy" && !is_set));
  t.is(settings.find(({ key }) => key === "OOMScoreAdjust")?.value, String(lowest));
  t.deepEqual(
    written?.restart.filter(({ unit }) => unit === "hermes-gateway.service").map(({ keys }) => keys),
    [["OOMScoreAdjust"]],
  );
  t.true(written?.units.every((unit) => unit.settings.every(({ is_set }) => is_set)));
  t.true(again?.changes.every(({ done }) => done === "already"));
  const edited = refused?.changes.filter(({ done }) => done === "refused") ?? [];
  t.deepEqual(
    edited.map(({ unit, subject }) => [unit, subject.endsWith("/hermes-gateway.service.d/50-headroom.conf")]),
    [["hermes-gateway.service", true]],
  );
  t.true(undone?.changes.some(({ done }) => done === "removed"));
});
