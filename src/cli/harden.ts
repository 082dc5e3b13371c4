/** `hermes-headroom harden`. */
import { HeadroomError } from "../errors.js";
import { harden, type HardenResult } from "../harden/harden.js";
import type { Change } from "../harden/apply.js";
import type { Advice } from "../harden/advice.js";
import type { GatewayView, UnitPlan } from "../harden/policy.js";
import type { Situation } from "../harden/facts.js";
import type { Setting } from "../harden/settings.js";
import { systemTools } from "../harden/systemctl.js";
import { loadNative, nativeStatus } from "../native.js";
import { formatMb, printLine, stdoutPaint, terminalWidth, wrapText, type Paint, type Style } from "./terminal.js";

export interface HardenOptions {
  write?: boolean;
  undo?: boolean;
  json?: boolean;
}

const SYSTEM_UNIT_DIRECTORY = "/etc/systemd/system";
const INDENT = " ".repeat(8);

/** Prints what is proposed or was done. The exit code is 1 when something could not be done. */
export const hardenCommand = async ({ write, undo, json }: HardenOptions): Promise<number> => {
  const native = loadNative();
  if (!native) {
    const status = nativeStatus();
    const [detail, options] = status.available ? ["no addon", {}] : [status.detail, { fix: status.fix }];
    throw new HeadroomError("E_NATIVE", detail, options);
  }
  const run = systemTools(process.env, process.getuid?.() ?? 0);
  const host = { native, run, environment: process.env, systemUnitDirectory: SYSTEM_UNIT_DIRECTORY };
  const result = await harden(host, undo ? "undo" : write ? "write" : "propose");
  if (json) printLine(JSON.stringify(result));
  else render(result, stdoutPaint(), terminalWidth()).forEach((line) => printLine(line));
  return result.changes.some(({ done }) => done === "refused") ? 1 : 0;
};

/** The lines for people. */
export const render = (result: HardenResult, paint: Paint, width: number): string[] => {
  const { action, gateways, units, linger, advice, changes, restart } = result;
  const wrap = (text: string): string[] => wrapText(text, Math.max(20, width - INDENT.length));
  const done = [...changes.flatMap((each) => renderChange(each, paint, wrap)), ...restart.flatMap(renderRestart)];
  if (action === "undo") return changes.length === 0 ? ["Nothing of harden is installed here."] : done;
  const shown = units.filter(({ settings }) => settings.length > 0);
  const lines = [
    ...gateways.flatMap(renderGateway),
    ...(action === "propose" ? shown.flatMap((unit) => renderUnit(unit, paint, wrap)) : done),
    ...(linger === null || action === "write" ? [] : renderLinger(linger, paint, wrap)),
    ...advice.flatMap((each) => renderAdvice(each, paint, wrap)),
    "",
    ...wrapText(verdict(result), Math.max(20, width)),
  ];
  return lines[0] === "" ? lines.slice(1) : lines;
};

const SITUATIONS: Record<Situation, string> = {
  "user-unit": "user unit",
  "system-unit": "system unit",
  session: "login session",
  container: "container",
  bare: "by itself",
};

const renderGateway = ({ situation, unit, pid, rss_mb, oom_score_adj }: GatewayView): string[] => [
  `gateway ${unit ?? "outside of every unit"}, ${SITUATIONS[situation]}`,
  `${INDENT}${pid === null ? "not running" : `pid ${pid}, ${formatMb(rss_mb ?? 0)}, oom_score_adj ${oom_score_adj}`}`,
];

type Wrap = (text: string) => string[];

const renderUnit = ({ unit, path, settings }: UnitPlan, paint: Paint, wrap: Wrap): string[] => [
  "",
  paint("bold", unit),
  ...settings.flatMap((setting) => renderSetting(setting, paint, wrap)),
  ...(path === null || settings.every(({ is_set }) => is_set) ? [] : [paint("dim", `  file  ${path}`)]),
];

const renderSetting = ({ key, value, reason, from, is_set }: Setting, paint: Paint, wrap: Wrap): string[] => {
  if (is_set) return [`  ${paint("green", "ok  ")}  ${key}`];
  const when = from === "restart" ? " In force when the gateway is started again." : "";
  return [`  ${paint("yellow", "set ")}  ${key}=${value}`, ...wrap(reason + when).map((line) => INDENT + line)];
};

const renderLinger = (user: string, paint: Paint, wrap: Wrap): string[] => [
  "",
  paint("bold", `lingering of ${user}`),
  `  ${paint("yellow", "set ")}  loginctl enable-linger ${user}`,
  ...wrap("Your user's manager, and the gateway in it, otherwise ends with your last login.").map(
    (line) => INDENT + line,
  ),
];

const renderAdvice = ({ text, lines }: Advice, paint: Paint, wrap: Wrap): string[] => {
  const [first = "", ...more] = wrap(text);
  return [
    "",
    `${paint("bold", "by hand")} ${first}`,
    ...more.map((line) => INDENT + line),
    // Never broken: they are to be copied.
    ...lines.map((line) => INDENT + paint("cyan", line)),
  ];
};

const CHANGES: Record<Change["done"], [words: string, style: Style]> = {
  written: ["written", "green"],
  removed: ["removed", "green"],
  already: ["already so", "green"],
  reloaded: ["reloaded", "green"],
  "linger-on": ["lingers", "green"],
  "linger-off": ["lingers no more", "green"],
  refused: ["not done", "red"],
};

const renderChange = ({ done, subject, detail, unit }: Change, paint: Paint, wrap: Wrap): string[] => {
  const [words, style] = CHANGES[done];
  const about = done === "reloaded" ? `systemd (${subject})` : done === "already" ? (unit ?? subject) : subject;
  return [`${paint(style, words)}  ${about}`, ...(detail === null ? [] : wrap(detail).map((line) => INDENT + line))];
};

const renderRestart = ({ unit, manager, keys }: HardenResult["restart"][number]): string[] => [
  `later   ${keys.join(", ")} changes when you start the gateway again:`,
  `${INDENT}${manager === "user" ? "systemctl --user" : "sudo systemctl"} restart ${unit}`,
];

const verdict = ({ action, units, linger, changes }: HardenResult): string => {
  if (changes.some(({ done }) => done === "refused")) return "Not everything could be done, see above.";
  const missing = units.some(({ settings }) => settings.some(({ is_set }) => !is_set)) || linger !== null;
  if (action === "write") {
    const isNew = changes.some(({ done }) => done === "written");
    return isNew ? "In force. To take it away: hermes-headroom harden --undo" : "Nothing to change.";
  }
  if (missing) return "Nothing was changed. To install it: hermes-headroom harden --write";
  return units.length === 0 ? "Nothing was changed." : "Already so: nothing is to be installed.";
};
