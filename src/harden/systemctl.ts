/** Asks systemctl and loginctl: fixed words, bounded in time and output, no shell. */
import { execFile } from "node:child_process";
import type { ManagerName, Properties } from "./facts.js";

export interface ToolResult {
  /** The tool ran and was content. */
  ok: boolean;
  stdout: string;
  /** What it said instead, one line. */
  problem: string;
}

/** Runs one tool; tests give another one. Never rejects. */
export type RunTool = (program: "systemctl" | "loginctl", words: readonly string[]) => Promise<ToolResult>;

const TIMEOUT_MS = 10_000;
const LARGEST_OUTPUT_BYTES = 1_048_576;
const KEPT_VARIABLES = ["PATH", "HOME", "DBUS_SESSION_BUS_ADDRESS"];

/** A shell that came by `su` has no XDG_RUNTIME_DIR, yet the user's manager may well run. */
export const systemTools = (environment: NodeJS.ProcessEnv, uid: number): RunTool => {
  const kept = KEPT_VARIABLES.flatMap((name) => (environment[name] ? [[name, environment[name]]] : []));
  const env = {
    ...Object.fromEntries(kept),
    XDG_RUNTIME_DIR: environment["XDG_RUNTIME_DIR"] || `/run/user/${uid}`,
    LC_ALL: "C",
    SYSTEMD_COLORS: "0",
  };
  const options = { env, timeout: TIMEOUT_MS, maxBuffer: LARGEST_OUTPUT_BYTES, killSignal: "SIGKILL" } as const;
  return (program, words) =>
    new Promise((resolve) => {
      execFile(program, ["--no-pager", "--no-ask-password", ...words], options, (error, stdout, stderr) => {
        const [said = ""] = stderr.trim().split("\n");
        const late = error?.killed ? `no answer within ${TIMEOUT_MS / 1000} s` : undefined;
        resolve({ ok: error === null, stdout, problem: late ?? (said || (error?.message.split("\n")[0] ?? "")) });
      });
    });
};

const managerWords = (manager: ManagerName): string[] => (manager === "user" ? ["--user"] : ["--system"]);

/** `undefined` where the manager does not answer. Its properties that are not known to it are left out. */
export const showUnit = async (
  run: RunTool,
  manager: ManagerName,
  unit: string,
  properties: readonly string[],
): Promise<Properties | undefined> => {
  const { ok, stdout } = await run("systemctl", [
    ...managerWords(manager),
    "show",
    "-p",
    properties.join(","),
    "--",
    unit,
  ]);
  return ok ? readProperties(stdout) : undefined;
};

/** Names of unit files that fit, without templates. An empty list where there are none. */
export const listUnitFiles = async (run: RunTool, manager: ManagerName, pattern: string): Promise<string[]> => {
  const { stdout } = await run("systemctl", [
    ...managerWords(manager),
    "list-unit-files",
    "--plain",
    "--no-legend",
    "--",
    pattern,
  ]);
  const names = stdout.split("\n").map((line) => line.trim().split(/\s+/)[0] ?? "");
  return names.filter((name) => isServiceName(name) && !name.includes("@."));
};

export const reload = (run: RunTool, manager: ManagerName): Promise<ToolResult> =>
  run("systemctl", [...managerWords(manager), "daemon-reload"]);

/** The persistent directory of a user's unit files, as the manager itself tells it: its HOME may not be ours. */
export const userUnitDirectory = async (run: RunTool): Promise<string | undefined> => {
  const { ok, stdout } = await run("systemctl", ["--user", "show", "-p", "UnitPath"]);
  const [first = ""] = (ok ? (readProperties(stdout)["UnitPath"] ?? "") : "").split(" ");
  return first.startsWith("/") && first.endsWith("/systemd/user.control")
    ? first.slice(0, -".control".length)
    : undefined;
};

/** `undefined` where logind cannot tell. */
export const lingers = async (run: RunTool, user: string): Promise<boolean | undefined> => {
  const { ok, stdout, problem } = await run("loginctl", ["show-user", "-p", "Linger", "--", user]);
  // Who lingers is known to logind at all times, who does not only while logged in.
  if (!ok && /not logged in or lingering|not known/.test(problem)) return false;
  return ok ? readProperties(stdout)["Linger"] === "yes" : undefined;
};

export const killsUserProcesses = async (run: RunTool): Promise<boolean | null> => {
  const { ok, stdout } = await run("loginctl", ["show", "-p", "KillUserProcesses"]);
  const value = ok ? readProperties(stdout)["KillUserProcesses"] : undefined;
  return value === undefined ? null : value === "yes";
};

/** The characters of unit names (systemd.unit(5)); such a name is a safe word and a safe file name. */
export const isServiceName = (name: string): boolean => /^[\w:][\w:.@\\-]{0,240}\.service$/.test(name);

export const isSliceName = (name: string): boolean => /^[\w:][\w:.\\-]{0,240}\.slice$/.test(name);

/** Lines of `NAME=value`. */
const readProperties = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const equals = line.indexOf("=");
      return equals > 0 ? [[line.slice(0, equals), line.slice(equals + 1)]] : [];
    }),
  );
