// client-v1.mjs URL PLAN: the first generation of the official TypeScript client
// (@modelcontextprotocol/sdk), which speaks the legacy revisions.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { answers, drive } from './drive.mjs';

await drive(async (url, plan) => {
  const capabilities = plan.features ? { elicitation: {}, sampling: {}, roots: {} } : {};
  const client = new Client({ name: 'interop-v1', version: '1' }, { capabilities });
  const asked = [];
  if (plan.features) {
    client.setRequestHandler(ElicitRequestSchema, (r) => (asked.push('elicitation'), answers.elicit(r.params)));
    client.setRequestHandler(CreateMessageRequestSchema, () => (asked.push('sampling'), answers.sample()));
    client.setRequestHandler(ListRootsRequestSchema, () => (asked.push('roots'), answers.roots(plan)));
  }
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const callTool = client.callTool.bind(client);
  return Object.assign(client, {
    asked,
    version: () => transport.protocolVersion,
    callTool: (params, options) => callTool(params, undefined, options),
    callTask: async (params, options) => {
      for await (const m of client.experimental.tasks.callToolStream(params, undefined, options)) {
        if (m.type === 'result') return m.result;
        if (m.type === 'error') throw m.error;
      }
      throw new Error('the task stream ended without a result');
    },
  });
});
