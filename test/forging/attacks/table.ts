import { JOBS, LEDGERS, MIDDLE, PAUSES, RESTARTS } from './accounts.js';
import { ALTERED, FORGED, NOT_SIGNED, REVIVED, STOPPING, SWAPPED, throughDoor } from './payouts.js';
import { APPROVALS, POSTED, REJECTIONS } from './approvals.js';

/** What the suite attacks, with the number of attacks: for docs/proofs.md. */
export const ATTACK_TABLE: readonly (readonly [what: string, count: number])[] = [
  ['queued payouts altered', ALTERED.length],
  ['what is not signed', NOT_SIGNED.length],
  ['payouts invented, copied, or signed by others', [...FORGED, SWAPPED].length],
  ['payouts sent again', REVIVED.length + STOPPING.length],
  ["the breaker's pause", PAUSES.length],
  ['keys of the account', LEDGERS.length],
  ['jobs and sends on their way', JOBS.length],
  ['between two runs of the worker', RESTARTS.length],
  // test/forging/accounts.slow.test.ts has one.
  ['what the journal has forgotten', 1],
  ['replies of Redis altered on their way', MIDDLE.length],
  ['approvals', APPROVALS.length],
  ['rejections that a worker has seen', REJECTIONS.length],
  ['approvals brought to the dashboard', POSTED.length],
  ['requests to the HTTP door, with a token and without a key', throughDoor(async () => Promise.resolve()).length],
  // test/forging/policy.slow.test.ts has these.
  ['what a policy counts', 3],
  ["the policy's file, exchanged", 1],
];
