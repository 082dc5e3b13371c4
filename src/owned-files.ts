/**
 * Files that belong to us, in places that belong to the user: written whole or not at all, never through a
 * symbolic link, never over what somebody else owns. What cannot be done is a text, not an exception.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  type Stats,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, fileProblem } from "./files.js";

/** What stands at a path; `problem` where it may not be touched. */
export type Found = { state: "absent" } | { state: "file"; data: Buffer } | { state: "problem"; problem: string };

/** Larger ones are none of ours. */
const LARGEST_BYTES = 4_194_304;

const ownUid = (): number => process.getuid?.() ?? 0;

/** Reads a regular file of ours without following a link. */
export const readOwned = (path: string): Found => {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const problem = notOurs(path, fstatSync(fd));
    return problem === undefined ? { state: "file", data: readFileSync(fd) } : { state: "problem", problem };
  } catch (error) {
    // Whoever is about to write there is told by the directories what stands in the way.
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return { state: "absent" };
    return { state: "problem", problem: fileProblem(path, "read", error) };
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
};

const notOurs = (path: string, stat: Stats): string | undefined => {
  if (!stat.isFile()) return `${path} is no regular file: move it away`;
  if (stat.uid !== ownUid()) return `${path} belongs to user ${stat.uid}: run this as that user`;
  if (stat.size > LARGEST_BYTES) return `${path} is larger than 4 MB: move it away`;
  return undefined;
};

/**
 * Makes the directories `parts` below `base`, which must be there. Each one on the way must be a directory of
 * ours (or root's), not a link; `base` itself may be reached by links, it is the user's own choice.
 */
export const makeOwnDirectories = (base: string, parts: readonly string[], mode: number): string | undefined => {
  let path = base;
  for (const part of parts) {
    path = join(path, part);
    const problem = makeOne(path, mode);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

const makeOne = (path: string, mode: number): string | undefined => {
  try {
    mkdirSync(path, { mode });
    return undefined;
  } catch (error) {
    if (codeOf(error) !== "EEXIST") return fileProblem(path, "made", error);
  }
  return directoryProblem(path);
};

/** What is wrong with a directory that files of ours are to go into. */
export const directoryProblem = (path: string): string | undefined => {
  try {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) return `${path} is a symbolic link: remove it`;
    if (!stat.isDirectory()) return `${path} is no directory: move it away`;
    if (stat.uid !== ownUid() && stat.uid !== 0) return `${path} belongs to user ${stat.uid}: run this as that user`;
    return undefined;
  } catch (error) {
    return fileProblem(path, "used", error);
  }
};

export interface Written {
  mode: number;
  /** Whom it shall belong to, where that is not us. */
  owner?: { uid: number; gid: number };
}

/** Puts a file in its place in one step: after a crash there is the old one or the new one, whole. */
export const replaceFile = (path: string, data: string | Uint8Array, { mode, owner }: Written): string | undefined => {
  const before = readOwned(path);
  if (before.state === "problem") return before.problem;
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  let fd: number | undefined;
  let isMade = false;
  try {
    fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    isMade = true;
    writeFileSync(fd, data);
    if (owner !== undefined) {
      const stat = fstatSync(fd);
      if (stat.uid !== owner.uid || stat.gid !== owner.gid) fchownSync(fd, owner.uid, owner.gid);
    }
    // After the owner: a change of owner drops bits, and the umask has its say at creation.
    fchmodSync(fd, mode);
    fsyncSync(fd);
    closeSync(fd);
    fd = undefined;
    renameSync(temporary, path);
    return undefined;
  } catch (error) {
    if (isMade) rmSync(temporary, { force: true });
    return fileProblem(path, "written", error);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
};

/** Removes a file; that it is gone already is fine. */
export const removeFile = (path: string): string | undefined => {
  try {
    rmSync(path, { force: true });
    return undefined;
  } catch (error) {
    return fileProblem(path, "removed", error);
  }
};

/** Removes a directory if nothing is in it. */
export const removeEmptyDirectory = (path: string): void => {
  try {
    rmdirSync(path);
  } catch {
    // Something is in it: it stays.
  }
};
