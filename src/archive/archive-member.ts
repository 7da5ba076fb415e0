import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { crc32, deflateRaw, gunzipSync } from 'node:zlib';

/**
 * An archive file is a row of gzip members, each with the lines of one batch, so `zcat` prints it. Each header has the
 * member's length in an extra field, which gzip allows. So members are found, and torn ones detected, without
 * decompressing what is before them.
 */

const compress = promisify(deflateRaw);

/** ID1 ID2 CM=deflate FLG=FEXTRA, no time, no flags, OS unknown, then 8 bytes of extra field: `PQ`, 4 bytes long. */
const SIGNATURE = Buffer.from('1f8b08040000000000ff080050510400', 'hex');
const SIZE_BYTES = 4;
const TRAILER_BYTES = 8;

const HEADER_BYTES = SIGNATURE.length + SIZE_BYTES;

/** Limit of a member's text. A batch has a hundred lines of a few kilobytes. */
const MAX_TEXT_BYTES = 256 * 1024 * 1024;

/** @param text - whole lines */
export async function toMember(text: string): Promise<Buffer> {
  const bytes = Buffer.from(text);
  const body = await compress(bytes);
  const member = Buffer.alloc(HEADER_BYTES + body.length + TRAILER_BYTES);
  SIGNATURE.copy(member);
  member.writeUInt32LE(member.length, SIGNATURE.length);
  body.copy(member, HEADER_BYTES);
  member.writeUInt32LE(crc32(bytes), member.length - TRAILER_BYTES);
  member.writeUInt32LE(bytes.length, member.length - SIZE_BYTES);
  return member;
}

/** @throws Error if the member is torn or damaged */
export function readMember(member: Buffer): string[] {
  const lines = gunzipSync(member, { maxOutputLength: MAX_TEXT_BYTES }).toString('utf8').split('\n');
  lines.pop();
  return lines;
}

/** The member's size from its header; undefined without a header. */
function readMemberSize(header: Buffer): number | undefined {
  if (header.length < HEADER_BYTES || header.compare(SIGNATURE, 0, SIGNATURE.length, 0, SIGNATURE.length) !== 0)
    return undefined;
  const size = header.readUInt32LE(SIGNATURE.length);
  return size > HEADER_BYTES + TRAILER_BYTES ? size : undefined;
}

/** Offset of the first possible header, or -1. */
function findHeader(bytes: Buffer): number {
  return bytes.indexOf(SIGNATURE);
}

/** Bytes at a part's end that may begin a header. */
const HEADER_OVERLAP = SIGNATURE.length - 1;

interface Member {
  readonly offset: number;
  readonly size: number;
}

interface Members {
  readonly members: readonly Member[];
  /** Bytes outside members: damage, or a write that a crash or power loss cut off. */
  readonly strayBytes: number;
}

const CHUNK_BYTES = 1024 * 1024;

/**
 * Finds members by their headers, also after torn or damaged bytes. Only reading a member shows whether it is whole.
 */
export async function listMembers(file: FileHandle): Promise<Members> {
  const { size: fileSize } = await file.stat();
  const members: Member[] = [];
  let [offset, strayBytes] = [0, 0];
  while (offset < fileSize) {
    const size = await readSizeAt(file, offset);
    const end = offset + (size ?? 0);
    const isWhole = size !== undefined && end <= fileSize;
    if (isWhole) members.push({ offset, size });
    if (isWhole && (end === fileSize || (await readSizeAt(file, end)) !== undefined)) {
      offset = end;
      continue;
    }
    // A size that leads to no header may be wrong, so search from within the member.
    const next = await findNext(file, offset + 1, fileSize);
    strayBytes += Math.max(0, next - (isWhole ? end : offset));
    offset = next;
  }
  return { members, strayBytes };
}

async function readSizeAt(file: FileHandle, offset: number): Promise<number | undefined> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, offset);
  return readMemberSize(header.subarray(0, bytesRead));
}

/** @returns the file's size if there is none */
async function findNext(file: FileHandle, from: number, fileSize: number): Promise<number> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let offset = from; offset < fileSize; offset += CHUNK_BYTES - HEADER_OVERLAP) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, offset);
    const found = findHeader(chunk.subarray(0, bytesRead));
    if (found !== -1) return offset + found;
  }
  return fileSize;
}

export async function readBytes(file: FileHandle, { offset, size }: Member): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, offset);
  return bytes.subarray(0, bytesRead);
}
