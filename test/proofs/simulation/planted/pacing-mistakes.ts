import type { Clock } from '../../../../src/base/clock.js';
import type { WithdrawConnection, WithdrawGateway } from '../../../../src/gateway/gateway.js';
import { Pacer, type Pace } from '../../../../src/worker/sender/pacer.js';
import type { Mistake } from './mistake.js';

/** Counts from the write of the request, as limiters on the caller's side do. */
class PacerFromTheSend extends Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  writtenAt = 0;

  constructor(clock: Clock, pace: Pace) {
    super(clock, pace);
    this.#clock = clock;
    this.#intervalMs = pace.intervalMs;
  }

  written(): void {
    this.writtenAt = this.#clock.now();
  }

  override afterResponse(): void {
    this.holdUntil(this.writtenAt + this.#intervalMs);
  }
}

class PacerThatTakesSilenceForAResponse extends Pacer {
  override afterNoResponse(): void {
    this.afterResponse();
  }
}

class PacerThatTrustsOtherClocks extends Pacer {
  readonly #clock: Clock;
  readonly #pace: Pace;

  constructor(clock: Clock, pace: Pace) {
    super(clock, pace);
    this.#clock = clock;
    this.#pace = pace;
  }

  override afterNoResponse(): void {
    const { inFlightMaxMs, intervalMs } = this.#pace;
    this.holdUntil(this.#clock.now() + inFlightMaxMs + intervalMs);
  }
}

export const pacingMistakes: readonly Mistake[] = [
  {
    name: 'pacing from the send instead of the response',
    pieces: {
      makePacer: (clock, pace) => new PacerFromTheSend(clock, pace),
      wrapGateway: (gateway, { pacer }) =>
        onWrite(gateway, () => {
          if (pacer instanceof PacerFromTheSend) pacer.written();
        }),
    },
  },
  {
    name: 'pacer not told of sends without a response',
    pieces: { makePacer: (clock, pace) => new PacerThatTakesSilenceForAResponse(clock, pace) },
  },
  {
    name: 'no allowance for clocks that run faster',
    pieces: { makePacer: (clock, pace) => new PacerThatTrustsOtherClocks(clock, pace) },
  },
  {
    name: 'awaitingAnswer flag ignored on take-over',
    pieces: {
      wrapLedger: (ledger) => ({
        ...ledger,
        readSender: async () => ({ ...(await ledger.readSender()), awaitingAnswer: false }),
      }),
    },
  },
  {
    name: 'no guard before the write',
    pieces: { wrapGateway: (gateway, { pacer }) => withMayWrite(gateway, () => pacer.isOpen) },
  },
  {
    name: 'resend on timeout',
    pieces: { wrapGateway: resendOnce },
  },
];

type Withdraw = WithdrawConnection['withdraw'];

/** Puts another `withdraw` in the place of each connection's own. */
function wrapWithdraw(gateway: WithdrawGateway, wrap: (withdraw: Withdraw) => Withdraw): WithdrawGateway {
  return {
    probe: async (signal) => gateway.probe(signal),
    openConnection: async (signal) => {
      const connection = await gateway.openConnection(signal);
      return {
        get usable() {
          return connection.usable;
        },
        withdraw: wrap(async (request, options) => connection.withdraw(request, options)),
        close: () => {
          connection.close();
        },
      };
    },
  };
}

/** Asks something else than the sender's own check. */
function withMayWrite(gateway: WithdrawGateway, mayWrite: () => boolean): WithdrawGateway {
  return wrapWithdraw(gateway, (withdraw) => async (request) => withdraw(request, { mayWrite }));
}

function onWrite(gateway: WithdrawGateway, written: () => void): WithdrawGateway {
  return wrapWithdraw(
    gateway,
    (withdraw) =>
      async (request, { mayWrite }) =>
        withdraw(request, {
          mayWrite: () => {
            const allowed = mayWrite();
            if (allowed) written();
            return allowed;
          },
        }),
  );
}

function resendOnce(gateway: WithdrawGateway): WithdrawGateway {
  return wrapWithdraw(gateway, (withdraw) => async (request, options) => {
    const outcome = await withdraw(request, options);
    if (outcome.kind !== 'unknown') return outcome;
    const again = await gateway.openConnection(new AbortController().signal);
    return again.withdraw(request, { mayWrite: () => true });
  });
}
