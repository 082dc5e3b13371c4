/** Whether a job may start now, and with which cap. Pure: everything measured comes in. */
import type { MemorySnapshot } from "../memory.js";
import { SMALLEST_CAP_MB } from "./cap.js";

/** A job of ours that runs, of whatever process. */
export interface RunningJob {
  capMb: number;
  nowMb: number;
}

export interface AdmissionInput {
  memory: MemorySnapshot;
  /** Every job that holds memory, those that were left running included. */
  jobs: readonly RunningJob[];
  reserveMb: number;
  minStartMb: number;
  /** 0 is no limit. */
  jobMemoryMaxMb: number;
  /** The cap that somebody asked for. */
  askedMb?: number;
  /** The most that this command has needed before. */
  learnedPeakMb?: number;
}

export type Admission =
  | { admitted: true; capMb: number; told?: string }
  /** `hasHope`: a job of ours runs, so memory will come free. */
  | { admitted: false; reason: string; hasHope: boolean };

/** What running jobs may still take although it is free now. */
export const growthMb = (jobs: readonly RunningJob[]): number =>
  jobs.reduce((sum, { capMb, nowMb }) => sum + Math.max(0, capMb - nowMb), 0);

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/**
 * Free memory less the reserve and less what running jobs may still grow into, so that the caps together
 * never promise more than the machine has.
 */
export const admit = (input: AdmissionInput): Admission => {
  const { memory, jobs, askedMb, learnedPeakMb, jobMemoryMaxMb } = input;
  const isSmall = memory.total_mb < input.reserveMb + input.minStartMb + SMALLEST_CAP_MB;
  const reserveMb = isSmall ? Math.floor(input.reserveMb / 2) : input.reserveMb;
  const minStartMb = isSmall ? SMALLEST_CAP_MB : Math.max(input.minStartMb, SMALLEST_CAP_MB);
  const roomMb = memory.available_mb - reserveMb - growthMb(jobs);
  const hasHope = jobs.length > 0;
  const limited = (mb: number): number => (jobMemoryMaxMb > 0 ? Math.min(mb, jobMemoryMaxMb) : mb);

  if (askedMb !== undefined) {
    // Alone on the machine, whoever asks knows best.
    if (!hasHope || roomMb >= askedMb) return { admitted: true, capMb: askedMb };
    return {
      admitted: false,
      hasHope,
      reason: `waits for memory: ${askedMb} MB asked for, ${Math.max(roomMb, 0)} MB free beside the running jobs`,
    };
  }
  if (roomMb < minStartMb) {
    if (isSmall && !hasHope) {
      return { admitted: true, capMb: SMALLEST_CAP_MB, told: smallMachine(memory.total_mb, reserveMb) };
    }
    return {
      admitted: false,
      hasHope,
      reason: `waits for memory: ${Math.max(roomMb, 0)} MB free beside the reserve of ${reserveMb} MB and the running jobs, ${minStartMb} MB wanted`,
    };
  }
  const capMb = limited(roomMb);
  if (learnedPeakMb !== undefined && learnedPeakMb > capMb && hasHope) {
    const possibleMb = limited(memory.available_mb + sumOf(jobs.map(({ nowMb }) => nowMb)) - reserveMb);
    if (possibleMb >= learnedPeakMb) {
      return {
        admitted: false,
        hasHope,
        reason: `waits for memory: it needed ${learnedPeakMb} MB before, ${capMb} MB are free beside the running jobs`,
      };
    }
  }
  return { admitted: true, capMb, ...(isSmall ? { told: smallMachine(memory.total_mb, reserveMb) } : {}) };
};

const smallMachine = (totalMb: number, reserveMb: number): string =>
  `this machine has ${totalMb} MB, too little for the usual reserve: ${reserveMb} MB are kept free, and the job gets what is left`;
