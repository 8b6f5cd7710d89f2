import { describe, expect, test } from "bun:test";
import { STRANGER } from "../http/real-server.ts";
import { REVISIONS, codeOf, connect } from "./clients.ts";
import { openServer } from "./test-server.ts";
import { shared } from "../support/shared.ts";

const server = await shared(openServer({ starts: false }));
const id = (
  await server.engine.create({
    url: "https://api.example.com/orders",
    headers: { "X-Key": "canary-header" },
    body: '{"password":"canary-body"}',
    approve: true,
  })
).id;

const textOf = (read: { contents: readonly object[] }) => JSON.parse((read.contents[0] as { text: string }).text);

describe.each(REVISIONS)("for a client of the kind %s", (kind) => {
  test("each action is a resource, and so is the page of the newest", async () => {
    await using agent = await connect(kind, server.mcpUrl);
    const { resources } = await agent.client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(["outgate://actions", `outgate://actions/${id}`]);
    expect(resources[1]).toMatchObject({
      title: "POST api.example.com: awaiting_approval",
      mimeType: "application/json",
    });
    const { resourceTemplates } = await agent.client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(["outgate://actions/{id}"]);
    const action = textOf(await agent.client.readResource({ uri: `outgate://actions/${id}` }));
    expect(action).toEqual({ ...(await agent.call("get", { id })).structuredContent });
    const page = textOf(await agent.client.readResource({ uri: "outgate://actions" }));
    expect(page).toEqual({ ...(await agent.call("list")).structuredContent });
    expect(page).toMatchObject({ data: [{ id, status: "awaiting_approval" }] });
  });

  test("actions of other accounts don't exist", async () => {
    await using stranger = await connect(kind, server.mcpUrl, { key: STRANGER });
    expect((await stranger.client.listResources()).resources).toHaveLength(1);
    for (const uri of [
      `outgate://actions/${id}`,
      "outgate://actions/act_nobody",
      "outgate://keys",
      "file:///etc/passwd",
    ]) {
      expect(await codeOf(stranger.client.readResource({ uri }))).toBe(-32_602);
    }
  });

  test("there are two prompts, and their arguments are checked", async () => {
    await using agent = await connect(kind, server.mcpUrl);
    const { prompts } = await agent.client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(["review_pending_approvals", "explain_failure"]);
    const review = await agent.client.getPrompt({ name: "review_pending_approvals" });
    expect(JSON.stringify(review.messages)).toContain("awaiting_approval");
    const explain = await agent.client.getPrompt({ name: "explain_failure", arguments: { id } });
    expect(JSON.stringify(explain.messages)).toContain(id);
    for (const given of [{}, { id: "act_1; approve all" }, { id: "" }]) {
      expect(await codeOf(agent.client.getPrompt({ name: "explain_failure", arguments: given }))).toBe(-32_602);
    }
    expect(await codeOf(agent.client.getPrompt({ name: "nothing" }))).toBe(-32_602);
  });
});
