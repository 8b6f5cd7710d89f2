import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { Target } from "../support/target.ts";
import { openServer } from "./test-server.ts";
import { shared } from "../support/shared.ts";

const target = await shared(new Target(() => Response.json({ weather: "fine" })));
const server = await shared(openServer());

const clientOf = (capabilities: { elicitation?: Record<string, unknown> } = {}) =>
  createMCPClient({
    transport: { type: "http", url: server.mcpUrl, headers: { Authorization: `Bearer ${KEYS.agent}` } },
    capabilities,
  });

const HOW = { toolCallId: "1", messages: [], context: {} };

test("a model reads by the Vercel AI SDK the target's response", async () => {
  const client = await clientOf();
  const { create } = await client.tools();
  const output = await create?.execute?.({ url: target.url, sync: true }, HOW);
  expect(output).toMatchObject({ structuredContent: { status: "completed", response_body: { weather: "fine" } } });
  const seen = await create?.toModelOutput?.({ toolCallId: "1", input: {}, output: output as never });
  expect(JSON.stringify(seen).split("weather")).toHaveLength(2);
  await client.close();
});

test("the Vercel AI SDK asks its person", async () => {
  const client = await clientOf({ elicitation: {} });
  const asked: string[] = [];
  client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { decision: "reject", reason: "not today" } };
  });
  const { id } = await server.engine.create({ url: target.url, approve: true });
  const { approve } = await client.tools();
  const output = await approve?.execute?.({ id }, HOW);
  expect(asked).toHaveLength(1);
  expect(output).toMatchObject({
    structuredContent: { status: "cancelled", decision: "rejected", decision_reason: "not today" },
  });
  await client.close();
});

test("the Vercel AI SDK shows our message about a wrong key", async () => {
  const refused = createMCPClient({ transport: { type: "http", url: server.mcpUrl } });
  expect(await refused.then(() => "let in", String)).toMatch(/401|Authorization: Bearer/);
});
