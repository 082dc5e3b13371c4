/** Which processes Hermes started: those below a process that looks like Hermes itself. */

export interface ProcessLine {
  pid: number;
  ppid: number;
  argv: string[];
}

const baseName = (word: string | undefined): string => word?.slice(word.lastIndexOf("/") + 1) ?? "";

/** `hermes …`, `python …/bin/hermes …` or `python -m hermes_cli…`. */
export const isHermes = ({ argv }: Pick<ProcessLine, "argv">): boolean => {
  const [program, ...words] = argv;
  if (baseName(program) === "hermes") return true;
  if (!/^python[\d.]*$/.test(baseName(program))) return false;
  const moduleFlag = words.indexOf("-m");
  if (moduleFlag >= 0) return /^hermes(_|$)/.test(words[moduleFlag + 1] ?? "");
  return baseName(words.find((word) => !word.startsWith("-"))) === "hermes";
};

/** The gateway itself (`… gateway`, `… gateway run`), not one of the commands that manage it. */
export const isGateway = (process: Pick<ProcessLine, "argv">): boolean => {
  const next = process.argv[process.argv.indexOf("gateway") + 1];
  const isCommand = process.argv.includes("gateway") && (next === undefined || next === "run" || next.startsWith("-"));
  return isCommand && isHermes(process);
};

/** The processes that are Hermes or descend from it. */
export const startedByHermes = (processes: readonly ProcessLine[]): Set<number> => {
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const verdicts = new Map<number, boolean>();
  const judge = (pid: number): boolean => {
    const known = verdicts.get(pid);
    if (known !== undefined) return known;
    verdicts.set(pid, false);
    const process = byPid.get(pid);
    const verdict = process !== undefined && (isHermes(process) || judge(process.ppid));
    verdicts.set(pid, verdict);
    return verdict;
  };
  return new Set(processes.map(({ pid }) => pid).filter(judge));
};
