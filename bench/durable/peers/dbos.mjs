// DBOS: https://docs.dbos.dev/typescript/tutorials/queue-tutorial, a queue with a rate limit whose workflow pays in a step.
// With care: one workflow at a time, durable sleep within it, and a first step that keeps which run began: another run,
// which would pay a second time, fails in the paying step instead
// (https://docs.dbos.dev/typescript/tutorials/step-tutorial).
import { randomUUID } from 'node:crypto';
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import pg from 'pg';
import { INTERVAL_MS, notKnown, restAfter, startDeadline } from './care.mjs';

const QUEUE = 'payouts';
const WORKFLOW = 'pay';
const VERSION = '1';
/** For the workflows that run at a shutdown. */
const END_WITHIN_MS = 5_000;

export async function openClient({ url }) {
  const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: SILENT });
  return {
    async enqueue(payouts) {
      for (const payout of payouts) {
        const workflowID = payout.payoutId;
        await client.enqueue({ queueName: QUEUE, workflowName: WORKFLOW, workflowID, appVersion: VERSION }, payout);
      }
    },
    async look(payoutIds) {
      const found = await client.listWorkflows({ workflowIDs: payoutIds });
      const states = new Map(found.map(({ workflowID, status }) => [workflowID, STATES[status] ?? 'waits']));
      return new Map(payoutIds.map((payoutId) => [payoutId, states.get(payoutId) ?? 'missing']));
    },
    /** What anyone who can write to this database can do. */
    async forge({ payoutId, addressTo: before }, addressTo) {
      const database = new pg.Client({ connectionString: url });
      await database.connect();
      const set = 'UPDATE dbos.workflow_input SET inputs = replace(inputs, $2, $3) WHERE workflow_uuid = $1';
      const { rowCount } = await database.query(set, [payoutId, before, addressTo]);
      if (rowCount !== 1) throw new Error(`${payoutId} has ${rowCount} inputs`);
      await database.end();
    },
    close: async () => client.destroy(),
  };
}

const STATES = { SUCCESS: 'done', ERROR: 'asks', CANCELLED: 'asks', MAX_RECOVERY_ATTEMPTS_EXCEEDED: 'asks' };
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

export async function work({ url, careful, name }, withdraw) {
  const pay = async (payout) => DBOS.runStep(() => withdraw(payout), { name: 'withdraw' });
  DBOS.registerWorkflow(careful ? async (payout) => payThenRest(withdraw, payout) : pay, { name: WORKFLOW });
  // Who replaces a process has its name, so that it recovers what that process had begun.
  const options = { name: 'merchant', executorID: name, applicationVersion: VERSION, logger: SILENT };
  DBOS.setConfig({ systemDatabaseUrl: url, ...options });
  await DBOS.launch();
  const pace = { rateLimit: { limitPerPeriod: 1, periodSec: INTERVAL_MS / 1_000 } };
  await DBOS.registerQueue(QUEUE, careful ? { ...pace, globalConcurrency: 1 } : pace);
  return async () => DBOS.shutdown({ workflowCompletionTimeoutMS: END_WITHIN_MS });
}

async function payThenRest(withdraw, payout) {
  const self = randomUUID();
  const begunBy = await DBOS.runStep(() => Promise.resolve(self), { name: 'begin' });
  const payOnce = async () => {
    if (begunBy !== self) throw notKnown();
    return withdraw(payout, startDeadline());
  };
  let failure;
  try {
    return await DBOS.runStep(payOnce, { name: 'withdraw' });
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    await DBOS.sleep(restAfter(failure));
  }
}
