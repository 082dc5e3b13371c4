import test from "ava";
import { HeadroomError } from "../../src/errors.js";
import { candidates, probeModes, type Modes } from "../../src/modes/choose.js";
import { native } from "../support/modes.js";

const MODES: Modes = {
  usable: [
    { mode: "cgroup1", base: "/c" },
    { mode: "userspace", base: null },
    { mode: "off", base: null },
  ],
  unusable: [{ mode: "cgroup2", obstacle: "no-memory-controller", detail: "none there", fix: "boot it" }],
};

const names = (wanted?: Parameters<typeof candidates>[1]): string[] =>
  candidates(MODES, wanted).map(({ mode }) => mode);

test("without a wish the modes are tried from the best down, and never `off`", (t) => {
  t.deepEqual(names(), ["cgroup1", "userspace"]);
});

test("a wish comes first and steps down only", (t) => {
  t.deepEqual(names("userspace"), ["userspace"]);
  t.deepEqual(names("cgroup1"), ["cgroup1", "userspace"]);
  t.deepEqual(names("off"), ["off"]);
});

test("a mode that cannot be had is refused with the reason and what to do", (t) => {
  const error = t.throws(() => names("cgroup2"), { instanceOf: HeadroomError });
  t.is(error?.code, "E_MODE");
  t.regex(error?.message ?? "", /none there/);
  t.is(error?.fix, "boot it");
});

test("probing this machine finds `userspace` and gives a reason for each mode it leaves out", (t) => {
  const modes = probeModes(native);
  t.true(modes.usable.some(({ mode }) => mode === "userspace"));
  for (const { detail } of modes.unusable) t.not(detail, "");
});
