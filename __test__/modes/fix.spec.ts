import test from "ava";
import { obstacleFix } from "../../src/modes/fix.js";

test("a missing controller is sent to the boot line, unless it sits on v1", (t) => {
  t.regex(obstacleFix("cgroup2", "no-memory-controller", false) ?? "", /cgroup_enable=memory/);
  t.regex(obstacleFix("cgroup2", "no-memory-controller", true) ?? "", /cgroup_no_v1=memory/);
});

test("missing rights are sent to delegation, v1 to root", (t) => {
  t.regex(obstacleFix("cgroup2", "not-permitted", false) ?? "", /Delegate=yes/);
  t.regex(obstacleFix("cgroup2", "read-only", false) ?? "", /writable-cgroups/);
  t.regex(obstacleFix("cgroup1", "not-permitted", true) ?? "", /as root/);
});

test("no advice is invented for an unknown obstacle", (t) => {
  t.is(obstacleFix("cgroup2", "failed", false), undefined);
});
