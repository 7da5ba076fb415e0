import { toUnits } from '../base/decimal.js';
import { InvalidInputError, type Problem, RedisUnavailableError } from '../base/errors.js';
import { toPlainText } from '../base/plain-text.js';
import { formatTimeUtc, toIsoTime } from '../base/format.js';
import {
  checkNetwork,
  compareNetworks,
  type NetworkCheck,
  splitTag,
  type Wallet,
  walletKey,
} from '../gateway/wallet.js';
import { type Currency, readGatewayFacts, requestCurrencies } from '../ledger/reads/gateway-facts.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { NewPayout } from '../ledger/payout.js';
import { COPY_AGAIN, type ParsedPayout, showAddress } from './parse-payouts.js';

const REFRESH_EVERY_MS = 60_000;

/** Until a worker has published a list: its first comes within seconds of its start. */
const REFRESH_EMPTY_MS = 1_000;

/** A refusal rests on a list read from Redis at most this long ago. */
const REFUSE_WITHIN_MS = 10_000;

/** No worker has sent for a day, or none reads the list: what the gateway lists now is unknown. */
const MAX_AGE_MS = 24 * 3_600_000;

const LOOK_UP_AT_ONCE = 1_000;
const SHOWN = 20;

interface ListRules {
  /** Whether to refuse an address of another network than its currency's. */
  readonly checksums: boolean;
  /** Whether to refuse what the list does not have, and amounts that it does not allow. */
  readonly paymentIds: boolean;
  /** Whether to refuse everything while there is no list. */
  readonly isRequired: boolean;
}

/** Why each of some payouts is refused. */
export type Refused = ReadonlyMap<NewPayout, InvalidInputError>;

/**
 * The gateway's currencies as the worker published them. Someone who writes to Redis can have payouts refused by it, and
 * none paid that would be refused without it.
 */
export class ListedCurrencies {
  readonly #ledger: PayoutLedger;
  readonly #rules: ListRules;
  #currencies: ReadonlyMap<number, Currency> = new Map();
  #contracts: ReadonlyMap<string, Currency> = new Map();
  #isWhole = false;
  /** Wall clock, ms. */
  #listedAt = 0;
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(ledger: PayoutLedger, rules: ListRules) {
    this.#ledger = ledger;
    this.#rules = rules;
  }

  /** Beside the calls: it neither delays nor reorders them. */
  refresh(): void {
    if (this.#isUsed && this.#passedMs() > REFRESH_EVERY_MS) this.read().catch(() => undefined);
  }

  /** @throws RedisUnavailableError */
  async read(): Promise<void> {
    if (!this.#isUsed) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  /** By the list as it was read last. Only then is {@link findRefused} worth a wait for Redis. */
  mayRefuse(payouts: readonly ParsedPayout[]): boolean {
    if (!this.#isUsed) return false;
    return (
      this.#isDueWhileEmpty() || payouts.some(({ payout, wallet }) => this.#findProblem(payout, wallet) !== undefined)
    );
  }

  /** Why a payout's address was not compared with its currency's network. */
  whyUnchecked({ payout: { addressTo, paymentId }, wallet }: ParsedPayout): string | undefined {
    if (!this.#rules.checksums) return 'PAYOUT_CHECK_ADDRESSES is false';
    if (this.#currencies.size === 0) return "no worker has published the gateway's list of currencies";
    const [address] = splitTag(addressTo);
    const network = compareNetworks(address, wallet, this.#currencies.get(paymentId));
    return network.kind === 'unchecked' ? toPlainText(network.reason) : undefined;
  }

  /**
   * Finds payouts that contradict the gateway's list, and has the worker query the list again. A payout that the ledger
   * has is not among them: a repeated call is answered as before.
   * @returns why each is refused
   * @throws RedisUnavailableError
   */
  async findRefused(payouts: readonly NewPayout[]): Promise<Refused> {
    const refused = new Map<NewPayout, InvalidInputError>();
    if (!this.#isUsed) return refused;
    if (this.#readAt === -Infinity || this.#isDueWhileEmpty()) await this.read();
    if (!payouts.some((payout) => this.#findProblem(payout) !== undefined)) return refused;
    if (this.#passedMs() > REFUSE_WITHIN_MS) {
      await this.read();
      const mayRefuse = payouts.some((payout) => this.#findProblem(payout) !== undefined);
      if (mayRefuse) await requestCurrencies(this.#ledger.connection);
    }
    const contradicting = payouts.flatMap((payout) => {
      const problem = this.#findProblem(payout);
      return problem === undefined ? [] : [{ payout, problem }];
    });
    for (let start = 0; start < contradicting.length; start += LOOK_UP_AT_ONCE) {
      const step = contradicting.slice(start, start + LOOK_UP_AT_ONCE);
      const known = await this.#ledger.knows(step.map(({ payout }) => payout.payoutId));
      for (const [index, { payout, problem }] of step.entries())
        if (known[index] !== true) refused.set(payout, new InvalidInputError([problem]));
    }
    return refused;
  }

  async #read(): Promise<void> {
    this.#readAt = this.#ledger.connection.clock.now();
    try {
      const { currencies, currenciesAt, isWhole } = await readGatewayFacts(this.#ledger.connection);
      this.#currencies = new Map(currencies.map((currency) => [currency.paymentId, currency]));
      this.#contracts = new Map(
        currencies.flatMap((currency) =>
          currency.contract === undefined ? [] : [[walletKey(currency.contract), currency]],
        ),
      );
      this.#listedAt = currenciesAt ?? 0;
      this.#isWhole = isWhole === true;
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw error;
      // What is no list refuses nothing.
      this.#currencies = new Map();
      this.#isWhole = false;
    }
  }

  get #isUsed(): boolean {
    return this.#rules.checksums || this.#rules.paymentIds || this.#rules.isRequired;
  }

  /** Calls that come during such a read wait for it, so none overtakes another. */
  #isDueWhileEmpty(): boolean {
    return this.#currencies.size === 0 && (this.#reading !== undefined || this.#passedMs() > REFRESH_EMPTY_MS);
  }

  #findProblem(payout: NewPayout, wallet?: Wallet): Problem | undefined {
    const { paymentId, addressTo } = payout;
    const currency = this.#currencies.get(paymentId);
    if (this.#rules.isRequired && (this.#currencies.size === 0 || this.#isOld())) return this.#noList(paymentId);
    if (currency === undefined) return this.#isUnlisted() ? this.#unlisted(paymentId) : undefined;
    const [address] = splitTag(addressTo);
    const network =
      wallet === undefined ? checkNetwork(addressTo, currency) : compareNetworks(address, wallet, currency);
    return (
      this.#findContract(addressTo, wallet?.key ?? walletKey(addressTo)) ??
      (this.#rules.checksums ? toProblem(network, addressTo) : undefined) ??
      (this.#rules.paymentIds && !this.#isOld() ? findWrongAmount(payout, currency) : undefined)
    );
  }

  #findContract(addressTo: string, key: string): Problem | undefined {
    const token = this.#contracts.get(key);
    if (token === undefined) return undefined;
    const problem = `is the contract of ${toPlainText(token.name)}, from which no one gets a payment back`;
    return { field: 'addressTo', message: `${problem} (got ${showAddress(addressTo)})` };
  }

  #isUnlisted(): boolean {
    return this.#rules.paymentIds && this.#isWhole && !this.#isOld();
  }

  #unlisted(paymentId: number): Problem {
    const names = [...this.#currencies.values()]
      .slice(0, SHOWN)
      .map((one) => toPlainText(`${one.paymentId} ${one.name}`));
    const others = this.#currencies.size - names.length;
    const list = [...names, ...(others > 0 ? [`and ${others} more (\`payouts gateway currencies\`)`] : [])].join(', ');
    const message = `must be in the gateway's list of ${formatTimeUtc(toIsoTime(this.#listedAt))}: ${list} (got ${paymentId}). If the gateway has it since, repeat the call in a minute: the worker reads the list again, every 5 minutes at most`;
    return { field: 'paymentId', message };
  }

  #noList(paymentId: number): Problem {
    const since = this.#currencies.size === 0 ? 'no worker has published' : 'no worker has published for a day';
    const message = `cannot be checked: ${since} the gateway's list of currencies, which requireCurrencies asks for (got ${paymentId})`;
    return { field: 'paymentId', message };
  }

  #isOld(): boolean {
    return Math.abs(this.#ledger.connection.clock.wallNow() - this.#listedAt) > MAX_AGE_MS;
  }

  #passedMs(): number {
    return this.#ledger.connection.clock.now() - this.#readAt;
  }
}

function toProblem(network: NetworkCheck, addressTo: string): Problem | undefined {
  if (network.kind !== 'differs') return undefined;
  return {
    field: 'addressTo',
    message: `${toPlainText(network.problem)}: ${COPY_AGAIN} (got ${showAddress(addressTo)})`,
  };
}

/** With a symbol, the amount may be in another currency. */
function findWrongAmount({ amount, symbol }: NewPayout, currency: Currency): Problem | undefined {
  if (symbol !== undefined) return undefined;
  const { minimum, maximum, decimals } = currency;
  const name = toPlainText(currency.name);
  const places = amount.split('.')[1]?.length ?? 0;
  const rule =
    minimum !== undefined && toUnits(amount) < toUnits(minimum)
      ? `must be at least ${minimum}, the gateway's minimum of ${name}`
      : maximum !== undefined && toUnits(amount) > toUnits(maximum)
        ? `must be at most ${maximum}, the gateway's maximum of ${name}`
        : decimals !== undefined && places > decimals
          ? `must have at most ${decimals} decimal places, as the gateway pays ${name}`
          : undefined;
  return rule === undefined ? undefined : { field: 'amount', message: `${rule} (got ${amount})` };
}
