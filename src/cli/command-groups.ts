import type { CommandGroup } from './context/run-program.js';

/** Only the module of the running command is imported. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Payouts:',
    commands: [
      {
        usage: 'enqueue [options]',
        description: 'accept a payout; the worker sends it',
        load: async () => (await import('./commands/enqueue-command.js')).defineEnqueueCommand,
      },
      {
        usage: 'import [options] <file>',
        description: 'check the payouts in a CSV or JSON lines file, total them, and enqueue them',
        load: async () => (await import('./import/import-command.js')).defineImportCommand,
      },
      {
        usage: 'get [options] [payoutId]',
        description: 'show one payout with its history',
        load: async () => (await import('./list/get-command.js')).defineGetCommand,
      },
      {
        usage: 'list [options]',
        description: 'list the payouts in a state, or of a batch',
        load: async () => (await import('./list/list-command.js')).defineListCommand,
      },
      {
        usage: 'export',
        description: 'write all that is known of the account as JSON lines: payouts, sends, acts, events',
        load: async () => (await import('./list/export-command.js')).defineExportCommand,
      },
    ],
  },
  {
    heading: 'Operator decisions:',
    commands: [
      {
        usage: 'cancel [options] [payoutIds...]',
        description: 'cancel payouts that are still queued, are held, or were rejected',
        load: async () => (await import('./commands/change-commands.js')).defineCancelCommand,
      },
      {
        usage: 'uncancel [options] [payoutIds...]',
        description: 'undo cancellations of the last hour: the same payments under new ids',
        load: async () => (await import('./commands/uncancel-command.js')).defineUncancelCommand,
      },
      {
        usage: 'hold [options] [payoutIds...]',
        description: 'keep queued payouts from being sent until they are released',
        load: async () => (await import('./commands/change-commands.js')).defineHoldCommand,
      },
      {
        usage: 'retry [options] [payoutIds...]',
        description: 'put rejected payouts back into the queue',
        load: async () => (await import('./commands/change-commands.js')).defineRetryCommand,
      },
      {
        usage: 'release [options] [payoutIds...]',
        description: 'put held payouts back into the queue',
        load: async () => (await import('./commands/change-commands.js')).defineReleaseCommand,
      },
      {
        usage: 'approvals [options]',
        description: 'list the payouts that wait for approval',
        load: async () => (await import('./approvals/approvals-command.js')).defineApprovalsCommand,
      },
      {
        usage: 'approve [options] [payoutIds...]',
        description: 'verify payouts, and sign that they may be paid',
        load: async () => (await import('./approvals/approvals-command.js')).defineApproveCommand,
      },
      {
        usage: 'reject [options] [payoutIds...]',
        description: 'sign that payouts are not to be paid',
        load: async () => (await import('./approvals/approvals-command.js')).defineRejectCommand,
      },
      {
        usage: 'unreject [options] [payoutIds...]',
        description: 'take back your own rejections',
        load: async () => (await import('./approvals/approvals-command.js')).defineUnrejectCommand,
      },
      {
        usage: 'resolve [options] [payoutId]',
        description: 'decide what became of payouts that are unknown',
        load: async () => (await import('./commands/resolve-command.js')).defineResolveCommand,
      },
      {
        usage: 'comment [options] <payoutId>',
        description: 'write a line about a payout for other operators, such as "I am on it"',
        load: async () => (await import('./commands/comment-command.js')).defineCommentCommand,
      },
    ],
  },
  {
    heading: 'Account:',
    commands: [
      {
        usage: 'status [options]',
        description: 'say in one line whether money moves, and what to do if not',
        load: async () => (await import('./commands/status-command.js')).defineStatusCommand,
      },
      {
        usage: 'stats [options]',
        description: 'count payouts by state; show the sender, and what stops the account',
        load: async () => (await import('./commands/stats-command.js')).defineStatsCommand,
      },
      {
        usage: 'events [options]',
        description: 'show what happened: changes of payouts, pauses, objections, late payments',
        load: async () => (await import('./commands/events-command.js')).defineEventsCommand,
      },
      {
        usage: 'activity [options]',
        description: 'show what operators did, and why',
        load: async () => (await import('./commands/events-command.js')).defineActivityCommand,
      },
      {
        usage: 'pause [options]',
        description: 'stop sending for the account',
        load: async () => (await import('./commands/pause-command.js')).definePauseCommand,
      },
      {
        usage: 'resume [options]',
        description: 'send again after a pause',
        load: async () => (await import('./commands/pause-command.js')).defineResumeCommand,
      },
      {
        usage: 'new-account [options]',
        description: 'state that no process sends for the account: its first worker begins at once',
        load: async () => (await import('./commands/pause-command.js')).defineNewAccountCommand,
      },
      {
        usage: 'adopt-ledger [options]',
        description: 'accept a Redis that forgot sends which the journals know',
        load: async () => (await import('./commands/adopt-ledger-command.js')).defineAdoptLedgerCommand,
      },
      {
        usage: 'redis-replicas [options] <number>',
        description: 'state that a replica of Redis is gone for good: sends wait for fewer',
        load: async () => (await import('./commands/redis-replicas-command.js')).defineRedisReplicasCommand,
      },
    ],
  },
  {
    heading: 'Keys:',
    commands: [
      {
        usage: 'keys',
        description: 'make signing keys, and check the keyring; sign payouts elsewhere, or verify one in the queue',
        withoutAccount: ['generate', 'check'],
        load: async () => (await import('./keys/keys-command.js')).defineKeysCommand,
      },
    ],
  },
  {
    heading: 'Policy:',
    commands: [
      {
        usage: 'policy',
        description: 'check the policy: what may leave the account; say what it says of a payout',
        load: async () => (await import('./commands/policy-command.js')).definePolicyCommand,
      },
    ],
  },
  {
    heading: 'Send journal:',
    commands: [
      {
        usage: 'audit',
        description: "check this host's journal for changes, export its sends, or state that it is complete",
        load: async () => (await import('./audit/audit-command.js')).defineAuditCommand,
      },
    ],
  },
  {
    heading: 'Gateway:',
    commands: [
      {
        usage: 'gateway',
        description: 'query the gateway: balance, currencies, wallet, status; find a payment by its order id',
        load: async () => (await import('./commands/gateway-command.js')).defineGatewayCommand,
      },
      {
        usage: 'reconcile [options]',
        description: "compare the gateway's balance with what was sent; accept an unexplained drop",
        load: async () => (await import('./commands/reconcile-command.js')).defineReconcileCommand,
      },
    ],
  },
  {
    heading: 'Services:',
    commands: [
      {
        usage: 'worker [options]',
        description: 'send the queued payouts and follow them until they are final',
        accounts: 'all',
        load: async () => (await import('./worker/worker-command.js')).defineWorkerCommand,
      },
      {
        usage: 'dashboard',
        description: 'serve the dashboard: payouts, queues, and what needs an operator',
        accounts: 'all',
        load: async () => (await import('./commands/dashboard-command.js')).defineDashboardCommand,
      },
      {
        usage: 'notify',
        description: 'post chosen events to a webhook: signed, retried, at least once',
        accounts: 'all',
        load: async () => (await import('./commands/notify-command.js')).defineNotifyCommand,
      },
      {
        usage: 'serve',
        description: 'let applications that are not Node enqueue, read and cancel by HTTP; make their tokens',
        accounts: 'all',
        load: async () => (await import('./commands/serve-command.js')).defineServeCommand,
      },
      {
        usage: 'sandbox [options]',
        description: 'run a local gateway that follows the API, blocks accounts that pay too fast, and fails on demand',
        accounts: 'none',
        load: async () => (await import('./commands/sandbox-command.js')).defineSandboxCommand,
      },
    ],
  },
  {
    heading: 'Tools:',
    commands: [
      {
        usage: 'doctor [options]',
        description: 'check everything that a worker needs, and suggest fixes',
        accounts: 'all',
        load: async () => (await import('./commands/doctor-command.js')).defineDoctorCommand,
      },
      {
        usage: 'demo [options]',
        description: 'send example payouts through a sandbox; starts everything that it needs',
        accounts: 'none',
        load: async () => (await import('./demo/demo-command.js')).defineDemoCommand,
      },
      {
        usage: 'completion <shell>',
        description: 'print a script that completes commands in bash, zsh or fish',
        accounts: 'none',
        load: async () => (await import('./commands/completion-command.js')).defineCompletionCommand,
      },
    ],
  },
];
