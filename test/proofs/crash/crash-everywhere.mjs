// Preloaded by `node --import`: names every step that the process takes outside itself (each Redis command, journal write
// and sync, connection and write to the gateway), and ends it with SIGKILL before or after one.
// CRASH_RECORD=<file>: append the name of every step to the file and let the process live.
// CRASH_STEP=<name>, CRASH_SIDE=before|after: die there. After means: it has taken effect, the process never learns it.
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { GuardedSocket } from '../../../dist/gateway/exchange/socket.js';

const { CRASH_RECORD: recordFile, CRASH_STEP: crashStep, CRASH_SIDE: crashSide, CRASH_OCCURRENCES: told } = process.env;

/** Steps before the work begins are the same at every start; only this many of each kind are told apart. */
const OCCURRENCES = Number(told ?? 3);

const counts = new Map();

function nameStep(kind) {
  const count = (counts.get(kind) ?? 0) + 1;
  counts.set(kind, count);
  const name = `${kind}#${Math.min(count, OCCURRENCES + 1)}`;
  if (recordFile !== undefined && count <= OCCURRENCES) appendFileSync(recordFile, `${name}\n`);
  return name;
}

const die = () => process.kill(process.pid, 'SIGKILL');

/** Runs a step that settles later; dying after it means that nobody sees that it settled. */
function around(kind, run) {
  const name = nameStep(kind);
  const hit = name === crashStep;
  if (hit && crashSide === 'before') die();
  const result = run();
  if (hit && crashSide === 'after') {
    if (typeof result?.then === 'function') {
      result.then(die, die);
      return new Promise(() => undefined);
    }
    setImmediate(die);
  }
  return result;
}

const scriptNames = new Map();
const { defineCommand } = Redis.prototype;
Redis.prototype.defineCommand = function (name, definition) {
  scriptNames.set(createHash('sha1').update(definition.lua).digest('hex'), name);
  return defineCommand.call(this, name, definition);
};

function describeCommand({ name = 'pipeline', args }) {
  if (name === 'evalsha') return scriptNames.get(String(args[0])) ?? name;
  if (name === 'eval') return `${name} in full`;
  return name;
}

const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, ...rest) {
  // It is called again for commands that waited for the connection.
  if (command.crashNamed) return sendCommand.call(this, command, ...rest);
  command.crashNamed = true;
  return around(`redis ${describeCommand(command)}`, () => sendCommand.call(this, command, ...rest));
};

const probe = await open(process.execPath, 'r');
const fileHandle = Object.getPrototypeOf(probe);
await probe.close();
for (const method of ['write', 'datasync', 'sync']) {
  const original = fileHandle[method];
  fileHandle[method] = function (...args) {
    return around(`journal ${method}`, () => original.apply(this, args));
  };
}

const { _write } = GuardedSocket.prototype;
GuardedSocket.prototype._write = function (...args) {
  return around('gateway write', () => _write.apply(this, args));
};

const { push } = GuardedSocket.prototype;
GuardedSocket.prototype.push = function (...args) {
  return around('gateway response', () => push.apply(this, args));
};
