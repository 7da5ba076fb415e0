import { hash } from 'node:crypto';
import type { JournalLine } from './journal-line.js';
import type { StoredLine } from './parse-line.js';

/** SHA-256 of a line without its line break, hexadecimal. */
export function hashLine(text: string): string {
  return hash('sha256', text, 'hex');
}

/** A line as it is written, without its line break. @param prev - the lines that it follows; none before the first */
export function toChainedText(line: JournalLine, prev: readonly string[]): string {
  return JSON.stringify({ ...line, prev: prev.length === 1 ? prev[0] : prev });
}

/** Lines that each follow the one above, and the first of them the given ones, as the text of a file. */
export function toChainedLines(lines: readonly JournalLine[], prev: readonly string[]): string {
  let text = '';
  let follows = prev;
  for (const line of lines) {
    const chained = toChainedText(line, follows);
    text += `${chained}\n`;
    follows = [hashLine(chained)];
  }
  return text;
}

/** Enough for what other processes add between two reads of a running process. */
const RECENT_LINES = 1_000;

const MISSING = 'a line that it follows is not there: lines before it were changed, removed or moved';

/**
 * Follows the lines of a journal, file by file, and finds those that do not belong there.
 *
 * Each line of format 3 names the lines before it that its writer had read and that no other line named yet. Mostly that is
 * one, the line above. Where a process that lost the lease adds a line at the same moment, two lines follow the same one, and
 * the next writer that has read both names both. A line that is changed, removed, put in between or moved is missed by one
 * behind it. Only the end is open: what is cut off there shows by the hash of the last line, kept elsewhere.
 *
 * A line names lines of its own file; the first line of a file, those of the file before. A torn line is none.
 */
export class LineChain {
  /** The lines of the file before, for the first line of the next. */
  #former: ReadonlySet<string> = new Set();
  #known = new Set<string>();
  #tips = new Set<string>();
  /** No line was read yet, of any file. */
  #isNew = true;
  /** No line of the present file was read yet. */
  #isEmpty = true;
  #isChained = false;
  /** The present file began in a format without a chain: a process of that version may have added a last line to it. */
  #isUpgraded = false;
  /** The file before had no chain, or was upgraded: the present one may begin in the former format. */
  #followsFormer = true;

  /** The lines that no line names yet: the next one follows them. */
  get tips(): readonly string[] {
    return [...this.#tips];
  }

  /** Whether the present file has the header of a chain. */
  get isChained(): boolean {
    return this.#isChained;
  }

  /** The lines that follow are of a new file. */
  startFile(): void {
    this.#followsFormer = this.#isNew || !this.#isChained || this.#isUpgraded;
    this.#former = this.#known;
    this.#known = new Set();
    [this.#isEmpty, this.#isChained, this.#isUpgraded] = [true, false, false];
  }

  /**
   * Adds the next line, also where something is wrong with it. A line that is added twice counts once: a process reads its
   * own again where another added one before it.
   * @param stored - undefined for a line of a former format that was not parsed
   * @returns what is wrong with the line, or undefined
   */
  add(lineHash: string, stored: StoredLine | undefined): string | undefined {
    const isHeader = isChainHeader(stored);
    const fault = this.#findFault(stored, isHeader);
    if (isHeader && !this.#isChained) [this.#isChained, this.#isUpgraded] = [true, !this.#isEmpty];
    // What was added late to the file before is not named: the first line of a file names all that counts.
    if (this.#isEmpty || !this.#isChained) this.#tips.clear();
    [this.#isNew, this.#isEmpty] = [false, false];
    for (const named of stored?.prev ?? []) this.#tips.delete(named);
    if (!this.#isChained || !this.#known.has(lineHash)) this.#tips.add(lineHash);
    this.#known.add(lineHash);
    return fault;
  }

  /** Forgets all but the newest lines. A line that names an older one then seems to be wrong until all is read again. */
  trim(): void {
    this.#former = new Set();
    if (this.#known.size <= 2 * RECENT_LINES) return;
    this.#known = new Set([...this.#known].slice(-RECENT_LINES).concat(this.tips));
  }

  #findFault(stored: StoredLine | undefined, isHeader: boolean): string | undefined {
    if (stored?.prev === undefined) {
      return this.#mayLackPrev(stored) ? undefined : 'it does not name the line before it';
    }
    if (!isHeader && !this.#isChained) return 'the header of format 3 before it is missing';
    // What the oldest file follows was removed, or never was.
    if (this.#isNew) return undefined;
    const known = this.#isEmpty ? this.#former : this.#known;
    return stored.prev.length > 0 && stored.prev.every((named) => known.has(named)) ? undefined : MISSING;
  }

  /** A process of a former version wrote before the upgrade, and at most what it had under way right after it. */
  #mayLackPrev(stored: StoredLine | undefined): boolean {
    if (isChainHeader(stored)) return false;
    if (this.#isEmpty) return this.#followsFormer;
    if (!this.#isChained) return true;
    return this.#isUpgraded && stored !== undefined && isOfFormat2(stored.line);
  }
}

function isChainHeader(stored: StoredLine | undefined): boolean {
  return stored !== undefined && 'v' in stored.line && stored.line.v === 3;
}

function isOfFormat2(line: JournalLine): boolean {
  if ('payoutId' in line) return !('signed' in line);
  return 'ledgerId' in line || 'peers' in line || ('v' in line && line.v === 2);
}
