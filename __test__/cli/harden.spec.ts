import test from "ava";
import { render } from "../../src/cli/harden.js";
import type { HardenResult } from "../../src/harden/harden.js";
import { planHardening } from "../../src/harden/policy.js";
import { factsOf, systemGateway, userGateway } from "../harden/facts.js";
import { runCli } from "../support/run-cli.js";

const plain = (_style: unknown, text: string): string => text;
const WIDTH = 80;

const resultOf = (changes: Parameters<typeof factsOf>[0], more: Partial<HardenResult> = {}): HardenResult => ({
  action: "propose",
  changes: [],
  restart: [],
  ...planHardening(factsOf(changes)),
  ...more,
});

const SITUATIONS: Record<string, Parameters<typeof factsOf>[0]> = {
  "a user unit": { linger: { hermes: false }, swap_total_mb: 0 },
  "a system unit": { uid: 0, user: "root", gateways: [systemGateway()], linger: { hermes: false } },
  "a Raspberry Pi": { board: "Raspberry Pi 4", has_memory_controller: false, swap_total_mb: 0 },
  "a login": {
    gateways: [userGateway({ unit: "session-3.scope", manager: "system", session: "3", properties: null })],
  },
  "a container": {
    gateways: [userGateway({ unit: null, manager: null, properties: null })],
    container: "docker",
    is_systemd: false,
  },
  "no gateway": { gateways: [] },
};

/** Lines to be copied, and paths, are never broken. */
const mayBeLong = (line: string): boolean => /^ {8}(sudo|docker|echo|printf|loginctl) |^ {2}file /.test(line);

for (const [name, facts] of Object.entries(SITUATIONS)) {
  test(`the text fits a terminal: ${name}`, (t) => {
    const lines = render(resultOf(facts), plain, WIDTH);
    for (const line of lines.filter((each) => !mayBeLong(each))) t.true(line.length <= WIDTH, line);
    t.false(lines.join("\n").includes("undefined"));
    t.regex(lines.at(-1) ?? "", /Nothing was changed/);
  });
}

test("a proposal has each setting with its reason, and ends with the next step", (t) => {
  const text = render(resultOf({}), plain, Number.POSITIVE_INFINITY).join("\n");
  t.regex(text, /gateway hermes-gateway.service, user unit\n {8}pid 4711, 150 MB, oom_score_adj 200/);
  t.regex(text, /set {3}OOMPolicy=continue\n {8}The default, stop/);
  t.regex(text, /set {3}OOMScoreAdjust=100\n.*In force when the gateway is started again/);
  t.regex(text, /To install it: hermes-headroom harden --write$/);
});

test("what was done is told line by line, and what a start of the unit changes", (t) => {
  const changes: HardenResult["changes"] = [
    { done: "written", subject: "/u/x.service.d/50-headroom.conf", detail: null, unit: "x.service" },
    { done: "refused", subject: "/u/y.conf", detail: "it is a link", unit: "y.service" },
  ];
  const restart: HardenResult["restart"] = [{ unit: "x.service", manager: "user", keys: ["OOMScoreAdjust"] }];
  const text = render(resultOf({}, { action: "write", changes, restart }), plain, WIDTH).join("\n");
  t.regex(text, /^written {2}\/u\/x.service.d\/50-headroom.conf$/m);
  t.regex(text, /^not done {2}\/u\/y.conf\n {8}it is a link$/m);
  t.regex(text, /^ {8}systemctl --user restart x.service$/m);
  t.regex(text, /Not everything could be done, see above.$/);
});

test("--json prints one object, and proposing is no failure", async (t) => {
  const { code, stdout, stderr } = await runCli(["harden", "--json"]);
  t.is(code, 0, stderr);
  const result = JSON.parse(stdout) as HardenResult;
  t.is(result.action, "propose");
  t.deepEqual(result.changes, []);
  for (const key of ["gateways", "units", "linger", "advice", "restart"]) t.true(key in result, key);
});

test("writing and undoing at once is a wrong use", async (t) => {
  const { code, stderr } = await runCli(["harden", "--write", "--undo"]);
  t.is(code, 2);
  t.regex(stderr, /cannot be used with/);
});
