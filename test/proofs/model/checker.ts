import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

/** Values for the constants of a model. */
export type Constants = Readonly<Record<string, number | boolean>>;

/** A rule or an assumption that a model can do without. */
export interface Switch {
  readonly name: string;
  readonly meaning: string;
}

export interface Checked {
  /** What was broken; undefined if the search ended without. */
  readonly broken: string | undefined;
  /** The shortest way there, one rule a step, in words. */
  readonly steps: readonly string[];
  readonly states: number;
  readonly seconds: number;
}

export const MODELS = ['send', 'pace'] as const;
export type ModelName = (typeof MODELS)[number];

export async function readModel(name: ModelName): Promise<string> {
  return readFile(fileURLToPath(new URL(`${name}.m`, import.meta.url)), 'utf8');
}

/** @returns what `NAME: true; -- meaning` declares */
export function switchesOf(model: string): readonly Switch[] {
  const found = model.matchAll(/^ {2}(\w+): true;\s*-- (.+)$/gm);
  return [...found].map(([, name = '', meaning = '']) => ({ name, meaning })).filter(({ name }) => name !== 'SHARED');
}

/** @throws Error if the model has no such constant */
export function withConstants(model: string, constants: Constants): string {
  return Object.entries(constants).reduce((text, [name, value]) => {
    const declared = new RegExp(`\\b${name}: (true|false|\\d+);`);
    if (!declared.test(text)) throw new Error(`the model has no constant ${name}`);
    return text.replace(declared, `${name}: ${value};`);
  }, model);
}

/** @returns the model, in which rules of these names never fire */
export function withoutRules(model: string, names: RegExp): string {
  return model.replace(
    /(rule "(.+?)"(?: *--[^\n]*)?\s)(.*?)==>/gs,
    (rule, head: string, name: string, guard: string) => (names.test(name) ? `${head}false & (${guard}) ==>` : rule),
  );
}

/** Adds a counter of the rule that fired last, and one `cover` for each rule: a rule that never fires is an error. */
export function withCoveredRules(model: string, exempt: RegExp): string {
  const names = [...model.matchAll(/\brule "(.+?)"/g)].map(([, name = '']) => name);
  let fired = 0;
  const text = model
    .replace(/==>\s+begin/g, () => `==> begin fired := ${++fired};`)
    .replace(/^startstate (".+?") begin/m, `startstate $1 begin fired := 0;`)
    .replace(/^startstate/m, `var fired: 0..${names.length};\nstartstate`);
  if (fired !== names.length) throw new Error(`${names.length} rules, but ${fired} of them have "==> begin"`);
  const covers = names.map((name, index) => (exempt.test(name) ? '' : `cover "${name}" fired = ${index + 1};\n`));
  return text + covers.join('');
}

/**
 * Visits every state, in the order of their distance from the start, so that a counterexample is a shortest one.
 * @param optimization - the compiler's: most of a short search is its compilation. @defaultValue `-O2`
 * @throws Error if Rumur or the compiler fails
 */
export async function check(model: string, optimization?: string): Promise<Checked> {
  return parse(await search(model, optimization));
}

/** @returns how many states each `cover` of a model holds in, by its message */
export async function countCovers(model: string): Promise<ReadonlyMap<string, number>> {
  const output = await search(model, '-O1', '--symmetry-reduction', 'off');
  parse(output);
  const found = output.matchAll(/<cover_result message="(.*?)" count="(\d+)"/g);
  return new Map([...found].map(([, message = '', count]) => [decode(message), Number(count)]));
}

/** @returns what the program of a model prints. @param options - of Rumur */
export async function search(model: string, optimization = '-O2', ...options: readonly string[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'payout-queue-model-'));
  try {
    const file = (name: string) => join(dir, name);
    await writeFile(file('model.m'), model);
    const rumur = ['--threads', '1', '--deadlock-detection', 'off', '--output-format', 'machine-readable'];
    await run('rumur', [...rumur, ...options, '--output', file('model.c'), file('model.m')]);
    await run('gcc', ['-std=c11', optimization, '-mcx16', '-o', file('model'), file('model.c'), '-lpthread']);
    // It ends with 1 if it found something.
    const { stdout } = await run(file('model'), { maxBuffer: OUTPUT_MAX_BYTES }).catch((error: unknown) => {
      if ((error as { code?: unknown }).code === 1) return error as { stdout: string };
      throw error;
    });
    return stdout;
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** A step of a way to a state, with the values that variables have after it, by their names. */
export interface TracedStep {
  readonly rule: string;
  /** The rule's parameters, as numbers. */
  readonly of: Readonly<Record<string, number>>;
  readonly values: ReadonlyMap<string, string>;
}

/** @returns the ways that a search printed; the first step of each is its start */
export function tracesOf(output: string): readonly (readonly TracedStep[])[] {
  return [...output.matchAll(/<error[^>]*>(.*?)<\/error>/gs)].map(([, error = '']) => {
    let values = new Map<string, string>();
    return error
      .split('<transition>')
      .slice(1)
      .map((text) => {
        const [, rule = ''] = /^(?:Rule &quot;(.*?)&quot;|Startstate)/.exec(text) ?? [];
        const [head = '', state = ''] = text.split('<state>');
        const parameters = [...head.matchAll(/<parameter name="(\w+)">(\w+)</g)];
        values = new Map(values);
        for (const [, name = '', value = ''] of state.matchAll(/<state_component name="(.*?)" value="(.*?)"/g))
          values.set(name, value);
        return {
          rule: decode(rule),
          of: Object.fromEntries(parameters.map(([, name = '', value]) => [name, Number(value)])),
          values,
        };
      });
  });
}

function parse(output: string): Checked {
  const summary = /<summary states="(\d+)".* duration_seconds="(\d+)"/.exec(output);
  if (summary === null) throw new Error(`the search did not end: ${output.slice(-500)}`);
  const [, states, seconds] = summary;
  const [, error = ''] = /<error[^>]*>(.*?)<\/error>/s.exec(output) ?? [];
  const [, broken] = /<message>(.*?)<\/message>/s.exec(error) ?? [];
  const transitions = [...error.matchAll(/<transition>Rule &quot;(.*?)&quot;(.*?)<\/transition>/gs)];
  const steps = transitions.map(([, rule = '', parameters = '']) => toWords(rule, parameters));
  // Rumur counts a cover that holds nowhere as an error, and has no message for it.
  const [, idle] = /<cover_result message="(.*?)" count="0"/.exec(output) ?? [];
  const what = broken ?? (idle && `the rule "${idle}" never fires`);
  return { broken: what && decode(what), steps, states: Number(states), seconds: Number(seconds) };
}

/** `worker {w} begins` with `w` = `Worker_1` is `worker B begins`. */
function toWords(rule: string, parameters: string): string {
  let words = decode(rule);
  for (const [, name, value = ''] of parameters.matchAll(/<parameter name="(\w+)">(\w+)</g)) {
    const index = Number(/\d+$/.exec(value)?.[0]);
    const shown = value.startsWith('Worker_') ? 'AB'.charAt(index) : value.startsWith('Payout_') ? index + 1 : value;
    words = words.replaceAll(`{${name}}`, String(shown));
  }
  return words;
}

function decode(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&');
}
