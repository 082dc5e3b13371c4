import test from "ava";
import { LineReader } from "../../src/daemon/frames.js";

test("lines come out whole, however they are split", (t) => {
  const text = `${JSON.stringify({ text: "größer 🦀" })}\n{}\n`;
  const bytes = Buffer.from(text);
  for (let size = 1; size < bytes.length; size += 1) {
    const reader = new LineReader(1000);
    const lines: string[] = [];
    for (let from = 0; from < bytes.length; from += size) {
      lines.push(...(reader.push(bytes.subarray(from, from + size)) ?? []));
    }
    t.is(lines.join("\n"), text.trimEnd());
  }
});

test("a line longer than allowed ends it, whole or not", (t) => {
  t.is(new LineReader(4).push(Buffer.from("12345\n")), undefined);
  t.is(new LineReader(4).push(Buffer.from("12345")), undefined);
  t.deepEqual(new LineReader(4).push(Buffer.from("1234\n")), ["1234"]);
});

test("what follows a line waits for its own end", (t) => {
  const reader = new LineReader(100);
  t.deepEqual(reader.push(Buffer.from("a\nb")), ["a"]);
  t.deepEqual(reader.push(Buffer.from("c\n\n")), ["bc", ""]);
});
