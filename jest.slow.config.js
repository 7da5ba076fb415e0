import config from './jest.config.js';

const { roots, extensionsToTreatAsEsm, moduleNameMapper, transform, testEnvironment, globalSetup, globalTeardown } =
  config;
const shared = {
  roots,
  extensionsToTreatAsEsm,
  moduleNameMapper,
  transform,
  testEnvironment,
  globalSetup,
  globalTeardown,
};

/** What measures speed or memory, counts the keys of the whole Redis, or brings clusters down. */
const ALONE = ['cli/commands/large-batches', 'cluster/parted', 'worker/alone'].map(
  (name) => `/test/${name}\\.slow\\.test\\.ts$`,
);

/** The proofs that take minutes: `npm run test:slow`. */
export default {
  testSequencer: config.testSequencer,
  testTimeout: config.testTimeout,
  workerGracefulExitTimeout: config.workerGracefulExitTimeout,
  // Three at a time mostly wait; what has to be alone runs after them.
  maxWorkers: 3,
  projects: [
    {
      ...shared,
      displayName: 'beside',
      testRegex: ['\\.slow\\.test\\.ts$'],
      testPathIgnorePatterns: ['/node_modules/', ...ALONE],
    },
    { ...shared, displayName: 'alone', testRegex: ALONE, runner: '<rootDir>/test/support/serial-runner.mjs' },
  ],
};
