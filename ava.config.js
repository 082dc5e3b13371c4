/** `npm test` runs all but the tests with a real Hermes, which `npm run test:hermes` runs. */
const isReal = process.env.HEADROOM_REAL_HERMES === "1";

export default {
  extensions: { ts: "module" },
  files: isReal ? ["__test__/hermes-real/*.spec.ts"] : ["__test__/**/*.spec.ts", "!__test__/hermes-real/**"],
  nodeArguments: ["--import", "@oxc-node/core/register"],
  workerThreads: false,
  ...(isReal
    ? { timeout: "5m", concurrency: 1, environmentVariables: { HEADROOM_REAL_HERMES: "1" } }
    : { timeout: "2m" }),
};
