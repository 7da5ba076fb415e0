/**
 * The folders of `src`, from the ground up: one may import only what stands above it, and of that only what its row
 * names. `npm run imports` checks it, and docs/architecture.md prints it.
 */
export interface Room {
  /** Below `src`. */
  readonly folder: string;
  /** What it is for, as docs/architecture.md says. */
  readonly is: string;
  /** Rooms above it, or files and folders in them. The room itself is understood. */
  readonly imports: readonly string[];
  /** Packages that it must not load. */
  readonly without?: readonly string[];
  /** Why it may not import more, if its text does not say so. */
  readonly because?: string;
}

/** All that is imported of the gateway where one is opened. */
const GATEWAY = ['gateway/gateway.ts', 'gateway/wallet.ts', 'gateway/open-gateway.ts'];

export const ROOMS: readonly Room[] = [
  {
    folder: 'base',
    is: 'errors, clock, logger, Redis connections, field rules, settings',
    imports: [],
  },
  {
    folder: 'gateway',
    is: 'the port to a payment gateway, and one dialect of its HTTP API a folder. No Redis',
    imports: ['base'],
    without: ['bullmq', 'ioredis'],
  },
  {
    folder: 'gateway-contract',
    is: 'the rules of the port as a suite of tests, for every gateway',
    imports: ['gateway/gateway.ts'],
    without: ['bullmq', 'ioredis', 'axios'],
  },
  {
    folder: 'ledger',
    is: 'payouts in Redis: states, keys, Lua scripts; upon it `reads/` for pages, commands and metrics',
    imports: ['base', 'gateway/gateway.ts', 'gateway/wallet.ts'],
    without: ['bullmq', 'axios', 'express'],
    because: 'Of the gateway it knows the rules of a payment and the shapes of an outcome.',
  },
  {
    folder: 'journal',
    is: 'the send journal, and its comparison with the ledger',
    imports: [
      ...['base', 'gateway/gateway.ts', 'gateway/wallet.ts'],
      ...['ledger/control-record.ts', 'ledger/sender-ledger.ts', 'ledger/states.ts'],
    ],
    without: ['bullmq', 'ioredis', 'axios', 'express'],
    because: 'It is read and written where there is no Redis: of the ledger it knows shapes only.',
  },
  {
    folder: 'queues',
    is: 'BullMQ jobs, outbox relay, reconciler',
    imports: ['base', 'ledger'],
  },
  {
    folder: 'producer',
    is: '`PayoutProducer`. Needs no secret key',
    imports: ['base', 'gateway/wallet.ts', 'ledger', 'queues'],
  },
  {
    folder: 'operator',
    is: 'what an operator sees first (headline, advice) and decides',
    imports: ['base', 'gateway/gateway.ts', 'gateway/wallet.ts', 'ledger', 'journal', 'queues'],
    because: 'A decision needs no running worker and no command line.',
  },
  {
    folder: 'archive',
    is: 'optional: files with the payouts that retention removed',
    imports: ['base', 'ledger/payout.ts', 'ledger/states.ts', 'journal/journal-files.ts'],
    without: ['bullmq', 'ioredis', 'axios', 'express'],
    because: 'It is read and written where there is no Redis.',
  },
  {
    folder: 'worker/sender',
    is: 'lease, pace, send, recovery, on ports: `npm run simulate` runs exactly this',
    imports: [
      ...['base', 'gateway/gateway.ts'],
      ...['ledger/order-id.ts', 'ledger/order-look-up.ts'],
      ...['ledger/payout.ts', 'ledger/sender-ledger.ts', 'ledger/states.ts'],
      'journal/control-journal.ts',
      ...['journal/find-mismatch.ts', 'journal/journal-line.ts', 'journal/journal-view.ts', 'journal/send-journal.ts'],
    ],
  },
  {
    folder: 'worker',
    is: 'the worker process: jobs, retention, sharing of accounts, monitoring',
    imports: ['base', ...GATEWAY, 'ledger', 'journal', 'queues', 'operator', 'archive', 'worker/sender'],
  },
  {
    folder: 'control',
    is: 'optional: signatures, keyring, policy, approvals',
    imports: [
      ...['base', 'gateway/wallet.ts'],
      ...['ledger', 'journal', 'queues', 'producer', 'operator', 'worker/sender', 'worker'],
    ],
    because: 'The promises need no signature and no policy: the core gives ports, and control plugs in.',
  },
  {
    folder: 'notifications',
    is: 'optional: `payouts notify`. Only reads',
    imports: [
      ...['base', 'ledger', 'queues/open-ledger.ts', 'producer/events'],
      ...['operator/account-gauges.ts', 'operator/account-headline.ts'],
    ],
    without: ['bullmq', 'ioredis', 'axios', 'express'],
    because: 'It can neither send nor disturb a send.',
  },
  {
    folder: 'http',
    is: 'optional: `payouts serve`, an HTTP door to the producer',
    imports: ['base', 'ledger', 'producer/events', 'control/payout-producer.ts', 'control/keys/current-file.ts'],
    without: ['bullmq', 'axios'],
    because: 'The door has no client of the gateway, no key, and no act of an operator.',
  },
  {
    folder: 'dashboard',
    is: 'read-only pages and Bull Board; its one write takes signed approvals',
    imports: ['base', 'gateway/wallet.ts', 'ledger', 'queues', 'operator', 'control'],
  },
  {
    folder: 'sandbox',
    is: 'a local gateway that shares only schemas with the client',
    imports: ['base', 'gateway/gateway.ts', 'gateway/v1/endpoints.ts', 'gateway/v2/endpoints.ts'],
    because: "Built from the client's own code, it would repeat the client's mistakes.",
  },
  {
    folder: 'cli',
    is: 'the `payouts` command. Nothing imports it',
    imports: [
      ...['base', ...GATEWAY, 'ledger', 'journal', 'queues', 'producer', 'operator', 'archive', 'worker/sender'],
      ...['worker', 'control', 'notifications', 'http', 'dashboard/index.ts', 'sandbox'],
    ],
    because: 'Pages are pages: what command and page write the same way is in base/format.ts.',
  },
];

/** The files that an application imports, directly in `src`: they see what a public name needs. */
export const ENTRIES: Room = {
  folder: '',
  is: 'what an application imports',
  imports: [
    'base',
    ...GATEWAY,
    'ledger',
    'journal',
    'queues',
    'producer',
    'operator',
    'worker/sender',
    'worker',
    'control',
  ],
};
