import { audienceOf } from '../account-settings.js';
import { ClosedError, InvalidInputError } from '../errors.js';
import type { StatusGateway } from '../gateway/gateway.js';
import { parseActor, type Actor } from '../ledger/actor.js';
import type { Payout } from '../ledger/payout.js';
import { cancelPayout } from '../queues/cancel-payout.js';
import { openLedger, type LedgerAccess, type AccountConnectionOptions } from '../queues/open-ledger.js';
import { adoptLedger, type AdoptLedgerOptions, type AdoptLedgerResult } from './adopt-ledger.js';
import type { DecisionSigner } from './decision-signer.js';
import { requeuePayout } from './requeue-payout.js';
import { resolvePayout, type DecidedPayout, type Resolution } from './resolve-payout.js';
import { setPause, type PauseState } from './set-pause.js';

/** Which account an operator decides about, and how it reaches Redis and the gateway. */
export interface PayoutOperatorOptions extends AccountConnectionOptions {
  /**
   * Asked by {@link PayoutOperator.resolve} whether a transaction is a payout's payment. It stays open when the operator is
   * closed. @defaultValue none: a txhash is taken unchecked only
   */
  readonly gateway?: StatusGateway | undefined;
}

/** An account that is open already, and stays open: for the commands of this package. */
export interface SharedAccount {
  readonly account: LedgerAccess;
  readonly gateway?: StatusGateway | undefined;
}

/** Decides about an account. The public class of this name adds control of money. */
export class PayoutOperator {
  readonly #account: LedgerAccess;
  readonly #gateway: StatusGateway | undefined;
  readonly #signer: DecisionSigner | undefined;
  readonly #closeAccount: () => Promise<void>;
  #closing: Promise<void> | undefined;

  /** @throws InvalidConfigError when the options cannot be used */
  constructor(options: PayoutOperatorOptions | SharedAccount, signer?: DecisionSigner) {
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
   * Puts a payout that the gateway rejected back into the queue: it is sent again.
   * @returns the payout, `queued`
   * @throws InvalidInputError when a text of the actor is empty, too long or more than one line
   * @throws NotFoundError when there is no such payout
   * @throws ConflictError when it is not `rejected`, or a payment was proved too late (`lateTxhash`), or, with a signer, no
   * producer signed it
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async retry(payoutId: string, actor: Actor): Promise<Payout> {
    return requeuePayout(this.#use(), { payoutId, from: 'rejected' }, parseActor(actor), this.#signer);
  }

  /**
   * Puts a payout that is held back into the queue, at its end. The worker checks it again before it is sent, and holds it
   * again where the cause stands: nothing is granted by it. Of a payout that was sent before, the signer signs that an
   * attempt paid nothing.
   * @param options - `unpaidAttempt`: the number of that attempt, as the worker's message names it. A crash, or
   * anyone who writes to Redis, can leave another number as the payout's last. @defaultValue the payout's last
   * @returns the payout, `queued`
   * @throws InvalidInputError when a text of the actor is empty, too long or more than one line, or `unpaidAttempt` is no
   * whole number from 1 on, or there is no signer to state it
   * @throws NotFoundError when there is no such payout
   * @throws ConflictError when it is not `held`, or a payment was proved too late (`lateTxhash`)
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async release(
    payoutId: string,
    actor: Actor,
    { unpaidAttempt }: { readonly unpaidAttempt?: number | undefined } = {},
  ): Promise<Payout> {
    if (unpaidAttempt !== undefined) this.#checkUnpaidAttempt(unpaidAttempt);
    return requeuePayout(this.#use(), { payoutId, from: 'held', unpaidAttempt }, parseActor(actor), this.#signer);
  }

  /**
   * Decides what became of a payout that is `unknown`. A wrong `not_sent` pays twice: it is refused while the request may
   * still be on its way, and beyond that the operator's word counts.
   * @param payout - its id, or with the attempt that was decided about, so that a later one is not meant
   * @returns the payout, now `in_progress` (sent), `queued` (not sent) or `cancelled` (written off)
   * @throws InvalidInputError when the txhash names no transaction, or a text of the actor is unusable
   * @throws InvalidConfigError when a txhash is to be checked and the operator has no gateway
   * @throws NotFoundError when there is no such payout
   * @throws ConflictError when it is not `unknown`, was sent again since, its request may still be on its way, or the txhash
   * belongs to another payout, or, of one that was not sent and with a signer, no producer signed it
   * @throws TransactionMismatchError when the gateway does not know the transaction, or its currency, address or amount are
   * not the payout's; a {@link ConflictError}
   * @throws GatewayUnavailableError when the gateway could not be asked
   * @throws GatewayInvalidResponseError when the gateway's response makes no sense
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async resolve(payout: string | DecidedPayout, resolution: Resolution, actor: Actor): Promise<Payout> {
    const decided = typeof payout === 'string' ? { payoutId: payout } : payout;
    const [gateway, signer] = [this.#gateway, this.#signer];
    return resolvePayout(this.#use(), { gateway, signer }, decided, resolution, parseActor(actor));
  }

  /**
   * Cancels a payout that is still queued or held, or gives up one that was rejected. It is never sent again.
   * @returns the payout, `cancelled`
   * @throws InvalidInputError when a text of the actor is empty, too long or more than one line
   * @throws NotFoundError when there is no such payout
   * @throws ConflictError when it is neither queued, held nor rejected
   * @throws RedisUnavailableError when it may or may not have happened: asked again, a ConflictError that names `cancelled`
   * says that it had
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async cancel(payoutId: string, actor: Actor): Promise<Payout> {
    return cancelPayout(this.#use(), payoutId, parseActor(actor));
  }

  /**
   * Stops sending. Once it returns, nothing more is sent but the one payout that may be on its way; payouts are still
   * accepted, and the status of sent ones is still polled.
   * @returns the pause; `changed` is false when the account was paused already, and its first reason stays
   * @throws InvalidInputError when a text of the actor is empty, too long or more than one line
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async pause(actor: Actor): Promise<PauseState> {
    return setPause(this.#use().ledger, 'pause', parseActor(actor));
  }

  /**
   * States that the account is new: nothing was ever sent for it, and no process sends for it, here or with another Redis. Its
   * first worker then sends after one interval, instead of waiting `leaseMs` and `quarantineMs` for a sender that may still
   * live. Where that is not true, such as after a Redis was emptied, two may send at the same time, and payouts twice.
   * @returns false when it was stated before, and no worker has begun since
   * @throws InvalidInputError when a text of the actor is empty, too long or more than one line
   * @throws ConflictError when a process had the right to send before, a journal is known, or a payout was sent
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async declareNew(actor: Actor): Promise<boolean> {
    return this.#use().ledger.declareNew(parseActor(actor));
  }

  /**
   * Sends again after a pause. Settle its reason with the gateway first. What a signer signs is kept also where the account
   * was not paused: a worker may keep a pause of its own.
   * @returns how the account stands; `changed` is false when it was not paused
   * @throws InvalidInputError when a text of the actor is empty, too long or more than one line
   * @throws ConflictError while a send journal objects to the ledger: {@link adoptLedger} ends that
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger was written by a newer version
   * @throws ClosedError after {@link close}
   */
  async resume(actor: Actor): Promise<PauseState> {
    const { ledger } = this.#use();
    const parsed = parseActor(actor);
    return setPause(ledger, 'resume', parsed, await this.#signer?.signAccountAct(ledger.connection, 'resume', parsed));
  }

  /**
   * Accepts a ledger that forgot sends which the send journals have, as after Redis was flushed or restored from an older
   * copy: each forgotten send comes back as what its journal says of it, and the workers send again. Carrying it out needs
   * every journal of the account, or that the missing ones are given up.
   * @returns what was found and what was changed; no adoption where journals and ledger agree
   * @throws NotFoundError when a folder holds no journal of the account
   * @throws InvalidInputError when a folder cannot be read, `giveUp` names no journal, or a text of the actor is unusable
   * @throws ConflictError when journals or sends are missing and not given up; nothing was adopted
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   * @throws UnsupportedFormatError when the ledger or a journal was written by a newer version
   * @throws Error when a journal cannot be read or written; asking again is safe
   * @throws ClosedError after {@link close}
   */
  async adoptLedger(options: AdoptLedgerOptions, actor: Actor): Promise<AdoptLedgerResult> {
    return adoptLedger(this.#use(), options, parseActor(actor), this.#signer);
  }

  /**
   * States that the ledger's payments are of another gateway from now on, as a worker's `PAYOUT_AUDIENCE` names it: workers of
   * the former one refuse then.
   * @returns false when it was bound so before
   * @throws InvalidConfigError when it is no audience; what the signer throws; RedisUnavailableError when it may or may not
   * have happened; asking again is safe
   */
  async adoptGateway(audience: string, actor: Actor): Promise<boolean> {
    const { ledger } = this.#use();
    const { platformId } = ledger.connection;
    const [named, parsed] = [audienceOf({ platformId, audience }), parseActor(actor)];
    return ledger.bind(named, parsed, await this.#signer?.signAccountAct(ledger.connection, 'adopt', parsed));
  }

  /** Ends the connection that the operator opened. Safe to call twice; never waits for a Redis that is unavailable. */
  async close(): Promise<void> {
    this.#closing ??= this.#closeAccount();
    await this.#closing;
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
