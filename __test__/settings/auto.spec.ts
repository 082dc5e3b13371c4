import test from "ava";
import { resolveSettings } from "../../src/settings/auto.js";
import { defaultSettings } from "../../src/settings/defaults.js";

const on = (total_mb: number, change: Partial<ReturnType<typeof defaultSettings>> = {}) =>
  resolveSettings({ ...defaultSettings(), ...change }, { total_mb });

test("automatic values follow the size of the machine", (t) => {
  t.deepEqual(on(1000), {
    max_heavy_jobs: 1,
    reserve_mb: 256,
    min_start_mb: 192,
    critical_mb: 96,
    job_memory_max_mb: 0,
  });
  t.deepEqual(on(3900), {
    max_heavy_jobs: 2,
    reserve_mb: 585,
    min_start_mb: 390,
    critical_mb: 195,
    job_memory_max_mb: 0,
  });
  t.deepEqual(on(32_000), {
    max_heavy_jobs: 4,
    reserve_mb: 2048,
    min_start_mb: 1024,
    critical_mb: 512,
    job_memory_max_mb: 0,
  });
});

test("the number of jobs goes by the size that is sold", (t) => {
  t.is(on(2048).max_heavy_jobs, 1);
  t.is(on(3600).max_heavy_jobs, 1);
  t.is(on(4096).max_heavy_jobs, 2);
  t.is(on(8192).max_heavy_jobs, 2);
  t.is(on(15_900).max_heavy_jobs, 4);
});

test("what is set is taken as it is", (t) => {
  const set = { max_heavy_jobs: 7, reserve_mb: 1, min_start_mb: 2, critical_mb: 3, job_memory_max_mb: 4 };
  t.deepEqual(on(1000, set), set);
});
