import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import type { PolicyInForce } from '../../../src/control/control-runtime.js';
import { PolicyAuthority } from '../../../src/control/worker/policy-authority.js';
import { RejectionAuthority } from '../../../src/control/worker/rejection-authority.js';
import type { SendAuthority } from '../../../src/worker/sender/send-authority.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { PLATFORM } from './signed.js';

export const DOUBT_MS = 10_000;

export class TestClock {
  wallOffsetMs = Date.UTC(2030, 0, 1);
  #now = 5_000_000;

  readonly now = () => this.#now;
  readonly wallNow = () => this.#now + this.wallOffsetMs;
  readonly sleep = async (): Promise<void> => Promise.resolve();

  pass(ms: number) {
    this.#now += ms;
  }
}

export function policyOf(...rules: readonly object[]): Policy {
  return parsePolicy({ version: '1', platformId: String(PLATFORM), default: 'send', rules });
}

/** At most 100 of currency 6 an hour. */
export const HOURLY = { name: 'hour', when: { paymentId: ['6'] }, cap: { amount: '100', within: '1h' }, over: 'wait' };

/** A policy as the worker has it, which a test can exchange. */
export class TestPolicy {
  readonly longestWindowMs = 86_400_000;
  isListed: PolicyInForce['isListed'] = () => false;

  policy: Policy;

  constructor(policy: Policy) {
    this.policy = policy;
  }

  get hash() {
    return `hash of ${this.policy.rules.map(({ name }) => name).join(' ')}`;
  }
}

export type SendOutcome = 'accepted' | 'rejected' | 'unknown' | 'not_sent';
type AuthorityRuntime = ConstructorParameters<typeof PolicyAuthority>[0];

export class PolicyRig {
  readonly clock: TestClock;
  readonly current: TestPolicy;
  /** The file, which outlives a process. */
  readonly lines: MemoryJournal['lines'] = [];
  journal!: MemoryJournal;
  authority!: PolicyAuthority;
  readonly #options: Partial<AuthorityRuntime>;
  readonly #signatures: SendAuthority | undefined;
  #sends = 0;

  constructor(
    clock: TestClock,
    policy: Policy,
    { signatures, ...options }: Partial<AuthorityRuntime> & { readonly signatures?: SendAuthority } = {},
  ) {
    this.clock = clock;
    this.current = new TestPolicy(policy);
    this.#options = options;
    this.#signatures = signatures;
    this.restart();
  }

  /** A process begins, and takes over. @param ledger - what Redis says was spent */
  restart(ledger: readonly SpendEvent[] = []) {
    const { clock, current } = this;
    this.journal = new MemoryJournal('j', this.lines);
    const about = { platformId: PLATFORM, journal: this.journal, clock };
    const runtime = { ...about, current, ...this.#options };
    this.authority = new PolicyAuthority(runtime, new RejectionAuthority(runtime, this.#signatures));
    this.authority.takeOver(ledger);
  }

  payout(payoutId: string, amount: string, given: Partial<Payout> = {}): Payout {
    const at = new Date(this.clock.wallNow()).toISOString();
    return {
      ...{ payoutId, paymentId: 6, amount, addressTo: `wallet-${payoutId}`, state: 'queued', final: false, attempt: 0 },
      ...{ requeueCount: 0, createdAt: at, updatedAt: at, history: [], ...given },
    };
  }

  /** What the policy says of it: `send`, or its verdict and why. */
  ask(payout: Payout) {
    const permit = this.authority.permit(payout);
    return permit.kind === 'granted' ? 'send' : `${permit.hold.reason}: ${permit.hold.message}`;
  }

  askFor(...payout: Parameters<PolicyRig['payout']>) {
    return this.ask(this.payout(...payout));
  }

  /** Begins a send. @returns tells what came of it; undefined where the policy does not let it pass */
  async begin(payout: Payout): Promise<((outcome: SendOutcome) => void) | undefined> {
    const permit = this.authority.permit(payout);
    if (permit.kind === 'refused') return undefined;
    const { payoutId, paymentId, amount, addressTo, symbol } = payout;
    const send = { payoutId, attempt: payout.attempt + 1, token: `t${(this.#sends += 1)}` };
    const { journal, clock } = this;
    await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
    const request = { paymentId, amount, addressTo, ...(symbol !== undefined && { symbol }) };
    const [at, after] = [clock.wallNow(), { sends: 0, token: '' }];
    await journal.append({
      ...{ ...send, epoch: 1, sends: 1, after, request, inFlightMs: DOUBT_MS, at },
      ...(permit.counted && { judged: permit.counted.judged }),
    });
    this.authority.catchUp();
    return (kind) => {
      const details = { gatewayId: 'tx', message: 'no', reason: 'no answer', inFlightUntil: 0 };
      journal.noteOutcome(send, { kind, ...details }, clock.wallNow());
      this.authority.catchUp();
    };
  }
}
