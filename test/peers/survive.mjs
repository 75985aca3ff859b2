// survive.mjs URL [close]: a client of the first generation of the official TypeScript SDK (@modelcontextprotocol/sdk) that
// connects, opens its stream, and then does what it is told. With "close" every request has a connection of its own.
//
// stdin, a JSON object a line: {"do": "call", "name", "arguments"}, {"do": "level", "level"}, {"do": "subscribe", "uri"},
// {"do": "delete"}. The end of stdin ends the client without a word to the server.
// stdout, a JSON object a line: {"done", "session", "initialized"} or {"failed"} for each order, in order, where initialized
// is how often the client has sent initialize; the first is for connecting. Besides: {"note", "params"} for a notification,
// {"get"} with the status of each attempt to open the stream, {"error"} for what the SDK complains about.
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, mode] = process.argv.slice(2);
let initialized = 0;

const say = (object) => process.stdout.write(JSON.stringify(object) + '\n');

async function watched(target, init) {
  if (typeof init.body === 'string' && JSON.parse(init.body).method === 'initialize') initialized++;
  if (mode === 'close') init.headers.set('connection', 'close');
  const response = await fetch(target, init);
  if (init.method === 'GET') say({ get: response.status });
  return response;
}

const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: watched });
const client = new Client({ name: 'survive', version: '1' }, { capabilities: { roots: {} } });
client.onerror = (e) => say({ error: String(e) });
client.fallbackNotificationHandler = async (n) => say({ note: n.method, params: n.params });

const orders = {
  connect: () => client.connect(transport),
  call: async (o) => (await client.callTool({ name: o.name, arguments: o.arguments ?? {} })).structuredContent,
  level: (o) => client.setLoggingLevel(o.level),
  subscribe: (o) => client.subscribeResource({ uri: o.uri }),
  delete: () => transport.terminateSession(),
};

async function obey(order) {
  try {
    const done = await orders[order.do](order);
    say({ done: done ?? {}, session: transport.sessionId, initialized });
  } catch (e) {
    say({ failed: String(e), code: e.code });
  }
}

await obey({ do: 'connect' });
for await (const line of createInterface({ input: process.stdin })) await obey(JSON.parse(line));
await client.close();
