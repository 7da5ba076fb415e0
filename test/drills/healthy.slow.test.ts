import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { runHealthySystem } from './healthy-system.js';
import { judgeScrapes } from './judge-scrapes.js';

it('two minutes of a healthy system with the example policy raise no alert', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-healthy-'));
  try {
    const { enqueued, states, gateway } = await runHealthySystem(dir, 120_000);
    const { completed, in_progress: inProgress, held } = states;
    expect({ sum: completed + inProgress + held, blocked: gateway.blocked }).toEqual({ sum: enqueued, blocked: false });
    expect(gateway.duplicatePayments).toEqual([]);
    expect(await judgeScrapes(join(dir, 'scrapes.jsonl'))).toBeUndefined();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}, 400_000);
