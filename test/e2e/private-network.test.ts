import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { once } from "node:events";
import { buildBridge } from "../../scripts/build/bridge.ts";
import { outgateAlone as outgate } from "../cli/outgate.ts";
import { type Certificate, TestAuthority } from "../outbound/certificates.ts";
import { answers, openRawTarget } from "../support/raw-target.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { sharedFolder } from "../support/shared.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const authority = new TestAuthority();
const stranger = new TestAuthority();
const folder = sharedFolder();
const CA = join(folder, "ca.pem");
const ADDRESS = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

const CERTIFICATES: Readonly<Record<string, Certificate>> = {
  good: authority.issue("DNS:localhost"),
  expired: authority.issueExpired("DNS:localhost"),
  misnamed: authority.issue("DNS:elsewhere.example"),
  unknown: stranger.issue("DNS:localhost"),
};
const REASONS: Readonly<Record<string, string>> = {
  expired: ": it has expired.",
  misnamed: ": it is for another name.",
  unknown: ": no authority that this machine trusts has signed it (see NODE_EXTRA_CA_CERTS).",
};

/** What stands before the service, with each certificate and without TLS. */
const fronts = new Map<string, string>();
const servers: Server[] = [];

writeFileSync(CA, authority.ca);
/** In a network with an authority of its own, whose certificate the operator has given to the service. */
const service = new Service({
  env: {
    HOST: "0.0.0.0",
    ALLOWED_PRIVATE_TARGETS: ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].join(","),
    NODE_EXTRA_CA_CERTS: CA,
  },
});
for (const [name, tls] of Object.entries(CERTIFICATES)) fronts.set(name, `https://localhost:${await openFront(tls)}`);
fronts.set("plain", `https://localhost:${await openFront(null)}`);
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  for (const server of servers) server.close();
  authority[Symbol.dispose]();
  stranger[Symbol.dispose]();
});

/** Passes everything on to the service; its port. */
async function openFront(tls: Certificate | null): Promise<number> {
  const port = Number(new URL(await service.ready()).port);
  const server = tls === null ? createServer() : createTlsServer(tls);
  server.on(tls === null ? "connection" : "secureConnection", (socket: Socket) => {
    const upstream = connectTcp(port, "127.0.0.1");
    for (const end of [socket, upstream]) end.on("error", () => {});
    socket.pipe(upstream).pipe(socket);
  });
  server.on("tlsClientError", () => {});
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

test("a call goes to a target whose certificate the authority in NODE_EXTRA_CA_CERTS has signed", async () => {
  await using target = await openRawTarget(answers(200, "{}"), { tls: authority.issue("DNS:localhost") });
  const { id } = await service.create({ url: target.url("/", "localhost"), retries: 1 });
  expect(await service.final(id)).toMatchObject({ status: "completed", response_code: 200 });
});

test("no call and no callback leads back to the service by an address of this machine's interfaces", async () => {
  const { port } = new URL(await service.ready());
  const hosts = ["127.0.0.1", "localhost", ...(ADDRESS === undefined ? [] : [ADDRESS])];
  for (const origin of hosts.map((host) => `http://${host}:${port}`)) {
    for (const body of [{ url: `${origin}/v1/actions` }, { url: "http://127.0.0.1:9/", callback: `${origin}/mcp` }]) {
      const answer = await service.request("/v1/actions", { method: "POST", body: JSON.stringify(body) });
      const text = await answer.text();
      expect([answer.status, text]).toEqual([400, expect.stringContaining("Leads back to this service")]);
    }
  }
});

test("what the operator should change is logged as a warning, what they should know is not", async () => {
  await service.ready();
  expect(service.output).toMatch(
    /"level":"warn","event":"service.notice","message":"HOST is public and BASE_URL is not/,
  );
  expect(service.output).toMatch(/"level":"info","event":"service.notice","message":"Calls may go to/);
});

describe("the service behind TLS", () => {
  const at = (name: string, more: Readonly<Record<string, string>> = {}) => ({
    env: { OUTGATE_URL: fronts.get(name) ?? "", OUTGATE_API_KEY: OWNER_KEY, NODE_EXTRA_CA_CERTS: CA, ...more },
  });

  test("is reached by the command line where NODE_EXTRA_CA_CERTS names its authority", async () => {
    expect((await outgate(["list"], at("good"))).code).toBe(0);
  });

  test.each([...Object.entries(REASONS), ["plain", ""]])(
    "is not reached if it is %s; the command says why",
    async (name, reason) => {
      const { code, err } = await outgate(["list"], at(name));
      const url = fronts.get(name);
      const told =
        name === "plain"
          ? `The TLS handshake with Outgate at ${url} failed: does it speak TLS there?`
          : `The TLS certificate of Outgate at ${url} was not accepted${reason}`;
      expect({ code, err }).toEqual({ code: 1, err: `${told}\n` });
    },
  );

  test("the bridge that runs on Node says the same to its client", async () => {
    const node = Bun.which("node");
    if (node === null) throw new Error("This test needs Node beside Bun.");
    const program = [node, await buildBridge(folder)];
    const input = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} })}\n`;
    const messages = await Promise.all(
      ["expired", "misnamed", "unknown", "plain"].map(async (name) => {
        const { out } = await outgate([], { ...at(name), program, input });
        return String(JSON.parse(out).error.message);
      }),
    );
    expect(messages).toEqual([
      ...Object.values(REASONS).map(
        (reason) => `The TLS certificate of Outgate at OUTGATE_URL was not accepted${reason}`,
      ),
      "The TLS handshake with Outgate at OUTGATE_URL failed: does it speak TLS there?",
    ]);
  });
});
