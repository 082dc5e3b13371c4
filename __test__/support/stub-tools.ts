/** Programs that only write down how they were called, so that a text can be run in real bash. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface StubCall {
  argv: string[];
  env: Record<string, string>;
}

/** Programs that pass on to the command in their words; the real ones may be missing or ask for a password. */
const WRAPPERS: Record<string, string> = {
  sudo: 'while [ "$1" != "${1#-}" ]; do case $1 in -u|-g) shift;; -E) keep=1;; esac; shift; done; [ -n "$keep" ] && exec "$@"; exec /usr/bin/env -i PATH="$PATH" HOME=/nowhere "$@"',
  npx: "", // recorded, like any tool
};

export class StubTools {
  readonly directory: string = mkdtempSync(join(tmpdir(), "headroom-stubs-"));
  readonly work: string = join(this.directory, "work");
  readonly #log = join(this.directory, "log");
  readonly #stub = join(this.directory, "stub");

  constructor(names: Iterable<string>) {
    mkdirSync(this.work);
    // A login shell sets PATH anew.
    writeFileSync(join(this.directory, ".bash_profile"), `PATH='${join(this.directory, "bin")}:/usr/bin:/bin'\n`);
    mkdirSync(join(this.directory, "bin"));
    const script = `#!/bin/sh
{ printf '%s\\0' "$0" "$@"; printf '\\1\\0'; /usr/bin/env -0; printf '\\2\\0'; } >> '${this.#log}'
`;
    writeFileSync(this.#stub, script);
    chmodSync(this.#stub, 0o755);
    for (const name of new Set(names)) {
      if (!/^[\w.+@-]+$/.test(name)) continue;
      const path = join(this.directory, "bin", name);
      const wrapper = WRAPPERS[name];
      if (wrapper) {
        writeFileSync(path, `#!/bin/sh\n${wrapper}\n`);
        chmodSync(path, 0o755);
      } else {
        symlinkSync(this.#stub, path);
      }
    }
  }

  /** Makes files in the working directory; `@stub` as text makes a stub. */
  addFiles(files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.work, name);
      mkdirSync(dirname(path), { recursive: true });
      if (text === "@stub") symlinkSync(this.#stub, path);
      else writeFileSync(path, text);
    }
  }

  /** Runs the text in bash and tells every call of a stub, in order. */
  run(text: string, env: Readonly<Record<string, string>> = {}): StubCall[] {
    writeFileSync(this.#log, "");
    spawnSync("bash", ["--norc", "--noprofile", "-c", text], {
      cwd: this.work,
      env: { HOME: this.directory, ...env, PATH: `${join(this.directory, "bin")}:/usr/bin:/bin` },
      stdio: "ignore",
      timeout: 20_000,
    });
    return readFileSync(this.#log, "utf8")
      .split("\u0002\0")
      .filter((record) => record !== "")
      .map((record) => this.#parse(record));
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #parse(record: string): StubCall {
    const [words = "", variables = ""] = record.split("\u0001\0");
    const [program = "", ...others] = words.split("\0").slice(0, -1);
    const bin = join(this.directory, "bin/");
    const name = program.startsWith(bin) ? program.slice(bin.length) : program;
    const env = Object.fromEntries(
      variables
        .split("\0")
        .filter((line) => line.includes("="))
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    return { argv: [name, ...others], env };
  }
}
