import { createHash, randomBytes, randomInt } from 'node:crypto';
import { bech32, createBase58check } from '@scure/base';

export interface SamplePayout {
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
}

/**
 * Distinct payouts as real ones are: an id of the caller's own, amounts of different lengths, addresses of TRON, Ethereum
 * and Bitcoin in turn. Redis rounds sizes up in steps, so equal payouts would measure one step, not the average.
 */
export function samplePayouts(count: number, prefix = 'invoice'): SamplePayout[] {
  return Array.from({ length: count }, (_, index) => ({
    payoutId: `${prefix}-${String(index + 1).padStart(7, '0')}`,
    amount: sampleAmount(),
    ...sampleRecipient(index),
  }));
}

/** With and without `0x`, as chains differ. */
export function sampleTxhash(): string {
  return `${randomInt(2) === 0 ? '' : '0x'}${randomBytes(32).toString('hex')}`;
}

/** 1 to 4 places before the point and 2 to 6 after it. */
export function sampleAmount(): string {
  return `${randomInt(1, 10 ** randomInt(1, 5))}.${randomInt(10 ** randomInt(1, 6))}5`;
}

const base58check = createBase58check((bytes) => createHash('sha256').update(bytes).digest());

/** With the numbers of the sandbox's currencies: a worker's gateway list refuses an address of another network. */
function sampleRecipient(index: number): Pick<SamplePayout, 'paymentId' | 'addressTo'> {
  const hash = randomBytes(20);
  if (index % 3 === 0) return { paymentId: 6, addressTo: base58check.encode(Buffer.concat([Buffer.of(0x41), hash])) };
  if (index % 3 === 1) return { paymentId: 7, addressTo: `0x${hash.toString('hex')}` };
  return { paymentId: 1, addressTo: bech32.encode('bc', [0, ...bech32.toWords(hash)]) };
}

/** The job that the project adds for a payout, as a program that uses BullMQ alone would add it. */
export function sampleJob({ payoutId, paymentId, amount, addressTo }: SamplePayout) {
  return { name: 'withdraw', data: { payoutId, paymentId, amount, addressTo }, opts: { jobId: `${payoutId}~0` } };
}

export interface BenchAccount {
  readonly platformId: number;
  readonly secretKey: string;
}

let lastPlatformId = 100_000;

/** An account that no other part of the run uses. */
export function newAccount(): BenchAccount {
  lastPlatformId += 1;
  return { platformId: lastPlatformId, secretKey: 'k-bench-0123456789' };
}
