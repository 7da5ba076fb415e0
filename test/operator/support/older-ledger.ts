import type { SendLine, JournalLine } from '../../../src/journal/journal-line.js';
import { readAccountStats } from '../../../src/ledger/reads/account-stats.js';
import { adviseAccount } from '../../../src/operator/account-advice.js';
import {
  carryOutAdoption,
  isComplete,
  planAdoption,
  type AdoptableJournal,
  type AdoptionLedger,
  type AdoptionPlan,
} from '../../../src/operator/adoption.js';
import { redisAdoptionLedger } from '../../../src/operator/adopt-ledger.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { makeRedisRig } from '../../ledger/support/redis-rig.js';
import { JournalFile } from '../../proofs/simulation/journal-file.js';

/** A ledger in Redis that came back older than its journals, and its adoption as `payouts adopt-ledger` does it. */
export type OlderLedger = ReturnType<typeof makeOlderLedger>;

export function makeOlderLedger() {
  const rig = makeRedisRig();
  const { account } = rig;
  const { redis, keys } = account.connection;
  const adoptable = redisAdoptionLedger(account.ledger);
  type Journals = readonly AdoptableJournal[];
  const plan = async (journals: Journals, giveUp: readonly string[] = []) => planAdoption(adoptable, journals, giveUp);
  const carryOut = async (journals: Journals, planned: AdoptionPlan, ledger: AdoptionLedger = adoptable) =>
    carryOutAdoption(ledger, journals, planned, { actor: { by: 'ann', reason: 'backup' }, at: 1, inFlightMaxMs: 0 });
  return {
    ...rig,
    adoptable,
    /** The ledger's line of sends ends here. @returns the ledger's id */
    async rollBackTo(sends: number, token = '') {
      const { ledgerId } = await rig.ledger.readSender();
      const last = token === '' ? {} : { last: token };
      await redis.hset(keys.sender, { owner: 'one', epoch: 1, beat: 1, released: 0, sends, ...last });
      return ledgerId;
    },
    view: async () => rig.ledger.readSender(),
    stateOf: async (payoutId: string) => (await rig.ledger.readPayout(payoutId))?.state,
    /** The commands that `payouts stats` names. */
    advice: async () => adviseAccount(await readAccountStats(account.connection)).map(({ command }) => command),
    plan,
    carryOut,
    /** Plans it, and carries it out where the plan is complete. @returns the plan */
    async adopt(journals: Journals, giveUp?: readonly string[]) {
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
