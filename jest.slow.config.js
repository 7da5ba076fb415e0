import config from './jest.config.js';

/** The proofs that take minutes: `npm run test:slow`. */
export default {
  ...config,
  testMatch: ['**/*.slow.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  // One at a time: they measure time and bring whole clusters down.
  maxWorkers: 1,
};
