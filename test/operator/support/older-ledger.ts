import type { SendLine, JournalLine } from '../../../src/journal/journal-line.js';
import { readAccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { SenderView } from '../../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { adviseAccount } from '../../../src/operator/account-advice.js';
import {
  carryOutAdoption,
  isComplete,
  planAdoption,
  type AdoptableJournal,
  type Adoption,
  type AdoptionLedger,
  type AdoptionPlan,
} from '../../../src/operator/adoption.js';
import { redisAdoptionLedger } from '../../../src/operator/adopt-ledger.js';
import type { LedgerRig } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { makeRedisRig } from '../../ledger/support/redis-rig.js';
import type { TestAccount } from '../../ledger/support/test-account.js';
import { JournalFile } from '../../proofs/simulation/journal-file.js';

/** A ledger in Redis that came back older than its journals, and its adoption as `payouts adopt-ledger` does it. */
export interface OlderLedger extends LedgerRig {
  readonly account: TestAccount;
  readonly adoptable: AdoptionLedger;
  /** The ledger's line of sends ends here. @returns the ledger's id */
  rollBackTo(sends: number, token?: string): Promise<string>;
  view(): Promise<SenderView>;
  stateOf(payoutId: string): Promise<PayoutState | undefined>;
  /** The commands that `payouts stats` names. */
  advice(): Promise<string[]>;
  plan(journals: readonly AdoptableJournal[], giveUp?: readonly string[]): Promise<AdoptionPlan>;
  carryOut(journals: readonly AdoptableJournal[], plan: AdoptionPlan, ledger?: AdoptionLedger): Promise<Adoption>;
  /** Plans it, and carries it out where the plan is complete. @returns the plan */
  adopt(journals: readonly AdoptableJournal[], giveUp?: readonly string[]): Promise<AdoptionPlan>;
}

export function makeOlderLedger(): OlderLedger {
  const rig = makeRedisRig();
  const { account } = rig;
  const { redis, keys } = account.connection;
  const adoptable = redisAdoptionLedger(account.ledger);
  const plan: OlderLedger['plan'] = async (journals, giveUp = []) => planAdoption(adoptable, journals, giveUp);
  const carryOut: OlderLedger['carryOut'] = async (journals, planned, ledger = adoptable) =>
    carryOutAdoption(ledger, journals, planned, { actor: { by: 'ann', reason: 'backup' }, at: 1, inFlightMaxMs: 0 });
  return {
    ...rig,
    adoptable,
    async rollBackTo(sends, token = '') {
      const { ledgerId } = await rig.ledger.readSender();
      const last = token === '' ? {} : { last: token };
      await redis.hset(keys.sender, { owner: 'one', epoch: 1, beat: 1, released: 0, sends, ...last });
      return ledgerId;
    },
    view: async () => rig.ledger.readSender(),
    stateOf: async (payoutId) => (await rig.ledger.readPayout(payoutId))?.state,
    advice: async () => adviseAccount(await readAccountStats(account.connection)).map(({ command }) => command),
    plan,
    carryOut,
    async adopt(journals, giveUp) {
      const planned = await plan(journals, giveUp);
      if (isComplete(planned)) await carryOut(journals, planned);
      return planned;
    },
  };
}

/** A journal with these lines, in a folder of its own. */
export function aJournal(journalId: string, ...lines: readonly JournalLine[]): AdoptableJournal {
  const file = new JournalFile(journalId);
  for (const line of lines) file.lines.push(line);
  return file.toAdoptable({ host: `host-${journalId}`, dir: `/${journalId}` });
}

/** The send of this number, the first attempt of its payout, as a journal has it. */
export function sendOf(payoutId: string, sends: number, given: Partial<SendLine> = {}): SendLine {
  const { paymentId, amount } = aPayout(payoutId);
  const request = { paymentId, amount, addressTo: `wallet-${payoutId}` };
  const after = { sends: sends - 1, token: sends === 1 ? '' : `t-${sends - 1}` };
  return { payoutId, attempt: 1, token: `t-${sends}`, epoch: 1, sends, after, request, at: 0, ...given };
}
