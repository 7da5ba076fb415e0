// Reads the journal of account 1 in a folder as the built program does, and prints as JSON how many sends there are, how
// long it took, for how long nothing else could run meanwhile, in ms, and how many bytes it holds afterwards.
// node --expose-gc measure-reading.mjs DIR open|items
import { FileSendJournal } from '../../../dist/journal/file-send-journal.js';
import { readJournal } from '../../../dist/journal/journal-reader.js';

const [dir, how] = process.argv.slice(2);
let isOver = false;
let longestMs = 0;
let turnedAt = performance.now();

function turn() {
  const now = performance.now();
  longestMs = Math.max(longestMs, now - turnedAt);
  turnedAt = now;
  if (!isOver) setImmediate(turn);
}

async function countItems(journal) {
  let sends = 0;
  for await (const item of journal.items()) if ('payoutId' in item) sends += 1;
  return sends;
}

function heapUsed() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

const usedBefore = heapUsed();
turnedAt = performance.now();
setImmediate(turn);
const startedAt = performance.now();
const journal = how === 'open' ? await FileSendJournal.open({ dir, platformId: 1 }) : await readJournal(dir, 1);
const sends = how === 'open' ? journal.ledger.sends : await countItems(journal);
const tookMs = performance.now() - startedAt;
isOver = true;
const heldBytes = heapUsed() - usedBefore;
await journal.close?.();
process.stdout.write(`${JSON.stringify({ sends, tookMs, longestMs, heldBytes })}\n`);
