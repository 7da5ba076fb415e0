/** @type {import('jest').Config} */
export default {
  // `src` and the scripts, so that `npm test -- --onlyChanged` knows which tests a change concerns.
  roots: ['<rootDir>/src', '<rootDir>/test'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node', 'lua'],
  dependencyExtractor: '<rootDir>/test/support/find-dependencies.mjs',
  testMatch: ['**/*.test.ts'],
  // The slow proofs have a command of their own.
  testPathIgnorePatterns: ['/node_modules/', '\\.slow\\.test\\.ts$'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2023', parser: { syntax: 'typescript' } }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  testEnvironment: '<rootDir>/test/support/quiet-environment.mjs',
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  // Generous: two slow cores may be all there is, and a time limit is no rule of the code.
  testTimeout: 120_000,
  // No test leaves anything open (the environment sees to it), but to free a heap of a gigabyte takes a second.
  workerGracefulExitTimeout: 30_000,
  // Most tests wait for a pace or a lease, not for a processor.
  maxWorkers: 4,
  coverageProvider: 'v8',
  collectCoverageFrom: ['src/**/*.ts'],
};
