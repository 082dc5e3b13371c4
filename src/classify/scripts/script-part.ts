/** A text that a script's shell runs. */
export interface ScriptPart {
  text: string;
  /** Words given behind the command are put at its end. */
  takesWords: boolean;
}
