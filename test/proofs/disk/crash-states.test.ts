import { describe, expect, it } from '@jest/globals';
import { crashStates, type EarlierFile } from './crash-states.js';
import type { DiskCall } from './recorded-fs.js';

/** `npm run disk-crashes` opens each of these with the real journal; here is that none is left out. */

const FILE: EarlierFile = { path: '/d/1', inode: 1, bytes: Buffer.from('old\n') };
const write = (text: string, inode = 1): DiskCall => ({ kind: 'write', inode, bytes: Buffer.from(text) });
const SYNC: DiskCall = { kind: 'sync', inode: 1 };
const CREATE: DiskCall = { kind: 'create', path: '/d/2', inode: 2 };

function statesAfter(...calls: DiskCall[]): string[] {
  const states = [...crashStates([FILE], calls)].map((state) =>
    [...state.files].map(([path, bytes]) => `${path}=${bytes.toString()}`).join(' '),
  );
  return [...new Set(states)].sort();
}

describe('what a disk may hold after a crash', () => {
  it('is what was there, where nothing was done', () => {
    expect(statesAfter()).toEqual(['/d/1=old\n']);
  });

  it('has what was written and not synced, or a half of it, or nothing', () => {
    expect(statesAfter(write('ab'))).toEqual(['/d/1=old\n', '/d/1=old\na', '/d/1=old\nab']);
  });

  it('has what was synced, for certain', () => {
    expect(statesAfter(write('ab'), SYNC)).toEqual(['/d/1=old\nab']);
    expect(statesAfter(write('ab'), SYNC, write('c'))).toEqual(['/d/1=old\nab', '/d/1=old\nabc']);
  });

  it('has the later of two writes without the earlier, as a file system may order them', () => {
    expect(statesAfter(write('ab'), write('c'))).toContain('/d/1=old\n\0\0c');
  });

  it('has a new file or not until its folder is synced, whatever was synced of its bytes', () => {
    const bytes: DiskCall[] = [CREATE, write('n', 2), { kind: 'sync', inode: 2 }];
    expect(statesAfter(...bytes)).toEqual(['/d/1=old\n', '/d/1=old\n /d/2=n']);
    expect(statesAfter(...bytes, { kind: 'syncFolder', path: '/d' })).toEqual(['/d/1=old\n /d/2=n']);
  });

  it('has a file under its old name or its new one until the folder is synced', () => {
    expect(statesAfter({ kind: 'rename', from: '/d/1', path: '/d/3', inode: 1 })).toEqual(['/d/1=old\n', '/d/3=old\n']);
  });

  it('has every subset of the changes of names', () => {
    const renameAndCreate: DiskCall[] = [{ kind: 'rename', from: '/d/1', path: '/d/3', inode: 1 }, CREATE];
    expect(statesAfter(...renameAndCreate)).toEqual([
      '/d/1=old\n',
      '/d/1=old\n /d/2=',
      '/d/3=old\n',
      '/d/3=old\n /d/2=',
    ]);
  });
});
