/**
 * `npm run bench:load`: how long the addon takes to load, each time in a fresh process, and how large it is.
 * Words: how many processes (default 40).
 */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nativeStatus } from "../src/native.js";
import { QUANTILES_HEADER, quantiles } from "./quantiles.js";

const status = nativeStatus();
if (!status.available) throw new Error(`the native addon is needed: ${status.detail}`);
const file = fileURLToPath(new URL(`../src/${status.file}`, import.meta.url));
const processes = Number(process.argv[2] ?? "40");

const PROGRAM = `const began = performance.now(); require(${JSON.stringify(file)}).version(); console.log(performance.now() - began);`;
const durations = Array.from({ length: processes }, () =>
  Number(execFileSync(process.execPath, ["-e", PROGRAM], { encoding: "utf8" })),
);

process.stdout.write(`${QUANTILES_HEADER}\n${quantiles("load the addon", durations)}\n`);
process.stdout.write(`size ${(statSync(file).size / 1024).toFixed(0)} KB\n`);
