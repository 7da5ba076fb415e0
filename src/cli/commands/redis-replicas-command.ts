import { createConnection } from 'node:net';
import type { Command } from 'commander';
import { z } from 'zod';
import { ConflictError, InvalidConfigError } from '../../base/errors.js';
import { parseInput, wholeNumberField } from '../../base/fields.js';
import { formatCount } from '../../base/format.js';
import { parseRedisUrl } from '../../base/redis.js';
import { readJournal } from '../../journal/journal-reader.js';
import { MAX_REPLICAS } from '../../ledger/known-replicas.js';
import type { Actor } from '../../ledger/payout.js';
import { checkServer, replicasSeen } from '../../ledger/redis-durability.js';
import { findServer } from '../../ledger/redis-servers.js';
import { peekSenderView } from '../../ledger/sender-view.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { withJournal } from '../audit/audit-command.js';
import { readAccountOptions, readJournalFolder, withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { addActorOptions, help, readActor } from '../context/flags.js';

interface Flags extends Actor {
  readonly yes?: true;
  readonly json?: true;
}

export function defineRedisReplicasCommand(command: Command, context: CliContext): void {
  command.argument('<number>', 'how many replicas of Redis remain that can become its master');
  addActorOptions(command)
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .option('--json', 'print {platformId, replicas, before, journal, otherJournals} as JSON')
    .addHelpText(
      'after',
      help(
        `For a replica that is gone for good. A send counts once every known replica has it, so that no failover forgets it. You state that
the others can never become the master: take them from Sentinel or from the cluster before. Refused while one of them is listed there,
or replies. It lowers the number in Redis and in this host's send journal (SEND_JOURNAL_DIR): run it on each worker's host with a
journal of its own. docs/runbooks/replicas-missing.md has the procedure.`,
        'payouts redis-replicas 1 --reason "node-3 was removed for good"',
      ),
    )
    .action(async (given: string, { yes, json, ...flags }: Flags) => {
      const actor = await readActor(flags);
      const { redisReplicas = 0, redisUrl = '' } = readAccountOptions(context);
      const lowest = parseRedisUrl(redisUrl).kind === 'sentinel' ? 1 : 0;
      const rule = z.object({ number: wholeNumberField(lowest, MAX_REPLICAS) });
      const { number } = parseInput(rule, { number: Number(given) });
      if (redisReplicas > number) {
        const message = `asks for ${redisReplicas} here: change it first, also for the worker`;
        throw new InvalidConfigError([{ field: 'REDIS_REPLICAS', message }]);
      }
      const folder = readJournalFolder(context);
      const question = `State that at most ${formatCount(number, 'replica')} of the Redis of account ${folder.platformId} can become its master?`;
      if (!yes) await confirm(question, context.terminal);
      const journal = await readJournal(folder.dir, folder.platformId);
      const journaled = journal?.knownReplicas ?? 0;
      const result = await withAccount(context, async (account) => {
        const { before, names } = await check(account, number, journaled);
        // The journal first: a worker with a journal that knows more would raise the number in Redis again.
        if (journaled > number) {
          const { by, reason } = actor;
          const note = { at: Date.now(), count: number, names, lowered: { by, reason } };
          await withJournal(folder, async (open) => open.noteReplicas(note));
        }
        await account.ledger.lowerReplicas({ count: number, names }, actor);
        const { journals } = await peekSenderView(account.ledger.connection);
        const others = journals.filter(
          ({ journalId, replicas = 0 }) => journalId !== journal?.journalId && replicas > number,
        );
        return {
          platformId: folder.platformId,
          replicas: number,
          before,
          journal: journaled > number ? journal?.journalId : undefined,
          otherJournals: others.map(({ journalId, host, dir }) => ({ journalId, host, dir })),
        };
      });
      if (json) context.writeJson(result);
      else context.write(describe(result));
    });
}

interface Known {
  readonly before: number;
  /** Of the servers that remain. */
  readonly names: readonly string[];
}

/**
 * @param journaled - what this host's journal knows
 * @throws ConflictError if nothing is known beyond the number, or what is to be given up is still there
 */
async function check({ ledger }: LedgerAccess, number: number, journaled: number): Promise<Known> {
  const { redis, keys } = ledger.connection;
  const stored = await ledger.readReplicas();
  const server = findServer(redis, keys.ledger);
  if (server === undefined) throw new ConflictError('The server of the account is not known: run `payouts doctor`', []);
  const { name: master, following, listed } = await checkServer(server);
  if (listed.length > number) throw stillThere(number, listed, following);
  const before = Math.max(stored.count, journaled);
  if (before <= number) {
    const found = `No more than ${formatCount(before, 'replica')} known: there is nothing to lower`;
    throw new ConflictError(found, ['replicas']);
  }
  const gone = stored.names.filter((name) => !following.includes(name) && name !== master);
  const living = (await Promise.all(gone.map(async (name) => ((await answers(name)) ? [name] : [])))).flat();
  if (living.length > 0) throw stillThere(number, living, living);
  return { before, names: replicasSeen({ name: master, listed: following }).names };
}

function stillThere(number: number, names: readonly string[], following: readonly string[]): ConflictError {
  const listed = names.filter((name) => !following.includes(name));
  const what =
    listed.length === 0
      ? `${names.join(', ')} ${names.length === 1 ? 'replies' : 'reply'}`
      : `Sentinel or the cluster still lists ${listed.join(', ')}, which can become the master once it is back`;
  const way = 'end it, and take it from Sentinel (`SENTINEL RESET`) or from the cluster (`CLUSTER FORGET`)';
  return new ConflictError(
    `Nothing was changed: ${what}, so ${formatCount(number, 'replica')} would not be all. If it is to go, ${way}, then repeat this`,
    ['replicas'],
  );
}

const ANSWERS_WITHIN_MS = 2_000;

/** Whether anything accepts connections at a replica's address. */
async function answers(name: string): Promise<boolean> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(name) ?? [];
  if (host === '') return false;
  return new Promise((resolve) => {
    const socket = createConnection({ host, port: Number(port) });
    const end = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.setTimeout(ANSWERS_WITHIN_MS, () => {
      end(false);
    });
    socket.once('error', () => {
      end(false);
    });
    socket.once('connect', () => {
      end(true);
    });
  });
}

interface Result {
  readonly platformId: number;
  readonly replicas: number;
  readonly before: number;
  readonly journal: string | undefined;
  readonly otherJournals: readonly { readonly journalId: string; readonly host: string; readonly dir: string }[];
}

function describe({ platformId, replicas, before, journal, otherJournals }: Result): string {
  const where = journal === undefined ? 'in Redis' : `in Redis and in the send journal ${journal}`;
  const lines = [
    `Account ${platformId} waits for ${formatCount(replicas, 'replica')} of Redis instead of ${before}: ${where}.`,
    ...otherJournals.map(
      ({ journalId, host, dir }) =>
        `The journal ${journalId} (${host}, ${dir}) knows more: run this on that host, too.`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}
