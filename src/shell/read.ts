/**
 * Reads a text and tells every program that it would run: through lists, pipelines, functions, loops,
 * substitutions, wrappers and inner shell texts. Nothing is run, no file is read.
 */
import {
  forEachChild,
  type Assignment as AssignmentNode,
  type Command,
  type Function as FunctionNode,
  type Redirection,
  type Script,
  type SyntaxNode,
} from "unbash";
import { parseText } from "./parse.js";
import { MOST_WRAPPERS, peel, type Peeled } from "./peel.js";
import type { Assignment, Run, SimpleCommand, VariablePlace } from "./simple-command.js";
import { literalOutput, shellInput } from "./shell-input.js";
import { applyBuiltin, fork, knownIn, type State } from "./state.js";
import { expandWord, isKnown, LIST, UNKNOWN, wordValue, type Known, type Place, type ShellWord } from "./word.js";

export interface ReadText {
  /** Programs in the order in which they would run, as far as that can be told. */
  runs: Run[];
  /** Simple commands of the outer text, in the order in which they are met. */
  simples: SimpleCommand[];
  /** Why nothing may be edited. */
  problem: string | undefined;
}

/** `bash -c "bash -c '…'"` deeper than that is nobody's command. */
const DEEPEST_TEXT = 8;
/** A function that calls a function that calls … */
const DEEPEST_CALL = 32;
/** A bound on the work for one text. */
const MOST_COMMANDS = 500;
/** Of a longer command only the first words are read, and it is not edited. */
const MOST_WORDS = 2000;
/** A loop over known words is read once for each of the first few. */
const MOST_LOOP_VALUES = 8;

/** Where what is being read stands. */
interface Context {
  state: State;
  place: (pos: number, end: number) => Place;
  editable: boolean;
  /** Where a variable for the commands of an inner text can be put. */
  inherited: VariablePlace | undefined;
  depth: number;
  functions: Map<string, FunctionNode[]>;
  /** Functions that are being read, against recursion. */
  active: ReadonlySet<string>;
}

const outerPlace = (pos: number, end: number): Place => ({ pos, end, isOuter: true });

/** Never throws on any text. `cwd` is where the text would run, if that is known. */
export const readText = (text: string, cwd?: string): ReadText => {
  const { script, problem } = parseText(text);
  const reader = new Reader();
  if (script !== undefined) {
    const state: State = { cwd, variables: new Map(), exported: new Map(), fixed: new Set() };
    reader.readScript(script, {
      state,
      place: outerPlace,
      editable: problem === undefined,
      inherited: undefined,
      depth: 0,
      functions: functionsOf(script),
      active: new Set(),
    });
  }
  return { runs: reader.runs, simples: reader.simples, problem: problem ?? reader.problem };
};

/** Functions are known before they are called, wherever they are defined. */
const functionsOf = (script: Script): Map<string, FunctionNode[]> => {
  const functions = new Map<string, FunctionNode[]>();
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Word") return;
    if (node.type === "Function") {
      const name = node.name.value;
      functions.set(name, [...(functions.get(name) ?? []), node]);
    }
    forEachChild(node, visit);
  };
  visit(script);
  return functions;
};

class Reader {
  readonly runs: Run[] = [];
  readonly simples: SimpleCommand[] = [];
  problem: string | undefined;
  #commands = 0;
  /** Where the simple commands of the outer text begin: a function's body is read at each call. */
  readonly #met = new Set<number>();

  readScript(script: Script, context: Context): void {
    for (const statement of script.commands) this.#node(statement, context);
  }

  #node(node: SyntaxNode, context: Context): void {
    if (this.#commands > MOST_COMMANDS) {
      this.problem ??= `more than ${MOST_COMMANDS} commands: the rest was not read`;
      return;
    }
    switch (node.type) {
      case "Statement":
        this.#node(node.command, node.background ? { ...context, state: fork(context.state) } : context);
        return;
      case "Pipeline":
        this.#pipeline(node.commands, context);
        return;
      case "Subshell":
        this.#node(node.body, { ...context, state: fork(context.state) });
        return;
      case "Coproc":
        // What stands before the command could be taken for the coprocess's name.
        this.#node(node.body, { ...context, state: fork(context.state), editable: false });
        return;
      case "Function":
        return;
      case "For":
      case "Select":
        this.#loop(node, context);
        return;
      case "Redirected":
        for (const redirect of node.redirects) this.#redirect(redirect, context);
        this.#node(node.command, context);
        return;
      case "Command":
        this.#command(node, context, undefined);
        return;
      case "Word":
        this.#substitutions(node, context);
        return;
      case "CommandExpansion":
      case "ProcessSubstitution":
      case "ArithmeticCommandExpansion":
        this.#substitutions(node, context);
        return;
      default:
        forEachChild(node, (child) => this.#node(child, context));
    }
  }

  /** Each part of a pipeline is a subshell; what a literal prints may feed a shell. */
  #pipeline(commands: readonly SyntaxNode[], context: Context): void {
    let fed: string | undefined;
    for (const command of commands) {
      const own = commands.length > 1 ? { ...context, state: fork(context.state) } : context;
      if (command.type === "Command") {
        this.#command(command, own, fed);
        fed = literalOutput(command, (word) => wordValue(word, knownIn(own.state)), fed);
      } else {
        this.#node(command, own);
        fed = undefined;
      }
    }
  }

  #loop(node: Extract<SyntaxNode, { type: "For" | "Select" }>, context: Context): void {
    const words = node.wordlist ?? [];
    for (const word of words) this.#substitutions(word, context);
    const { variables } = context.state;
    const known = knownIn(context.state);
    const values = words.flatMap((word) => expandWord(word, known, context.place).map(({ value }) => value));
    const name = node.name.value;
    const [only] = values;
    variables.set(name, values.length === 1 && only !== undefined && isLiteral(only) ? only : undefined);
    this.#node(node.body, context);
    if (values.length < 2) return;
    for (const value of values.slice(0, MOST_LOOP_VALUES).filter(isLiteral)) {
      const state = fork(context.state);
      state.variables.set(name, value);
      this.#node(node.body, { ...context, state, editable: false });
    }
  }

  #command(node: Command, context: Context, fed: string | undefined): void {
    this.#commands += 1;
    if (this.#commands > MOST_COMMANDS) {
      this.problem ??= `more than ${MOST_COMMANDS} commands: the rest was not read`;
      return;
    }
    const { state, place } = context;
    const known = knownIn(state);
    forEachChild(node, (child) => {
      if (child.type === "Word" && child.parts === undefined) return;
      if (child.type === "Word") this.#substitutions(child, context);
      else if (child.type === "Assignment") forEachChild(child, (part) => this.#substitutionsIn(part, context));
      else this.#redirect(child as Redirection, context);
    });
    const assignments = node.prefix
      .filter((part) => part.type === "Assignment")
      .map((part) => this.#assignment(part, context));
    const words: ShellWord[] =
      node.name === undefined ? [] : expandWord(node.name, { ...known, takesDefaults: true }, place);
    const { args } = node;
    for (const argument of args.length > MOST_WORDS ? args.slice(0, MOST_WORDS) : args) {
      if (argument.type === "Word") words.push(...expandWord(argument, known, place));
      else words.push(assignmentWord(argument, context));
    }
    const span = place(node.pos, node.end);
    const simple: SimpleCommand = {
      assignments,
      words,
      pos: span.pos,
      end: span.end,
      editable: context.editable && span.isOuter && args.length <= MOST_WORDS,
      inherited: context.inherited,
    };
    if (span.isOuter && !this.#met.has(span.pos)) {
      this.#met.add(span.pos);
      this.simples.push(simple);
    }
    if (words.length === 0) {
      for (const [name, list] of listsOf(node, known, place)) state.variables.set(`${name}[@]`, list);
      for (const { name, value, appends } of assignments) {
        state.variables.set(name, appends || !isKnown(value.value) ? undefined : value.value);
        if (state.exported.has(name)) state.exported.set(name, state.variables.get(name));
      }
      return;
    }
    if (applyBuiltin(words, state)) return;
    const input = shellInput(node.redirects, (word) => wordValue(word, known)) ?? fed;
    const { cwd, exported, fixed } = state;
    for (const peeled of peel(simple, { cwd, exported: new Map(exported), fixed, input })) {
      // `command cd web`, `builtin export A=1`
      const isBuiltin = !("text" in peeled) && peeled.wrappers.length > 0 && peeled.wrappers.every(isBuiltinPrefix);
      if (isBuiltin && applyBuiltin(peeled.words, state)) continue;
      this.#peeled(peeled, simple, context);
    }
  }

  #peeled(peeled: Peeled, simple: SimpleCommand, context: Context): void {
    if ("text" in peeled) {
      this.#innerText(peeled, simple, context);
      return;
    }
    const name = peeled.words[0]?.value ?? "";
    // A wrapper runs a program of that name, not the function.
    const bodies = peeled.wrappers.length === 0 ? context.functions.get(name) : undefined;
    if (bodies !== undefined && !context.active.has(name)) {
      if (context.active.size < DEEPEST_CALL) this.#call(name, bodies, peeled.words.slice(1), context);
      else this.problem ??= `more than ${DEEPEST_CALL} functions that call each other: the rest was not read`;
      return;
    }
    if (peeled.wrappers.length > MOST_WRAPPERS)
      this.problem ??= `more than ${MOST_WRAPPERS} commands that run another one: the rest was not read`;
    this.runs.push(peeled);
  }

  /** A function gets its words as `$1` and `$@`. */
  #call(name: string, bodies: readonly FunctionNode[], words: readonly ShellWord[], context: Context): void {
    const { variables } = context.state;
    const outer = new Map(variables);
    const values = words.map(({ value }) => value);
    variables.set("@", values.join(LIST));
    for (let index = 1; index <= 9; index += 1) variables.set(String(index), values[index - 1] ?? "");
    const active = new Set([...context.active, name]);
    for (const { body } of bodies) this.#node(body, { ...context, active });
    for (const key of ["@", "1", "2", "3", "4", "5", "6", "7", "8", "9"]) {
      if (outer.has(key)) variables.set(key, outer.get(key));
      else variables.delete(key);
    }
  }

  /** A text that an inner shell runs. Its commands stand for the command that holds it. */
  #innerText({ text, run }: Extract<Peeled, { text: string }>, simple: SimpleCommand, context: Context): void {
    if (context.depth >= DEEPEST_TEXT) {
      this.problem ??= `shell texts in shell texts, more than ${DEEPEST_TEXT} deep: the rest was not read`;
      return;
    }
    const { script, problem } = parseText(text);
    if (script === undefined) {
      this.problem ??= problem;
      return;
    }
    const inner = new Reader();
    inner.#commands = this.#commands;
    inner.readScript(script, {
      state: {
        cwd: run.cwd,
        variables: new Map(context.state.exported),
        exported: new Map(context.state.exported),
        fixed: context.state.fixed,
      },
      place: () => ({ pos: run.words[0]?.pos ?? simple.pos, end: run.words.at(-1)?.end ?? simple.end, isOuter: false }),
      editable: false,
      inherited: run.variables,
      depth: context.depth + 1,
      functions: new Map([...context.functions, ...functionsOf(script)]),
      active: context.active,
    });
    this.#commands = inner.#commands;
    this.problem ??= inner.problem;
    for (const found of inner.runs) {
      this.runs.push({
        ...found,
        wrappers: [...run.wrappers, ...found.wrappers],
        simple,
        at: -1,
        editable: false,
        assigned: [...run.assigned, ...found.assigned],
        elsewhere: run.elsewhere ?? found.elsewhere,
      });
    }
  }

  #assignment(node: AssignmentNode, { state, place }: Context): Assignment {
    const { value } = node;
    const span = place(value.pos, value.end);
    const text = value.type === "Word" ? wordValue(value, knownIn(state)) : UNKNOWN;
    return {
      name: node.name,
      appends: node.append === true,
      value: {
        value: text,
        source: value.type === "Word" ? value.text : UNKNOWN,
        pos: span.pos,
        end: span.end,
        exact: span.isOuter && value.type === "Word",
      },
    };
  }

  #redirect(redirect: Redirection, context: Context): void {
    if (redirect.type === "HereDoc") {
      // A here-document is never edited, not even the substitutions in it.
      for (const part of redirect.body.parts ?? []) this.#substitutionsIn(part, { ...context, editable: false });
    } else if (redirect.target !== undefined) {
      this.#substitutions(redirect.target, context);
    }
  }

  #substitutionsIn(node: SyntaxNode, context: Context): void {
    if (node.type === "Word") this.#substitutions(node, context);
    else if (hasScript(node)) this.#substitution(node, context);
    else forEachChild(node, (child) => this.#substitutionsIn(child, context));
  }

  /** What a word runs while it is expanded. */
  #substitutions(node: SyntaxNode, context: Context): void {
    if (node.type === "Word" && node.parts === undefined) return;
    if (hasScript(node)) this.#substitution(node, context);
    else forEachChild(node, (child) => this.#substitutionsIn(child, context));
  }

  #substitution(node: Substitution, context: Context): void {
    const { script } = node;
    if (script === undefined) return;
    const isBacktick = node.text.startsWith("`");
    const span = context.place(node.pos, node.end);
    const isDecoded = script.source !== undefined;
    this.readScript(script, {
      ...context,
      state: fork(context.state),
      editable: context.editable && !isBacktick,
      place: isDecoded ? () => ({ ...span, isOuter: false }) : context.place,
    });
  }
}

type Substitution = Extract<
  SyntaxNode,
  { type: "CommandExpansion" | "ProcessSubstitution" | "ArithmeticCommandExpansion" }
>;

const hasScript = (node: SyntaxNode): node is Substitution =>
  node.type === "CommandExpansion" || node.type === "ProcessSubstitution" || node.type === "ArithmeticCommandExpansion";

const isBuiltinPrefix = (wrapper: string): boolean => wrapper === "command" || wrapper === "builtin";

const isLiteral = (value: string): boolean => isKnown(value) && !/[*?[\]]/.test(value);

/** Arrays that a command sets: `cmd=(npm ci)`. */
const listsOf = (node: Command, known: Known, place: Context["place"]): [string, string | undefined][] =>
  node.prefix.flatMap((part): [string, string | undefined][] => {
    if (part.type !== "Assignment" || part.value.type !== "ArrayValue") return [];
    const items = part.value.elements.flatMap((word) => expandWord(word, known, place).map(({ value }) => value));
    const before = part.append ? known.variables.get(`${part.name}[@]`) : "";
    if (before === undefined || items.some((item) => item.startsWith("["))) return [[part.name, undefined]];
    return [[part.name, [...(before === "" ? [] : [before]), ...items].join(LIST)]];
  });

const assignmentWord = (node: AssignmentNode, { state, place }: Context): ShellWord => {
  const span = place(node.pos, node.end);
  const value = node.value.type === "Word" ? wordValue(node.value, knownIn(state)) : UNKNOWN;
  return {
    value: `${node.name}${node.append ? "+" : ""}=${value}`,
    source: node.text,
    pos: span.pos,
    end: span.end,
    exact: span.isOuter,
  };
};
