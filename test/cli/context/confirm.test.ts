import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { confirm, type Terminal } from '../../../src/cli/context/confirm.js';

function terminal(isTTY = true): Terminal & { readonly typed: PassThrough; readonly shown: () => string } {
  const [typed, screen] = [new PassThrough(), new PassThrough()];
  return {
    typed,
    input: Object.assign(typed, { isTTY }),
    output: Object.assign(screen, { isTTY }),
    shown: () => String(screen.read() ?? ''),
  };
}

describe('confirm', () => {
  it.each(['y', 'Y', ' yes '])('continues after %j', async (answer) => {
    const asked = terminal();
    asked.typed.write(`${answer}\n`);
    await confirm('Continue?', asked);
    expect(asked.shown()).toContain('Continue? [y/N] ');
  });

  it.each(['', 'n', 'yesterday', 'no'])('stops after %j', async (answer) => {
    const asked = terminal();
    asked.typed.write(`${answer}\n`);
    await expect(confirm('Continue?', asked)).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('stops when the input ends', async () => {
    const asked = terminal();
    asked.typed.end();
    await expect(confirm('Continue?', asked)).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('stops when the command is ended', async () => {
    const stop = new AbortController();
    const answer = confirm('Continue?', terminal(), stop.signal);
    stop.abort();
    await expect(answer).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('wants --yes where nobody can be asked', async () => {
    await expect(confirm('Continue?', terminal(false))).rejects.toThrow(/--yes: is required/);
  });
});
