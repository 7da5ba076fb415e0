import { crc32, deflateRaw, gunzipSync } from 'node:zlib';
import { promisify } from 'node:util';

/**
 * An archive file is a row of gzip members, each with the lines of one batch, so that `zcat` prints it. The header of each says
 * how long it is (an extra field, which gzip allows): a member is found, and one that a crash tore is told from a whole one,
 * without decompressing what stands before it.
 */

const compress = promisify(deflateRaw);

/** ID1 ID2 CM=deflate FLG=FEXTRA, no time, no flags, OS unknown, then 8 bytes of extra field: `PQ`, 4 bytes long. */
const SIGNATURE = Buffer.from('1f8b08040000000000ff080050510400', 'hex');
const SIZE_BYTES = 4;
const TRAILER_BYTES = 8;

/** The bytes of a header. */
export const HEADER_BYTES = SIGNATURE.length + SIZE_BYTES;

/** What a member may decompress to: a batch has a hundred lines of a few kilobytes. */
const MAX_TEXT_BYTES = 256 * 1024 * 1024;

/** Makes a member. @param text - whole lines */
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

/** The lines of a member. @throws Error when it is not whole, or damaged */
export function readMember(member: Buffer): string[] {
  const lines = gunzipSync(member, { maxOutputLength: MAX_TEXT_BYTES }).toString('utf8').split('\n');
  lines.pop();
  return lines;
}

/** The size of the member whose header the bytes are; undefined where they are none. */
export function readMemberSize(header: Buffer): number | undefined {
  if (header.length < HEADER_BYTES || header.compare(SIGNATURE, 0, SIGNATURE.length, 0, SIGNATURE.length) !== 0)
    return undefined;
  const size = header.readUInt32LE(SIGNATURE.length);
  return size > HEADER_BYTES + TRAILER_BYTES ? size : undefined;
}

/** Where in the bytes the first header may begin; -1 where there is none. */
export function findHeader(bytes: Buffer): number {
  return bytes.indexOf(SIGNATURE);
}

/** How many bytes at the end of a part may be the beginning of a header. */
export const HEADER_OVERLAP = SIGNATURE.length - 1;
