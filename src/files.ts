/** What is wrong with a file of ours, in words for people: which one, why, and what to do. */

const ADVICE: Record<string, string> = {
  ENOSPC: "free some space there",
  EDQUOT: "free some space there",
  EROFS: "make it writable, or set HERMES_HOME to a directory that is",
  EACCES: "let your user have it",
  EPERM: "let your user have it",
  ELOOP: "it is a symbolic link: remove it",
  ENOTDIR: "something that is no directory is in its place: move it away",
  EISDIR: "a directory is in its place: move it away",
};

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? "";

/** `done` is «read» or «written», or what else could not be done. */
export const fileProblem = (path: string, done: string, error: unknown): string => {
  const advice = ADVICE[codeOf(error)];
  const why = error instanceof Error ? error.message : String(error);
  return `${path} cannot be ${done}: ${why}${advice === undefined ? "" : `; ${advice}`}`;
};
