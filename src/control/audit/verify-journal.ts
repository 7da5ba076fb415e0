import { UnsupportedFormatError } from '../../base/errors.js';
import { ControlView } from '../../journal/control-view.js';
import { type JournalFile, journalPath, listFiles, readLines } from '../../journal/journal-files.js';
import type { RejectionNote } from '../../journal/journal-line.js';
import { hashLine, LineChain } from '../../journal/line-chain.js';
import { isTorn, parseLine, type StoredLine } from '../../journal/parse-line.js';

interface JournalFault {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

export interface JournalReport {
  readonly journalId: string;
  readonly files: number;
  readonly lines: number;
  readonly sends: number;
  readonly bornAt: number | undefined;
  readonly prunedUpTo: number;
  readonly firstSendAt: number | undefined;
  readonly head: string | undefined;
  readonly found: Pick<JournalFault, 'file' | 'line'> | undefined;
  readonly foundHeads: readonly string[];
  readonly isReadable: boolean;
  /** Sends that follow a rejection which nobody had taken back. */
  readonly rejectedSends: readonly RejectedSend[];
  readonly faults: readonly JournalFault[];
}

export interface RejectedSend extends RejectionNote {
  readonly attempt: number;
}

/**
 * A writer reads the file before each send. If this many later lines do not follow a line, it did not exist when they
 * were written.
 */
const MAX_LINES_UNREAD = 100;

/**
 * Reads every line of an account's journal and checks that each follows those before it. The hash of the last line,
 * kept elsewhere, shows whether lines at the end were cut off.
 * @param dir - the folder of the journals
 * @param head - hash of a line that must be present
 * @param published - hashes of lines once reported as the newest, of this or other journals
 * @returns undefined if there is no journal
 * @throws UnsupportedFormatError; Error if a file cannot be read
 */
export async function verifyJournal(
  dir: string,
  platformId: number,
  head?: string,
  published: readonly string[] = [],
): Promise<JournalReport | undefined> {
  const path = journalPath(dir, platformId);
  const files = await listFiles(path);
  if (files.length === 0) return undefined;
  const check = new JournalCheck(head, published);
  for (const file of files) await check.readFile(file);
  return check.report(files.length);
}

class JournalCheck {
  #journalId = '';
  readonly #wanted: string | undefined;
  readonly #published: ReadonlySet<string>;
  readonly #chain = new LineChain();
  readonly #control = new ControlView();
  readonly #faults: JournalFault[] = [];
  #places = new Map<string, number>();
  #found: JournalReport['found'];
  readonly #foundHeads: string[] = [];
  #isReadable = true;
  #firstSendAt: number | undefined;
  #head: string | undefined;
  readonly #rejectedSends: RejectedSend[] = [];
  #counts = { lines: 0, sends: 0 };

  constructor(wanted: string | undefined, published: readonly string[]) {
    this.#wanted = wanted;
    this.#published = new Set(published);
  }

  report(files: number): JournalReport {
    return {
      journalId: this.#journalId,
      files,
      ...this.#counts,
      bornAt: this.#journalId === '' ? undefined : this.#control.bornAt,
      prunedUpTo: this.#control.prunedUpTo,
      firstSendAt: this.#firstSendAt,
      head: this.#head,
      found: this.#found,
      foundHeads: this.#foundHeads,
      isReadable: this.#isReadable,
      rejectedSends: this.#rejectedSends,
      faults: this.#faults,
    };
  }

  async readFile(listed: JournalFile): Promise<void> {
    const { path: file } = listed;
    this.#chain.startFile();
    this.#places = new Map();
    let line = 0;
    for await (const { text } of readLines(listed, 0)) {
      line += 1;
      if (!isTorn(text)) this.#check(text, { file, line });
    }
    for (const tip of this.#chain.tips) {
      const unread = this.#places.get(tip) ?? line;
      if (line - unread > MAX_LINES_UNREAD) {
        this.#faults.push({ file, line: unread, message: 'no later line follows it: it was put in between' });
      }
    }
  }

  #check(text: string, place: Pick<JournalFault, 'file' | 'line'>): void {
    const lineHash = hashLine(text);
    if (lineHash === this.#wanted) this.#found = place;
    if (this.#published.has(lineHash)) this.#foundHeads.push(lineHash);
    this.#head = lineHash;
    this.#counts.lines += 1;
    const stored = this.#parse(text, place);
    if (stored === undefined) return;
    const fault = this.#isCopy(lineHash, stored) ? 'it is a copy of an earlier line' : undefined;
    const message = this.#chain.add(lineHash, stored) ?? fault;
    if (message !== undefined) this.#faults.push({ ...place, message });
    this.#places.set(lineHash, place.line);
    this.#note(stored);
  }

  #parse(text: string, { file, line }: Pick<JournalFault, 'file' | 'line'>): StoredLine | undefined {
    try {
      return parseLine(text, `${file}:${line}`);
    } catch (error) {
      if (error instanceof UnsupportedFormatError) throw error;
      this.#isReadable = false;
      this.#faults.push({ file, line, message: 'it makes no sense' });
      return undefined;
    }
  }

  /** Processes that open a journal at once may write the same header or the same peers. */
  #isCopy(lineHash: string, { line }: StoredLine): boolean {
    return 'payoutId' in line && this.#places.has(lineHash);
  }

  #note({ line }: StoredLine): void {
    if ('v' in line) this.#journalId = line.journalId;
    if ('payoutId' in line && 'request' in line) {
      this.#counts.sends += 1;
      this.#firstSendAt ??= line.at;
      const [rejection] = this.#control.rejectionsOf(line.payoutId);
      if (rejection !== undefined) this.#rejectedSends.push({ ...rejection, attempt: line.attempt });
    }
    this.#control.note(line);
  }
}
