import { parseArgs } from 'node:util';
import { exitOnSignals, print, report, runCommand, secondsSince, TEXT, FLAG, wholeNumber } from '../command-line.js';
import { runCells, type Cell } from './cell.js';
import { CUT_OFFS, cutOffCell } from './cut-off.js';
import { FROZEN, frozenCell, PARTLY_FROZEN } from './frozen.js';
import { startGateway } from './gateway.js';
import { openStage } from './stage.js';

const USAGE = `npm run late -- [--only WORD] [--jobs N]

  --only WORD  the cells whose names have it
  --jobs N     cells at the same time (16)
`;

const { values } = parseArgs({
  options: { only: { ...TEXT, default: '' }, jobs: { ...TEXT, default: '16' }, help: FLAG },
});

async function main() {
  const jobs = wholeNumber(values.jobs, USAGE);
  const startedAt = performance.now();
  const stage = await openStage();
  const gateway = await startGateway(stage);
  try {
    const all: readonly Cell[] = [
      ...CUT_OFFS.map((cutOff) => cutOffCell(stage, gateway, cutOff)),
      ...[...FROZEN, ...PARTLY_FROZEN].map((frozen) => frozenCell(stage, frozen)),
    ];
    const cells = all.filter(({ name }) => name.includes(values.only));
    let failed = 0;
    await Promise.all(
      [...runCells(cells, jobs).values()].map(async (running) => {
        const { name, broken, figures } = await running;
        if (broken.length > 0) failed += 1;
        print(`${broken.length === 0 ? 'ok    ' : 'FAILED'}  ${name}: ${figures}`);
        for (const text of broken) print(`        ${text}`);
      }),
    );
    print(`${cells.length} cells in ${secondsSince(startedAt).toFixed(0)} s`);
    return report(cells.length - failed, failed) && cells.length > 0;
  } finally {
    await gateway.close();
    await stage.close();
  }
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
