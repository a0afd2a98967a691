// A client in TypeScript: lists, then searches and calls as its third argument says, and prints what
// came back as JSON. Usage: tsx client.ts URL TOKEN '[{"query": ..., "name": ..., "arguments": ...}]'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

type Step = { query: string; name: string; arguments: Record<string, unknown> };
type Found = { tools: { name: string }[] };

const [url, token, text] = process.argv.slice(2);
const steps: Step[] = JSON.parse(text);
const headers = { Authorization: `Bearer ${token}` };
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const client = new Client({ name: "typescript", version: "1" }, { capabilities: {} });
await client.connect(transport);

const listed = (await client.listTools()).tools.map((tool) => tool.name);
const answers: { found: string[]; content: unknown; isError: unknown }[] = [];
for (const step of steps) {
  const search = await client.callTool({ name: "search_tools", arguments: { query: step.query } });
  const found = (search.structuredContent as Found).tools.map((tool) => tool.name);
  const call = { name: step.name, arguments: step.arguments };
  const result = await client.callTool({ name: "call_tool", arguments: call });
  answers.push({ found, content: result.content, isError: result.isError ?? false });
}
const unknown = { name: "call_tool", arguments: { name: "git_commit" } };
const refused = JSON.stringify((await client.callTool(unknown)).content);
await client.close();
console.log(JSON.stringify({ listed, answers, refused }));
