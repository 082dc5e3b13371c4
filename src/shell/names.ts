/** The name under which a program is known, whatever way it is written. */
import { isKnown, UNKNOWN } from "./word.js";

/** The last part of a path. `$HOME/bin/pytest` is `pytest`, because its end is known. */
export const commandName = (value: string): string => {
  const name = value.slice(value.lastIndexOf("/") + 1);
  return name === "" ? value : name;
};

/** Whether the name itself depends on something that is not known. */
export const isUnknownName = (value: string): boolean => !isKnown(commandName(value)) || value === UNKNOWN;

/** `jest@29` and `@playwright/test@latest` without the version. */
export const packageName = (value: string): string => {
  const at = value.indexOf("@", 1);
  const name = at > 0 ? value.slice(0, at) : value;
  return name.startsWith("npm:") ? name.slice(4) : name;
};
