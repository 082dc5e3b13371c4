/** The limits that hold when nobody sets them, from the memory of the machine. */
import { clamp, reserveMb } from "./cap.js";

/** What decides about starting and stopping jobs; MB are MiB. */
export interface Limits {
  /** Stays free for the agent and the system; no job is given it. */
  reserve_mb: number;
  /** With less available than this a job has to go. */
  critical_mb: number;
  /** So many jobs run at once. */
  max_heavy_jobs: number;
  /** A job does not start with less room than this. */
  min_start_mb: number;
}

/** 5 % of the memory, 96 to 512 MB. */
export const criticalMb = (totalMb: number): number => clamp(Math.floor(totalMb * 0.05), 96, 512);

/** 10 % of the memory, 192 to 1024 MB. */
export const minStartMb = (totalMb: number): number => clamp(Math.floor(totalMb * 0.1), 192, 1024);

/**
 * What firmware and kernel keep of the memory that a machine is sold with: a Raspberry Pi with 4 GB has
 * 3,793 MB of it, a VPS some 3,900.
 */
const SHARE_SEEN = 0.9;

/** 1 below 4 GB, 2 below 16 GB, else 4. */
export const maxHeavyJobs = (totalMb: number): number => {
  if (totalMb < 4096 * SHARE_SEEN) return 1;
  return totalMb < 16_384 * SHARE_SEEN ? 2 : 4;
};

export const automaticLimits = (totalMb: number): Limits => ({
  reserve_mb: reserveMb(totalMb),
  critical_mb: criticalMb(totalMb),
  max_heavy_jobs: maxHeavyJobs(totalMb),
  min_start_mb: minStartMb(totalMb),
});
