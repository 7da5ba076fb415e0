// A gateway as a process of its own, so that it can be stopped and continued like one. It answers at once, pays
// everything, and appends each withdrawal to its book: {platformId, addressTo, txhash, from, firstByteAt, readAt}; times are
// ms of the machine's monotonic clock, readAt is when the whole request was read.
// BOOK.asked has a line {platformId, readAt} for each request for a balance, which is also how a worker probes it.
// argv[2]: {port, book, records, processes, tls: {key, cert}} as JSON. Its owner asks for the payments of an account with
// GET /PLATFORM_ID at the socket `records`. A command in the file BOOK.command-PLATFORM_ID is run between reading the next
// withdrawal and its response; BOOK.stepped-PLATFORM_ID says when. Several processes share the port with `node:cluster`.
import { execFileSync } from 'node:child_process';
import cluster from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

const { port, book, records, processes, tls } = JSON.parse(process.argv[2]);

const now = () => Number(process.hrtime.bigint()) / 1e6;

const readBook = () =>
  readFileSync(book, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** Whichever process reads the withdrawal takes the command that waits for it. */
function runBeforeResponse(platformId) {
  const command = `${book}.command-${platformId}`;
  if (!existsSync(command)) return;
  const [program, ...args] = JSON.parse(readFileSync(command, 'utf8'));
  rmSync(command);
  writeFileSync(`${book}.stepped-${platformId}`, String(now()));
  execFileSync(program, args);
}

function withdraw(fields, from, firstByteAt) {
  const { platform_id, address_to: addressTo, amount, payment_id } = fields;
  const txhash = `0x${randomBytes(32).toString('hex')}`;
  const payment = { platformId: Number(platform_id), addressTo, amount, paymentId: Number(payment_id), txhash };
  appendFileSync(book, `${JSON.stringify({ ...payment, from, firstByteAt, readAt: now() })}\n`);
  runBeforeResponse(payment.platformId);
  return { result: 1, txhash, amount, address_to: addressTo, payment_id: payment.paymentId };
}

function status({ txhash }) {
  const payment = readBook().find((each) => each.txhash === txhash);
  if (payment === undefined) return { result: 0, message: 'unknown transaction' };
  const { amount, addressTo: address_to, paymentId: payment_id } = payment;
  return { result: 1, approve: 1, txhash, amount, address_to, payment_id, fee: '0' };
}

function balance({ platform_id }) {
  appendFileSync(`${book}.asked`, `${JSON.stringify({ platformId: Number(platform_id), readAt: now() })}\n`);
  return { result: 1, balance: '1000000' };
}

const ANSWERS = {
  '/withdraw': withdraw,
  '/transactionstatus': status,
  '/balance': balance,
  '/currencies': () => ({ result: 1, list: [{ payment_id: 1, currency: 'USDT', rate_usd: 1 }] }),
};

function serve(toAnswer) {
  return (request, response) => {
    let body = '';
    // A socket that was reset meanwhile has no address any more.
    const [from, firstByteAt] = [request.socket.remoteAddress ?? 'a closed connection', now()];
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const text = JSON.stringify(toAnswer(request.url, body, from, firstByteAt));
      response.writeHead(200, { 'content-length': Buffer.byteLength(text) });
      response.end(text);
    });
  };
}

const answerAnyone = (url, body, from, firstByteAt) =>
  ANSWERS[url]?.(Object.fromEntries(new URLSearchParams(body)), from, firstByteAt) ?? { result: 0, message: 'no' };

const answerOwner = (url) => {
  const platformId = Number(url.slice(1));
  return readBook().filter((payment) => payment.platformId === platformId);
};

/** No limit of Node's own closes a connection while the process stands still. */
const PATIENT = { headersTimeout: 0, requestTimeout: 0, connectionsCheckingInterval: 3_600_000 };

if (cluster.isPrimary && processes > 1) {
  // Each child accepts from the shared port by itself: the primary forwards nothing.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  for (let child = 0; child < processes; child += 1) cluster.fork();
} else {
  const server = https.createServer({ ...PATIENT, ...tls }, serve(answerAnyone));
  server.on('tlsClientError', () => undefined);
  server.listen(port, '0.0.0.0', () => {
    http.createServer(serve(answerOwner)).listen(records, () => process.stdout.write('ready\n'));
  });
}
