import test from "ava";
import { admit, growthMb, type AdmissionInput } from "../../src/admission/admit.js";

/** A 4 GB machine with 3 GB free. */
const input = (changes: Partial<AdmissionInput> = {}, availableMb = 3000): AdmissionInput => ({
  memory: { available_mb: availableMb, total_mb: 4096, swap_free_mb: 0, swap_total_mb: 0 },
  jobs: [],
  reserveMb: 614,
  minStartMb: 409,
  jobMemoryMaxMb: 0,
  ...changes,
});

test("a lone job gets what is free less the reserve", (t) => {
  t.deepEqual(admit(input()), { admitted: true, capMb: 2386 });
  t.deepEqual(admit(input({ jobMemoryMaxMb: 1000 })), { admitted: true, capMb: 1000 });
});

test("caps never add up to more than the machine has", (t) => {
  for (let first = 64; first < 3000; first += 97) {
    for (let now = 0; now <= first; now += 131) {
      const found = admit(input({ jobs: [{ capMb: first, nowMb: now }] }, 3000 - now));
      if (found.admitted) t.true(found.capMb + first <= 3000 - 614, `${first} ${now} ${found.capMb}`);
    }
  }
});

test("without room a job waits, with hope only while one of ours runs", (t) => {
  const beside = admit(input({ jobs: [{ capMb: 2386, nowMb: 100 }] }, 2900));
  t.like(beside, { admitted: false, hasHope: true });
  const alone = admit(input({}, 700));
  t.like(alone, { admitted: false, hasHope: false });
  if (!alone.admitted) t.regex(alone.reason, /86 MB free beside the reserve of 614 MB.*409 MB wanted/);
});

test("what was asked for is given to a lone job, and waited for beside others", (t) => {
  t.deepEqual(admit(input({ askedMb: 9000 })), { admitted: true, capMb: 9000 });
  t.like(admit(input({ askedMb: 2000, jobs: [{ capMb: 1000, nowMb: 0 }] })), { admitted: false, hasHope: true });
  t.deepEqual(admit(input({ askedMb: 1000, jobs: [{ capMb: 1000, nowMb: 0 }] })), { admitted: true, capMb: 1000 });
});

test("a learned peak waits for running jobs, if the machine can give as much at all", (t) => {
  const jobs = [{ capMb: 1000, nowMb: 500 }];
  t.like(admit(input({ jobs, learnedPeakMb: 2000 }, 2500)), { admitted: false, hasHope: true });
  t.like(admit(input({ jobs, learnedPeakMb: 9000 }, 2500)), { admitted: true, capMb: 1386 });
  t.like(admit(input({ jobs, learnedPeakMb: 1200 }, 2500)), { admitted: true, capMb: 1386 });
  t.like(admit(input({ learnedPeakMb: 9000 })), { admitted: true });
});

const small = (availableMb: number) =>
  admit(
    input({
      memory: { available_mb: availableMb, total_mb: 420, swap_free_mb: 0, swap_total_mb: 0 },
      reserveMb: 256,
      minStartMb: 192,
    }),
  );

test("a machine too small for its reserve keeps half of it, and says so", (t) => {
  const found = small(300);
  t.like(found, { admitted: true, capMb: 172 });
  t.regex((found.admitted && found.told) || "", /420 MB, too little/);
  t.like(small(100), { admitted: true, capMb: 64 });
});

test("a job over its cap does not make room", (t) => {
  t.is(
    growthMb([
      { capMb: 100, nowMb: 150 },
      { capMb: 100, nowMb: 40 },
    ]),
    60,
  );
});
