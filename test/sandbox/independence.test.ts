import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

const folder = new URL('../../src/sandbox/', import.meta.url);

it("no file of the sandbox uses the client's parsers of responses", () => {
  const users = readdirSync(folder).filter((file) =>
    readFileSync(new URL(file, folder), 'utf8').includes('parseResult'),
  );
  expect(users).toEqual([]);
});
