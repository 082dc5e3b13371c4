import test from "ava";
import { automaticLimits, criticalMb, maxHeavyJobs, minStartMb } from "../../src/admission/limits.js";

test("the critical line is 5 % of the memory, 96 to 512 MB", (t) => {
  t.deepEqual([0, 1024, 4096, 65_536].map(criticalMb), [96, 96, 204, 512]);
});

test("a job starts with at least 10 % of the memory, 192 to 1024 MB", (t) => {
  t.deepEqual([0, 1024, 4096, 65_536].map(minStartMb), [192, 192, 409, 1024]);
});

test("one job at once below 4 GB, two below 16 GB, else four", (t) => {
  t.deepEqual([0, 512, 2048, 4096, 8192, 16_384, 65_536].map(maxHeavyJobs), [1, 1, 1, 2, 2, 4, 4]);
});

test("machines count as what they are sold as, although less is seen", (t) => {
  t.deepEqual([1900, 3793, 3915, 7900, 15_990].map(maxHeavyJobs), [1, 2, 2, 2, 4]);
});

test("the limits of a machine come together", (t) => {
  t.deepEqual(automaticLimits(4096), { reserve_mb: 614, critical_mb: 204, max_heavy_jobs: 2, min_start_mb: 409 });
});
