// Preloaded into a process by `node --import`: names that end in `.slow` take ten seconds to look up, and like every other
// name they wait for one of the few threads that libuv gives to look-ups: half of UV_THREADPOOL_SIZE, first come, first served.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const SLOW_MS = 10_000;
const { lookup } = dns;
const waiting = [];
let running = 0;

const limit = () => Math.ceil(Number(process.env.UV_THREADPOOL_SIZE ?? 4) / 2);

function next() {
  if (running >= limit()) return;
  const work = waiting.shift();
  if (work === undefined) return;
  running += 1;
  work(() => {
    running -= 1;
    next();
  });
}

dns.lookup = (host, options, callback) => {
  waiting.push((done) => {
    const answer = (...args) => {
      done();
      callback(...args);
    };
    if (!host.endsWith('.slow')) return lookup(host, options, answer);
    setTimeout(() => {
      answer(Object.assign(new Error(`getaddrinfo EAI_AGAIN ${host}`), { code: 'EAI_AGAIN' }));
    }, SLOW_MS);
  });
  next();
};
syncBuiltinESMExports();
