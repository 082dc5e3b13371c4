/** The suite as somebody wrote it: correct, and about 1.5 GB large. */
import assert from "node:assert/strict";
import { streamedMonthReport, yearReport } from "../src/report.js";

const months = yearReport();
assert.equal(months.length, 12);
for (const [index, month] of months.entries()) assert.deepEqual(month, streamedMonthReport(index + 1));

const heapMb = Math.round(process.memoryUsage().heapUsed / 1024 / 1024);
console.log(`year: 12 months agree (heap ${heapMb} MB)`);
