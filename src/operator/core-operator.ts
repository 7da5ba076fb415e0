import { ClosedError, InvalidInputError } from '../base/errors.js';
import { bindingOf } from '../base/audience.js';
import { GATEWAY_APIS, type GatewayApi } from '../base/settings.js';
import type { StatusGateway } from '../gateway/gateway.js';
import { type AccountStats, readAccountStats } from '../ledger/reads/account-stats.js';
import { type PayoutLedger, wrongStateError } from '../ledger/payout-ledger.js';
import { type Actor, parseActor, type Payout, requirePayoutId } from '../ledger/payout.js';
import { type NewComment, parseNewComment } from '../ledger/payout-comment.js';
import { HOLDABLE_STATES, type PayoutState } from '../ledger/states.js';
import { type AccountConnectionOptions, cancelPayout, type LedgerAccess, openLedger } from '../queues/open-ledger.js';
import { type AdoptLedgerOptions, type AdoptLedgerResult, runAdoption } from './adopt-ledger.js';
import { changeOnePayout } from './change-payouts.js';
import type { DecisionSigner } from './decision-signer.js';
import { type DecidedPayout, type Resolution, resolvePayout } from './resolve-payout.js';
import { undoCancels, undoIdOf } from './undo-cancel.js';

/** The operator's account, and its access to Redis and the gateway. */
export interface CoreOperatorOptions extends AccountConnectionOptions {
  /**
   * `resolve` asks it whether a transaction is a payout's payment. Stays open when the operator is
   * closed. @defaultValue none: only an unchecked payment is accepted
   */
  readonly gateway?: StatusGateway | undefined;
}

/** An account that is open already, and stays open: for the commands of this package. */
export interface SharedAccount {
  readonly account: LedgerAccess;
  readonly gateway?: StatusGateway | undefined;
}

/** Payouts that only the API that sent them can follow. */
const UNSETTLED: readonly PayoutState[] = ['sending', 'in_progress', 'unknown'];

/** Decides about an account. The public class of this name adds control of money. */
export class CoreOperator {
  readonly #account: LedgerAccess;
  readonly #gateway: StatusGateway | undefined;
  readonly #signer: DecisionSigner | undefined;
  readonly #closeAccount: () => Promise<void>;
  #closing: Promise<void> | undefined;

  /** @throws InvalidConfigError when the options cannot be used */
  constructor(options: CoreOperatorOptions | SharedAccount, signer?: DecisionSigner) {
    this.#gateway = options.gateway;
    this.#signer = signer;
    if ('account' in options) {
      this.#account = options.account;
      this.#closeAccount = async () => Promise.resolve();
    } else {
      const account = openLedger(options);
      this.#account = account;
      this.#closeAccount = async () => account.close();
    }
  }

  /**
   * Queues a payout that the gateway rejected: it is sent again.
   * @returns the payout, `queued`
   * @throws ConflictError if it is not `rejected`, has a late payment (`lateGatewayId`), or, with a signer, no producer
   * signed it
   */
  async retry(payoutId: string, actor: Actor): Promise<Payout> {
    requirePayoutId(payoutId);
    return changeOnePayout(this.#use(), { payoutId, from: 'rejected', to: 'queued' }, parseActor(actor), this.#signer);
  }

  /**
   * Holds a queued payout, or one that a rule holds: it is not sent, whatever the policy, approvals or a new signature say,
   * until {@link release}. Who can write to Redis can end it; with keys, a signed rejection cannot be undone so.
   * @returns the payout, `held`
   * @throws ConflictError if it is neither `queued` nor `held`
   */
  async hold(payoutId: string, actor: Actor): Promise<Payout> {
    requirePayoutId(payoutId);
    const account = this.#use();
    const { state } = await account.ledger.require(payoutId);
    if (!HOLDABLE_STATES.includes(state)) throw wrongStateError(payoutId, state, HOLDABLE_STATES, 'held');
    return changeOnePayout(account, { payoutId, from: state, to: 'held' }, parseActor(actor));
  }

  /**
   * Queues a held payout, at the end. Releasing grants nothing: the worker checks it again, and holds it again if the
   * cause remains. If the payout was sent before, the signer signs that an attempt paid nothing.
   * @param options - `unpaidAttempt`: the number of that attempt, from the worker's message. A crash or a write to
   * Redis can leave a different last attempt. @defaultValue the payout's last
   * @returns the payout, `queued`
   * @throws InvalidInputError also if `unpaidAttempt` is no whole number from 1 on, or has no signer
   * @throws ConflictError if it is not `held`, or has a late payment (`lateGatewayId`)
   */
  async release(
    payoutId: string,
    actor: Actor,
    { unpaidAttempt }: { readonly unpaidAttempt?: number | undefined } = {},
  ): Promise<Payout> {
    requirePayoutId(payoutId);
    if (unpaidAttempt !== undefined) this.#checkUnpaidAttempt(unpaidAttempt);
    const change = { payoutId, from: 'held', to: 'queued', unpaidAttempt } as const;
    return changeOnePayout(this.#use(), change, parseActor(actor), this.#signer);
  }

  /**
   * Decides the outcome of an `unknown` payout. A wrong `not_sent` pays twice: it is refused while the request may
   * still be on its way. After that the operator's word counts.
   * @param payout - its id, or its id with the attempt that was decided about, to exclude later ones; `not_sent` needs it
   * @returns the payout, now `in_progress` (sent), `queued` (not sent) or `written_off`
   * @throws InvalidInputError also if the gatewayId names no payment, or `not_sent` no attempt
   * @throws InvalidConfigError if a payment needs a check and there is no gateway
   * @throws ConflictError if it is not `unknown`, was sent again, or its request may still be on its way; if the gatewayId
   * belongs to another payout; for `not_sent` with a signer, if no producer signed it
   * @throws TransactionMismatchError (a {@link ConflictError}) if the gateway does not know the transaction, or its
   * currency, address or amount differ
   * @throws GatewayUnavailableError, GatewayInvalidResponseError
   */
  async resolve(payout: string | DecidedPayout, resolution: Resolution, actor: Actor): Promise<Payout> {
    const decided = Object(payout) === payout ? (payout as DecidedPayout) : { payoutId: payout as string };
    requirePayoutId(decided.payoutId);
    const [gateway, signer] = [this.#gateway, this.#signer];
    return resolvePayout(this.#use(), { gateway, signer }, decided, resolution, parseActor(actor));
  }

  /**
   * Cancels a queued or held payout, or gives up a rejected one. It is never sent again.
   * @returns the payout: `cancelled`, or `written_off` if it was, or may have been, paid
   * @throws ConflictError if it is neither queued, held nor rejected; asked again after an unknown outcome, one that
   * names `cancelled` or `written_off` means success
   */
  async cancel(payoutId: string, actor: Actor): Promise<Payout> {
    return cancelPayout(this.#use(), requirePayoutId(payoutId), parseActor(actor));
  }

  /**
   * Pays after all what a person cancelled within the last hour and no attempt was ever begun of: as a new payout of the
   * same data, whose id comes from the old one, so repeating is safe. The cancelled one stays cancelled. Its application was
   * told that, and may have given the money back: tell it of the new id first.
   * @returns the new payout
   * @throws ConflictError if it is not `cancelled` or may not be repeated: it was begun, rejected, signed, or cancelled by its
   * application or earlier; no worker has the cancellation in its journal; a later payout may be the same payment
   */
  async undoCancel(payoutId: string, actor: Actor): Promise<Payout> {
    requirePayoutId(payoutId);
    const account = this.#use();
    const [error] = await undoCancels(account, [payoutId], parseActor(actor), false);
    if (error !== undefined) throw error;
    return account.ledger.require(undoIdOf(payoutId));
  }

  /**
   * Writes a comment about a payout for other operators, such as "I am on it", whatever its state. Pages, lists, exports and
   * the activity show it. It changes nothing, and nobody signs it: anyone who can write to Redis can write one.
   * Applications that read the payout get it too.
   * @returns the payout, with its `comments`
   * @throws ConflictError if it has 50
   */
  async comment(payoutId: string, comment: NewComment): Promise<Payout> {
    requirePayoutId(payoutId);
    const { ledger } = this.#use();
    await ledger.comment(payoutId, parseNewComment(comment));
    return ledger.require(payoutId);
  }

  /**
   * Stops sending. After it returns, nothing is sent but the one payout that may be on its way. Payouts are still
   * accepted, and sent ones are still polled.
   * @returns the pauses; `changed` is false if the same actor had paused it already, and the first reason stays
   */
  async pause(actor: Actor): Promise<PauseState> {
    return setPause(this.#use().ledger, 'pause', parseActor(actor));
  }

  /**
   * States that the account is new: nothing was ever sent for it, and no process sends for it, here or with another
   * Redis. Its first worker then sends after one interval. Otherwise it waits `leaseMs` and `quarantineMs` for a sender
   * that may still live. A false statement, such as after Redis was emptied, may let two processes send at once and pay
   * twice.
   * @returns false if it was stated before and no worker has begun since
   * @throws ConflictError if a process had the right to send before, a journal is known, or a payout was sent
   */
  async declareNew(actor: Actor): Promise<boolean> {
    return this.#use().ledger.declareNew(parseActor(actor));
  }

  /**
   * Ends a pause; the account sends again once none remains (`pauses`). Settle its reason first. The signed act is kept even if the account was
   * not paused, because a worker may have a pause of its own.
   * @param options - `of`: whose pause, a person's name, `worker` or `adoption`. @defaultValue the only one; of several the
   * actor's own
   * @returns the account's state; `changed` is false if it was not paused
   * @throws ConflictError while a send journal objects to the ledger: {@link adoptLedger} ends that; if several pauses
   * stand, and none is the actor's or `of` that name
   */
  async resume(actor: Actor, { of }: { readonly of?: string | undefined } = {}): Promise<PauseState> {
    const { ledger } = this.#use();
    const parsed = parseActor(actor);
    const act = await this.#signer?.signAccountAct(ledger.connection, 'resume', parsed);
    return setPause(ledger, 'resume', parsed, act, of);
  }

  /**
   * Accepts a ledger that forgot sends which the send journals have, as after a flush or an older backup of Redis. Each
   * forgotten send is restored from its journal, and the workers send again. It needs every journal of the account, or
   * the missing ones given up.
   * @returns the findings and changes; no adoption if journals and ledger agree
   * @throws NotFoundError if a folder holds no journal of the account
   * @throws InvalidInputError also if a folder cannot be read or `giveUp` names no journal
   * @throws ConflictError if journals or sends are missing and not given up; nothing was adopted
   * @throws Error if a journal cannot be read or written; asking again is safe
   */
  async adoptLedger(options: AdoptLedgerOptions, actor: Actor): Promise<AdoptLedgerResult> {
    return runAdoption(this.#use(), options, parseActor(actor), this.#signer);
  }

  /**
   * States that the ledger's payments belong to another gateway from now on, as a worker's `PAYOUT_AUDIENCE` names it, or
   * are made by another generation of its API. Workers of the former then refuse to send.
   * @param api - as the worker's `GATEWAY_API`. @defaultValue `'v1'`
   * @returns false if it was already bound so
   * @throws InvalidConfigError if the audience is invalid
   * @throws ConflictError if only the API changes, and a payout is sending, in progress or unknown
   */
  async adoptGateway(audience: string, actor: Actor, api?: GatewayApi): Promise<boolean> {
    const { ledger } = this.#use();
    const account = { platformId: ledger.connection.platformId, audience };
    const [named, parsed] = [bindingOf({ ...account, api }), parseActor(actor)];
    const act = await this.#signer?.signAccountAct(ledger.connection, 'adopt', parsed);
    const before = await ledger.readAudience();
    const isSameGateway = GATEWAY_APIS.some((each) => bindingOf({ ...account, api: each }) === before);
    return ledger.bind(named, parsed, { act, ...(isSameGateway && { without: UNSETTLED }) });
  }

  /** Ends the connection that the operator opened. Safe to call twice; never waits for an unavailable Redis. */
  async close(): Promise<void> {
    this.#closing ??= this.#closeAccount();
    await this.#closing;
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #checkUnpaidAttempt(unpaidAttempt: number): void {
    const message = !(Number.isSafeInteger(unpaidAttempt) && unpaidAttempt >= 1)
      ? `must be a whole number from 1 on, not ${unpaidAttempt}`
      : this.#signer === undefined
        ? 'is stated under signature: give the operator a signer'
        : undefined;
    if (message !== undefined) throw new InvalidInputError([{ field: 'unpaidAttempt', message }]);
  }

  #use(): LedgerAccess {
    if (this.#closing !== undefined) throw new ClosedError('Operator is closed; create a new one');
    return this.#account;
  }
}

/** The account's state after a pause or a resume. */
export interface PauseState extends Pick<
  AccountStats,
  'platformId' | 'paused' | 'pausedReason' | 'pausedBy' | 'pausedAt' | 'pauses'
> {
  /** False if it was already so. */
  readonly changed: boolean;
}

/**
 * @param act - the signed act of a resume, as JSON
 * @throws see `PayoutLedger.pause` and `resume`
 */
async function setPause(
  ledger: PayoutLedger,
  verb: 'pause' | 'resume',
  { by, reason }: Actor,
  act?: string,
  of?: string,
): Promise<PauseState> {
  const changed = verb === 'pause' ? await ledger.pause(by, reason) : await ledger.resume(by, reason, act, of);
  const { platformId, paused, pausedReason, pausedBy, pausedAt, pauses } = await readAccountStats(ledger.connection);
  return { platformId, changed, paused, pausedReason, pausedBy, pausedAt, pauses };
}
