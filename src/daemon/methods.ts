/** The methods of the socket: what they are given, and who answers. See docs/daemon-protocol.md. */
import type { Bridge } from "./bridge.js";
import type { Caller, Dispatch } from "./connection.js";
import { Fault, FAULTS, PROTOCOL, readParams } from "./messages.js";
import { PARAMS } from "./params.js";
import { Profile } from "./profile.js";

export interface MethodsHost {
  bridge: Bridge;
  version: string;
  /** Names of variables that lightening looks at. */
  wantedVariables: readonly string[];
  stop: () => void;
}

const OWN_PREFIX = "HEADROOM_";

export const methods = ({ bridge, version, wantedVariables, stop }: MethodsHost): Dispatch => {
  /** One for each home and set of variables, so that settings are not read again for each call. */
  const profiles = new Map<string, Profile>();
  const profileOf = (home: string, given: Record<string, string>): Profile => {
    const own = Object.fromEntries(Object.entries(given).filter(([key]) => key.startsWith(OWN_PREFIX)));
    const key = JSON.stringify([home, own]);
    const profile = profiles.get(key) ?? new Profile(home, own);
    if (profiles.size > 32) profiles.clear();
    profiles.set(key, profile);
    return profile;
  };

  return async (method, params, caller) => {
    if (method === "hello") {
      const hello = readParams(PARAMS.hello, params);
      if (hello.protocol !== PROTOCOL) throw otherProtocol(hello.protocol, hello.version, version);
      caller.state.set("profile", profileOf(hello.hermes_home, hello.environment));
      return { protocol: PROTOCOL, version, pid: process.pid, environment: wantedVariables };
    }
    const profile = greeted(caller);
    switch (method) {
      case "prepare":
        return bridge.prepare(readParams(PARAMS.prepare, params), profile);
      case "admit":
        return bridge.admit(readParams(PARAMS.admit, params), profile, caller);
      case "end":
        return bridge.end(readParams(PARAMS.end, params));
      case "notes":
        return bridge.notes(readParams(PARAMS.notes, params).session_id, profile);
      case "session": {
        const { session_id, event } = readParams(PARAMS.session, params);
        if (event === "finalize") bridge.closeSession(session_id);
        return {};
      }
      case "stop":
        // The answer goes out first.
        setImmediate(stop);
        return {};
      default:
        throw new Fault(FAULTS.method, `no method ${JSON.stringify(method.slice(0, 50))}`);
    }
  };
};

const greeted = ({ state }: Caller): Profile => {
  const profile = state.get("profile");
  if (!(profile instanceof Profile)) throw new Fault(FAULTS.request, "hello comes first");
  return profile;
};

const otherProtocol = (protocol: number, clientVersion: string, ownVersion: string): Fault => {
  const isNewer = protocol > PROTOCOL;
  const fix = isNewer
    ? "The plugin is newer than the daemon. Update the package: npm install -g hermes-headroom@latest; then: hermes-headroom daemon stop"
    : "The daemon is newer than the plugin. Update the plugin: hermes-headroom hermes install; then restart the gateway.";
  return new Fault(
    FAULTS.protocol,
    `protocol ${protocol} of ${clientVersion} is not that of ${ownVersion}: ${PROTOCOL}`,
    {
      code: "E_PROTOCOL",
      fix,
    },
  );
};
