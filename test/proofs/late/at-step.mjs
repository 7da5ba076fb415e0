// Preloaded into a worker by `node --import`: runs a command at an exact step of the next send, within the step itself,
// so that nothing of this process happens meanwhile. SIGUSR2 says: from now on.
// AT_STEP=begin: Redis has recorded and confirmed the begin, the journal's line comes next. entry: the journal has the line
// on disk. first-byte: the first byte of the request has left, the others follow after the command.
// AT_STEP_COMMAND: the command with its arguments, as JSON. Says `{"atStep":…,"at":…}` on stderr, ms of the monotonic clock.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { GuardedSocket } from '../../../dist/gateway/exchange/socket.js';

const { AT_STEP: step, AT_STEP_COMMAND: command } = process.env;
const [program, ...args] = JSON.parse(command);

/** armed → begun (where the step follows the begin) → done */
let state = 'idle';
process.on('SIGUSR2', () => (state = 'armed'));

function act() {
  state = 'done';
  execFileSync(program, args);
  const at = Number(process.hrtime.bigint()) / 1e6;
  writeSync(2, `${JSON.stringify({ atStep: step, at })}\n`);
}

const beginSend = new Set();
const { defineCommand, sendCommand } = Redis.prototype;
Redis.prototype.defineCommand = function (name, definition) {
  if (name === 'payouts:begin-send') beginSend.add(createHash('sha1').update(definition.lua).digest('hex'));
  return defineCommand.call(this, name, definition);
};
Redis.prototype.sendCommand = function (sent, ...rest) {
  const reply = sendCommand.call(this, sent, ...rest);
  if (state !== 'armed' || sent.name !== 'evalsha' || !beginSend.has(String(sent.args[0]))) return reply;
  return reply.then((value) => {
    state = 'begun';
    return value;
  });
};

const probe = await open(process.execPath, 'r');
const fileHandle = Object.getPrototypeOf(probe);
await probe.close();
const { write, datasync } = fileHandle;
fileHandle.write = function (...given) {
  if (state === 'begun' && step === 'begin') act();
  return write.apply(this, given);
};
fileHandle.datasync = async function () {
  const result = await datasync.call(this);
  if (state === 'begun' && step === 'entry') act();
  return result;
};

const { _write } = GuardedSocket.prototype;
GuardedSocket.prototype._write = function (chunk, encoding, callback) {
  if (state !== 'begun' || step !== 'first-byte') return _write.call(this, chunk, encoding, callback);
  _write.call(this, chunk.subarray(0, 1), encoding, () => undefined);
  act();
  return _write.call(this, chunk.subarray(1), encoding, callback);
};
