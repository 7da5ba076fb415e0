import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { NO_SENDER, useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();

const ARCHIVING = { PAYOUT_RETENTION_DAYS: '30' };

describe('payouts doctor checks the archive:', () => {
  it('a folder that can be written, and makes none', async () => {
    const { code, found } = await doctor.findings({ ...ARCHIVING, PAYOUT_ARCHIVE_DIR: join(doctor.dir, 'archive') });
    expect([code, found]).toEqual([0, [NO_SENDER]]);
    expect(await readdir(doctor.dir)).toEqual([]);
  });

  it('a folder that cannot be written, with which payouts are sent nevertheless', async () => {
    await writeFile(join(doctor.dir, 'a-file'), '');
    const { code, found } = await doctor.findings({ ...ARCHIVING, PAYOUT_ARCHIVE_DIR: join(doctor.dir, 'a-file') });
    expect(code).toBe(0);
    expect(found[0]).toMatchObject({
      name: 'archive folder',
      status: 'warning',
      platformId: doctor.platformId,
      detail: expect.stringMatching(/a-file\/\d+ cannot be written: ENOTDIR/),
    });
  });

  it('an archive into which nothing ever comes', async () => {
    const { code, found } = await doctor.findings({ PAYOUT_ARCHIVE_DIR: join(doctor.dir, 'archive') });
    expect(code).toBe(0);
    expect(found[0]).toMatchObject({ name: 'archive folder', fix: expect.stringMatching(/PAYOUT_RETENTION_DAYS/) });
  });
});
