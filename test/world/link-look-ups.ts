import { comparePayment } from '../../src/gateway/compare-payment.js';
import { type FoundPayment, GatewayRejectedError, GatewayUnavailableError } from '../../src/gateway/gateway.js';
import type { LookUpGateway } from '../../src/operator/find-payments.js';
import type { FaultInjector } from '../proofs/simulation/faults.js';
import type { Plan } from '../proofs/simulation/plan.js';
import type { GatewayBook } from './links.js';
import type { WorldProcess } from './world.js';

type LookUpLinkOptions = Readonly<{
  process: WorldProcess;
  book: GatewayBook;
  plan: Pick<Plan, 'settings' | 'faults'>;
  injector?: FaultInjector | undefined;
}>;

/** The gateway as a janitor asks it: late, without an answer, or without a payment that is there. */
export function linkLookUps({ process, book, plan, injector }: LookUpLinkOptions): LookUpGateway {
  const { world } = process;
  const { random, situations } = world;
  const { faults, settings } = plan;

  const ask = async (orderId: string): Promise<FoundPayment | undefined> => {
    await process.takeMs(random.heavyTail(1, 500), 'look-up', 'response');
    if (world.fault(faults.responseLost)) {
      await process.sleep(settings.withdrawTimeoutMs);
      throw new GatewayUnavailableError('no answer to a look-up');
    }
    const found = await new Promise<FoundPayment | undefined>((resolve) => {
      book.read(
        () => {
          resolve(book.findPayment(orderId));
        },
        { label: 'look-up', process },
      );
    });
    await process.takeMs(random.heavyTail(1, 500), 'look-up', 'response');
    return found;
  };

  return {
    comparePayment,
    async findPayment(orderId) {
      const found = await ask(orderId);
      injector?.strike(process, 'response', 'look-up');
      if (found === undefined) throw new GatewayRejectedError('v2/withdrawstatus', 'withdrawal not found');
      situations?.meet(
        book.dialect.isMistaken ? 'a janitor is shown a payment of another amount' : 'a janitor finds a payment',
      );
      return found;
    },
  };
}
