import { type Clock, every, followSignals, isAborted, untilAborted } from '../base/clock.js';
import { RedisUnavailableError } from '../base/errors.js';
import { isSameGatewayId } from '../base/fields.js';
import type { Logger } from '../base/logger.js';
import type { AccountSettings } from '../base/settings.js';
import { describeDifferences, type FoundPayment, type PaymentNames } from '../gateway/gateway.js';
import { identify, type JournalEntry } from '../journal/journal-line.js';
import type { SendJournal } from '../journal/send-journal.js';
import { orderIdOf } from '../ledger/order-id.js';
import { type LookUpAnswer, type OrderLookUp, waitBefore } from '../ledger/order-look-up.js';
import type { LookUpLedger } from '../ledger/order-look-ups.js';
import { type Payout, toLine } from '../ledger/payout.js';
import type { LookUpEvidence } from '../ledger/reads/gateway-facts.js';
import type { SendAttempt } from '../ledger/sender-ledger.js';
import type { PayoutState } from '../ledger/states.js';
import { type LookUp, lookUp, type LookUpGateway, MOST_ATTEMPTS } from '../operator/find-payments.js';
import { describeOtherGateway } from './sender/journal-audit.js';
import type { WorkerObserver } from './sender/worker-observer.js';

/** What a janitor needs: the simulation gives its own. */
export interface JanitorRuntime {
  readonly clock: Clock;
  readonly gateway: LookUpGateway;
  readonly lookUps: LookUpLedger;
  readonly journal: Pick<SendJournal, 'lastSends' | 'noteOutcome' | 'ledger'>;
  /** What the ledger is bound to, if it is this gateway's. */
  readonly audience: string;
  readonly settings: Pick<AccountSettings, 'pollRate'>;
  readonly publishEvidence: (evidence: LookUpEvidence) => Promise<void>;
  readonly observer: Pick<WorkerObserver, 'lookedUp'>;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 2_000;
/**
 * How soon all payouts that are `unknown` are looked through again, once the last one was: an entry may be lost, and a
 * Redis that came back older gives places again.
 */
const LINE_UP_AGAIN_MS = 60_000;

/** Of the rate of polls, which the payouts in progress need. */
export const SHARE_OF_POLLS = 0.1;

interface Answer {
  readonly answer: LookUpAnswer;
  readonly message: string;
  /** The payout has this payment: nothing is left to ask for the attempt. */
  readonly isSettled?: true;
}

type FoundLookUp = Extract<LookUp, { kind: 'found' }>;

/** With one attempt, the gateway has its payment. In the other states, or by a person's word, it may have another one too. */
const FOLLOWED_STATES: readonly PayoutState[] = ['in_progress', 'completed', 'failed'];

/**
 * Asks the gateway for payouts that are `unknown`, by the order ids of their attempts, in the process that sends. A payment
 * that is found is followed to its end. Whatever else is answered, and however often, changes no payout: that the gateway
 * does not know an order id is no evidence that nothing was paid. Pace and waits know nothing of it.
 */
export class Janitor {
  readonly #runtime: JanitorRuntime;
  readonly #evidence: Evidence;
  #place = 0;
  #linedUpAt: number;
  #askedAt = -Infinity;

  constructor(runtime: JanitorRuntime) {
    this.#runtime = runtime;
    this.#evidence = new Evidence(runtime);
    this.#linedUpAt = runtime.clock.now();
  }

  /** Until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#runtime;
    let last: string | undefined;
    const onError = (error: Error): void => {
      const { message } = error;
      // Someone has altered keys, or the ledger is another gateway's: once is enough.
      const isNews = !(error instanceof RedisUnavailableError) && message !== last;
      last = message;
      logger[isNews ? 'warn' : 'debug']({ error: message }, 'payouts could not be looked up, will try again');
    };
    await every(LOOK_EVERY_MS, async () => this.#round(signal), { clock, signal, onError });
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { lookUps, audience } = this.#runtime;
    // A gateway knows nothing of another gateway's payments.
    const bound = (await lookUps.readAudience()) ?? audience;
    if (bound !== audience) throw new Error(describeOtherGateway(bound, audience));
    await this.#evidence.begin();
    await this.#lineUp();
    for (const payoutId of await lookUps.readDue()) {
      if (isAborted(signal)) return;
      await this.#tryAskFor(payoutId, signal);
    }
    const { due } = this.#evidence;
    if (due === undefined || isAborted(signal)) return;
    const answer = await this.#ask(due, due.request, signal);
    if (answer !== undefined) await this.#evidence.note(due, answer);
  }

  async #lineUp(): Promise<void> {
    const { clock, lookUps } = this.#runtime;
    const place = await lookUps.lineUp(this.#place);
    const isAtEnd = place === this.#place;
    this.#place = place;
    if (!isAtEnd || clock.now() - this.#linedUpAt < LINE_UP_AGAIN_MS) return;
    this.#place = 0;
    this.#linedUpAt = clock.now();
  }

  /** One that cannot be read keeps back no other. */
  async #tryAskFor(payoutId: string, signal: AbortSignal): Promise<void> {
    const { lookUps, logger } = this.#runtime;
    try {
      await this.#askFor(payoutId, signal);
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw error;
      logger.warn({ payoutId, error: (error as Error).message }, 'payout could not be looked up');
      await lookUps.postpone(payoutId);
    }
  }

  async #askFor(payoutId: string, signal: AbortSignal): Promise<void> {
    const { lookUps } = this.#runtime;
    const payout = await lookUps.readPayout(payoutId);
    const attempts = payout === undefined ? [] : await this.#attemptsOf(payout);
    if (payout === undefined || attempts.length === 0 || (attempts.length === 1 && isFollowed(payout))) {
      await lookUps.drop(payoutId);
      return;
    }
    // Its response is about to come.
    if (payout.state === 'sending') {
      await lookUps.postpone(payoutId);
      return;
    }
    const answers: Answer[] = [];
    for (const attempt of attempts) {
      const answer = await this.#settle(attempt, payout, signal);
      if (answer === undefined) return;
      answers.push(answer);
    }
    await this.#note(payout, answers);
  }

  /** Without one that was begun since the payout was read. */
  async #attemptsOf({ payoutId, attempt: newest }: Payout): Promise<readonly SendAttempt[]> {
    const attempts = await this.#runtime.lookUps.readAttempts(payoutId);
    return attempts.filter(({ attempt }) => attempt <= newest).slice(0, MOST_ATTEMPTS);
  }

  /**
   * Asks for one attempt, and records its payment.
   * @returns undefined if the signal was aborted first
   */
  async #settle(attempt: SendAttempt, payout: Payout, signal: AbortSignal): Promise<Answer | undefined> {
    const entry = this.#runtime.journal.lastSends(Infinity).find((each) => identify(each) === identify(attempt));
    const found = await this.#ask(attempt, entry?.request ?? payout, signal);
    if (found === undefined) return undefined;
    if (found.kind !== 'found') return { answer: found.kind, message: found.message };
    const answer = this.#compare(found, payout);
    if ('answer' in answer) return answer;
    await this.#evidence.publish({ lookUp: 'works' });
    return this.#record(attempt, entry, payout, answer);
  }

  /** Never faster than the janitor's share of the polls. @returns undefined if the signal was aborted first */
  async #ask(attempt: SendAttempt, expected: Payout | JournalEntry['request'], signal: AbortSignal) {
    const { clock, gateway, settings } = this.#runtime;
    const waitMs = this.#askedAt + 1_000 / (settings.pollRate * SHARE_OF_POLLS) - clock.now();
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    if (isAborted(signal)) return undefined;
    this.#askedAt = clock.now();
    // The end of the sender must not wait for a slow answer.
    const turn = followSignals(signal);
    const ended = untilAborted(turn.signal).then(() => undefined);
    return Promise.race([lookUp(gateway, orderIdOf(attempt), expected), ended]).finally(turn.end);
  }

  /**
   * What was sent is in the journal, what people see in the ledger: the payment must be both. One that is not named
   * completely could be another one.
   */
  #compare({ payment, differences }: FoundLookUp, payout: Payout): FoundPayment | Answer {
    const all = [...differences, ...this.#runtime.gateway.comparePayment(payment, payout)];
    const contradictions = all.filter(({ actual }) => actual !== undefined);
    if (contradictions.length > 0) return { answer: 'other_payment', message: describeDifferences(contradictions) };
    return all.length > 0 ? { answer: 'failed', message: describeDifferences(all) } : payment;
  }

  async #record(
    attempt: SendAttempt,
    entry: JournalEntry | undefined,
    payout: Payout,
    { gatewayId, txhash }: FoundPayment,
  ): Promise<Answer> {
    const { clock, journal, lookUps, logger } = this.#runtime;
    const { payoutId } = attempt;
    if (gatewayId === undefined)
      return {
        answer: 'found',
        message: "it is there, without its gateway id: look for that in the gateway's records",
      };
    const answer: Answer = { answer: 'found', message: `it is there, as ${gatewayId}` };
    if (isSameGatewayId(payout.gatewayId, gatewayId)) return { ...answer, isSettled: true };
    const names: PaymentNames = { gatewayId, ...(txhash !== undefined && { txhash }) };
    // The journal first, for audits and adoptions: if this process ends here, the payout stays unknown and is asked for again.
    if (entry !== undefined && entry.outcome?.kind !== 'accepted')
      journal.noteOutcome(attempt, { kind: 'accepted', ...names, found: true }, clock.wallNow());
    const { recorded, latePayment } = await lookUps.recordFound(attempt, names);
    if (recorded) logger.info({ payoutId, gatewayId }, 'found the payment of a payout by its order id');
    if (latePayment)
      logger.error(
        { payoutId, gatewayId },
        'payout was paid after it was written off or put back: it may be paid twice',
      );
    return recorded || latePayment ? { ...answer, isSettled: true } : answer;
  }

  async #note(payout: Payout, answers: readonly Answer[]): Promise<void> {
    const { clock, lookUps, observer, logger } = this.#runtime;
    const { payoutId, state, attempt, lookUp: former } = payout;
    const now = new Date(clock.wallNow()).toISOString();
    const isNew = former === undefined || (state === 'unknown' && former.attempt !== attempt);
    const series = isNew ? { count: 0, since: now, attempt } : former;
    const { answer, message } = mostTelling(answers);
    const noted: OrderLookUp = {
      ...{ answer, message: toLine(message), count: series.count + 1 },
      ...{ since: series.since, at: now, attempt: series.attempt },
    };
    const isOver = answers.every(({ isSettled }) => isSettled === true);
    const isAlarm =
      answer === 'other_payment' && (isNew || former.answer !== answer || former.message !== noted.message);
    observer.lookedUp?.(answer);
    if (isAlarm) logger.error({ payoutId }, 'the payment with the order id of a payout is another payment');
    await lookUps.note(payout, noted, isOver, isAlarm ? message : undefined);
  }
}

function isFollowed({ state, vouchedGatewayId }: Payout): boolean {
  return FOLLOWED_STATES.includes(state) && vouchedGatewayId === undefined;
}

/** What a person must know first. A "no" counts only if each attempt got it. */
function mostTelling(answers: readonly Answer[]): Answer {
  const order: readonly LookUpAnswer[] = ['other_payment', 'found', 'failed', 'refused'];
  return answers.toSorted((one, other) => order.indexOf(one.answer) - order.indexOf(other.answer))[0] as Answer;
}

type AcceptedSend = JournalEntry & { readonly outcome: { readonly kind: 'accepted' } & PaymentNames };

/**
 * Whether the gateway finds payments by order id at all: learned from the first payout that this process saw accepted.
 * Only then does it mean anything to people that it does not know one.
 */
class Evidence {
  readonly #runtime: JanitorRuntime;
  readonly #sendsBefore: number;
  #send: AcceptedSend | undefined;
  /** Published last. */
  #known: LookUpEvidence['lookUp'];
  #asked = 0;
  #dueAt = 0;

  constructor(runtime: JanitorRuntime) {
    this.#runtime = runtime;
    this.#sendsBefore = runtime.journal.ledger?.sends ?? 0;
  }

  /** The payout to ask for now. */
  get due(): AcceptedSend | undefined {
    const { clock, journal } = this.#runtime;
    if (this.#known === 'works') return undefined;
    if (this.#send === undefined) {
      this.#send = journal.lastSends(Infinity).find((each) => each.sends > this.#sendsBefore && isAccepted(each)) as
        AcceptedSend | undefined;
      this.#dueAt = clock.now() + waitBefore(0);
    }
    return clock.now() < this.#dueAt ? undefined : this.#send;
  }

  /** What an earlier process learned may be over. */
  async begin(): Promise<void> {
    if (this.#known === undefined) await this.publish({ lookUp: 'untested' });
  }

  async note({ outcome }: AcceptedSend, found: LookUp): Promise<void> {
    const { clock } = this.#runtime;
    this.#asked += 1;
    this.#dueAt = clock.now() + waitBefore(this.#asked);
    if (found.kind !== 'found') return this.publish({ lookUp: 'fails', lookUpMessage: toLine(found.message) });
    const { payment, differences } = found;
    const isIt =
      payment.gatewayId === undefined
        ? differences.length === 0
        : isSameGatewayId(payment.gatewayId, outcome.gatewayId);
    return this.publish(isIt ? { lookUp: 'works' } : { lookUp: 'fails', lookUpMessage: 'it found another payment' });
  }

  async publish(evidence: Pick<LookUpEvidence, 'lookUp' | 'lookUpMessage'>): Promise<void> {
    const { clock, publishEvidence } = this.#runtime;
    if (this.#known === 'works') return;
    await publishEvidence({ ...evidence, lookUpAt: clock.wallNow() });
    this.#known = evidence.lookUp;
  }
}

function isAccepted({ outcome }: JournalEntry): boolean {
  return outcome?.kind === 'accepted';
}
