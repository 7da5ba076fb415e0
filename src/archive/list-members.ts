import type { FileHandle } from 'node:fs/promises';
import { findHeader, HEADER_BYTES, HEADER_OVERLAP, readMemberSize } from './archive-member.js';

/** A member of an archive file. */
export interface Member {
  readonly offset: number;
  readonly size: number;
}

/** What a file consists of. */
export interface Members {
  readonly members: readonly Member[];
  /** Bytes that belong to no member: what was written when the process, or the power, ended; or damage. */
  readonly strayBytes: number;
}

const CHUNK_BYTES = 1024 * 1024;

/**
 * Finds the members of a file by their headers; whether each is whole inside is seen when it is read. Behind what is torn or
 * damaged it continues with the next header.
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
    // A size that leads to no header may be wrong itself, so what follows is searched from within the member.
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

/** The offset of the next header; the size of the file where there is none. */
async function findNext(file: FileHandle, from: number, fileSize: number): Promise<number> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let offset = from; offset < fileSize; offset += CHUNK_BYTES - HEADER_OVERLAP) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, offset);
    const found = findHeader(chunk.subarray(0, bytesRead));
    if (found !== -1) return offset + found;
  }
  return fileSize;
}

/** The bytes of a member. */
export async function readBytes(file: FileHandle, { offset, size }: Member): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await file.read(bytes, 0, size, offset);
  return bytes.subarray(0, bytesRead);
}
