import { fileURLToPath } from 'node:url';
import base from '../../../jest.config.js';
import { groups } from './groups.mjs';

const { tests } = groups[process.env.MUTATION_GROUP];

/** @type {import('jest').Config} */
export default {
  ...base,
  rootDir: fileURLToPath(new URL('../../..', import.meta.url)),
  testMatch: tests.map((path) => `<rootDir>/${path}`),
  // Stryker wraps the environment, and loads no module of ESM for it.
  testEnvironment: 'node',
  testTimeout: 5_000,
};
