import { search, type TracedStep, tracesOf, withConstants } from './checker.js';

/** A way through the model that was chosen at random. */
export interface Walk {
  readonly name: string;
  readonly steps: readonly TracedStep[];
}

/** What walks are drawn from: with no Redis that comes back older, since a walk would mostly be about that. */
export const WALKED = { WORKERS: 2, PAYOUTS: 2, SENDS: 4, KILLS: 2, FALLS: 0, LOOKS: 0, SHARED: true } as const;

/** Steps that are chosen less often than others: else a walk would change its sender and send nothing. */
const RARER = /takes the lease|gives the lease back|is killed|puts its payout back unwritten|is lost|gets no answer/;
const MORE_OFTEN = 8;

/** Steps that nothing leads to within these bounds: to choose them would only take time. */
const NEVER =
  /janitor|gateway finds|gateway does not find|copy of Redis|comes back older|objects|adopts|'s host|another program|stopped before|goes on, and/;

/** Of a linear congruential generator: a product stays below 2^48. */
const MODULUS = 2_147_483_647;
const FACTOR = 48_271;
const OTHERWISE = 'another step is chosen';

/**
 * Each start of the program has a random number, which names one step; if the model forbids that step, the next number
 * names another. So a walk never branches, and Rumur prints it as the only way to its last state.
 */
export async function drawWalks(model: string, from: number, count: number, length: number): Promise<readonly Walk[]> {
  const program = withChoice(withConstants(model, WALKED), from, count, length);
  const output = await search(program, '-O1', '--max-errors', String(count), '--counterexample-trace', 'diff');
  const walks = tracesOf(output).map(([start, ...steps]) => ({
    number: from + Number(start?.values.get('walk')),
    steps: steps.filter(({ rule }) => rule !== OTHERWISE),
  }));
  // What Rumur finds besides is a fault of this program.
  if (walks.length !== count || walks.some(({ steps }) => steps.length !== length))
    throw new Error(`Rumur drew ${walks.length} walks, not ${count} of ${length} steps`);
  return walks
    .sort((one, other) => one.number - other.number)
    .map(({ number, steps }) => ({ name: `walk ${number}`, steps }));
}

const SIZES: Readonly<Record<string, number>> = {
  ...{ Worker: WALKED.WORKERS, Payout: WALKED.PAYOUTS, Token: WALKED.SENDS + 1 },
};

function withChoice(model: string, from: number, count: number, length: number): string {
  const { text, choices } = numberRules(model.replace(/^(invariant|liveness) [^]*/m, ''));
  return text
    .replace(
      /rule<(.+?)> "(.+?)"(?: *--[^\n]*)?\s(.*?)==>\s+begin/gs,
      (_, number: string, name: string, guard: string) => `rule "${OTHERWISE}"
    chosen(${number}) & !(${guard.replace(/--[^\n]*/g, '')}) ==> begin choose(); end;
  rule "${name}"
    chosen(${number}) & (${guard}) ==> begin choose(); place := place + 1;`,
    )
    .replace(/scalarset\((\w+)\)/g, '0..$1 - 1')
    .replace(
      /^startstate ".+?" begin/m,
      `${declare(choices, count, length)}\nruleset run: 0..${count - 1} do startstate begin`,
    )
    .replace(
      /^(.*do undefine of_.*)\nend;/m,
      `$1\n  walk := run; place := 0; random := (run + ${from}) * 7919 + 1; choose(); choose(); choose();\nend; end;`,
    )
    .concat(`\ninvariant "a walk is over" place < ${length};`);
}

/** Gives each rule, for each value of the parameters around it, numbers of its own: `rule<first, how many> "name"`. */
function numberRules(model: string): Readonly<{ text: string; choices: number }> {
  const around: Readonly<{ end: string; parameters: readonly (readonly [name: string, size: number])[] }>[] = [];
  let choices = 0;
  const lines = model.split('\n').map((line) => {
    const [, indent = '', declared] = /^( *)ruleset (.*) do$/.exec(line) ?? [];
    if (declared !== undefined) {
      const parameters = declared.split('; ').map((each) => each.split(': '));
      const sizes = parameters.map(([name = '', type = '']) => [name, SIZES[type] ?? 0] as const);
      around.push({ end: `${indent}end;`, parameters: sizes });
    } else if (line === around.at(-1)?.end) around.pop();
    if (!/^ *rule "/.test(line)) return line;
    const weight = NEVER.test(line) ? 0 : RARER.test(line) ? 1 : MORE_OFTEN;
    let [first, factor] = [String(choices), weight];
    for (const [name, size] of around.flatMap(({ parameters }) => parameters)) {
      first += ` + ${factor} * ${name}`;
      factor *= size;
    }
    choices += factor;
    return line.replace('rule "', `rule<${first}, ${weight}> "`);
  });
  return { text: lines.join('\n'), choices };
}

function declare(choices: number, count: number, length: number) {
  return `var walk: 0..${count - 1}; place: 0..${length}; random: 0..${MODULUS - 1};
procedure choose(); begin random := random * ${FACTOR} % ${MODULUS}; end;
function chosen(first: 0..${choices}; weight: 0..${MORE_OFTEN}): boolean; begin
  return place < ${length} & random / 64 % ${choices} >= first & random / 64 % ${choices} < first + weight; end;`;
}
