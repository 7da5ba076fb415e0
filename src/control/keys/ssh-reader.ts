/**
 * Reads OpenSSH's binary fields: a length of four bytes, then the bytes (RFC 4251, section 5).
 * Every method throws RangeError if the data ends early.
 */
export class SshReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  bytes(): Buffer {
    return this.take(this.uint32());
  }

  text(): string {
    return this.bytes().toString('latin1');
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#data.length) throw new RangeError('is cut off');
    const bytes = this.#data.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** @throws RangeError if data is left */
  end(): void {
    if (this.#at !== this.#data.length) throw new RangeError('has more than its fields');
  }
}

export function sshField(value: Buffer | string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
