import { parseArgs } from 'node:util';
import { exitOnSignals, FLAG, print, report, runCommand, secondsSince, TEXT, wholeNumber } from '../command-line.js';
import { runCells } from './cell.js';
import { CELLS, SHORT_CELLS } from './cells.js';
import { openRig, type Rig } from './rig.js';
import { formatTakeOvers, measureTakeOver, TAKE_OVERS } from './take-over.js';

const USAGE = `npm run late -- [--short] [--only WORDS] [--jobs N]
npm run late -- --take-over

  --short       what the slow tests run: some dozens of payouts over bad lines, not a thousand; no long take-over
  --only WORDS  the cells whose names have these words, such as "for 46 s"
  --jobs N      cells at the same time (40)
  --take-over   how long an account waits for another host, as a table
`;

const { values } = parseArgs({
  options: {
    ...{ only: { ...TEXT, default: '' }, jobs: { ...TEXT, default: '40' } },
    ...{ 'take-over': FLAG, short: FLAG, help: FLAG },
  },
});

async function main() {
  const rig = await openRig();
  try {
    return await (values['take-over'] ? measure(rig) : prove(rig));
  } finally {
    await rig.close();
  }
}

async function prove(rig: Rig) {
  const startedAt = performance.now();
  const cells = (values.short ? SHORT_CELLS : CELLS).filter(({ name }) => name.includes(values.only));
  const running = [...runCells(rig, cells, wholeNumber(values.jobs, USAGE)).values()];
  let failed = 0;
  for (const each of running) {
    void each.then(({ name, broken, figures }) => {
      if (broken.length > 0) failed += 1;
      print(`${broken.length === 0 ? 'ok    ' : 'FAILED'}  ${name}: ${figures}`);
      for (const text of broken) print(`        ${text}`);
    });
  }
  await Promise.all(running);
  print(`${cells.length} cells in ${secondsSince(startedAt).toFixed(0)} s`);
  return report(cells.length - failed, failed) && cells.length > 0;
}

async function measure(rig: Rig) {
  const measured = await Promise.all(TAKE_OVERS.map(async (takeOver) => measureTakeOver(rig, takeOver)));
  print(formatTakeOvers(measured));
  return true;
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
