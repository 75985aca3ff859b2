// client-v2.mjs URL PLAN: the second generation of the official TypeScript client
// (@modelcontextprotocol/client). plan.negotiation is its mode: "legacy", "auto" or
// {"pin": "2026-07-28"}.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { answers, drive } from './drive.mjs';

await drive(async (url, plan) => {
  const capabilities = plan.features ? { elicitation: {}, sampling: {}, roots: {} } : {};
  const client = new Client({ name: 'interop-v2', version: '1' }, { capabilities, versionNegotiation: { mode: plan.negotiation } });
  const asked = [];
  if (plan.features) {
    client.setRequestHandler('elicitation/create', (r) => (asked.push('elicitation'), answers.elicit(r.params)));
    client.setRequestHandler('sampling/createMessage', () => (asked.push('sampling'), answers.sample()));
    client.setRequestHandler('roots/list', () => (asked.push('roots'), answers.roots(plan)));
  }
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return Object.assign(client, { asked, version: () => client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion });
});
