/**
 * A real Hermes gateway as a user service on a machine with 1 GB, with the plugin (`hermes`) and without it
 * (`unprotected`): what happens to it, and to a second user, when a command of the first one needs more memory than
 * there is. Runs as root beside the machine's users, as chats and models are somewhere else. Prints `CHECK …`
 * lines as check.ts does.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Chat } from "./chat.js";
import { becomesTrue, check, CLI, readOr } from "./support.js";

const [kind] = process.argv.slice(2);
const hasPlugin = kind === "hermes";

const HOME = "/home/hermes";
const HERMES_HOME = `${HOME}/.hermes`;
const UNIT = "hermes-gateway.service";
const OWNER = 1000;
/** An emulated machine: the gateway alone takes half a minute to start. */
const START_S = 240;
const ANSWER_S = 300;

const asUser = (...words: string[]): string => execFileSync("user-do", words, { encoding: "utf8" }).trim();
const ownDir = (path: string): void => {
  mkdirSync(path, { recursive: true });
  for (let at = path; at.startsWith(HOME); at = at.slice(0, at.lastIndexOf("/"))) chownSync(at, OWNER, OWNER);
};
const ownFile = (path: string, text: string, mode = 0o644): void => {
  ownDir(path.slice(0, path.lastIndexOf("/")));
  writeFileSync(path, text);
  chmodSync(path, mode);
  chownSync(path, OWNER, OWNER);
};

/** What a command of the first user does, by the name of a heavy tool that the machine does not have. */
const HOG = `import os
kept = []
while True:
    kept.append(os.urandom(1 << 20) * 8)
`;
const WORKERS = `import os, time
for _ in range(8):
    if os.fork() == 0:
        kept = os.urandom(1 << 20) * 200
        time.sleep(60)
        os._exit(0)
failed = 0
for _ in range(8):
    if os.wait()[1] != 0: failed += 1
raise SystemExit(1 if failed else 0)
`;
const LEAK = `const kept = []; setInterval(() => { for (let i = 0; i < 20; i += 1) kept.push(new Array(50_000).fill(i + 0.5)); }, 1);`;

const chat = new Chat();
await chat.listen();

ownFile(`${HOME}/bin/pytest`, `#!/usr/bin/python3\n${HOG}`, 0o755);
ownFile(`${HOME}/bin/make`, `#!/usr/bin/python3\n${WORKERS}`, 0o755);
ownFile(`${HOME}/project/leak.test.js`, LEAK);
ownFile(
  `${HERMES_HOME}/config.yaml`,
  `model:
  default: fake-model
  provider: custom
  base_url: "http://127.0.0.1:${chat.port}/v1"
  api_key: dummy
  context_length: 200000
terminal:
  backend: local
  cwd: "${HOME}/project"
  timeout: 240
memory:
  memory_enabled: false
  user_profile_enabled: false
platform_toolsets:
  ntfy: [terminal]
`,
  0o600,
);
// As Hermes writes it, less what it does not need here.
ownFile(
  `${HOME}/.config/systemd/user/${UNIT}`,
  `[Unit]
Description=Hermes Agent Gateway

[Service]
Type=simple
ExecStart=/usr/bin/python3 -m hermes_cli.main gateway run
WorkingDirectory=${HOME}/project
Environment=PYTHONPATH=/mnt/data/site-packages
Environment=PYTHONDONTWRITEBYTECODE=1
Environment=HOME=${HOME} HERMES_HOME=${HERMES_HOME} HERMES_YOLO_MODE=1 LANG=C.UTF-8
Environment=PATH=${HOME}/bin:/usr/local/bin:/usr/bin:/bin
Environment=NTFY_SERVER_URL=http://127.0.0.1:${chat.port} NTFY_TOPIC=in NTFY_PUBLISH_TOPIC=out
Environment=NTFY_ALLOWED_USERS=alice,bob
Restart=always
RestartSec=5
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=60
`,
);
if (hasPlugin) {
  const told = asUser("node", CLI, "hermes", "install");
  check("the plugin is installed", told.includes(HERMES_HOME), told);
}

const show = (property: string): string => asUser("systemctl", "--user", "show", "-p", property, "--value", UNIT);
const gatewayPid = (): string => show("MainPID");

const startGateway = async (): Promise<boolean> => {
  asUser("systemctl", "--user", "daemon-reload");
  asUser("systemctl", "--user", "restart", UNIT);
  return becomesTrue(START_S, () => chat.isConnected);
};

/** How long until a reply with this text; `undefined` when it does not come. */
const replyWith = async (text: string, seconds: number): Promise<number | undefined> => {
  const began = performance.now();
  const from = chat.replies.length;
  const came = (): boolean => chat.replies.slice(from).some((reply) => reply.text.includes(text));
  return (await becomesTrue(seconds, came)) ? Math.round(performance.now() - began) : undefined;
};

const warmUp = async (): Promise<void> => {
  for (const user of ["alice", "bob"]) {
    chat.send(user, `hello from ${user}`);
    await replyWith(`heard hello from ${user}`, ANSWER_S);
    await sleep(1500);
  }
};

interface Course {
  /** The same process before and after. */
  isSameGateway: boolean;
  /** Milliseconds until the second user was answered, each time; `null` when not within a minute. */
  others: (number | null)[];
  /** The first user was answered. */
  isAnswered: boolean;
  /** What the model was told about the command. */
  result: string;
}

const course = async (name: string, command: string): Promise<Course> => {
  const before = gatewayPid();
  const known = chat.toolResults.length;
  const from = chat.replies.length;
  chat.send("alice", `run ${command}`);
  const isAnswered = (): boolean => chat.replies.slice(from).some(({ text }) => text.includes(`done ${command}`));
  const others: (number | null)[] = [];
  const until = performance.now() + ANSWER_S * 1000;
  for (let turn = 0; !isAnswered() && performance.now() < until && others.at(-1) !== null; turn += 1) {
    await sleep(2000);
    chat.send("bob", `ping ${name} ${turn}`);
    others.push((await replyWith(`heard ping ${name} ${turn}`, 60)) ?? null);
  }
  await becomesTrue(Math.max(1, (until - performance.now()) / 1000), isAnswered);
  return {
    isSameGateway: gatewayPid() === before && before !== "0",
    others,
    isAnswered: isAnswered(),
    result: chat.toolResults.slice(known).at(-1) ?? "",
  };
};

const COURSES: [name: string, command: string][] = [
  ["a hog without end", "pytest -q"],
  ["eight workers of 200 MB", "make -j8 all"],
  ["a leak in Node", "node --test leak.test.js"],
];

check("the gateway is connected", await startGateway(), readOr("/proc/meminfo").slice(0, 90));
await warmUp();
for (const [name, command] of COURSES) {
  const seen = await course(name, command);
  const facts = { others: seen.others, isAnswered: seen.isAnswered, result: seen.result.slice(-700) };
  if (hasPlugin) {
    check(`${name}: the gateway is the same process`, seen.isSameGateway, facts);
    check(
      `${name}: the second user is answered meanwhile`,
      seen.others.every((ms) => ms !== null),
      facts,
    );
    check(`${name}: the first user is answered`, seen.isAnswered, facts);
    const { headroom } = JSON.parse(seen.result || "{}") as { headroom?: { note?: string; isolated?: boolean } };
    check(`${name}: the model is told`, headroom?.isolated === true && headroom.note !== undefined, facts);
  } else {
    const isHarmed = !seen.isSameGateway || !seen.isAnswered || seen.others.includes(null);
    check(`${name}: without the plugin users lose their answers`, isHarmed, { same: seen.isSameGateway, ...facts });
    check("the gateway comes back for the next one", await startGateway(), "");
    await warmUp();
  }
}
asUser("systemctl", "--user", "stop", UNIT);
