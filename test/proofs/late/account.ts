import { setTimeout as delay } from 'node:timers/promises';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { Arrival, LateGateway } from './gateway.js';
import type { Stage } from './stage.js';

const ACTOR = { by: 'ann', reason: 'what the gateway says' };

let accounts = 0;

export type LateAccount = ReturnType<typeof openAccount>;

/** An account of its own, for one cell. */
export function openAccount({ redis }: Stage, gateway: LateGateway) {
  const platformId = 1_000 + (accounts += 1);
  const producer = new PayoutProducer({ connection: redis, platformId });
  const operator = new PayoutOperator({ connection: redis, platformId });
  const addressOf = (payoutId: string) => `wallet-${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxxxxxx`;
  let enqueued = 0;
  return {
    ...{ platformId, producer, operator, gateway, addressOf },
    /** @param priority - a later one lets others go first */
    async enqueue(count: number, priority?: number) {
      const payoutIds = Array.from({ length: count }, () => `P-${(enqueued += 1)}`);
      await producer.enqueueMany(
        payoutIds.map((payoutId) => ({
          ...{ payoutId, paymentId: 1, amount: '0.01', addressTo: addressOf(payoutId) },
          ...(priority !== undefined && { priority }),
        })),
      );
      return payoutIds;
    },
    arrivals: () => gateway.arrivals(platformId),
    arrivalsOf: (payoutId: string) =>
      gateway.arrivals(platformId).filter(({ addressTo }) => addressTo === addressOf(payoutId)),
    declareNew: async () => operator.declareNew(ACTOR),
    /**
     * Asks the gateway about each `unknown` payout, and states what it says as soon as that is accepted.
     * @param asksAgainAfterMs - "not sent" is stated only if the gateway says so twice, so far apart
     */
    async stateWhatGatewaySays(asksAgainAfterMs = 0) {
      const { payouts } = await producer.list({ state: 'unknown' });
      const stated: string[] = [];
      for (const { payoutId, attempt } of payouts) {
        const findPayment = async () =>
          (await gateway.askForPayments(platformId)).find(({ addressTo }) => addressTo === addressOf(payoutId));
        let payment = await findPayment();
        if (payment === undefined && asksAgainAfterMs > 0) {
          await delay(asksAgainAfterMs);
          payment = await findPayment();
        }
        const resolution =
          payment === undefined
            ? ({ kind: 'not_sent' } as const)
            : ({ kind: 'sent', gatewayId: payment.txhash, unchecked: true } as const);
        await operator.resolve({ payoutId, attempt }, resolution, ACTOR).then(
          () => stated.push(resolution.kind),
          () => undefined,
        );
      }
      if ((await producer.stats()).paused) await operator.resume(ACTOR).catch(() => undefined);
      return stated;
    },
    async close() {
      await Promise.all([producer.close(), operator.close()]);
    },
  };
}

const LEAST_GAP_MS = 1_000;

/**
 * What the promises say of a gateway's arrivals.
 * @param askedAt - when the gateway read a request for the balance, ms; of a gateway of several processes. A1 leaves out
 *   what one of them read after another had answered such a request: the next withdrawal follows that answer.
 */
export function findBroken(arrivals: readonly Arrival[], askedAt: readonly number[] = []) {
  const isLeftOut = (readAt: number, nextAt: number) =>
    askedAt.some((at) => at < readAt && nextAt - at >= LEAST_GAP_MS && readAt - at < LEAST_GAP_MS);
  const gaps = findGaps(arrivals)
    .filter(({ gapMs }) => gapMs < LEAST_GAP_MS)
    .filter(({ gapMs, readAt }) => !isLeftOut(readAt - gapMs, readAt));
  const twice = [...new Set(arrivals.map(({ addressTo }) => addressTo))]
    .map((addressTo) => arrivals.filter((each) => each.addressTo === addressTo))
    .filter(({ length }) => length > 1);
  return [
    ...gaps.map(({ gapMs, from }) => `TOO FAST: ${gapMs.toFixed(0)} ms after another, from ${from}`),
    ...twice.map((each) => `TWICE: ${String(each[0]?.addressTo)}, from ${each.map(({ from }) => from).join(' and ')}`),
  ];
}

/** In the order of arrival. */
export const findGaps = (arrivals: readonly Arrival[]) =>
  arrivals.slice(1).map(({ readAt, from }, index) => ({
    ...{ readAt, from },
    gapMs: readAt - (arrivals[index]?.readAt ?? 0),
  }));

export const smallestGapMs = (arrivals: readonly Arrival[]) =>
  Math.min(Infinity, ...findGaps(arrivals).map(({ gapMs }) => gapMs));
