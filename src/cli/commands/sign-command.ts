import { setImmediate } from 'node:timers/promises';
import type { Command } from 'commander';
import { systemClock } from '../../clock.js';
import { readConfig } from '../../config.js';
import { InvalidInputError } from '../../errors.js';
import { formatCount } from '../../format.js';
import type { NewPayout } from '../../ledger/payout.js';
import { CHUNK_SIZE } from '../../producer/payout-intake.js';
import { PayoutSigner } from '../../control/intents/payout-signer.js';
import { readAudience } from '../context/audience.js';
import type { CliContext } from '../context/cli-context.js';
import { requireSigningKey } from '../context/signing-key.js';
import { checkRows } from '../import/check-rows.js';
import { openSource, STDIN } from '../import/open-source.js';
import { PayoutSpool } from '../import/payout-spool.js';
import { RowMessages } from '../import/row-messages.js';

const HELP_AFTER = `
Reads payouts as \`payouts import\` does, and writes them as JSON lines with key, signature, issuedAt, expiresAt and audience, for
\`payouts import\` or PayoutProducer.enqueue on another host. Needs GATEWAY_PLATFORM_ID, PAYOUT_SIGNING_KEY_FILE,
PAYOUT_SIGNING_KEY_NAME, and PAYOUT_AUDIENCE or GATEWAY_BASE_URL, which say for which environment; no Redis. A signature holds for 7 days; lines that are signed already are signed again.

Every row is checked before the first one is written. If any row has an error, nothing is written (exit code 2).

Examples:
  payouts sign < payouts.jsonl > signed.jsonl
  payouts sign salaries.csv | ssh queue-host payouts import - --yes
`;

/** Defines `payouts sign`. */
export function defineSignCommand(command: Command, context: CliContext): void {
  command
    .argument('[file]', 'the file', STDIN)
    .addHelpText('after', HELP_AFTER)
    .action(async (path: string) => {
      const { environment } = context;
      const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
      const signer = new PayoutSigner({
        ...{ key: requireSigningKey(environment), platformId, audience: readAudience(environment), clock: systemClock },
      });
      const spool = await PayoutSpool.create();
      try {
        await checkSource(path, signer, spool, context);
        await writeSigned(spool, signer, context);
      } finally {
        await spool.close();
      }
    });
}

/** @throws InvalidInputError when any row has an error, which were written; StoppedError */
async function checkSource(path: string, signer: PayoutSigner, spool: PayoutSpool, context: CliContext): Promise<void> {
  const signal = context.stopSignal();
  const source = await openSource(path, signal);
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const { rows, payouts, invalid } = await checkRows(source, {
    batch: undefined,
    spool,
    checksums: readConfig(['PAYOUT_CHECK_ADDRESSES'], context.environment).PAYOUT_CHECK_ADDRESSES,
    check: (payout) => {
      signer.check(withoutSignature(payout));
    },
    onProblem: (line, { field, message }) => {
      messages.add(`line ${line}: ${field}: ${message}`);
    },
    onProgress: () => undefined,
    signal,
  });
  messages.end();
  if (invalid > 0) {
    const message = `${invalid} of ${formatCount(rows, 'row')} ${invalid === 1 ? 'has' : 'have'} errors, nothing was signed; fix them`;
    throw new InvalidInputError([{ field: source.name, message }]);
  }
  if (payouts === 0) throw new InvalidInputError([{ field: source.name, message: 'contains no payouts' }]);
}

async function writeSigned(spool: PayoutSpool, signer: PayoutSigner, context: CliContext): Promise<void> {
  let written = 0;
  for await (const { payout } of spool.read()) {
    const { signed, ...fields } = signer.sign(withoutSignature(payout));
    context.writeJson({ ...fields, ...signed });
    written += 1;
    if (written % CHUNK_SIZE === 0) await setImmediate();
  }
}

function withoutSignature(payout: NewPayout): NewPayout {
  return payout.signed === undefined ? payout : { ...payout, signed: undefined };
}
