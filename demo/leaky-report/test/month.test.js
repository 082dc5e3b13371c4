/** The lighter way: a month at a time, nothing kept. */
import assert from "node:assert/strict";
import { streamedMonthReport } from "../src/report.js";

for (let month = 1; month <= 12; month += 1) assert.equal(streamedMonthReport(month).count, 100_000);
console.log("months: 12 months add up, one at a time");
