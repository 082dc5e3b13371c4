/** `hermes-headroom hermes install` and `uninstall`. */
import { installPlugin } from "../hermes/install.js";
import { PACKAGE_CLI, PACKAGE_PLUGIN } from "../hermes/plugin-files.js";
import { isChanged, type HermesResult, type Step } from "../hermes/steps.js";
import { uninstallPlugin } from "../hermes/uninstall.js";
import { ownVersion } from "../native.js";
import { hermesHome } from "../settings/load.js";
import { printLine, stdoutPaint, terminalWidth, wrapText, type Paint, type Style } from "./terminal.js";

export interface HermesOptions {
  home?: string;
  json?: boolean;
}

/** Prints what was done. The exit code is 1 when something could not be done. */
export const hermesCommand = async (
  action: HermesResult["action"],
  { home = hermesHome(process.env), json }: HermesOptions,
): Promise<number> => {
  const result = action === "install" ? installPlugin(inputFor(home)) : uninstallPlugin(home);
  if (json) printLine(JSON.stringify(result));
  else render(result, stdoutPaint(), terminalWidth()).forEach((line) => printLine(line));
  return result.ok ? 0 : 1;
};

const inputFor = (home: string) => ({
  home,
  version: ownVersion(),
  plugin: PACKAGE_PLUGIN,
  node: process.execPath,
  cli: PACKAGE_CLI,
});

const STYLES: Record<Step["done"], Style> = {
  written: "green",
  updated: "green",
  removed: "green",
  enabled: "green",
  disabled: "green",
  same: "dim",
  left: "dim",
  kept: "yellow",
  refused: "red",
};

const NAME_WIDTH = 9;

/** The lines for people. What was in order already is said once, at the end. */
export const render = (result: HermesResult, paint: Paint, width: number): string[] => {
  const { steps, home, next } = result;
  const shown = steps.filter(({ done }) => done !== "same");
  const name = (path: string): string => (path.startsWith(`${home}/`) ? path.slice(home.length + 1) : path);
  const indent = " ".repeat(NAME_WIDTH + 1);
  return [
    ...(isChanged(steps) || shown.length > 0 ? [paint("dim", `in ${home}`)] : []),
    ...shown.flatMap(({ done, subject, detail }) => [
      `${paint(STYLES[done], done.padEnd(NAME_WIDTH))} ${name(subject)}`,
      ...(detail === null ? [] : wrapText(detail, Math.max(20, width - indent.length)).map((line) => indent + line)),
    ]),
    ...wrapText(next, Math.max(20, width)),
  ];
};
