import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { exitOnSignals, FLAG, print, report, runCommand, secondsSince, TEXT, wholeNumber } from '../command-line.js';
import { runScenes } from './scene.js';
import { SCENES, SHORT_SCENES } from './scenes/index.js';

const USAGE = `npm run failover -- [--short] [--only WORDS] [--times N] [--jobs N]

  --short       what the slow tests run
  --only WORDS  the scenes whose names have these words, such as "planned"
  --times N     each so many times (1)
  --jobs N      scenes at the same time (3)

It starts the redis-server of the PATH: put another one first to try another version.
`;

const { values } = parseArgs({
  options: {
    ...{ only: { ...TEXT, default: '' }, times: { ...TEXT, default: '1' }, jobs: { ...TEXT, default: '3' } },
    ...{ short: FLAG, help: FLAG },
  },
});

async function main() {
  const startedAt = performance.now();
  print(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }).trim());
  const chosen = (values.short ? SHORT_SCENES : SCENES).filter(({ name }) => name.includes(values.only));
  const times = wholeNumber(values.times, USAGE);
  const scenes = chosen.flatMap((each) =>
    Array.from({ length: times }, (_, index) =>
      times === 1 ? each : { ...each, name: `${each.name}, #${index + 1}` },
    ),
  );
  const running = [...runScenes(scenes, wholeNumber(values.jobs, USAGE)).values()];
  let failed = 0;
  for (const each of running) {
    void each.then(({ name, seconds, figures, error }) => {
      if (error !== undefined) failed += 1;
      print(`${error === undefined ? 'ok    ' : 'FAILED'}  ${name} (${seconds} s): ${error ?? figures}`);
    });
  }
  await Promise.all(running);
  print(`${scenes.length} scenes in ${secondsSince(startedAt).toFixed(0)} s`);
  return report(scenes.length - failed, failed) && scenes.length > 0;
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
