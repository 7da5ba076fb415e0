import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { NO_SENDER, problemOf, useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();

describe('payouts doctor finds, in the journal:', () => {
  it('a journal folder that cannot be written', async () => {
    await writeFile(join(doctor.dir, 'a-file'), '');
    const { code, found } = await doctor.findings({ SEND_JOURNAL_DIR: join(doctor.dir, 'a-file', 'journal') });
    expect(code).toBe(1);
    expect(found[0]).toEqual(problemOf('journal folder', 'ENOTDIR'));
  });

  it('a journal folder behind a link that leads nowhere', async () => {
    const link = join(doctor.dir, 'link');
    await symlink(join(doctor.dir, 'nowhere'), link);
    const { code, found } = await doctor.findings({ SEND_JOURNAL_DIR: join(link, 'journal') });
    expect(code).toBe(1);
    expect(found[0]).toEqual(problemOf('journal folder', `${link} is a symbolic link to nothing`));
  });

  it('a journal of another ledger, and an unreadable one', async () => {
    const journal = join(doctor.dir, `${doctor.platformId}.journal`);
    await writeFile(journal, '{"ledgerId":"of-another-redis","epoch":3,"sends":9}\n');
    const other = await doctor.findings({ SEND_JOURNAL_DIR: doctor.dir });
    expect([other.code, other.found]).toEqual([1, [problemOf('journal and ledger', 'of-another-redis'), NO_SENDER]]);
    await writeFile(journal, 'nonsense\n');
    const broken = await doctor.findings();
    expect([broken.code, broken.found]).toEqual([1, [problemOf('journal and ledger', 'cannot be read'), NO_SENDER]]);
  });
});
