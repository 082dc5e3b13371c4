/** Recipes of a Makefile or a justfile, as far as they are plain: what is not is no reason to call it light. */

interface Rule {
  /** Other rules that run before it. */
  needs: string[];
  lines: string[];
}

/** Deeper chains of rules are not followed. */
const MOST_RULES = 64;

/**
 * The shell lines that a target runs, its prerequisites' included; `undefined` when that cannot be told.
 * `target` undefined is the first rule.
 */
export const makeRecipe = (text: string, target: string | undefined): string | undefined => {
  if (/^\s*-?(?:include|sinclude|define|ifdef|ifndef|ifeq|ifneq|load)\b|^\.(?:ONESHELL|SHELLFLAGS)/m.test(text))
    return undefined;
  return collect(readMake(text), target, (line) => line.replace(/^[@+-]+/, ""));
};

export const justRecipe = (text: string, target: string | undefined): string | undefined =>
  /^\s*(?:import|mod|set\s+shell)\b/m.test(text)
    ? undefined
    : collect(readJust(text), target, (line) => line.replace(/^[@-]+/, ""));

const collect = (
  rules: Map<string, Rule>,
  target: string | undefined,
  plain: (line: string) => string,
): string | undefined => {
  const first = target ?? [...rules.keys()].find((name) => !name.startsWith("."));
  if (first === undefined) return undefined;
  const lines: string[] = [];
  const seen = new Set<string>();
  const visit = (name: string): boolean => {
    if (seen.has(name)) return true;
    if (seen.size > MOST_RULES) return false;
    seen.add(name);
    const rule = rules.get(name);
    // A file that some implicit rule may build.
    if (rule === undefined) return false;
    if (!rule.needs.every(visit)) return false;
    lines.push(...rule.lines.map(plain));
    return true;
  };
  return visit(first) ? lines.join("\n") : undefined;
};

const joined = (text: string): string[] => text.replaceAll(/\\\r?\n[ \t]*/g, " ").split(/\r?\n/);

const readMake = (text: string): Map<string, Rule> => {
  const rules = new Map<string, Rule>();
  let current: Rule[] = [];
  for (const line of joined(text)) {
    if (line.startsWith("\t")) {
      // `$$` is a dollar for the shell; anything else is make's own expansion.
      const body = line.trim().replaceAll("$$", "\u0001");
      const shell = body.replaceAll(/\$[({][^)}]*[)}]|\$./g, '"$unknown_to_headroom"').replaceAll("\u0001", "$");
      for (const rule of current) rule.lines.push(shell);
      continue;
    }
    const match = /^([^\s:=#][^:=#]*):(?![:=])([^=]*)$/.exec(line);
    if (match === null) {
      if (line.trim() !== "" && !line.startsWith("#")) current = [];
      continue;
    }
    const [needsText = "", inline] = (match[2] ?? "").split(";");
    const needs = needsText
      .replace("|", " ")
      .trim()
      .split(/\s+/)
      .filter((name) => name !== "");
    current = (match[1] ?? "")
      .trim()
      .split(/\s+/)
      .map((name) => {
        const rule = rules.get(name) ?? { needs: [], lines: [] };
        rule.needs.push(...needs);
        if (inline !== undefined) rule.lines.push(inline.trim());
        rules.set(name, rule);
        return rule;
      });
  }
  rules.delete(".PHONY");
  return rules;
};

const readJust = (text: string): Map<string, Rule> => {
  const rules = new Map<string, Rule>();
  let current: Rule | undefined;
  for (const line of joined(text)) {
    if (/^[ \t]/.test(line)) {
      current?.lines.push(line.trim().replaceAll(/\{\{[^}]*\}\}/g, '"$unknown_to_headroom"'));
      continue;
    }
    const match = /^@?([A-Za-z_][\w-]*)([^:]*):(?!=)(.*)$/.exec(line);
    if (match === null) {
      if (line.trim() !== "" && !line.startsWith("#") && !line.startsWith("[")) current = undefined;
      continue;
    }
    const needs = (match[3] ?? "")
      .replace(/#.*$/, "")
      .replaceAll("&&", " ")
      .trim()
      .split(/\s+/)
      .filter((name) => /^[A-Za-z_][\w-]*$/.test(name));
    current = { needs, lines: [] };
    rules.set(match[1] ?? "", current);
  }
  return rules;
};
