import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, errorIn } from "../mcp/clients.ts";
import { openServer, type TestServer } from "../mcp/test-server.ts";
import { Target } from "../support/target.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

/** What an agent tries to get round the limits of its key and a person's decision, over REST, MCP, pages and bulk jobs. */

let app: TestServer;

let target: Target;

let ann: Awaited<ReturnType<typeof signedIn>>;

beforeAll(async () => {
  target = new Target(() => Response.json({ done: true }));
  app = await openServer();
  ann = await signedIn(app);
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await target[Symbol.asyncDispose]();
});

const by = (key: string) => ({ authorization: `Bearer ${key}` });

const post = (path: string, body: object, key: string) => app.call("POST", path, JSON.stringify(body), by(key));

const create = (key: string, body: object) => post("/v1/actions", { url: target.url, ...body }, key);

describe("headers by which a proxy tells a target who somebody is", () => {
  const headers = { "X-authentik-username": "akadmin" };

  test("are refused for an agent's key over REST, MCP, and edit and resend; an owner key may set them", async () => {
    const refused = await create(KEYS.agent, { approve: true, headers });
    expect([refused.status, refused.json.error.code]).toEqual([400, "validation_error"]);
    expect(refused.json.error.details).toMatchObject([
      { field: "headers.X-authentik-username", message: expect.stringContaining("x-authentik-*") },
    ]);
    await using agent = await connect("modern", app.mcpUrl);
    const error = errorIn(await agent.call("create", { url: target.url, approve: true, headers }));
    expect(JSON.stringify(error)).toContain("headers.X-authentik-username");
    const { id } = (await create(KEYS.agent, { approve: true })).json;
    const path = `/actions/${id}/edit`;
    const edited = { method: "POST", url: target.url, title: "", headers: "X-authentik-username: akadmin", body: "" };
    const again = await ann.send(path, { ...(await ann.hiddenOf(path)), ...edited });
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining("headers.X-authentik-username")]);
    expect((await create(KEYS.owner, { approve: true, headers })).status).toBe(201);
  });
});
