/** What installing and uninstalling did, step by step. */

export interface Step {
  /** `kept` and `refused` want somebody to do something. */
  done: "written" | "updated" | "removed" | "enabled" | "disabled" | "same" | "kept" | "refused" | "left";
  /** The file. */
  subject: string;
  /** Why, or what to do. */
  detail: string | null;
}

export interface HermesResult {
  action: "install" | "uninstall";
  home: string;
  /** Where the plugin is. */
  directory: string;
  steps: Step[];
  /** Everything that was to be done is done. */
  ok: boolean;
  /** What to do next. */
  next: string;
}

export const step = (done: Step["done"], subject: string, detail: string | null = null): Step => ({
  done,
  subject,
  detail,
});

export const isFine = (steps: readonly Step[]): boolean =>
  !steps.some(({ done }) => done === "kept" || done === "refused");

export const isChanged = (steps: readonly Step[]): boolean =>
  steps.some(({ done }) => ["written", "updated", "removed", "enabled", "disabled"].includes(done));
