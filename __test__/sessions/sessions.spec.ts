import test from "ava";
import { Sessions } from "../../src/sessions/sessions.js";

test("a note is given once, to its own chat", (t) => {
  const sessions = new Sessions();
  sessions.addNote("a", "one");
  sessions.addNote("a", "two");
  sessions.addNote("b", "other");
  t.deepEqual(sessions.takeNotes("a"), ["one", "two"]);
  t.deepEqual(sessions.takeNotes("a"), []);
  t.deepEqual(sessions.takeNotes("b"), ["other"]);
  t.deepEqual(sessions.takeNotes("never seen"), []);
});

test("background jobs are counted until they end", (t) => {
  const sessions = new Sessions();
  sessions.addJob("a", "1-1-1");
  sessions.addJob("a", "1-1-2");
  t.is(sessions.pendingJobs("a"), 2);
  sessions.removeJob("a", "1-1-1");
  t.is(sessions.pendingJobs("a"), 1);
  t.is(sessions.pendingJobs("b"), 0);
});

test("an advice comes at most every ten minutes a chat", (t) => {
  const sessions = new Sessions();
  t.true(sessions.mayAdvise("a", 0));
  t.false(sessions.mayAdvise("a", 599_999));
  t.true(sessions.mayAdvise("b", 1));
  t.true(sessions.mayAdvise("a", 600_000));
});

test("beyond 128 chats one that waits for nothing goes first", (t) => {
  const sessions = new Sessions();
  sessions.addNote("oldest", "kept");
  sessions.addJob("busy", "1-1-1");
  for (let index = 0; index < 200; index += 1) sessions.mayAdvise(`idle ${index}`, 0);
  t.deepEqual(sessions.takeNotes("oldest"), ["kept"]);
  t.is(sessions.pendingJobs("busy"), 1);
  t.true(sessions.mayAdvise("idle 0", 1), "forgotten");
  t.false(sessions.mayAdvise("idle 199", 1), "kept");
});

test("what nobody has asked for can be handed on", (t) => {
  const sessions = new Sessions();
  sessions.addNote("a", "one");
  sessions.addNote("b", "two");
  sessions.takeNotes("b");
  t.deepEqual(sessions.undelivered(), [["a", ["one"]]]);
  sessions.close("a");
  t.deepEqual(sessions.undelivered(), []);
});

test("a chat with very many notes keeps the last ones", (t) => {
  const sessions = new Sessions();
  for (let index = 0; index < 30; index += 1) sessions.addNote("a", String(index));
  const notes = sessions.takeNotes("a");
  t.is(notes.length, 20);
  t.is(notes.at(-1), "29");
});
