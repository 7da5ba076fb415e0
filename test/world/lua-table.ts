export class LuaTable {
  readonly items: unknown[];
  fields: Map<unknown, unknown> | undefined;

  constructor(items: unknown[] = []) {
    this.items = items;
    this.#trim();
  }

  get(key: unknown): unknown {
    if (typeof key === 'number' && key >= 1 && key <= this.items.length) return this.items[key - 1];
    return this.fields?.get(key);
  }

  set(key: unknown, value: unknown): void {
    const { items } = this;
    if (typeof key === 'number' && Number.isInteger(key) && key >= 1 && key <= items.length + 1) {
      items[key - 1] = value;
      if (value === undefined) this.#trim();
      else if (key === items.length) this.#takeNext();
    } else if (value === undefined) this.fields?.delete(key);
    else {
      if (key === undefined) throw new Error('table index is nil');
      (this.fields ??= new Map()).set(key, value);
    }
  }

  *entries(): Generator<[unknown, unknown]> {
    for (const [index, value] of this.items.entries()) if (value !== undefined) yield [index + 1, value];
    if (this.fields !== undefined) yield* [...this.fields];
  }

  #takeNext(): void {
    const { fields, items } = this;
    if (fields === undefined) return;
    for (let key = items.length + 1; fields.has(key); key += 1) {
      items.push(fields.get(key));
      fields.delete(key);
    }
  }

  #trim(): void {
    while (this.items.length > 0 && this.items.at(-1) === undefined) this.items.pop();
  }
}
