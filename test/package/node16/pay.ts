import assert from 'node:assert/strict';
import { InvalidInputError, PayoutProducer } from 'payout-queue';
import { payOne } from './pay-one';

async function main() {
  await payOne();
  // Both module systems load one copy: `instanceof` holds for both.
  const imported = await import('payout-queue');
  assert.equal(imported.InvalidInputError, InvalidInputError);
  assert.equal(imported.PayoutProducer, PayoutProducer);
}

void main();
