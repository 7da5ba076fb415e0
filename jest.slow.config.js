import config from './jest.config.js';

/** The proofs that take minutes: `npm run test:slow`. */
export default { ...config, testMatch: ['**/*.slow.test.ts'], testPathIgnorePatterns: ['/node_modules/'] };
