import type { ForgedAccount } from './forged-account.js';
import type { ForgingWorld } from './forging-world.js';
import type { Reason } from './outcome.js';

/** Where an attack on a whole account takes place. Its payout `first` was paid before, `after` is enqueued behind it. */
export interface Scene {
  readonly world: ForgingWorld;
  readonly account: ForgedAccount;
  readonly other: ForgedAccount;
}

export interface AccountAttack {
  readonly name: string;
  attack(scene: Scene): Promise<unknown>;
  /** `continues`: what is signed is still paid, once; `stopped`: nothing more; `either`: as it comes, nothing forged is paid. */
  readonly expect: 'continues' | 'stopped' | 'either';
  /** What the worker says of a signature, where it does. */
  readonly refusal?: Reason | 'resume';
}

/** Repeats something for as long as the suite lasts: what the worker puts right is spoilt again. */
export function again(everyMs: number, what: () => Promise<unknown>): void {
  repeated.push(setInterval(() => void what().catch(() => undefined), everyMs));
}

const repeated: NodeJS.Timeout[] = [];

/** Ends what attackers repeat. */
export function endRepeated(): void {
  for (const timer of repeated.splice(0)) clearInterval(timer);
}

/** How late a slow response is: long enough that Redis can be altered before it, also on a busy machine. */
const SLOW_MS = 4_000;

/** A payout that the gateway answers late, or as for a blocked account. */
export async function sendTo(
  { world, account }: Pick<Scene, 'world' | 'account'>,
  payoutId: string,
  kind: 'block' | 'latency-after',
): Promise<void> {
  const addressTo = `wallet-${payoutId}${account.platformId}`;
  const delayMs = kind === 'block' ? {} : { delayMs: SLOW_MS };
  world.sandbox.addFaults([{ kind, addresses: [addressTo], ...delayMs }]);
  await account.enqueue({ payoutId, paymentId: 6, amount: '2', addressTo });
  await account.ring(payoutId);
}
