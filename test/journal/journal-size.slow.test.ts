import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { aSend, folder, HEADER, LEDGER, outcomeOf, useFolder } from './support/journal-folder.js';

useFolder();

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Nearly a full file. */
const IN_A_FILE = 25_000;

/** Writes as many sends, each with its outcome, behind `before` others. @param number - of a former file */
async function writeSends(count: number, before = 0, number?: number) {
  const ledger = { ...LEDGER, sends: before, token: before === 0 ? '' : `t-${before}` };
  const lines = Array.from({ length: count }, (_, index) => aSend(`p-${before + index + 1}`, before + index + 1));
  await folder.write([HEADER, ledger, ...lines.flatMap((send) => [send, outcomeOf(send, 'accepted')])], number);
}

/** The least of three, since a busy machine is slower for a while. */
async function measureOpening() {
  const found = [await openOnce(), await openOnce(), await openOnce()] as const;
  return {
    ...found[0],
    ms: Math.min(...found.map(({ ms }) => ms)),
    bytes: Math.min(...found.map(({ bytes }) => bytes)),
  };
}

async function openOnce() {
  const before = await heapInUse();
  const startedAt = performance.now();
  const journal = await folder.open();
  const ms = performance.now() - startedAt;
  const bytes = (await heapInUse()) - before;
  const { sends = 0 } = journal.ledger ?? {};
  await journal.close();
  return { ms, bytes, sends };
}

/** Collects twice, each after a turn of the event loop: what a read has just finished is held until then. */
async function heapInUse() {
  await setImmediate();
  collect();
  await setImmediate();
  collect();
  return process.memoryUsage().heapUsed;
}

it('a journal of ten times the sends opens in some ten times the time', async () => {
  await writeSends(IN_A_FILE / 10);
  const few = await measureOpening();
  await writeSends(IN_A_FILE);
  const many = await measureOpening();
  expect([few.sends, many.sends]).toEqual([IN_A_FILE / 10, IN_A_FILE]);
  expect(many.ms / few.ms).toBeLessThan(25);
});

it('a journal of six files takes no more memory than one of two, and less than three times the time', async () => {
  await writeSends(IN_A_FILE, 0, 1);
  await writeSends(IN_A_FILE, IN_A_FILE);
  const two = await measureOpening();
  for (let file = 1; file < 6; file += 1) await writeSends(IN_A_FILE, (file - 1) * IN_A_FILE, file);
  await writeSends(IN_A_FILE, 5 * IN_A_FILE);
  const six = await measureOpening();
  expect([two.sends, six.sends]).toEqual([2 * IN_A_FILE, 6 * IN_A_FILE]);
  expect(six.bytes / two.bytes).toBeLessThan(1.3);
  expect(six.ms / two.ms).toBeLessThan(3);
}, 600_000);
