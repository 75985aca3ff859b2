// drive.mjs runs one plan through a client of either SDK generation and prints one JSON
// object: what was listed, and what every call, read and prompt came to. The adapters
// client-v1.mjs and client-v2.mjs hide what differs between the generations.
import { readFileSync } from 'node:fs';

const callLimit = 30_000; // milliseconds, for one request
const pairCalls = 25;     // calls each of two clients makes at once

// attempt turns an exception into data, so that one failure hides no other.
async function attempt(f) {
  try {
    return await f();
  } catch (e) {
    return { error: `${e.name}: ${e.message}`, code: e.code };
  }
}

function summary(result) {
  const text = (result.content ?? []).map((c) => c.text ?? c.type).join('\n');
  return { isError: result.isError === true, parts: (result.content ?? []).length, text: text.slice(0, 2000) };
}

// Lists follow the cursor themselves: the v1 client returns single pages.
async function listAll(list, member) {
  const items = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? {} : { cursor });
    items.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

async function tools(client, plan, report) {
  const listed = await listAll((p) => client.listTools(p), 'tools');
  report.listed.tools = listed.map((t) => t.name);
  const taskOnly = new Set(listed.filter((t) => t.execution?.taskSupport === 'required').map((t) => t.name));
  // The plan's order, as a call may need what an earlier one made.
  for (const call of plan.calls) {
    if (!report.listed.tools.includes(call.name)) continue;
    const params = { name: call.name, arguments: call.arguments ?? {} };
    report.calls[call.name] = await attempt(async () => {
      if (!taskOnly.has(call.name)) return summary(await client.callTool(params, { timeout: callLimit }));
      if (!client.callTask) return { skipped: 'this client cannot run tasks' };
      return summary(await client.callTask(params, { timeout: callLimit }));
    });
  }
}

async function resources(client, plan, report) {
  const listed = await listAll((p) => client.listResources(p), 'resources');
  report.listed.resources = listed.map((r) => r.uri);
  const templates = await listAll((p) => client.listResourceTemplates(p), 'resourceTemplates');
  report.listed.templates = templates.map((t) => t.uriTemplate);
  for (const uri of [...report.listed.resources, ...(plan.reads ?? [])]) {
    report.reads[uri] = await attempt(async () => {
      const { contents } = await client.readResource({ uri });
      return { parts: contents.length, size: contents.reduce((n, c) => n + (c.text ?? c.blob ?? '').length, 0) };
    });
  }
}

async function prompts(client, plan, report) {
  const listed = await listAll((p) => client.listPrompts(p), 'prompts');
  report.listed.prompts = listed.map((p) => p.name);
  for (const name of report.listed.prompts) {
    report.prompts[name] = await attempt(async () => {
      const { messages } = await client.getPrompt({ name, arguments: plan.prompts?.[name] });
      return { parts: messages.length, text: messages.map((m) => m.content.text ?? m.content.type).join('\n') };
    });
  }
}

async function progress(client, plan) {
  const seen = [];
  const result = await client.callTool(plan.progress, { timeout: callLimit, onprogress: (p) => seen.push(p.progress) });
  return { ...summary(result), seen };
}

// cancel stops a call after its first progress, and shows that the session lives on.
async function cancel(client, plan) {
  const controller = new AbortController();
  const began = Date.now();
  const outcome = await attempt(async () => {
    await client.callTool(plan.cancel, { timeout: callLimit, signal: controller.signal, onprogress: () => controller.abort('enough') });
    return { finished: true };
  });
  const ended = Date.now();
  await listAll((p) => client.listTools(p), 'tools');
  return { ...outcome, finished: outcome.finished === true, ms: ended - began };
}

// pair lets two clients with equal request ids call at once. @@ in an argument becomes a
// text of the call's own, which must come back.
async function pair(clients, plan) {
  const wrong = [];
  const one = async (client, mark) => {
    const args = JSON.parse(JSON.stringify(plan.pair.arguments).replaceAll('@@', mark));
    const { text, isError } = summary(await client.callTool({ name: plan.pair.name, arguments: args }, { timeout: callLimit }));
    const want = plan.pair.want.replaceAll('@@', mark);
    if (isError || !text.includes(want)) wrong.push(`${mark}: ${text.slice(0, 100)}`);
  };
  const all = clients.flatMap((c, i) => Array.from({ length: pairCalls }, (_, n) => one(c, `client-${i}-call-${n}.`)));
  const outcomes = await Promise.allSettled(all);
  const errors = outcomes.filter((o) => o.status === 'rejected').map((o) => String(o.reason).slice(0, 200));
  return { calls: all.length, wrong, errors };
}

export async function drive(connect) {
  const [url, planFile] = process.argv.slice(2);
  const plan = JSON.parse(readFileSync(planFile, 'utf8'));
  const report = { listed: {}, calls: {}, reads: {}, prompts: {} };
  const client = await connect(url, plan);
  report.version = client.version();
  const has = client.getServerCapabilities() ?? {};
  report.capabilities = Object.keys(has).sort();
  if (has.tools) await tools(client, plan, report);
  if (has.resources) await resources(client, plan, report);
  if (has.prompts) await prompts(client, plan, report);
  if (plan.complete) report.completion = await attempt(async () => (await client.complete(plan.complete)).completion.values);
  if (plan.progress) report.progress = await attempt(() => progress(client, plan));
  if (plan.cancel) report.cancel = await attempt(() => cancel(client, plan));
  if (plan.pair) {
    const second = await connect(url, plan);
    report.pair = await attempt(() => pair([client, second], plan));
    await second.close();
  }
  report.asked = client.asked;
  await client.close();
  process.stdout.write(JSON.stringify(report) + '\n');
}

// answers is what a client with features says to a server's questions.
export const answers = {
  elicit: (params) => ({ action: 'accept', content: fill(params?.requestedSchema) }),
  sample: () => ({ model: 'none', role: 'assistant', content: { type: 'text', text: 'sampled text' } }),
  roots: (plan) => ({ roots: (plan.roots ?? []).map((uri) => ({ uri })) }),
};

// fill gives every required field a value of its type.
function fill(schema) {
  const given = {};
  for (const name of schema?.required ?? []) {
    const p = schema.properties[name];
    given[name] = p.default ?? p.enum?.[0] ?? p.oneOf?.[0]?.const ?? ({ string: 'text', boolean: true, array: [] }[p.type] ?? 1);
  }
  return given;
}
