import type { Command } from 'commander';
import { z } from 'zod';
import { untilAborted } from '../../base/clock.js';
import { readConfig, type Environment } from '../../base/config.js';
import { InvalidInputError, type Problem } from '../../base/errors.js';
import { parseInput, platformIdField } from '../../base/fields.js';
import {
  FAULT_DESCRIPTIONS,
  OPEN_POINT_NAMES,
  startSandbox,
  type Sandbox,
  type SandboxOptions,
} from '../../sandbox/index.js';
import type { CliContext } from '../context/cli-context.js';
import { refuse } from '../context/flags.js';

interface Flags {
  readonly port: string;
  readonly host: string;
  readonly account?: readonly string[];
  readonly balance?: string;
  readonly latencyBefore?: string;
  readonly latencyAfter?: string;
  readonly settleAfter?: string;
  readonly failShare?: string;
  readonly failAddress?: readonly string[];
  readonly fault?: readonly string[];
  readonly v2?: readonly string[];
  readonly seed?: string;
}

interface Account {
  readonly platformId: number;
  readonly secretKey: string;
}

const FLAG_OF_OPTION: Readonly<Record<string, string>> = {
  port: '--port',
  host: '--host',
  accounts: '--account',
  latencyBeforeMs: '--latency-before',
  latencyAfterMs: '--latency-after',
  settleAfterMs: '--settle-after',
  failShare: '--fail-share',
  failAddresses: '--fail-address',
  faults: '--fault',
  v2: '--v2',
  seed: '--seed',
};

const LOOPBACK_HOSTS = ['127.0.0.1', '::1', 'localhost'];

const HELP_AFTER = `
Faults: KIND[:CONDITION,CONDITION…], with the conditions every=N (one call in N), times=N (at most N calls),
address=WALLET (may be repeated), endpoint=NAME (default withdraw; any for all), delay=MS|MIN-MAX and message=TEXT:
${Object.entries(FAULT_DESCRIPTIONS)
  .map(([kind, description]) => `  ${kind.padEnd(16)}${description}`)
  .join('\n')}

It serves both generations of the API on the same accounts. --v2 chooses how an open point of the second is read:
${OPEN_POINT_NAMES.join(', ')};
docs/gateway-api-v2.md says what each means.

While it runs: GET /__sandbox/stats, /arrivals, /payments, /faults; POST /__sandbox/faults, /unblock, /reset, /pause,
/continue; with several accounts add ?platformId=ID. SIGINT or SIGTERM ends it.

Examples:
  GATEWAY_PLATFORM_ID=1001 GATEWAY_SECRET_KEY=test payouts sandbox
  payouts sandbox --port 8080 --account 1001:first-secret --account 1002:second-secret
  payouts sandbox --latency-before 0-300 --latency-after 20-80 --settle-after 5000 --fail-share 0.05
  payouts sandbox --v2 orderIds=ignored --v2 orderIdKnownAfterMs=5000
  payouts sandbox --fault drop-after:every=10 --fault reject:times=1,message="wallet closed"
`;

export function defineSandboxCommand(command: Command, context: CliContext): void {
  command
    .option('--port <port>', 'port to listen on; 0 takes a free one', '8080')
    .option('--host <host>', 'address to listen on; any client that reaches it can control the sandbox', '127.0.0.1')
    .option('--account <id:secret>', 'serve this account (repeatable) instead of GATEWAY_PLATFORM_ID', collect)
    .option('--balance <usd>', 'what each account may pay out, in USD (default: practically unlimited)')
    .option('--latency-before <ms>', 'time that a call takes to arrive: MS or MIN-MAX (default: 0)')
    .option('--latency-after <ms>', 'time that a response takes: MS or MIN-MAX (default: 0)')
    .option('--settle-after <ms>', 'time until a payment is completed or has failed (default: 1000)')
    .option('--fail-share <share>', 'share of payments that end in error, 0 to 1 (default: 0)')
    .option('--fail-address <wallet>', 'payments to this wallet end in error (repeatable)', collect)
    .option('--fault <fault>', 'a fault, see below (repeatable)', collect)
    .option('--v2 <point=value>', 'how an open point of API v2 is read, see below (repeatable)', collect)
    .option('--seed <number>', 'repeat the latencies and failures of the run with this seed (default: a new one)')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Flags) => {
      const accounts = flags.account?.map(parseAccount) ?? [readAccount(context.environment)];
      const sandbox = await start(toOptions(flags, accounts));
      const stop = context.stopSignal();
      context.writeError(describe(sandbox, flags.host, accounts));
      await untilAborted(stop);
      await sandbox.close();
    });
}

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

function readAccount(environment: Environment): Account {
  const config = readConfig(['GATEWAY_PLATFORM_ID', 'GATEWAY_SECRET_KEY'], environment);
  return { platformId: config.GATEWAY_PLATFORM_ID, secretKey: config.GATEWAY_SECRET_KEY };
}

/** No message contains the secret, not even for a malformed account. */
function parseAccount(text: string): Account {
  const colon = text.indexOf(':');
  if (colon === -1 || colon === text.length - 1) {
    refuse('--account', 'must be ID:SECRET, such as 1001:test');
  }
  const input = { '--account': parseNumber(text.slice(0, colon)) };
  const platformId = parseInput(z.object({ '--account': platformIdField }), input)['--account'];
  return { platformId, secretKey: text.slice(colon + 1) };
}

/** Only parses: `startSandbox` checks the values, and shows a text that should be a number. */
function toOptions(flags: Flags, accounts: readonly Account[]): Readonly<Record<string, unknown>> {
  const { balance } = flags;
  if (balance !== undefined && !/^\d+(\.\d+)?$/.test(balance)) {
    refuse('--balance', `must be a decimal such as 1000.5 (got "${balance}")`);
  }
  return {
    accounts: accounts.map((account) => ({ ...account, balance })),
    port: parseNumber(flags.port),
    host: flags.host,
    latencyBeforeMs: parseDelay(flags.latencyBefore),
    latencyAfterMs: parseDelay(flags.latencyAfter),
    settleAfterMs: parseNumber(flags.settleAfter),
    failShare: parseNumber(flags.failShare),
    failAddresses: flags.failAddress,
    faults: flags.fault?.map(parseFault),
    v2: flags.v2 && Object.fromEntries(flags.v2.map(parseOpenPoint)),
    seed: parseNumber(flags.seed),
  };
}

function parseNumber(text: string | undefined): unknown {
  return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

function parseDelay(text: string | undefined): unknown {
  const range = /^(\d+)-(\d+)$/.exec(text ?? '');
  return range === null ? parseNumber(text) : { min: Number(range[1]), max: Number(range[2]) };
}

function parseOpenPoint(text: string): [name: string, value: unknown] {
  const [, name = '', value] = /^(\w+)=(.+)$/.exec(text) ?? [];
  if (value === undefined) refuse('--v2', `must be POINT=VALUE, such as orderIds=ignored (got "${text}")`);
  return [name, value === 'true' || value === 'false' ? value === 'true' : parseNumber(value)];
}

function parseFault(text: string): Readonly<Record<string, unknown>> {
  const [, kind, conditions] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  const rule: Record<string, unknown> = { kind };
  const addresses: string[] = [];
  for (const condition of conditions === undefined ? [] : conditions.split(',')) {
    const equals = condition.indexOf('=');
    const [name, value] = [condition.slice(0, Math.max(equals, 0)), condition.slice(equals + 1)];
    if (name === 'address') addresses.push(value);
    else if (name === 'delay') rule['delayMs'] = parseDelay(value);
    else if (name === 'every' || name === 'times') rule[name] = parseNumber(value);
    else if (name === 'endpoint' || name === 'message') rule[name] = value;
    else {
      const message = `"${condition}" is not a known condition; expected one of every=, times=, address=, endpoint=, delay=, message=`;
      refuse('--fault', `${message} (got "${text}")`);
    }
  }
  return addresses.length > 0 ? { ...rule, addresses } : rule;
}

async function start(options: Readonly<Record<string, unknown>>): Promise<Sandbox> {
  try {
    return await startSandbox(options as unknown as SandboxOptions);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.problems.map(toFlagProblem));
  }
}

function toFlagProblem({ field, message }: Problem): Problem {
  const [option = '', ...rest] = field.split('.');
  const place = rest
    .filter((part) => !/^\d+$/.test(part))
    .join('.')
    .replace('delayMs', 'delay');
  return { field: FLAG_OF_OPTION[option] ?? field, message: place === '' ? message : `${place} ${message}` };
}

function describe(sandbox: Sandbox, host: string, accounts: readonly Account[]): string {
  const warning = LOOPBACK_HOSTS.includes(host)
    ? ''
    : `WARNING: listening on ${host}: any client that reaches this port can read and control the sandbox.\n`;
  const environments = accounts.map(
    ({ platformId }) =>
      `  GATEWAY_BASE_URL=${sandbox.url}\n  GATEWAY_PLATFORM_ID=${platformId}\n  GATEWAY_SECRET_KEY=<the secret of ${platformId}>\n`,
  );
  return `${warning}Sandbox gateway listening on ${sandbox.url} (seed ${sandbox.seed})\n${environments.join('\n')}Statistics: ${sandbox.url}/__sandbox/stats\n`;
}
