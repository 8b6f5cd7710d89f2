import { createMCPClient } from "@ai-sdk/mcp";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, test } from "bun:test";
import { freePort } from "../support/free-port.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";

const HEADERS = { Authorization: `Bearer ${OWNER_KEY}` };
const LIST = { name: "list", arguments: {} };

test("a client whose session a restart has ended is told so, begins another one, and goes on", async () => {
  await using folder = await temporaryFolder();
  const how = { folder: folder.path, env: { PORT: String(await freePort()) } };
  await using before = new Service(how);
  const url = new URL(`${await before.ready()}/mcp`);
  const newTransport = () => new StreamableHTTPClientTransport(url, { requestInit: { headers: HEADERS } });
  const official = new Client({ name: "test", version: "1" });
  await official.connect(newTransport());
  await official.callTool(LIST);
  const vercel = await createMCPClient({ transport: { type: "http", url: url.href, headers: HEADERS } });
  const { list } = await vercel.tools();
  const ask = () => list?.execute?.({}, { toolCallId: "1", messages: [], context: {} });
  expect(await ask()).toMatchObject({ structuredContent: { data: [] } });

  await before.end("SIGKILL");
  await using after = new Service(how);
  await after.ready();
  const refused = await official.callTool(LIST).catch((error: unknown) => error);
  // The status and the code together are what applications on this library look for.
  expect(refused).toBeInstanceOf(StreamableHTTPError);
  expect(refused).toMatchObject({ code: 404, message: expect.stringContaining('"code":-32001') });
  await official.close();
  await official.connect(newTransport());
  expect(await official.callTool(LIST)).toMatchObject({ structuredContent: { data: [] } });
  // This one speaks the revision without sessions, and has noticed nothing.
  expect(await ask()).toMatchObject({ structuredContent: { data: [] } });
  await Promise.all([official.close(), vercel.close()]);
  await after.end();
}, 30_000);
