import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { GatewayApi, PartialAccountSettings } from '../../../src/base/settings.js';
import { createPayoutWorker, type PayoutWorker, type PayoutWorkerOptions } from '../../../src/control/payout-worker.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../../src/sandbox/index.js';
import { type LocalRedis, startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { writeKeyring } from '../../control/support/key-files.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { until } from '../../support/until.js';
import { type Attack, isTampering, type Reached, type Target } from './attack.js';
import { ForgedAccount, keyringEntries, type SignedPayment } from './forged-account.js';

const SECRET_KEY = 'k-forging-0123456789';
const FIRST_PLATFORM = 7_000;

/** The fastest that the settings allow, and a breaker that is in no test's way. */
const QUICK: PartialAccountSettings = {
  ...{ audience: TEST_AUDIENCE, intervalMs: 1_010, leaseMs: 1_000, quarantineMs: 0, inFlightMaxMs: 0 },
  ...{ pollMinMs: 200, pollMaxMs: 1_000, maxRejectionsInARow: 1_000, maxUnknownsInARow: 1_000 },
  ...{ balanceEveryMs: 0, currenciesEveryMs: 0 },
};

/** The APIs take turns, account by account; `FORGING_FIRST_API=v2` swaps them, so that each attack meets the other one. */
const FIRST_API: GatewayApi = process.env['FORGING_FIRST_API'] === 'v2' ? 'v2' : 'v1';
const SECOND_API: GatewayApi = FIRST_API === 'v1' ? 'v2' : 'v1';
const apiOf = (platformId: number) => ((platformId - FIRST_PLATFORM) % 2 === 0 ? FIRST_API : SECOND_API);

/** A Redis of its own, a gateway that keeps the book, and workers with a keyring. */
export class ForgingWorld {
  readonly refusals: { readonly platformId: number; readonly reason: string; readonly isTampering: boolean }[] = [];
  readonly redis!: LocalRedis;
  readonly sandbox!: Sandbox;
  readonly accounts!: readonly ForgedAccount[];
  readonly attacker!: Redis;
  readonly dir!: string;
  readonly #workers: PayoutWorker[] = [];

  private constructor(parts: Pick<ForgingWorld, 'redis' | 'sandbox' | 'accounts' | 'attacker' | 'dir'>) {
    Object.assign(this, parts);
  }

  /** Opens one before the tests of a file, and closes it after them. */
  static use(count: number, options: Partial<SandboxOptions> = {}): { readonly world: ForgingWorld } {
    let world: ForgingWorld | undefined;
    beforeAll(async () => {
      world = await ForgingWorld.open(count, options);
    }, 60_000);
    afterAll(async () => world?.close());
    return {
      get world() {
        if (world === undefined) throw new Error('It opens before the tests');
        return world;
      },
    };
  }

  static async open(count: number, options: Partial<SandboxOptions> = {}): Promise<ForgingWorld> {
    const redis = await startLocalRedis();
    const dir = await mkdtemp(join(tmpdir(), 'payouts-forging-'));
    const attacker = new Redis(redis.url, { maxRetriesPerRequest: null });
    const platforms = Array.from({ length: count }, (_, index) => FIRST_PLATFORM + index);
    const sandbox = await startSandbox({
      settleAfterMs: 100,
      ...options,
      accounts: platforms.map((platformId) => ({ platformId, secretKey: SECRET_KEY })),
    });
    await writeKeyring(join(dir, 'keys.json'), keyringEntries(Date.now()));
    // What was signed before a journal was begun is held.
    for (const platformId of platforms)
      await (await FileSendJournal.open({ dir: join(dir, 'journal'), platformId })).close();
    const accounts = platforms.map((platformId) => new ForgedAccount(platformId, redis.url, attacker));
    return new ForgingWorld({ redis, sandbox, accounts, attacker, dir });
  }

  get keysFile() {
    return join(this.dir, 'keys.json');
  }

  get journalDir() {
    return join(this.dir, 'journal');
  }

  account(index: number): ForgedAccount {
    const account = this.accounts[index];
    if (account === undefined) throw new Error(`There are ${this.accounts.length} accounts`);
    return account;
  }

  async untilIn(state: 'held' | 'completed', account: ForgedAccount, ...payoutIds: readonly string[]) {
    await until(`all are ${state}`, async () => account.isIn(state, ...payoutIds));
  }

  paidTo({ platformId }: ForgedAccount): readonly string[] {
    return this.sandbox.payments(platformId).map(({ addressTo }) => addressTo);
  }

  /** The book against what honest producers signed: nothing else, nothing altered, nothing twice, nothing too early. */
  judge(account: ForgedAccount) {
    const bookOf = (payments: readonly Omit<SignedPayment, 'payoutId'>[]) =>
      payments.map(({ paymentId, amount, addressTo }) => ({ paymentId, amount, addressTo }));
    const signed = bookOf(account.signed);
    const payments = this.sandbox.payments(account.platformId);
    for (const payment of bookOf(payments)) expect(signed).toContainEqual(payment);
    for (const { gatewayId, transactionId, txhash } of payments)
      expect(gatewayId).toBe(apiOf(account.platformId) === 'v2' ? transactionId : txhash);
    const addresses = this.paidTo(account);
    expect(addresses).toEqual([...new Set(addresses)]);
    const { smallestGapMs, blocked } = this.sandbox.stats(account.platformId);
    expect(smallestGapMs ?? Infinity).toBeGreaterThanOrEqual(1_000);
    expect(blocked).toBe(false);
  }

  async startWorker(
    change: Partial<PayoutWorkerOptions> = {},
    settings: PartialAccountSettings = {},
    accounts: readonly ForgedAccount[] = this.accounts,
  ): Promise<PayoutWorker> {
    const worker = await createPayoutWorker({
      redisUrl: this.redis.url,
      journalDir: this.journalDir,
      keysFile: this.keysFile,
      accounts: accounts.map(({ platformId }) => ({
        ...{ ...QUICK, api: apiOf(platformId), ...settings, platformId },
        ...{ baseUrl: this.sandbox.url, secretKey: SECRET_KEY },
      })),
      observe: (platformId) => ({
        ...noObserver,
        signatureRefused: (reason, isTampering) => void this.refusals.push({ platformId, reason, isTampering }),
      }),
      ...change,
    });
    this.#workers.push(worker);
    return worker;
  }

  async close() {
    await Promise.all(this.#workers.map(async (worker) => worker.stop()));
    await Promise.all(this.accounts.map(async (account) => account.close()));
    await this.attacker.quit();
    await this.sandbox.close();
    await this.redis.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}

export type ForgingProxy = Awaited<ReturnType<typeof startForgingProxy>>;

/** A man in the middle of a Redis connection, who alters each piece of a reply, byte for byte as text. */
export async function startForgingProxy(port: number) {
  const server = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    client.pipe(redis);
    redis.on('data', (piece) => {
      const text = piece.toString('latin1');
      const forged = proxy.alter(text);
      if (forged !== text) proxy.altered += 1;
      client.write(Buffer.from(forged, 'latin1'));
    });
    client.on('error', () => undefined).on('close', () => redis.destroy());
    redis.on('error', () => undefined).on('close', () => client.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    alter: (reply: string) => reply,
    altered: 0,
    /** Once the workers behind it have ended. */
    close: async () => once(server.close(), 'close'),
  };
  return proxy;
}

export interface Attempted {
  readonly attack: Attack;
  readonly target: Target;
  wanted: string;
}

/** Of a payout when the attacker comes: its state, how often it was paid, and what its address tells the gateway to do. */
const REACHED: Readonly<Record<Reached, readonly [state: Payout['state'], paid: number, mark: string]>> = {
  queued: ['queued', 0, 'pays'],
  cancelled: ['cancelled', 0, 'pays'],
  completed: ['completed', 1, 'pays'],
  failed: ['failed', 1, 'fails'],
  rejected: ['rejected', 0, 'rejects'],
  unknown: ['unknown', 1, 'unknowns'],
  'not sent': ['unknown', 0, 'drops'],
};
const reachedOf = ({ from = 'queued' }: Attack) => REACHED[from];

/** Which account each attack takes place in, and on which payout. */
export function plan(
  world: ForgingWorld,
  attacks: readonly Attack[],
  perAccount: number,
  firstAccount = 0,
): Attempted[] {
  const other = world.account(world.accounts.length - 1);
  return attacks.map((attack, index) => {
    const account = world.account(firstAccount + Math.floor(index / perAccount));
    const [payoutId, addressTo] = [`P-${index}`, `wallet-${reachedOf(attack)[2]}${index}`];
    const input = { payoutId, paymentId: 6, amount: '12.5', addressTo, ...attack.input };
    return { attack, target: { account, other, payoutId, input }, wanted: payoutId };
  });
}

export function faultsOf(attempted: readonly Attempted[]): Parameters<ForgingWorld['sandbox']['setFaults']>[0] {
  const of = (reached: Reached) =>
    attempted.filter(({ attack }) => attack.from === reached).map(({ target }) => target.input.addressTo);
  return [
    ...of('rejected').map((address) => ({ kind: 'reject', addresses: [address], message: 'no' }) as const),
    ...of('unknown').map((address) => ({ kind: 'drop-after', addresses: [address] }) as const),
    // One attempt each: a payment that the attacker brings about then is in the book.
    ...of('not sent').map((address) => ({ kind: 'drop-before', addresses: [address], times: 1 }) as const),
  ];
}

export async function enqueueTargets(attempted: readonly Attempted[]) {
  for (const { attack, target } of attempted) {
    const { account, payoutId, input } = target;
    await account.enqueue(input, attack.sign);
    if (attack.from !== 'cancelled') continue;
    await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled', by: 'olga', reason: 'no' });
  }
}

/** Waits until no attack is late any more. @param isLate - with its state, where it is */
async function untilNone(
  attempted: readonly Attempted[],
  isLate: (each: Attempted) => Promise<string | false>,
  timeoutMs?: number,
): Promise<void> {
  let late: readonly string[] = [];
  const isOver = async () => {
    const found = await Promise.all(attempted.map(async (each) => [each.attack.name, await isLate(each)] as const));
    late = found.flatMap(([name, state]) => (state === false ? [] : [`${name} (${state})`]));
    return late.length === 0;
  };
  await until(() => `decided: ${late.join(', ')}`, isOver, timeoutMs);
}

export async function untilReached(attempted: readonly Attempted[]) {
  await untilNone(attempted, async ({ attack, target }) => {
    const { state } = await target.account.payout(target.payoutId);
    return state !== reachedOf(attack)[0] && state;
  });
}

export async function carryOut(attempted: readonly Attempted[]) {
  for (const each of attempted) {
    const wanted = await each.attack.attack(each.target);
    if (typeof wanted === 'string') each.wanted = wanted;
  }
}

/** An honest payout in every account: paid beside the attacks, unless the account stops. */
export async function enqueueHonest(accounts: readonly ForgedAccount[], payoutId = 'honest') {
  for (const account of accounts) await account.order(payoutId, '1');
}

const SETTLED: readonly string[] = ['completed', 'held', 'failed', 'rejected', 'unknown', 'cancelled'];

/** Waits until the attacks have come to a state, and the honest payouts are paid where nothing stops them. */
async function untilDecided(attempted: readonly Attempted[]) {
  const going = attempted.filter(({ attack }) => attack.expect !== 'stopped');
  const isLate = async ({ attack, target: { account }, wanted }: Attempted): Promise<string | false> => {
    const { state } = await account.payout('honest');
    if (state !== 'completed') return `the honest one is ${state}`;
    if (attack.expect === 'waits') return false;
    const found = String((await account.ledger.get(wanted))?.state);
    return !SETTLED.includes(found) && found;
  };
  await untilNone(going, isLate, 45_000);
}

async function expectOutcome(world: ForgingWorld, { attack, target, wanted }: Attempted) {
  const { account, payoutId, input } = target;
  const { expect: expected } = attack;
  world.judge(account);
  const payout = await account.ledger.get(wanted);
  const paid = world.paidTo(account).filter((address) => address === input.addressTo).length;
  if (wanted !== payoutId) expect(paid).toBeLessThanOrEqual(1);
  else expect(paid).toBe(expected === 'paid as signed' ? 1 : reachedOf(attack)[1]);
  if (expected === 'paid as signed') return;
  if (expected === 'waits') {
    expect(payout?.state).toBe('queued');
  } else if (expected === 'stopped') {
    await until('it objects', async () => (await account.redis.hlen(account.keys.objections)) === 1);
    expect((await account.payout('honest')).state).toBe('queued');
    expect(paid).toBe(1);
  } else {
    expect({ state: payout?.state, reason: payout?.held?.reason }).toEqual({ state: 'held', reason: expected });
    const told = (await account.tamperings()).filter((event) => event.payoutId === wanted);
    if (isTampering(expected)) expect(told[0]?.reason).toContain(`${expected}:`);
    else expect(told).toEqual([]);
  }
}

/** A test of each attack, and of what was paid in all. @param find - what was set up before */
export function testAttacks(
  attacks: readonly Attack[],
  find: () => { readonly world: ForgingWorld; readonly attempted: readonly Attempted[] },
) {
  it('every attack comes to an end', async () => {
    await untilDecided(find().attempted);
  });

  it.each(attacks.map((attack, index) => ({ ...attack, index })))('$name: $expect', async ({ index }) => {
    const { world, attempted } = find();
    await expectOutcome(world, attempted[index] as Attempted);
  });

  it('nothing else was paid in any account', () => {
    const { world } = find();
    for (const account of world.accounts) world.judge(account);
  });
}
