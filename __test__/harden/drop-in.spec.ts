import test from "ava";
import { readDropIn, renderDropIn } from "../../src/harden/drop-in.js";
import { planHardening, type UnitPlan } from "../../src/harden/policy.js";
import { factsOf } from "./facts.js";

const unit = planHardening(factsOf()).units[0] as UnitPlan;
const text = renderDropIn(unit, null);

test("a drop-in has a section, and a reason above each line", (t) => {
  t.regex(text, /^\[Service\]$/m);
  t.regex(text, /\n# [^\n]+\nOOMPolicy=continue\n/);
  t.true(text.split("\n").every((line) => line.length <= 102));
  t.regex(renderDropIn({ ...unit, section: "Slice" }, null), /^\[Slice\]$/m);
});

test("what was written is known as ours, with its values", (t) => {
  const read = readDropIn(text);
  t.is(read.ownership, "ours");
  t.is(read.linger, null);
  t.deepEqual(read.values, {
    OOMPolicy: "continue",
    MemoryMin: "160M",
    MemoryLow: "240M",
    ManagedOOMPreference: "avoid",
    OOMScoreAdjust: "100",
  });
  t.is(readDropIn(renderDropIn(unit, "hermes")).linger, "hermes");
  t.is(readDropIn(renderDropIn(unit, "hermes")).ownership, "ours");
});

test("any change by somebody is seen", (t) => {
  const changes = [
    text.replace("continue", "kill"),
    `${text}MemoryMax=1G\n`,
    text.replace(/# checksum .*\n/, ""),
    text.replace(/# checksum ..../, "# checksum 0000"),
    text.replace("\n\n", "\n"),
    renderDropIn(unit, "hermes").replace(": hermes", ": other"),
  ];
  for (const changed of changes) t.is(readDropIn(changed).ownership, "edited", changed.slice(0, 400));
});

test("what never was ours is foreign", (t) => {
  for (const foreign of ["", "[Service]\nOOMPolicy=continue\n", "# checksum abc\n[Service]\n"]) {
    t.is(readDropIn(foreign).ownership, "foreign");
  }
});
