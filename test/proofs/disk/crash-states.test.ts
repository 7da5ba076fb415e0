import { expect, it } from '@jest/globals';
import { crashStates, type EarlierFile, type DiskCall } from './crash-states.js';

/** `npm run disk-crashes` opens each of these with the real journal; here is that none is left out. */

const FILE: EarlierFile = { path: '/d/1', inode: 1, bytes: Buffer.from('old\n') };
const write = (text: string, inode = 1): DiskCall => ({ kind: 'write', inode, bytes: Buffer.from(text) });
const SYNC: DiskCall = { kind: 'sync', inode: 1 };
const CREATE: DiskCall = { kind: 'create', path: '/d/2', inode: 2 };

function statesAfter(...calls: DiskCall[]) {
  const states = [...crashStates([FILE], calls)].map((state) =>
    [...state.files].map(([path, bytes]) => `${path}=${bytes.toString()}`).join(' '),
  );
  return [...new Set(states)].sort();
}

const RENAME: DiskCall = { kind: 'rename', from: '/d/1', path: '/d/3', inode: 1 };
const NEW: DiskCall[] = [CREATE, write('n', 2), { kind: 'sync', inode: 2 }];
const OLD = '/d/1=old\n';

it.each<[what: string, calls: DiskCall[], states: string[]]>([
  ['what was there, where nothing was done', [], [OLD]],
  ['what was not synced, a half of it, or nothing', [write('ab')], [OLD, `${OLD}a`, `${OLD}ab`]],
  ['what was synced, for certain', [write('ab'), SYNC], [`${OLD}ab`]],
  ['what was synced before something else', [write('ab'), SYNC, write('c')], [`${OLD}ab`, `${OLD}abc`]],
  ['a new file or not until its folder is synced', NEW, [OLD, `${OLD} /d/2=n`]],
  ['a new file whose folder was synced', [...NEW, { kind: 'syncFolder', path: '/d' }], [`${OLD} /d/2=n`]],
  ['each subset of the changes of names', [RENAME, CREATE], [OLD, `${OLD} /d/2=`, '/d/3=old\n', '/d/3=old\n /d/2=']],
])('a disk may hold %s', (_, calls, states) => {
  expect(statesAfter(...calls)).toEqual(states);
});

it('a disk may hold the later of two writes without the earlier, as a file system may order them', () => {
  expect(statesAfter(write('ab'), write('c'))).toContain(`${OLD}\0\0c`);
});
