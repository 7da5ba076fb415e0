import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../base/clock.js';
import { readConfig } from '../../base/config.js';
import { InvalidInputError } from '../../base/errors.js';
import { formatCount } from '../../base/format.js';
import type { NewPayout } from '../../ledger/payout.js';
import { CHUNK_SIZE } from '../../producer/payout-intake.js';
import { PayoutSigner } from '../../control/intents/intent-signer.js';
import type { CliContext } from '../context/cli-context.js';
import { readAudience, requireSigningKey } from '../context/signing.js';
import { checkRows, type CheckedPayout } from '../import/check-rows.js';
import { openSource } from '../import/open-source.js';
import { RowMessages } from '../import/progress.js';

/**
 * Writes JSON lines.
 * @throws InvalidInputError if any row has an error; nothing is written then
 */
export async function signPayouts(path: string, context: CliContext): Promise<void> {
  const { environment } = context;
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
  const signer = new PayoutSigner({
    ...{ key: requireSigningKey(environment), platformId, audience: readAudience(environment), clock: systemClock },
  });
  await writeSigned(await checkSource(path, signer, context), signer, context);
}

async function checkSource(path: string, signer: PayoutSigner, context: CliContext): Promise<readonly CheckedPayout[]> {
  const signal = context.stopSignal();
  const source = await openSource(path, signal);
  const messages = new RowMessages(context);
  const {
    check: { rows, payouts, invalid },
    checked,
  } = await checkRows(source, {
    batch: undefined,
    checksums: readConfig(['PAYOUT_CHECK_ADDRESSES'], context.environment).PAYOUT_CHECK_ADDRESSES,
    check: (payout) => {
      signer.check(withoutSignature(payout));
    },
    onProblem: messages.addProblem,
    onProgress: () => undefined,
    signal,
  });
  messages.end();
  if (invalid > 0) {
    const message = `${invalid} of ${formatCount(rows, 'row')} ${invalid === 1 ? 'has' : 'have'} errors, nothing was signed; fix them`;
    throw new InvalidInputError([{ field: source.name, message }]);
  }
  if (payouts === 0) throw new InvalidInputError([{ field: source.name, message: 'contains no payouts' }]);
  return checked;
}

async function writeSigned(
  checked: readonly CheckedPayout[],
  signer: PayoutSigner,
  context: CliContext,
): Promise<void> {
  let written = 0;
  for (const { payout } of checked) {
    const { signed, ...fields } = signer.sign(withoutSignature(payout));
    context.writeJson({ ...fields, ...signed });
    written += 1;
    if (written % CHUNK_SIZE === 0) await setImmediate();
  }
}

function withoutSignature(payout: NewPayout): NewPayout {
  return payout.signed === undefined ? payout : { ...payout, signed: undefined };
}
