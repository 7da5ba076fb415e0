import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { findMismatch } from '../../../src/journal/find-mismatch.js';
import type { JournaledOutcome, JournalLine, SendLine } from '../../../src/journal/journal-line.js';
import { wasSent } from '../../../src/journal/journal-view.js';
import { describeJournal } from '../../../src/journal/send-journal.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { KnownJournal, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import {
  type AdoptableJournal,
  carryOutAdoption,
  isComplete,
  planAdoption,
  type Adoption,
} from '../../../src/operator/adoption.js';
import {
  openJournals,
  type OpenJournals,
  readJournals,
  redisAdoptionLedger,
} from '../../../src/operator/adopt-ledger.js';
import { NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount } from '../../ledger/support/test-account.js';
import { JournalFile } from '../../proofs/simulation/journal-file.js';

const CONTEXT = { actor: { by: 'ann', reason: 'ticket 812' }, at: 1_900_000_000_000 };

export type SendingHost = Awaited<ReturnType<AdoptionWorld['addHost']>>;
type Folders = readonly { readonly dir: string }[];

/** An account in Redis, which can be put back to an older copy, hosts with journals in folders, and other journals. */
export type AdoptionWorld = Awaited<ReturnType<typeof openAdoptionWorld>>;

interface AdoptOptions {
  readonly giveUp?: readonly string[];
  readonly plan?: Awaited<ReturnType<typeof planAdoption>>;
  /** Stands between the adoption and Redis, or the journals. */
  readonly between?: <Target extends object>(target: Target) => Target;
}

export async function openAdoptionWorld() {
  const account = openTestAccount();
  const { platformId, connection, redis } = account;
  const sender = new RedisSenderLedger(connection, 'reply');
  const ledger = redisAdoptionLedger(account.ledger);
  const root = await mkdtemp(join(tmpdir(), 'adoption-'));
  const opened: FileSendJournal[] = [];
  let tokens = 0;

  const planOf = async (journals: readonly AdoptableJournal[], giveUp: readonly string[] = []) =>
    planAdoption(ledger, journals, giveUp);
  const plan = async (hosts: Folders, giveUp?: readonly string[]) =>
    planOf(await readJournals(foldersOf(hosts), platformId), giveUp);

  async function adopt(hosts: Folders, given: AdoptOptions = {}): Promise<Adoption> {
    const { giveUp = [], between = <Target>(target: Target): Target => target } = given;
    const port = between(ledger);
    const planned = given.plan ?? (await planAdoption(port, await readJournals(foldersOf(hosts), platformId), giveUp));
    const journals: OpenJournals = await openJournals(foldersOf(hosts), platformId);
    try {
      const adoption = await carryOutAdoption(port, journals.journals.map(between), planned, CONTEXT);
      await resume();
      return adoption;
    } finally {
      await journals.close();
    }
  }

  /** The second step: someone has looked at what came back. */
  const resume = async () =>
    connection.run('resume-account', { at: 0, by: 'ann', reason: 'looked', act: '', of: 'adoption' });

  /** A host with a journal of its own, from which payouts are sent. */
  async function addHost(name: string) {
    const dir = join(root, name);
    const journal = await FileSendJournal.open({ dir, platformId });
    opened.push(journal);
    const describe = (): KnownJournal => describeJournal(journal, { host: name, dir }, 0);
    const takeLease = async () => {
      const view = await sender.readSender();
      const epoch = (await sender.acquireLease(name, view, describe(), 0)) ?? 0;
      return { view, lease: { owner: name, epoch } };
    };
    const begin = async (payoutId: string) => {
      await journal.reload();
      const { view, lease } = await takeLease();
      const { ledgerId, sendCount, last, acts } = view;
      const payout = await sender.readPayout(payoutId);
      const attempt = { payoutId, attempt: (payout?.attempt ?? 0) + 1, token: `${name}-${(tokens += 1)}` };
      const asked = { ...attempt, ledgerId, sendCount, last, acts, lease, audience: 'test', journal: describe() };
      const begun = await sender.beginSend({ ...asked, heartbeat: 0, inFlightMs: 0, decisions: 0 });
      return { attempt, ledger: { ledgerId, epoch: lease.epoch, sends: sendCount, token: last }, begun };
    };
    return {
      dir,
      journalId: journal.journalId,
      /** Takes the lease and begins a send as a worker does; the outcome, where there is one, comes to ledger and journal. */
      async send(payoutId: string, outcome?: JournaledOutcome): Promise<SendAttempt> {
        const { attempt, ledger: before, begun } = await begin(payoutId);
        if (begun.kind !== 'begun') throw new Error(`${payoutId} did not begin: ${JSON.stringify(begun)}`);
        if (journal.ledger?.ledgerId !== before.ledgerId) await journal.bind(before);
        const { epoch, sends, token } = before;
        const { paymentId, amount, addressTo } = aPayout(payoutId);
        const request: SendLine['request'] = { paymentId, amount, addressTo };
        await journal.append({
          ...attempt,
          epoch,
          sends: begun.sendCount,
          after: { sends, token },
          request,
          inFlightMs: 0,
          at: 0,
        });
        if (outcome !== undefined) journal.noteOutcome(attempt, outcome, 0);
        if (outcome?.kind === 'not_sent') await sender.revertSend(attempt, outcome.reason);
        else await sender.finishSend(attempt, outcome ?? { kind: 'unknown', reason: 'no response' }, NO_BREAKER, 0);
        // Reading takes its turn behind the outcome, for which nobody waits.
        await journal.changedByOthers();
        return attempt;
      },
      /** A person's cancellation, as the worker has it on its disk; the ledger of before has it not. */
      async noteCancelled(payoutId: string): Promise<void> {
        const { paymentId, amount, addressTo } = aPayout(payoutId);
        const about = { at: 0, by: 'zoe', reason: 'fraud', request: { paymentId, amount, addressTo } };
        await journal.noteActs({ at: 0, count: journal.acts + 1, ended: [{ payoutId, state: 'cancelled', ...about }] });
      },
      tryBegin: async (payoutId: string) => (await begin(payoutId)).begun.kind,
      notePeers: async () => {
        const { journals } = await sender.readSender();
        await journal.notePeers(journals.filter(({ journalId }) => journalId !== journal.journalId));
      },
    };
  }

  return {
    ...{ account, sender, addHost, plan, planOf, adopt },
    /** Plans the adoption of any journals, and carries it out where the plan is complete. @returns the plan */
    async adoptOf(journals: readonly AdoptableJournal[], giveUp?: readonly string[]) {
      const planned = await planOf(journals, giveUp);
      if (isComplete(planned)) await carryOutAdoption(ledger, journals, planned, CONTEXT);
      if (isComplete(planned)) await resume();
      return planned;
    },
    /** The ledger's line of sends ends here. @returns the ledger's id */
    async rollBackTo(sends: number, token = '') {
      const { ledgerId } = await sender.readSender();
      const last = token === '' ? {} : { last: token };
      await redis.hset(connection.keys.sender, { owner: 'one', epoch: 1, beat: 1, released: 0, sends, ...last });
      return ledgerId;
    },
    enqueue: async (...payoutIds: string[]) => {
      // Gives the ledger its id.
      await sender.readSender();
      await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
    },
    statesOf: async (...payoutIds: string[]) =>
      Promise.all(payoutIds.map(async (payoutId) => (await account.ledger.get(payoutId))?.state)),
    /** Nothing that these hosts sent is forgotten, and nothing stops the account. */
    async expectAgreement(...hosts: Folders) {
      const view = await sender.readSender();
      expect(view.objections).toEqual([]);
      for (const journal of await readJournals(foldersOf(hosts), platformId)) {
        expect(await findMismatch(journal, view, sender)).toBeUndefined();
        expect(await sender.findForgottenSends(journal.lastSends(99).filter(wasSent))).toEqual([]);
      }
    },
    copy: async () => account.dump(),
    /** Without a copy, the account is flushed. */
    async putBack(copy: Readonly<Record<string, string>> = {}) {
      const keys = Object.keys(await account.dump());
      if (keys.length > 0) await redis.unlink(...keys);
      for (const [key, content] of Object.entries(copy)) await redis.restore(key, 0, Buffer.from(content, 'hex'));
    },
    async close() {
      for (const journal of opened) await journal.close();
      await account.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

export function aJournal(journalId: string, ...lines: readonly JournalLine[]): AdoptableJournal {
  const file = new JournalFile(journalId);
  file.lines.push(...lines);
  return file.toAdoptable({ host: `host-${journalId}`, dir: `/${journalId}` });
}

/** The send of this number, the first attempt of its payout, as a journal has it. */
export function sendOf(payoutId: string, sends: number, given: Partial<SendLine> = {}): SendLine {
  const { paymentId, amount, addressTo } = aPayout(payoutId);
  const after = { sends: sends - 1, token: sends === 1 ? '' : `t-${sends - 1}` };
  const request = { paymentId, amount, addressTo };
  return { payoutId, attempt: 1, token: `t-${sends}`, epoch: 1, sends, after, request, inFlightMs: 0, at: 0, ...given };
}

function foldersOf(hosts: Folders) {
  return hosts.map(({ dir }) => dir);
}
