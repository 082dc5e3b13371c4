/** Reads option values. A wrong one says which option, what was given and what is allowed. */
import { InvalidArgumentError } from "commander";
import { SMALLEST_CAP_MB } from "../admission/cap.js";
import { isMode, MODES, type Mode } from "../modes/mode.js";

/** The largest number of MB that is exact as a number of bytes. */
const LARGEST_MB = Math.floor(Number.MAX_SAFE_INTEGER / (1024 * 1024));

const wholeNumber = (text: string): number | undefined => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined);

export const parseMemoryMb = (text: string): number => {
  const mb = wholeNumber(text);
  if (mb === undefined)
    throw new InvalidArgumentError(`It takes a whole number of MB, such as 512, not ${JSON.stringify(text)}.`);
  if (mb < SMALLEST_CAP_MB) {
    throw new InvalidArgumentError(
      `A box has at least ${SMALLEST_CAP_MB} MB: below that the kernel is busy reclaiming.`,
    );
  }
  if (mb > LARGEST_MB) throw new InvalidArgumentError(`At most ${LARGEST_MB} MB.`);
  return mb;
};

export const parseSwapMb = (text: string): number => {
  const mb = wholeNumber(text);
  if (mb === undefined || mb < -1) {
    throw new InvalidArgumentError(`It takes a whole number of MB, or -1 for no limit, not ${JSON.stringify(text)}.`);
  }
  if (mb > LARGEST_MB) throw new InvalidArgumentError(`At most ${LARGEST_MB} MB, or -1 for no limit.`);
  return mb;
};

export const parseCount = (text: string): number => {
  const count = wholeNumber(text);
  if (count === undefined || count < 0) {
    throw new InvalidArgumentError(`It takes a whole number, such as 20, not ${JSON.stringify(text)}.`);
  }
  return count;
};

/** More than any machine has. */
const MOST_CPUS = 4096;

export const parseCpus = (text: string): number => {
  const cpus = wholeNumber(text);
  if (cpus === undefined || cpus < 1 || cpus > MOST_CPUS) {
    throw new InvalidArgumentError(`It takes a whole number from 1 to ${MOST_CPUS}, not ${JSON.stringify(text)}.`);
  }
  return cpus;
};

export const parseMode = (text: string): Mode => {
  if (!isMode(text)) throw new InvalidArgumentError(`Modes are ${MODES.join(", ")}.`);
  return text;
};
