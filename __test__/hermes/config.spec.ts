import test from "ava";
import { disablePlugin, enablePlugin, PLUGINS_BLOCK } from "../../src/hermes/config.js";

/** Before and after enabling. Taking it away again must give the first text back, but for `undone`. */
interface Case {
  name: string;
  before: string;
  after: string;
  undone?: string;
}

const CASES: Case[] = [
  { name: "an empty file", before: "", after: PLUGINS_BLOCK },
  { name: "comments alone", before: "# mine\n", after: `# mine\n${PLUGINS_BLOCK}` },
  {
    name: "other settings, with comments and odd spacing",
    before: "# mine\nmodel:   gpt   # the good one\n\n\nlist:\n- a\n-   b\n",
    after: `# mine\nmodel:   gpt   # the good one\n\n\nlist:\n- a\n-   b\n${PLUGINS_BLOCK}`,
  },
  {
    name: "a file without an end of line",
    before: "model: x",
    after: `model: x\n${PLUGINS_BLOCK}`,
    undone: "model: x\n",
  },
  {
    name: "a list that is indented",
    before: "plugins:\n  enabled:\n    - one  # first\n    # and\n    - two\nmodel: x\n",
    after: "plugins:\n  enabled:\n    - one  # first\n    # and\n    - two\n    - headroom\nmodel: x\n",
  },
  {
    name: "a list that is not indented",
    before: "plugins:\n    enabled:\n    - 'one'\n    entries: {}\n",
    after: "plugins:\n    enabled:\n    - 'one'\n    - headroom\n    entries: {}\n",
  },
  {
    name: "a list at the very end, without an end of line",
    before: "plugins:\n  enabled:\n    - one",
    after: "plugins:\n  enabled:\n    - one\n    - headroom\n",
    undone: "plugins:\n  enabled:\n    - one\n",
  },
  {
    name: "lines that end as on Windows",
    before: "plugins:\r\n  enabled:\r\n    - one\r\nmodel: x\r\n",
    after: "plugins:\r\n  enabled:\r\n    - one\r\n    - headroom\r\nmodel: x\r\n",
  },
  {
    name: "a list in brackets",
    before: "plugins: {enabled: [ one, two ], disabled: [three]}\n",
    after: "plugins: {enabled: [ one, two, headroom ], disabled: [three]}\n",
  },
  {
    name: "empty brackets",
    before: "plugins:\n  enabled: [] # none\n",
    after: "plugins:\n  enabled: [headroom] # none\n",
  },
  {
    name: "brackets over several lines",
    before: "plugins:\n  enabled: [\n    one,\n    two\n  ]\n",
    after: "plugins:\n  enabled: [\n    one,\n    two, headroom\n  ]\n",
  },
  {
    name: "a list without items",
    before: "plugins:\n  enabled: # none yet\n  entries: {}\n",
    after: "plugins:\n  enabled: # none yet\n    - headroom\n  entries: {}\n",
    undone: "plugins:\n  enabled: [] # none yet\n  entries: {}\n",
  },
  {
    name: "plugins without a list",
    before: "plugins:\n  # settings\n  entries:\n    other: {}\n",
    after: "plugins:\n  # settings\n  enabled:\n    - headroom\n  entries:\n    other: {}\n",
    undone: "plugins:\n  # settings\n  enabled: []\n  entries:\n    other: {}\n",
  },
  {
    name: "plugins in braces without a list",
    before: "plugins: {}\n",
    after: "plugins: {enabled: [headroom]}\n",
    undone: "plugins: {enabled: []}\n",
  },
  {
    name: "plugins without anything",
    before: "plugins:\nmodel: x\n",
    after: "plugins:\n  enabled:\n    - headroom\nmodel: x\n",
    undone: "plugins:\n  enabled: []\nmodel: x\n",
  },
  {
    name: "anchors and merge keys elsewhere",
    before: "base: &b {a: 1}\nother:\n  <<: *b\nplugins:\n  enabled:\n    - one\n",
    after: "base: &b {a: 1}\nother:\n  <<: *b\nplugins:\n  enabled:\n    - one\n    - headroom\n",
  },
];

for (const { name, before, after, undone } of CASES) {
  test(`enabling touches nothing else: ${name}`, (t) => {
    t.deepEqual(enablePlugin(before), { state: "changed", text: after });
    t.deepEqual(enablePlugin(after), { state: "already" });
    t.deepEqual(disablePlugin(after), { state: "changed", text: undone ?? before });
  });
}

const taken = (text: string): string => {
  const edit = disablePlugin(text);
  return edit.state === "changed" ? edit.text : edit.state;
};

test("taking the first or a middle item out of a list leaves the others as they stand", (t) => {
  t.is(taken("plugins: {enabled: [headroom, one]}\n"), "plugins: {enabled: [one]}\n");
  t.is(taken("plugins: {enabled: [one, headroom, two]}\n"), "plugins: {enabled: [one, two]}\n");
  t.is(taken("plugins:\n  enabled:\n  - headroom # ours\n  - one\n"), "plugins:\n  enabled:\n  - one\n");
  t.is(taken("plugins:\n  enabled: ['headroom', headroom]\n"), "plugins:\n  enabled: []\n");
});

test("what is not enabled needs no disabling", (t) => {
  for (const text of ["", "a: 1\n", "plugins:\n", "plugins:\n  enabled: [other]\n"]) {
    t.deepEqual(disablePlugin(text), { state: "already" });
  }
});

test("a plugin that somebody disabled is not enabled behind their back", (t) => {
  t.deepEqual(enablePlugin("plugins:\n  disabled: [headroom]\n"), { state: "disabled" });
  t.deepEqual(enablePlugin("plugins:\n  enabled: [headroom]\n  disabled:\n    - headroom\n"), { state: "disabled" });
});

const SECRET = "sk-0123456789abcdef";

for (const [name, text] of Object.entries({
  "no YAML": `key: "${SECRET}\nplugins: [`,
  "a tab as indentation": `a:\n\t- ${SECRET}\n`,
  "a key twice": `${SECRET}: 1\n${SECRET}: 2\n`,
  "two documents": `a: ${SECRET}\n---\nb: 1\n`,
  "a list as the whole": `- ${SECRET}\n`,
  "a text as the whole": SECRET,
  "a name instead of a list": `token: ${SECRET}\nplugins:\n  enabled: ${SECRET}\n`,
  "an alias instead of a list": `x: &x [${SECRET}]\nplugins:\n  enabled: *x\n`,
  "an explicit null": `token: ${SECRET}\nplugins:\n  enabled: ~\n`,
  "an end of the document": `token: ${SECRET}\n...\n`,
})) {
  test(`what cannot be changed safely is refused, and not quoted: ${name}`, (t) => {
    const edit = enablePlugin(text);
    t.is(edit.state, "problem");
    t.false(JSON.stringify(edit).includes(SECRET));
  });
}
