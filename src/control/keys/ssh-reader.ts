/** Reads the fields of OpenSSH's binary formats: each a length of four bytes, then its bytes (RFC 4251, section 5). */
export class SshReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  /** @throws RangeError when the data ends before the field does */
  bytes(): Buffer {
    return this.take(this.uint32());
  }

  /** @throws RangeError */
  text(): string {
    return this.bytes().toString('latin1');
  }

  /** @throws RangeError */
  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  /** @throws RangeError */
  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#data.length) throw new RangeError('is cut off');
    const bytes = this.#data.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** @throws RangeError when something is left */
  end(): void {
    if (this.#at !== this.#data.length) throw new RangeError('has more than its fields');
  }
}

/** One field, as {@link SshReader} reads it. */
export function sshField(value: Buffer | string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
