import { afterEach, describe, expect, it } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { findBuiltProgram } from '../../support/built-program.js';
import { runInProcess } from '../support/in-process.js';

const ENVIRONMENT = { GATEWAY_PLATFORM_ID: '7', GATEWAY_SECRET_KEY: 'secret-of-the-environment' };

interface RunningCommand {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown[]>;
  readonly output: () => string;
  /** The URL that it printed; the whole output when it ended without one. */
  readonly url: Promise<string>;
}

const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function run(...args: string[]): RunningCommand {
  const child = spawn(process.execPath, [findBuiltProgram(), 'sandbox', ...args], {
    env: ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const exited = once(child, 'close');
  let output = '';
  const url = new Promise<string>((resolve) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      // The last line: by then the signal handlers are set and everything has been printed.
      const match = /Statistics: (\S+)\/__sandbox\/stats\n/.exec(output);
      if (match?.[1] !== undefined) resolve(match[1]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    void exited.then(() => {
      resolve(output);
    });
  });
  return { child, exited, output: () => output, url };
}

describe('payouts sandbox', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'serves the account of the environment until %s, then ends with 0',
    async (signal) => {
      const { child, exited, output, url } = run('--port', '0');
      expect((await fetch(`${await url}/__sandbox/stats?platformId=7`)).status).toBe(200);
      child.kill(signal);
      expect(await exited).toEqual([0, null]);
      expect(output()).toContain(`GATEWAY_BASE_URL=${await url}\n  GATEWAY_PLATFORM_ID=7\n`);
      expect(output()).not.toMatch(/WARNING|secret-of-the-environment/);
    },
  );

  it('takes accounts, delays, settling and faults, and warns when it listens beyond loopback', async () => {
    const { url, output } = run(
      ...['--port', '0', '--host', '0.0.0.0', '--account', '1:hidden:key', '--account', '2:hidden', '--balance', '50'],
      ...[
        '--latency-before',
        '0-3',
        '--latency-after',
        '2',
        '--settle-after',
        '5',
        '--fail-share',
        '0.5',
        '--seed',
        '9',
      ],
      ...['--fault', 'drop-after:every=10,times=2', '--fault', 'latency-before:delay=1-2,endpoint=any'],
      ...['--fault', 'reject:address=a:1,address=b,message=no = no'],
    );
    const faults: unknown = await (await fetch(`${await url}/__sandbox/faults`)).json();
    expect(faults).toEqual({
      faults: [
        { kind: 'drop-after', endpoint: 'withdraw', every: 10, times: 2, fired: 0 },
        { kind: 'latency-before', endpoint: 'any', delayMs: { min: 1, max: 2 }, fired: 0 },
        { kind: 'reject', endpoint: 'withdraw', addresses: ['a:1', 'b'], message: 'no = no', fired: 0 },
      ],
    });
    expect(await (await fetch(`${await url}/__sandbox/stats?platformId=2`)).json()).toMatchObject({ balance: '50' });
    expect(output()).toContain('WARNING: listening on 0.0.0.0');
    expect(output()).toContain('seed 9');
    expect(output()).not.toContain('hidden');
  });

  it.each([
    [['--port', 'abc'], '--port: must be a whole number (got "abc")'],
    [['--account', 'hidden'], '--account: must be ID:SECRET'],
    [['--account', 'x:hidden'], '--account: must be a whole number (got "x")'],
    [['--balance', '-1'], '--balance: must be a decimal such as 1000.5 (got "-1")'],
    [['--latency-before', '9-3'], '--latency-before: must be milliseconds'],
    [['--fault', 'fire'], '--fault: kind must be one of'],
    [['--fault', 'hang:twice'], '--fault: "twice" is not a known condition'],
    [['--fault', 'latency-after'], '--fault: delay belongs to'],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await runInProcess(['sandbox', ...args], ENVIRONMENT);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('hidden');
  });
});
