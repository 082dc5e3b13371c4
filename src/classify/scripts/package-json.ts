/** Scripts of a package.json. */
import type { ProjectFiles } from "./files.js";
import type { ScriptPart } from "./script-part.js";

/**
 * The text of a script and of the ones that run before and after it, in that order; `undefined` when there is
 * none of that name or the file cannot be read.
 */
export const packageScript = (
  files: ProjectFiles,
  directory: string,
  name: string,
  isWordless = false,
): ScriptPart[] | undefined => {
  const text = files.read(directory, "package.json");
  if (text === undefined) return undefined;
  let scripts: unknown;
  try {
    scripts = (JSON.parse(text) as { scripts?: unknown } | null)?.scripts;
  } catch {
    return undefined;
  }
  if (typeof scripts !== "object" || scripts === null) return undefined;
  const scriptOf = (key: string): string | undefined => {
    const value = Object.hasOwn(scripts, key) ? (scripts as Record<string, unknown>)[key] : undefined;
    return typeof value === "string" ? value : undefined;
  };
  const own = scriptOf(name);
  if (own === undefined) return undefined;
  // Each one has a shell of its own; words given behind the command reach the one in the middle alone.
  return [
    { text: scriptOf(`pre${name}`) ?? "", takesWords: false },
    { text: own, takesWords: !isWordless },
    { text: scriptOf(`post${name}`) ?? "", takesWords: false },
  ].filter((part) => part.text.trim() !== "");
};
