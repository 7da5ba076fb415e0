import { equal, match, notEqual } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../support/until.js';
import { type Scene, scene } from '../scene.js';
import { FORGET_REPLICA_S, type Layout } from '../support/split-world.js';
import { cut, expectKept, heal, SENTINELS, startSending, WALLET } from './steps.js';

/** What people do, on the wrong side of a cut and on the right one. */

/** More than are sent while the first commands run on a busy machine. */
const PAYOUTS = 40;
const SENT_WITHIN_MS = 180_000;
const LAYOUT: Layout = {
  redis: [1, 2, 1],
  sentinels: SENTINELS,
  rules:
    "  - { name: large, cap: { amount: '500' }, when: { paymentId: ['6'] }, over: { approve: { by: finance, quorum: 2 } } }",
};
const UNCONFIRMED = /only \d of 2 replicas acknowledged it|replicas|NOREPLICAS/;
const payment = (amount: string) => ['--payment-id', '6', '--amount', amount, '--address-to', WALLET];

export const COMMANDS: readonly Scene[] = [
  scene(
    'a command on the wrong side of a cut is not acknowledged, and one that is acknowledged stays',
    'short',
    LAYOUT,
    async (world) => {
      world.sandbox.addFaults([{ kind: 'no-txhash', times: 1 }]);
      await startSending(world, PAYOUTS);
      const [unknown = ''] = /\bp\d+\b/.exec(await world.done(1, 'list', '--state', 'unknown')) ?? [];
      match(unknown, /^p\d+$/);
      await world.done(1, 'cancel', 'p40', '--reason', 'fraud');
      await world.done(1, 'reject', 'p39', '--key', world.keyOf('ann'), '--reason', 'another address', '--yes');
      await cut(world);
      await delay(FORGET_REPLICA_S * 1_000 + 2_000);
      for (const command of [
        ['cancel', 'p38', '--reason', 'fraud'],
        ['reject', 'p37', '--key', world.keyOf('ann'), '--reason', 'another address', '--yes'],
        ['resolve', unknown, '--write-off', '--reason', 'paid by hand', '--yes'],
        ['pause', '--reason', 'fraud'],
        ['enqueue', '--payout-id', 'late', ...payment('77')],
      ]) {
        const { code, text } = await world.payouts(1, ...command);
        notEqual(code, 0, `${command.join(' ')}: ${text}`);
        match(text, UNCONFIRMED);
      }
      await heal(world);
      equal(await world.stateOf(unknown), 'unknown');
      await world.done(2, 'enqueue', '--payout-id', 'late', ...payment('77'));
      // `p37` may be held: the journal may have kept its rejection, which was not acknowledged.
      for (const payoutId of ['late', 'p38']) {
        await until(
          () => `${payoutId} is sent:\n${world.logs()}`,
          async () => (await world.stateOf(payoutId, 2)) === 'completed',
          SENT_WITHIN_MS,
        );
      }
      equal(await world.stateOf('p40', 2), 'cancelled');
      equal(await world.stateOf('p39', 2), 'held');
      expectKept(world);
      return undefined;
    },
  ),
];
