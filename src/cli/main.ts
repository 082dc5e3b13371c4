/** The command line: wiring only. Each command has a module of its own, loaded when it is used. */
import { Command, CommanderError, Option } from "commander";
import { HeadroomError } from "../errors.js";
import { ownVersion } from "../native.js";
import type { DaemonOptions } from "./daemon.js";
import type { EventsOptions } from "./events.js";
import type { ExplainCommandOptions } from "./explain.js";
import type { HardenOptions } from "./harden.js";
import type { HermesOptions } from "./hermes.js";
import type { RunOptions } from "./run.js";
import type { StatusOptions } from "./status.js";
import { parseCount, parseCpus, parseMemoryMb, parseMode, parseSwapMb } from "./options.js";
import { printError, printLine, stderrPaint } from "./terminal.js";

const USAGE_EXIT_CODE = 2;

const modeOption = (): Option =>
  new Option("--mode <mode>", "hold the job this way instead of the best that works here").argParser(parseMode);

const setOption = (): Option =>
  new Option("--set <key=value>", "a setting for this command; may be repeated")
    .argParser((word: string, before: string[]) => [...before, word])
    .default([], "none");

const homeOption = (): Option => new Option("--home <dir>", "Hermes' home (default: HERMES_HOME, else ~/.hermes)");

const buildProgram = (): Command => {
  const program = new Command("hermes-headroom")
    .description("Memory-capped boxes for an AI agent's heavy shell jobs, so that the agent stays alive.")
    .version(ownVersion())
    .enablePositionalOptions()
    .showHelpAfterError("(hermes-headroom --help lists commands and options)")
    .configureOutput({ writeOut: (text) => printLine(text.trimEnd()), writeErr: (text) => printError(text.trimEnd()) });
  program
    .command("run")
    .description("run one command in a box; its exit code, its streams and its signals are its own")
    .argument("<command...>", "the command and its words; write -- before it")
    .option("--memory <MB>", "memory cap (default: what is free, less a reserve)", parseMemoryMb)
    .option("--swap <MB>", "swap beyond the cap, -1 for no limit (default: 256)", parseSwapMb)
    .addOption(modeOption())
    .option("--report <file>", "write what happened to this file, as JSON")
    .option("--no-queue", "do not wait for other jobs, nor for memory")
    .addOption(setOption())
    .option("--auto", "run light commands as if headroom were not there")
    .option("--verbose", "say at the end how it went, even if all went well")
    .option("--json", "print what happened as one line of JSON on stderr")
    .passThroughOptions()
    .action(async (command: string[], options: RunOptions) => {
      const { runCommand } = await import("./run.js");
      process.exitCode = await runCommand(command, options);
    });
  program
    .command("explain")
    .description("tell whether a command is heavy, why, and what it would be made of; nothing is run")
    .argument("[text...]", "the command; write -- before it")
    .option("--json", "print it as JSON")
    .option("--batch", "read one JSON object a line from stdin: {command, cwd?, cpus?, cap_mb?, env?}")
    .option("--cwd <dir>", "where it would run (default: here)")
    .option("--cpus <N>", "as if there were so many CPUs", parseCpus)
    .option("--cap <MB>", "as if that were the memory cap", parseMemoryMb)
    .addOption(setOption())
    .passThroughOptions()
    .action(async (text: string[], options: ExplainCommandOptions) => {
      const { explainCommand } = await import("./explain.js");
      process.exitCode = await explainCommand(text, options);
    });
  program
    .command("selftest")
    .description("prove that a job out of memory dies in its box and nothing else does")
    .addOption(modeOption())
    .option("--json", "print the result as JSON")
    .action(async (options: { mode?: ReturnType<typeof parseMode>; json?: boolean }) => {
      const { selftestCommand } = await import("./selftest.js");
      process.exitCode = await selftestCommand(options);
    });
  program
    .command("status")
    .description("memory, running jobs and the largest processes")
    .option("--json", "print it as JSON")
    .addOption(setOption())
    .option("--watch", "a live view; without a terminal, or with --json, print it every 2 s")
    .action(async (options: StatusOptions) => {
      const { statusCommand } = await import("./status.js");
      process.exitCode = await statusCommand(options);
    });
  program
    .command("events")
    .description("what happened to heavy jobs: waits, caps, peaks, kills")
    .option("-n <N>", "how many of the last ones", parseCount, 20)
    .option("--follow", "go on with what happens from now on")
    .option("--json", "print JSON lines")
    .action(async (options: EventsOptions) => {
      const { eventsCommand } = await import("./events.js");
      process.exitCode = await eventsCommand(options);
    });
  const daemon = program
    .command("daemon")
    .description("what agents ask: queues and boxes their heavy jobs; started by the first of them")
    .option("--foreground", "be the daemon, instead of starting one")
    .addOption(new Option("--idle <S>", "leave after so many idle seconds").argParser(parseCount).hideHelp())
    .option("--json", "print the result as JSON")
    .action(async (options: DaemonOptions) => {
      const { daemonCommand } = await import("./daemon.js");
      process.exitCode = await daemonCommand(options);
    });
  daemon
    .command("stop")
    .description("end it; jobs run on in their boxes")
    .option("--json", "print the result as JSON")
    .action(async (_: unknown, command: Command) => {
      const { daemonStopCommand } = await import("./daemon.js");
      process.exitCode = await daemonStopCommand(command.optsWithGlobals());
    });
  program
    .command("harden")
    .description("what protects the agent's gateway from the rest of the machine, with reasons")
    .option("--write", "install it: drop-ins beside the gateway's unit, never the unit itself")
    .addOption(new Option("--undo", "take away what --write wrote").conflicts("write"))
    .option("--json", "print it as JSON")
    .action(async (options: HardenOptions) => {
      const { hardenCommand } = await import("./harden.js");
      process.exitCode = await hardenCommand(options);
    });
  const hermes = program.command("hermes").description("the plugin for Hermes Agent");
  hermes
    .command("install")
    .description("copy the plugin into Hermes' home and enable it; again to bring it up to date")
    .addOption(homeOption())
    .option("--json", "print what was done as JSON")
    .action(async (options: HermesOptions) => {
      const { hermesCommand } = await import("./hermes.js");
      process.exitCode = await hermesCommand("install", options);
    });
  hermes
    .command("uninstall")
    .description("take the plugin's files and its entry in config.yaml away; what was logged and learned stays")
    .addOption(homeOption())
    .option("--json", "print what was done as JSON")
    .action(async (options: HermesOptions) => {
      const { hermesCommand } = await import("./hermes.js");
      process.exitCode = await hermesCommand("uninstall", options);
    });
  for (const command of [program, ...program.commands, ...daemon.commands, ...hermes.commands]) command.exitOverride();
  return program;
};

/** Runs the program with the words after its name; sets `process.exitCode`. */
export const main = async (words: string[]): Promise<void> => {
  try {
    await buildProgram().parseAsync(words, { from: "user" });
  } catch (error) {
    process.exitCode = report(error);
  }
};

const report = (error: unknown): number => {
  // Commander has printed its own message already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_EXIT_CODE;
  const paint = stderrPaint();
  if (error instanceof HeadroomError) {
    printError(`${paint("red", "hermes-headroom:")} ${error.message} [${error.code}]`);
    if (error.fix !== undefined) printError(`  ${error.fix}`);
    return error.exitCode;
  }
  if (isSystemError(error)) {
    printError(`${paint("red", "hermes-headroom:")} ${error.message} [E_SYSTEM]`);
    if (error.code === "EMFILE") printError("  Raise the limit of open files: ulimit -n 256");
    return 1;
  }
  printError(`${paint("red", "hermes-headroom:")} unexpected: ${error instanceof Error ? error.stack : String(error)}`);
  return 1;
};

const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && "syscall" in error && "code" in error;
