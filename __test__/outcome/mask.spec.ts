import test from "ava";
import { maskSecrets } from "../../src/outcome/mask.js";

const CANARY = "c4n4ryS3cr3tV4lu3";

const SECRETS = [
  `API_KEY=${CANARY} npm test`,
  `env GITHUB_TOKEN=${CANARY} x`,
  `x --password=${CANARY}`,
  `x --api-key ${CANARY}`,
  `x --token "${CANARY}"`,
  `curl -H 'Authorization: Bearer ${CANARY}' x`,
  `git clone https://me:${CANARY}@example.org/r.git`,
  `x sk-${CANARY}${CANARY}`,
  `DB_PASSWD='${CANARY}' y`,
  `NPM_AUTH=${CANARY} npm publish`,
  `sh -c 'SECRET=${CANARY} run'`,
];

for (const text of SECRETS) {
  test(`the secret is gone from ${text.replaceAll(CANARY, "…")}`, (t) => {
    const masked = maskSecrets(text);
    t.false(masked.includes(CANARY), masked);
    t.true(masked.includes("***"));
  });
}

test("ordinary text is left alone", (t) => {
  for (const text of [
    "npm test -- --watch",
    "make -j4 all",
    "git log --author=me",
    "echo a=b",
    "x https://e.org/a:b",
  ]) {
    t.is(maskSecrets(text), text);
  }
});
