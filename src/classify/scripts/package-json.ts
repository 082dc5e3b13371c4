/** Scripts of a package.json. */
import type { ProjectFiles } from "./files.js";

/**
 * The text of a script with the ones that run before and after it; `undefined` when there is none of that
 * name or the file cannot be read.
 */
export const packageScript = (files: ProjectFiles, directory: string, name: string): string | undefined => {
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
  return [scriptOf(`pre${name}`), own, scriptOf(`post${name}`)]
    .filter((part) => part !== undefined && part.trim() !== "")
    .join("\n");
};
