import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { DAY_MS } from '../control/support/signed.js';
import { until } from '../support/until.js';
import { ALIAS_CURRENCIES, ALIASES, CASH, EVM, OSMO, TON, XRP } from './attacks/aliases.js';
import { POLICY_FILE_ATTACKS, type PolicyFiles } from './attacks/policy-files.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';
import { signPayout } from './support/signers.js';

describe("a policy's file that was exchanged, or that others can write", () => {
  const DENIED = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
  const used = ForgingWorld.use(POLICY_FILE_ATTACKS.length + 1);

  async function writeFiles({ platformId }: ForgedAccount): Promise<PolicyFiles> {
    const folder = join(used.world.dir, `policy-${platformId}`);
    await mkdir(folder, { mode: 0o755 });
    const [policyFile, listFile] = [join(folder, 'policy.yaml'), join(folder, 'deny.txt')];
    const lenient = `version: 1\nplatformId: "${platformId}"\ndefault: send\nrules: []\n`;
    const rule = '{ name: denied, when: { addressIn: deny.txt }, over: refuse }';
    await writeFile(listFile, `${DENIED}\n`, { mode: 0o600 });
    await writeFile(policyFile, lenient.replace('[]', `\n  - ${rule}`), { mode: 0o600 });
    return { policyFile, listFile, lenient };
  }

  /** Has a payout to the denied address held by the policy. */
  async function startHolding(account: ForgedAccount) {
    const files = await writeFiles(account);
    const worker = await used.world.startWorker({}, { policyFile: files.policyFile }, [account]);
    await account.enqueue({ payoutId: 'held', paymentId: 6, amount: '1', addressTo: DENIED });
    await used.world.untilIn('held', account, 'held');
    return { files, worker, policy: worker.accounts[0]?.policy };
  }

  it.each(POLICY_FILE_ATTACKS.map((row, index) => [...row, index] as const))(
    '%s: the former policy counts, and no worker starts with it',
    async (_, words, attack, index) => {
      const account = used.world.account(index);
      const { files, worker, policy } = await startHolding(account);
      await attack(files);
      worker.reloadPolicies();
      expect(policy?.reloadTrouble).toMatch(words);
      await account.enqueue({ payoutId: 'later', paymentId: 6, amount: '1', addressTo: DENIED });
      const addressTo = await account.order('honest', '1');
      await used.world.untilIn('completed', account, 'honest');
      expect(await account.isIn('held', 'held', 'later')).toBe(true);
      expect(used.world.paidTo(account)).toEqual([addressTo]);
      await worker.stop();
      const { policyFile } = files;
      await expect(used.world.startWorker({}, { policyFile }, [account])).rejects.toThrow(words);
    },
    60_000,
  );

  it('one that its owner exchanges counts, and its hash is another', async () => {
    const account = used.world.account(POLICY_FILE_ATTACKS.length);
    const { files, worker, policy } = await startHolding(account);
    const before = policy?.hash;
    await writeFile(files.policyFile, files.lenient);
    worker.reloadPolicies();
    expect(policy?.hash).not.toBe(before);
    await used.world.untilIn('completed', account, 'held');
  }, 60_000);
});

describe('another spelling, or another tag, of an address, signed with a producer’s key', () => {
  const LISTS = {
    // Raw TON is how explorers name a wallet.
    'deny.txt': [TON.raw, CASH, OSMO, EVM.toLowerCase(), XRP],
    'allow.txt': ['rExchange:12345', `bitcoincash:${CASH}`, `${XRP}:1`, TON.bounceable, OSMO],
  };
  /** What the policy lets pass, in spellings of their own. */
  const HONEST = (
    [
      ['denied', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'],
      ...['rExchange:12345', CASH.toUpperCase(), `${XRP}:001`, TON.other].map(
        (address) => ['default', address] as const,
      ),
      ['per-address', TON.bounceable],
      ...['rExchange:12345', `bitcoincash:${CASH}`, `${XRP}:01`].map((address) => ['cool-down', address] as const),
      ['unparsed', CASH],
    ] as const
  ).map(([rule, addressTo]) => ({ rule, addressTo }));
  const of = (...rules: (keyof typeof ALIAS_CURRENCIES)[]): string =>
    `paymentId: [${rules.map((rule) => `"${ALIAS_CURRENCIES[rule]}"`).join()}]`;
  const RULES = `default: hold
rules:
  - { name: covered, when: { ${of('denied', 'cool-down', 'unparsed')} }, cap: { count: "500", within: 1h }, over: refuse }
  - { name: denied, when: { ${of('denied')}, addressIn: deny.txt }, over: refuse }
  - { name: own, when: { ${of('default')}, addressIn: allow.txt }, cap: { amount: "500" }, over: refuse }
  - { name: per-address, when: { ${of('per-address')} }, cap: { count: "1", within: 24h, per: address }, over: wait }
  - { name: cool-down, when: { ${of('cool-down')}, address: new }, over: { wait: 24h } }
  - { name: unparsed, when: { ${of('unparsed')}, address: unparsed }, over: refuse }
`;
  const used = ForgingWorld.use(1);
  let account: ForgedAccount;

  beforeAll(async () => {
    const { world } = used;
    account = world.account(0);
    const { platformId, ledger } = account;
    const policyFile = join(world.dir, 'policy.yaml');
    await writeFile(policyFile, `version: 1\nplatformId: "${platformId}"\n${RULES}`, { mode: 0o600 });
    for (const [name, lines] of Object.entries(LISTS))
      await writeFile(join(world.dir, name), `${lines.join('\n')}\n`, { mode: 0o600 });
    const journal = await FileSendJournal.open({ dir: world.journalDir, platformId });
    await journal.noteSeen({ at: Date.now() - 2 * DAY_MS, addresses: ['rExchange:12345', CASH, `${XRP}:1`] });
    await journal.close();

    const rows = [...HONEST, ...ALIASES].entries();
    const payouts = [...rows].map(([index, { rule, addressTo }]) => ({
      ...{ payoutId: `P-${index}`, paymentId: ALIAS_CURRENCIES[rule], amount: '1', addressTo },
    }));
    // With the key, and by no producer of this package, which would refuse some of these addresses.
    for (const payout of payouts) await ledger.enqueue([{ ...payout, signed: signPayout(platformId, payout) }]);
    await world.startWorker({}, { policyFile }, [account]);
    const isDecided = async (id: string): Promise<boolean> =>
      ['held', 'completed'].includes((await account.payout(id)).state);
    const areDecided = async (): Promise<boolean> =>
      (await Promise.all(payouts.map(async ({ payoutId }) => isDecided(payoutId)))).every(Boolean);
    await until('all are decided', areDecided, 120_000);
  }, 240_000);

  it('the honest payouts alone are paid', () => {
    const paid = used.world.sandbox.payments(account.platformId);
    expect(paid.map(({ paymentId, addressTo }) => [paymentId, addressTo])).toEqual(
      HONEST.map(({ rule, addressTo }) => [ALIAS_CURRENCIES[rule], addressTo]),
    );
  });

  it.each(ALIASES.map(({ name, addressTo, rule }, index) => [name, addressTo, rule, index] as const))(
    '%s (%s): %s',
    async (_name, _addressTo, rule, index) => {
      const { state, held } = await account.payout(`P-${HONEST.length + index}`);
      expect({ state, held }).toMatchObject({ state: 'held', held: { kind: 'policy', rule } });
    },
  );
});
