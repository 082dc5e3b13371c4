/** Made-up snapshots for the tests of what is drawn. */
import type { JobStatus, ProcessStatus, StatusSnapshot, WaitingStatus } from "../../src/status/snapshot.js";

export const madeUpSnapshot = (changes: Partial<StatusSnapshot> = {}): StatusSnapshot => ({
  memory: { available_mb: 1200, total_mb: 2000, swap_free_mb: 700, swap_total_mb: 1000 },
  pressure: { some_avg10_percent: 1.5, full_avg10_percent: 0.2, some_total_ms: 1000, full_total_ms: 100 },
  mode: "cgroup2",
  next_cap_mb: 900,
  limits: { reserve_mb: 300, critical_mb: 100, max_heavy_jobs: 1, min_start_mb: 200 },
  jobs: [],
  waiting: [],
  processes: [],
  problem: null,
  ...changes,
});

export const madeUpJob = (changes: Partial<JobStatus> = {}): JobStatus => ({
  id: "100-2-3",
  state: "running",
  pid: 4711,
  kind: "test",
  command: "npm test",
  mode: "cgroup2",
  cap_mb: 800,
  swap_cap_mb: 256,
  now_mb: 200,
  peak_mb: 400,
  age_s: 65,
  who: { pid: 4700, name: "node" },
  processes: [],
  ...changes,
});

export const madeUpWaiting = (position: number, changes: Partial<WaitingStatus> = {}): WaitingStatus => ({
  pid: 5000 + position,
  command: `cargo build --package part-${position}`,
  kind: "compile",
  reason: "waits for memory: 300 MB free beside the reserve of 256 MB and the running jobs, 192 MB wanted",
  position,
  waiting_s: position * 40,
  who: { pid: 4000 + position, name: "python3" },
  ...changes,
});

export const madeUpProcess = (pid: number, changes: Partial<ProcessStatus> = {}): ProcessStatus => ({
  pid,
  name: "node",
  command: `node server-${pid}.js`,
  rss_mb: 5000 - pid,
  hermes: false,
  ...changes,
});
