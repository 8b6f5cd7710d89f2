import { expect, test } from "bun:test";
import { connect } from "../mcp/clients.ts";
import { openServer } from "../mcp/test-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { Target } from "../support/target.ts";
import { echoes, SECRET } from "./rig.ts";

test("over MCP an agent finds the credentials that it may use, names one, and sees no secret", async () => {
  await using server = await openServer({});
  await using target = new Target(echoes((text) => JSON.stringify({ sent: text })));
  const { keyId } = await server.authenticate(`Bearer ${KEYS.agent}`);
  const add = (more: object) => {
    const credential = { kind: "bearer", secret: SECRET, hosts: [new URL(target.url).host], ...more };
    return server.call("POST", "/v1/credentials", credential, KEYS.owner);
  };
  await add({ name: "stripe-live", keys: [keyId], paths: ["/v1"] });
  await add({ name: "other" });
  await using agent = await connect("modern", server.mcpUrl);
  const listed = await agent.call("credentials", {});
  expect(listed.structuredContent).toEqual({
    data: [
      { name: "stripe-live", kind: "bearer", hosts: [new URL(target.url).host], paths: ["/v1"], expires_at: null },
    ],
  });
  const sent = await agent.call("create", { url: `${target.url}v1/x`, credential: "stripe-live", sync: true });
  expect(target.received[0]?.headers.get("authorization")).toBe(`Bearer ${SECRET}`);
  expect(sent.structuredContent).toMatchObject({ status: "completed", response_body: { sent: "••••" } });
  const refused = await agent.call("create", { url: `${target.url}v1/x`, credential: "other" });
  expect(JSON.stringify(refused)).toContain("It may use stripe-live.");
  expect(JSON.stringify(refused)).toContain("or ask for one with request_credential");
  expect(JSON.stringify([listed, sent, refused])).not.toContain(SECRET);
});

test("over MCP an agent asks for a credential, reads the answer, and uses it without seeing it", async () => {
  await using server = await openServer({});
  await using target = new Target(200);
  const { host } = new URL(target.url);
  await using agent = await connect("modern", server.mcpUrl);
  const ask = (more: object = {}) => agent.call("request_credential", { host, reason: "To call it.", ...more });
  const asOwner = (path: string, body: object) => server.call("POST", path, body, KEYS.owner);
  // A text counts as a list of one.
  const asked = (await ask({ name: "stripe", methods: "POST" })).structuredContent;
  expect(asked).toMatchObject({ status: "pending", host, name: "stripe", methods: ["POST"] });
  const id = String(asked?.["id"]);
  expect(String(asked?.["next_step"])).toContain(`/approvals/credentials/${id}`);
  expect((await ask()).structuredContent).toEqual({ ...asked });
  const listed = await agent.call("credentials", {});
  expect(listed.structuredContent).toMatchObject({ data: [], requests: [{ id, status: "pending" }] });
  const credential = { name: "stripe-live", kind: "bearer", secret: SECRET, hosts: [host] };
  expect((await asOwner(`/v1/credential-requests/${id}/grant`, credential)).status).toBe(200);
  const after = await agent.call("credentials", {});
  expect(after.structuredContent).toEqual({
    data: [{ name: "stripe-live", kind: "bearer", hosts: [host], expires_at: null }],
    requests: [{ id, status: "granted", host, credential: "stripe-live" }],
  });
  const sent = await agent.call("create", { url: target.url, credential: "stripe-live", sync: true });
  expect(sent.structuredContent).toMatchObject({ status: "completed" });
  expect(target.received[0]?.headers.get("authorization")).toBe(`Bearer ${SECRET}`);

  const other = (await ask({ host: "b.example" })).structuredContent;
  await asOwner(`/v1/credential-requests/${String(other?.["id"])}/decline`, { reason: "Use the sandbox." });
  const declined = (await ask({ host: "b.example" })).structuredContent;
  expect(declined).toMatchObject({ id: other?.["id"], status: "declined", decision_reason: "Use the sandbox." });
  expect(String(declined?.["next_step"])).toContain("do not ask again");
  const wrong = await ask({ host: "*.example.com", secret: SECRET });
  expect(wrong.structuredContent).toMatchObject({
    error: { code: "validation_error", details: [{ field: "secret" }] },
  });
  expect(JSON.stringify([asked, listed, after, sent, declined, wrong])).not.toContain(SECRET);
});
