/** `npm run forging-planted [-- NAME]`: plants mistakes, each of which must have an attack succeed or end otherwise. */
import { parseArgs } from 'node:util';
import {
  checkChanges,
  FLAG,
  plantEach,
  runCommand,
  runInCopy,
  slowJest,
  type SourceChange,
} from '../proofs/command-line.js';

/** `attack`: the name of the attack that must find it. */
const PLANTED: readonly Readonly<{ name: string; test: string; attack: string; plant: SourceChange }>[] = [
  {
    name: 'a rejection that does not count',
    test: 'test/forging/policy.slow.test.ts',
    attack: 'the rejection removed',
    plant: {
      file: 'control/worker/rejection-authority.ts',
      edits: [['const [first] = standing;', 'const [first] = [] as typeof standing;']],
    },
  },
  {
    name: 'a cancellation forgotten, though the journal has it',
    test: 'test/forging/payouts.slow.test.ts',
    attack: 'cancelled set back to queued',
    plant: {
      file: 'worker/sender/send-checks.ts',
      edits: [['if (!runtime.journal.hasEnded(payoutId)) return undefined;', 'if (payoutId !== "") return undefined;']],
    },
  },
  {
    name: 'a statement about an earlier attempt',
    test: 'test/forging/payouts.slow.test.ts',
    attack: 'the act of olga with {"attempt":2}',
    plant: {
      file: 'control/worker/signed-authority.ts',
      edits: [
        ["act: 'resend', payoutId, intent, attempt }", "act: 'resend', payoutId, intent, attempt: act.attempt }"],
      ],
    },
  },
];

const USAGE = `npm run forging-planted [-- NAME]   plants mistakes; an attack must find each
npm run forging-planted -- --check  only whether the mistakes still fit the sources
names: ${PLANTED.map(({ name }) => name).join('; ')}
`;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { check: FLAG, help: FLAG } });

async function main() {
  if (values.check) return checkChanges(PLANTED.map(({ plant }) => plant));
  const name = positionals.join(' ');
  const chosen = PLANTED.filter((planted) => name === '' || planted.name === name);
  if (chosen.length === 0) throw new Error(`There is no mistake named ${name}`);
  return plantEach(
    chosen,
    (planted) => planted.name,
    async ({ plant, test, attack }) => {
      const printed = await runInCopy(plant, slowJest(test));
      return printed
        .split('\n')
        .find((line) => line.includes('✕') && line.includes(attack))
        ?.trim();
    },
  );
}

await runCommand(main, USAGE, values.help);
