import { expect, test } from "bun:test";
import { actionIn, CLIENTS, connect } from "./clients.ts";
import { openHouse } from "./house.ts";

test.each(CLIENTS)("a client of the kind %s is told that its action is paused, and what that means", async (kind) => {
  await using house = await openHouse();
  const { owner, pauseDesk } = house.engine;
  const { pause } = await pauseDesk.pause(owner, { keyId: null, reason: "It loops." });
  await using agent = await connect(kind, house.mcpUrl);
  const made = actionIn(await agent.call("create", { url: "http://127.0.0.1:9/", idempotency_key: kind }));
  const told = { paused: true, pause: { id: pause.id, kind: "account", reason: "It loops." } };
  expect(made).toMatchObject({ status: "pending", ...told });
  expect(String(made["next_step"])).toContain("waits until they resume");
  expect(actionIn(await agent.call("get", { id: made.id }))).toMatchObject(told);
});

test("a decision over MCP is in the audit log as such", async () => {
  await using house = await openHouse({ starts: false });
  const { id } = await house.engine.create({});
  await using agent = await connect(CLIENTS[0], house.mcpUrl);
  await agent.call("cancel", { id });
  const { store, owner } = house.engine;
  const { rows } = await store.audit.page({
    accountId: owner.accountId,
    kinds: ["cancelled"],
    actor: null,
    since: null,
    until: null,
    before: null,
    limit: 9,
  });
  expect(rows).toMatchObject([{ kind: "cancelled", subject: id, client: "127.0.0.1", detail: { via: "mcp" } }]);
});
