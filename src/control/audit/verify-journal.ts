import { UnsupportedFormatError } from '../../errors.js';
import { ControlView } from '../../journal/control-view.js';
import { journalPath, listFiles, readLines, type JournalFile } from '../../journal/journal-files.js';
import { formerId } from '../../journal/journal-id.js';
import { hashLine, LineChain } from '../../journal/line-chain.js';
import { isTorn, parseLine, type StoredLine } from '../../journal/parse-line.js';

/** A line of a journal that is not as its writer left it, or a place at which lines are missing. */
export interface JournalFault {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly message: string;
}

/** What the files of a journal come to. */
export interface JournalReport {
  readonly journalId: string;
  readonly files: number;
  /** Without torn ones. */
  readonly lines: number;
  /** Of them, lines that name none before them: those of former formats. */
  readonly unchained: number;
  readonly sends: number;
  /** See `SendJournal.bornAt`; undefined for a journal of a former format. */
  readonly bornAt: number | undefined;
  /** See `SendJournal.prunedUpTo`, of files that were removed. */
  readonly prunedUpTo: number;
  /** When the oldest send that is kept was made, wall clock, ms. */
  readonly firstSendAt: number | undefined;
  /** SHA-256 of the last line, hexadecimal; undefined without any. Kept elsewhere, it shows whether lines at the end were cut off. */
  readonly head: string | undefined;
  /** Where the line is that was asked for; undefined where it is not in the journal. */
  readonly found: Pick<JournalFault, 'file' | 'line'> | undefined;
  /** Of the lines that were told as the newest, those that are there. */
  readonly foundTold: readonly string[];
  /** Every line makes sense, altered or not. */
  readonly isReadable: boolean;
  readonly faults: readonly JournalFault[];
}

/**
 * Who writes reads the file before each send: a line that so many later ones do not follow was not there when they were
 * written.
 */
const MAX_LINES_UNREAD = 100;

/**
 * Reads every line of an account's journal and checks that each follows those before it.
 * @param dir - the folder of the journals
 * @param head - the hash of a line that has to be there
 * @param told - the hashes of lines that were told as the newest, of this or other journals
 * @returns undefined when there is no journal
 * @throws UnsupportedFormatError; Error when a file cannot be read
 */
export async function verifyJournal(
  dir: string,
  platformId: number,
  head?: string,
  told: readonly string[] = [],
): Promise<JournalReport | undefined> {
  const path = journalPath(dir, platformId);
  const files = await listFiles(path);
  if (files.length === 0) return undefined;
  const check = new JournalCheck(head, told);
  for (const file of files) await check.readFile(file);
  return { ...check.report(files.length), journalId: check.journalId ?? (await formerId(path)) };
}

class JournalCheck {
  journalId: string | undefined;
  readonly #wanted: string | undefined;
  readonly #told: ReadonlySet<string>;
  readonly #chain = new LineChain();
  readonly #control = new ControlView();
  readonly #faults: JournalFault[] = [];
  /** The lines of the present file, with their numbers. */
  #places = new Map<string, number>();
  #found: JournalReport['found'];
  readonly #foundTold: string[] = [];
  #isReadable = true;
  #firstSendAt: number | undefined;
  #head: string | undefined;
  #isChained = false;
  #counts = { lines: 0, unchained: 0, sends: 0 };

  constructor(wanted: string | undefined, told: readonly string[]) {
    this.#wanted = wanted;
    this.#told = new Set(told);
  }

  report(files: number): Omit<JournalReport, 'journalId'> {
    return {
      files,
      ...this.#counts,
      bornAt: this.#isChained ? this.#control.bornAt : undefined,
      prunedUpTo: this.#control.prunedUpTo,
      firstSendAt: this.#firstSendAt,
      head: this.#head,
      found: this.#found,
      foundTold: this.#foundTold,
      isReadable: this.#isReadable,
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
    if (this.#told.has(lineHash)) this.#foundTold.push(lineHash);
    this.#head = lineHash;
    this.#counts.lines += 1;
    const stored = this.#parse(text, place);
    if (stored === undefined) return;
    if (stored.prev === undefined) this.#counts.unchained += 1;
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

  /** Processes that open a journal at once may write the same header, or note the same peers. */
  #isCopy(lineHash: string, { line, prev }: StoredLine): boolean {
    return prev !== undefined && 'payoutId' in line && this.#places.has(lineHash);
  }

  #note({ line }: StoredLine): void {
    if ('v' in line) {
      this.journalId = line.journalId;
      this.#isChained ||= line.v === 3;
    }
    if ('payoutId' in line && 'request' in line) {
      this.#counts.sends += 1;
      this.#firstSendAt ??= line.at;
    }
    this.#control.note(line);
  }
}
