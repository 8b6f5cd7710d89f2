import { expect, test } from "bun:test";
import { actionIn, REVISIONS, connect } from "../mcp/clients.ts";
import { openServer } from "../mcp/test-server.ts";
import { anAuditQuery } from "../support/factory.ts";

test.each(REVISIONS)("a client of the kind %s sees that its action is paused, and what that means", async (kind) => {
  await using server = await openServer();
  const { owner, pauseService } = server.engine;
  const { pause } = await pauseService.pause(owner, { keyId: null, reason: "It loops." });
  await using agent = await connect(kind, server.mcpUrl);
  const made = actionIn(await agent.call("create", { url: "http://127.0.0.1:9/", idempotency_key: kind }));
  const shown = { paused: true, pause: { id: pause.id, kind: "account", reason: "It loops." } };
  expect(made).toMatchObject({ status: "pending", ...shown });
  expect(String(made["next_step"])).toContain("waits until they resume");
  expect(actionIn(await agent.call("get", { id: made.id }))).toMatchObject(shown);
  await pauseService.pause(owner, { keyId: null, host: "127.0.0.1:9", reason: null });
  await pauseService.resume(owner, pause.id);
  expect(actionIn(await agent.call("get", { id: made.id }))).toMatchObject({ paused: true, pause: { kind: "host" } });
});

test("a decision over MCP is in the audit log as such", async () => {
  await using server = await openServer({ starts: false });
  const { id } = await server.engine.create({});
  await using agent = await connect("modern", server.mcpUrl);
  await agent.call("cancel", { id });
  const { store, owner } = server.engine;
  const { rows } = await store.audit.page(anAuditQuery({ accountId: owner.accountId, kinds: ["cancelled"] }));
  expect(rows).toMatchObject([{ kind: "cancelled", subject: id, client: "127.0.0.1", detail: { via: "mcp" } }]);
});
