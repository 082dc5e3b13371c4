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
  `curl --user bob:${CANARY} x`,
  `curl -u bob:${CANARY} x`,
  `mysql -p${CANARY} db`,
  `sshpass -p ${CANARY} ssh host`,
  `curl 'https://e.org/?access_token=${CANARY}&a=b'`,
  `MYSQL_PWD=${CANARY} mysqldump x`,
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
    "mkdir -p a/b",
    "docker run -p 80:80 x",
    "pytest -p no:cacheprovider",
    "git log --author=me",
    "echo a=b",
    "x https://e.org/a:b",
  ]) {
    t.is(maskSecrets(text), text);
  }
});
