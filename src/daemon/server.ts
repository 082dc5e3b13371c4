/** The one socket of a user. */
import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { HeadroomError } from "../errors.js";
import type { Native } from "../native.js";
import { serveConnection, type Dispatch } from "./connection.js";

export const SOCKET_FILE = "daemon.sock";
const LOCK_FILE = "daemon.lock";
/** More clients than a machine of this kind has use for. */
const MOST_CONNECTIONS = 256;

export interface DaemonServer {
  path: string;
  /** How many clients are connected. */
  connections(): number;
  /** Listens anew where something has removed the socket, as cleaners of /tmp do; `false` when it cannot. */
  look(): Promise<boolean>;
  /** Stops listening, cuts every client off, and gives the role up. */
  close(): Promise<void>;
}

/** Listens in a runtime directory; `undefined` when another process does so already. */
export const listen = async (
  native: Native,
  runtimeDir: string,
  dispatch: Dispatch,
): Promise<DaemonServer | undefined> => {
  const role = native.RoleClaim.attempt(runtimeDir, LOCK_FILE);
  if (role === null) return undefined;
  const path = join(runtimeDir, SOCKET_FILE);
  const sockets = new Set<Socket>();
  const serve = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    if (sockets.size > MOST_CONNECTIONS || !isOwnUser(native, socket)) socket.destroy();
    else serveConnection(socket, dispatch);
  };
  let server = createServer({ allowHalfOpen: false }, serve);
  let inode: number | undefined;
  try {
    removeStale(path);
    await startListening(server, path);
    inode = inodeOf(path);
  } catch (error) {
    role.leave();
    throw error;
  }
  return {
    path,
    connections: () => sockets.size,
    look: async () => {
      if (inodeOf(path) === inode) return true;
      // Closed first: that removes whatever has the name. Who is connected stays so.
      server.close();
      server = createServer({ allowHalfOpen: false }, serve);
      try {
        removeStale(path);
        await startListening(server, path);
        inode = inodeOf(path);
        return true;
      } catch {
        return false;
      }
    },
    close: async () => {
      // Before the lock goes: the next one must not find its own new socket removed.
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
      role.leave();
    },
  };
};

const startListening = async (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    // In a directory that only this user can enter; the mode is for those who look.
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", () => {});
      try {
        chmodSync(path, 0o600);
      } catch {
        // The directory is what keeps others out.
      }
      resolve();
    });
  });

/** The socket of a daemon that was killed. Whoever has the lock knows that nobody listens there. */
const removeStale = (path: string): void => {
  try {
    if (!lstatSync(path).isSocket()) {
      throw new HeadroomError("E_DAEMON", `${path} is no socket`, { fix: "Remove it." });
    }
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
};

const inodeOf = (path: string): number | undefined => {
  try {
    return lstatSync(path).ino;
  } catch {
    return undefined;
  }
};

const isOwnUser = (native: Native, socket: Socket): boolean => {
  // oxlint-disable-next-line no-underscore-dangle -- Node tells the descriptor nowhere else
  const { fd } = (socket as unknown as { _handle?: { fd?: number } })._handle ?? {};
  if (fd === undefined || fd < 0) return false;
  try {
    return native.peerUid(fd) === process.getuid?.();
  } catch {
    return false;
  }
};
