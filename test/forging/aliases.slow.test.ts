import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { until } from '../support/until.js';
import { ALIAS_CURRENCIES, ALIASES, CASH, EVM, OSMO, TON, XRP } from './attacks/aliases.js';
import { ForgingWorld } from './support/forging-world.js';
import { DAY_MS, signPayout } from './support/signers.js';

/** Another spelling, or another tag, of an address: signed with a producer's key, and against what the policy wants. */

const LISTS = {
  // Raw TON is how explorers name a wallet.
  'deny.txt': [TON.raw, CASH, OSMO, EVM.toLowerCase(), XRP],
  'allow.txt': ['rExchange:12345', `bitcoincash:${CASH}`, `${XRP}:1`, TON.bounceable, OSMO],
};
/** What the policy lets pass, in spellings of their own. */
const HONEST = [
  ['denied', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'],
  ['default', 'rExchange:12345'],
  ['default', CASH.toUpperCase()],
  ['default', `${XRP}:001`],
  ['default', TON.other],
  ['per-address', TON.bounceable],
  ['cool-down', 'rExchange:12345'],
  ['cool-down', `bitcoincash:${CASH}`],
  ['cool-down', `${XRP}:01`],
  ['unparsed', CASH],
] as const;

function policyOf(platformId: number): string {
  const of = (rule: keyof typeof ALIAS_CURRENCIES): string => `paymentId: ["${ALIAS_CURRENCIES[rule]}"]`;
  const covered = (['denied', 'cool-down', 'unparsed'] as const).map((rule) => `"${ALIAS_CURRENCIES[rule]}"`);
  return `version: 1
platformId: "${platformId}"
default: hold
rules:
  - { name: covered, when: { paymentId: [${covered.join()}] }, cap: { count: "500", within: 1h }, over: refuse }
  - { name: denied, when: { ${of('denied')}, addressIn: deny.txt }, over: refuse }
  - { name: own, when: { ${of('default')}, addressIn: allow.txt }, cap: { amount: "500" }, over: refuse }
  - { name: per-address, when: { ${of('per-address')} }, cap: { count: "1", within: 24h, per: address }, over: wait }
  - { name: cool-down, when: { ${of('cool-down')}, address: new }, over: { wait: 24h } }
  - { name: unparsed, when: { ${of('unparsed')}, address: unparsed }, over: refuse }
`;
}

let world: ForgingWorld;
beforeAll(async () => {
  world = await ForgingWorld.open(1);
  const account = world.account(0);
  const { platformId } = account;
  for (const [name, lines] of Object.entries(LISTS)) {
    await writeFile(join(world.dir, name), `${lines.join('\n')}\n`, { mode: 0o600 });
  }
  const policyFile = join(world.dir, 'policy.yaml');
  await writeFile(policyFile, policyOf(platformId), { mode: 0o600 });
  const journal = await FileSendJournal.open({ dir: world.journalDir, platformId });
  await journal.noteSeen({ at: Date.now() - 2 * DAY_MS, addresses: ['rExchange:12345', CASH, `${XRP}:1`] });
  await journal.close();

  const enqueue = async (payoutId: string, paymentId: number, addressTo: string): Promise<void> => {
    // With the key, and by no producer of this package, which would refuse some of these addresses.
    const payout = { payoutId, paymentId, amount: '1', addressTo };
    await account.ledger.enqueue([{ ...payout, signed: signPayout(platformId, payout) }]);
  };
  for (const [index, [rule, addressTo]] of HONEST.entries()) {
    await enqueue(`H-${index}`, ALIAS_CURRENCIES[rule], addressTo);
  }
  for (const [index, { paymentId, addressTo }] of ALIASES.entries()) await enqueue(`A-${index}`, paymentId, addressTo);
  await world.startWorker({}, { policyFile }, [account]);
  const stateOf = async (payoutId: string): Promise<string> => (await account.payout(payoutId)).state;
  const ids = [...HONEST.map((_, index) => `H-${index}`), ...ALIASES.map((_, index) => `A-${index}`)];
  await until(
    'all are held or paid',
    async () => (await Promise.all(ids.map(stateOf))).every((state) => state === 'held' || state === 'completed'),
    120_000,
  );
}, 240_000);

afterAll(async () => {
  await world.close();
});

it('the honest payouts alone are paid', () => {
  const paid = world.sandbox.payments(world.account(0).platformId);
  expect(paid.map(({ paymentId, addressTo }) => [paymentId, addressTo])).toEqual(
    HONEST.map(([rule, addressTo]) => [ALIAS_CURRENCIES[rule], addressTo]),
  );
});

it.each(ALIASES.map(({ name, addressTo, rule }, index) => [name, addressTo, rule, index] as const))(
  '%s (%s): %s',
  async (_name, _addressTo, rule, index) => {
    const { state, held } = await world.account(0).payout(`A-${index}`);
    expect({ state, held }).toMatchObject({ state: 'held', held: { kind: 'policy', rule } });
  },
);
