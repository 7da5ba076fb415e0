import { describe, expect, it } from '@jest/globals';
import { runExample } from './support.js';

describe('examples/sandbox.test.ts', () => {
  it('passes', async () => {
    const { ended, output } = await runExample('sandbox.test.ts', {}, { node: ['--test'] }).end();
    expect({ ended, output }).toMatchObject({ ended: [0, null] });
    expect(output).toMatch(/pass 2\n/);
  });
});
