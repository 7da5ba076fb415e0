import { listFiles, readLines, type JournalFile } from './journal-files.js';
import { parseLine, type JournalLine } from './journal-line.js';
import { JournalView } from './journal-view.js';
import { JournalDamagedError } from './send-journal.js';

/** Up to where a process has read and written: the file, its size then, and the end of its last whole line. */
interface Place {
  readonly inode: number;
  size: number;
  end: number;
}

/** Reads the files of a journal, and follows what this and other processes append to them. */
export class JournalReader {
  readonly #path: string;
  #view = new JournalView();
  #place: Place | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** What the lines come to that were read or written. */
  get view(): JournalView {
    return this.#view;
  }

  /** Undefined before anything was read. */
  get place(): Readonly<Place> | undefined {
    return this.#place;
  }

  /**
   * Reads what was added since the last read, by any process; everything, where there was none.
   * @throws JournalDamagedError when lines that were read before are gone
   * @throws UnsupportedFormatError; Error when the files cannot be read, or a line makes no sense
   */
  async catchUp(): Promise<void> {
    const files = await listFiles(this.#path);
    const place = this.#place;
    if (place === undefined) {
      await this.#readAll(files);
      return;
    }
    const index = files.findIndex(({ inode }) => inode === place.inode);
    const [present, ...later] = files.slice(index);
    if (index === -1 || present === undefined) {
      await this.#readReplaced(files);
    } else if (present.size < place.end) {
      throw damaged(`${present.path} was cut off`);
    } else {
      await this.#readFile(present, place.end);
      for (const file of later) {
        this.#view.startFile();
        await this.#readFile(file, 0);
      }
    }
  }

  /** This process has appended bytes to the present file; they may not be on disk yet. */
  noteWritten(bytes: number): void {
    if (this.#place !== undefined) this.#place.size += bytes;
  }

  /** What this process appended is on disk. @param size - of the file then */
  noteSynced(line: JournalLine, size: number): void {
    // Where another process appended in between, its line is still to be read.
    if (this.#place?.size === size) this.#place.end = size;
    this.#view.note(line);
  }

  async #readAll(files: readonly JournalFile[]): Promise<void> {
    this.#view = new JournalView();
    // Older files are for an adoption; the last two hold the recent sends.
    for (const file of files.slice(-2)) {
      this.#view.startFile();
      await this.#readFile(file, 0);
    }
  }

  /** The file that was read before was replaced: the new ones have to hold what it held. */
  async #readReplaced(files: readonly JournalFile[]): Promise<void> {
    const [before, place] = [this.#view, this.#place];
    const last = before.lastSends(1)[0];
    await this.#readAll(files);
    const isSame = this.#view.journalId === before.journalId && (last === undefined || this.#view.has(last));
    if (isSame && files.length > 0) return;
    [this.#view, this.#place] = [before, place];
    throw damaged(files.length === 0 ? `${this.#path} was deleted` : `${this.#path} was replaced by another file`);
  }

  async #readFile({ path, inode, size }: JournalFile, from: number): Promise<void> {
    let number = 0;
    let position = from;
    for await (const { text, end } of readLines(path, from)) {
      number += 1;
      const line = parseLine(text, from === 0 ? `${path}:${number}` : `${path}, byte ${position}`);
      if (line !== undefined) this.#view.note(line);
      position = end;
    }
    this.#place = { inode, size: Math.max(size, position), end: position };
  }
}

function damaged(what: string): JournalDamagedError {
  return new JournalDamagedError(
    `The send journal was damaged while it was in use: ${what}. Put the file back as it was; nothing is sent without it.`,
  );
}
