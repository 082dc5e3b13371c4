import test from "ava";
import { automaticCapMb, reserveMb, SMALLEST_CAP_MB } from "../../src/admission/cap.js";

const memory = (available_mb: number, total_mb: number) => ({
  available_mb,
  total_mb,
  swap_free_mb: 0,
  swap_total_mb: 0,
});

test("15 % is kept free, at least 256 MB and at most 2048 MB", (t) => {
  t.deepEqual([512, 1024, 4096, 65_536].map(reserveMb), [256, 256, 614, 2048]);
});

test("a job gets what is free without the reserve", (t) => {
  t.is(automaticCapMb(memory(3000, 4096)), 3000 - 614);
});

test("on a machine too small for its reserve half of it is kept", (t) => {
  t.is(automaticCapMb(memory(300, 1024)), 300 - 128);
});

test("a cap is never below the smallest one", (t) => {
  t.is(automaticCapMb(memory(10, 1024)), SMALLEST_CAP_MB);
  t.is(automaticCapMb(memory(0, 0)), SMALLEST_CAP_MB);
});
