import { execFile } from 'node:child_process';
import { expect, it, jest } from '@jest/globals';
import { type BrokenInvariantError, INVARIANTS } from '../../../src/base/invariants.js';
import { Pacer } from '../../../src/worker/sender/pacer.js';
import { Candidate } from '../../../src/worker/sender/send-checks.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { makeSendRig } from '../support/send-rig.js';

type Given = NonNullable<Parameters<typeof makeSendRig>[0]>;

async function openRig(given: Given = {}) {
  const broken: string[] = [];
  const onBroken = ({ code }: BrokenInvariantError) => void broken.push(code);
  return { rig: await makeSendRig({ ...given, onBroken }), broken };
}

/** A mistake in the pacer: it is always open. */
class OpenPacer extends Pacer {
  override get isOpen() {
    return true;
  }

  override async waitUntilOpen() {
    return Promise.resolve();
  }
}

const sloppyPacer = () => new OpenPacer(new ManualClock(), { intervalMs: 1_010, inFlightMaxMs: 30_000 });

it('GAP: a second request within the interval is not written, whatever the pacer says', async () => {
  const { rig, broken } = await openRig({ pacer: sloppyPacer() });
  await rig.expectSent('p');
  expect(await rig.send('q')).toMatchObject({ kind: 'not_sent', reason: expect.stringContaining(INVARIANTS.GAP) });
  expect([broken, rig.gateway.arrivals.length, await rig.stateOf('q')]).toEqual([['GAP'], 1, 'queued']);
});

it('WRITE_AFTER_ENTRY: a request without its entry in the journal is not written', async () => {
  const { rig, broken } = await openRig();
  rig.journal.append = async () => Promise.resolve();
  expect(await rig.send()).toMatchObject({ kind: 'not_sent' });
  expect([broken, await rig.stateOf()]).toEqual([['WRITE_AFTER_ENTRY'], 'queued']);
  rig.expectNothingSent();
});

it('STATE_IN_INDEX: a payout that the ledger began beside its index is put back, unwritten', async () => {
  const { rig, broken } = await openRig();
  const begin = rig.ledger.beginSend.bind(rig.ledger);
  rig.ledger.beginSend = async (asked) => ({ ...(await begin(asked)), isIndexed: false });
  expect(await rig.send()).toMatchObject({ kind: 'not_sent', reason: expect.stringContaining('STATE_IN_INDEX') });
  expect([broken, await rig.stateOf()]).toEqual([['STATE_IN_INDEX'], 'queued']);
  rig.expectNothingSent();
});

it('ONE_ATTEMPT: of two payouts sent at once one is not begun', async () => {
  const { rig, broken } = await openRig();
  const [first, second] = [rig.sender.send('p', never()), rig.sender.send('q', never())];
  expect([await rig.clock.until(first), await rig.clock.until(second)].map(({ kind }) => kind).sort()).toEqual([
    'not_sent',
    'sent',
  ]);
  expect([broken, rig.gateway.arrivals.length]).toEqual([['ONE_ATTEMPT'], 1]);
});

it('BEGIN_AFTER_CHECKS: nothing is begun after checks that did not run to their end', async () => {
  const { rig, broken } = await openRig();
  jest.spyOn(Candidate.prototype, 'passed', 'get').mockReturnValue('find');
  expect(await rig.send()).toMatchObject({ kind: 'not_sent' });
  expect([broken, await rig.attemptOf()]).toEqual([['BEGIN_AFTER_CHECKS'], 0]);
  rig.expectNothingSent();
  jest.restoreAllMocks();
});

const never = () => new AbortController().signal;

it('a broken invariant ends the process with its code, although other work goes on', async () => {
  const program = `
    const { BrokenInvariantError, endProcess } = await import(${JSON.stringify(new URL('../../../src/base/invariants.ts', import.meta.url).href)});
    setInterval(() => undefined, 1_000);
    try { endProcess(new BrokenInvariantError('GAP')); } catch {}
  `;
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', program];
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, args, (error, _, text) => {
      resolve({ code: error?.code, stderr: text });
    });
  });
  expect([code, stderr]).toEqual([1, expect.stringContaining('Invariant GAP is broken')]);
});
