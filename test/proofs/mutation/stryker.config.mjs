import { groups } from './groups.mjs';

const group = process.env.MUTATION_GROUP;

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: groups[group].mutate,
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner', new URL('ignore-messages.mjs', import.meta.url).href],
  jest: { configFile: 'test/proofs/mutation/jest.config.mjs', enableFindRelatedTests: false },
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  coverageAnalysis: 'perTest',
  ignorers: ['messages'],
  ignorePatterns: ['/bench', '/data', '/dist', '/reports', '/examples'],
  tempDirName: `.stryker-tmp/${group}`,
  concurrency: 1,
  // Every run leaves the modules that it loaded behind.
  maxTestRunnerReuse: 20,
  timeoutMS: 5_000,
  incremental: true,
  incrementalFile: `reports/mutation/${group}.json`,
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, reportTests: false, reportScoreTable: false },
  thresholds: { high: 95, low: 90, break: null },
  disableTypeChecks: true,
  allowConsoleColors: false,
};
