// Opens the journal of account 1 in a folder, as a worker of the built program does, and prints the journal's id.
// open-journal.mjs DIR: waits for a line on stdin first, so that several processes begin at once.
import { once } from 'node:events';
import { FileSendJournal } from '../../../dist/journal/file-send-journal.js';

process.stdout.write('ready\n');
await once(process.stdin, 'data');
const journal = await FileSendJournal.open({ dir: process.argv[2], platformId: 1 });
process.stdout.write(`${journal.journalId}\n`);
await journal.close();
process.exit(0);
