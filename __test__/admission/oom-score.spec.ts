import test from "ava";
import { jobOomScoreAdj } from "../../src/admission/oom-score.js";

test("a job's score is 900 for every agent up to 400", (t) => {
  t.deepEqual([-1000, 0, 200, 400].map(jobOomScoreAdj), [900, 900, 900, 900]);
});

test("a job's score is above its agent's, never below", (t) => {
  for (let score = 401; score <= 1000; score += 1) {
    const raised = jobOomScoreAdj(score);
    t.true(raised >= score && raised <= 1000 && (score === 1000 || raised > score));
  }
});
