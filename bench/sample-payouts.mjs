import { createHash, randomBytes, randomInt } from 'node:crypto';
import { bech32, createBase58check } from '@scure/base';

/**
 * Distinct payouts as real ones are: an id of the caller's own, amounts of different lengths, addresses of TRON, Ethereum
 * and Bitcoin in turn. Redis rounds sizes up in steps, so equal payouts would measure one step, not the average.
 */
export function samplePayouts(count, prefix = 'invoice') {
  return Array.from({ length: count }, (_, index) => ({
    payoutId: `${prefix}-${String(index + 1).padStart(7, '0')}`,
    amount: sampleAmount(),
    ...WALLETS[index % WALLETS.length](),
  }));
}

/** With and without `0x`, as chains differ. */
export function sampleTxhash() {
  return `${randomInt(2) === 0 ? '' : '0x'}${randomBytes(32).toString('hex')}`;
}

/** 1 to 4 places before the point and 2 to 6 after it. */
export function sampleAmount() {
  return `${randomInt(1, 10 ** randomInt(1, 5))}.${randomInt(10 ** randomInt(1, 6))}5`;
}

const base58check = createBase58check((bytes) => createHash('sha256').update(bytes).digest());

/** With the numbers of the sandbox's currencies: a worker's gateway list refuses an address of another network. */
const WALLETS = [
  () => ({ paymentId: 6, addressTo: base58check.encode(Buffer.concat([Buffer.of(0x41), randomBytes(20)])) }),
  () => ({ paymentId: 7, addressTo: `0x${randomBytes(20).toString('hex')}` }),
  () => ({ paymentId: 1, addressTo: bech32.encode('bc', [0, ...bech32.toWords(randomBytes(20))]) }),
];

/** The job that the project adds for a payout, as a program that uses BullMQ alone would add it. */
export function sampleJob({ payoutId, paymentId, amount, addressTo }) {
  return { name: 'withdraw', data: { payoutId, paymentId, amount, addressTo }, opts: { jobId: `${payoutId}~0` } };
}

let lastPlatformId = 100_000;

/** An account that no other part of the run uses. */
export function newAccount() {
  lastPlatformId += 1;
  return { platformId: lastPlatformId, secretKey: 'k-bench-0123456789' };
}
