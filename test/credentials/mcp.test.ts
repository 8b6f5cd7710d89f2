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
    return server.call("POST", "/v1/credentials", JSON.stringify(credential), {
      authorization: `Bearer ${KEYS.owner}`,
    });
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
  expect(JSON.stringify([listed, sent, refused])).not.toContain(SECRET);
});
