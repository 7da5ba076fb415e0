import assert from 'node:assert/strict';
import { PAID, payOne } from './pay-one';

async function main(): Promise<void> {
  assert.deepEqual(await payOne(), PAID);
}

void main();
