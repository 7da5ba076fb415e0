import { createServer, type AddressInfo, type Socket } from 'node:net';

export type ScriptedSentinel = Awaited<ReturnType<typeof startScriptedSentinel>>;

const SWITCH = 'payouts 127.0.0.1 1 127.0.0.1 2';

/**
 * Stands for a Sentinel whose replies and messages come when a test says so, which a real one's do not.
 * @param masterPort - of the server on this machine that it names as the master
 */
export async function startScriptedSentinel(masterPort: number) {
  const listeners = new Set<Socket>();
  const sockets = new Set<Socket>();
  let waiting: (() => void)[] | undefined;

  const reply = (socket: Socket, [name = '', part = '']: readonly string[]) => {
    const master = () => void socket.write(array('127.0.0.1', String(masterPort)));
    if (name === 'subscribe') {
      listeners.add(socket);
      socket.write(`*3\r\n${bulk('subscribe')}${bulk(part)}:1\r\n`);
    } else if (name === 'hello') socket.write('-NOPROTO RESP2 only\r\n');
    else if (name !== 'sentinel') socket.write('+OK\r\n');
    else if (part !== 'get-master-addr-by-name') socket.write('*0\r\n');
    else if (waiting === undefined) master();
    else waiting.push(master);
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket
      .on('error', () => undefined)
      .on('close', () => {
        sockets.delete(socket);
        listeners.delete(socket);
      });
    let text = '';
    socket.on('data', (data) => {
      text += data.toString();
      for (let next = takeCommand(text); next !== undefined; next = takeCommand(text)) {
        text = next.rest;
        reply(socket, next.words);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    port: (server.address() as AddressInfo).port,
    holdReplies: () => void (waiting ??= []),
    get held() {
      return waiting?.length ?? 0;
    },
    releaseReplies() {
      const held = waiting ?? [];
      waiting = undefined;
      for (const reply of held) reply();
    },
    get listening() {
      return listeners.size;
    },
    announceFailover() {
      for (const socket of listeners) socket.write(array('message', '+switch-master', SWITCH));
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;
const array = (...texts: readonly string[]) => `*${texts.length}\r\n${texts.map(bulk).join('')}`;

/** The first whole command of what a client has sent; its words hold no line break. */
function takeCommand(text: string): { readonly words: string[]; readonly rest: string } | undefined {
  const lines = text.split('\r\n');
  const count = Number(/^\*(\d+)$/.exec(lines[0] ?? '')?.[1]);
  const end = 1 + 2 * count;
  if (!(lines.length > end)) return undefined;
  const words = lines.slice(1, end).filter((_, index) => index % 2 === 1);
  return {
    words: words.map((word, index) => (index < 2 ? word.toLowerCase() : word)),
    rest: lines.slice(end).join('\r\n'),
  };
}
