import { describe, expect, test } from "bun:test";
import {
  FLASH_COOKIE_CHARS_MAX,
  FLASH_COOKIES_MAX,
  NEXT_CHARS_MAX,
  REFUSED_BODY_BYTES_DROPPED_MAX,
  REQUEST_BODY_BYTES_MAX,
} from "../../src/core/limits.ts";
import { type Balancer, PROGRAMS } from "./balancers.ts";

/** What one request is answered, when the load balancer didn't ask for the node's readiness. */
type Answer = (request: Request) => Response | Promise<Response>;

/** A node: it is ready, and counts what it gets. */
function aNode(answer: Answer) {
  const got: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/ready") return new Response();
      got.push(`${request.method} ${pathname}`);
      return answer(request);
    },
  });
  const close = () => server.stop(true);
  return { got, close, address: `127.0.0.1:${server.port}`, [Symbol.asyncDispose]: close };
}

/** A node that closes the connection when it has read a request for /cut, without an answer. */
function aCuttingNode() {
  const got: string[] = [];
  const server = Bun.listen({
    port: 0,
    hostname: "127.0.0.1",
    socket: {
      data(socket, bytes) {
        const [line = ""] = bytes.toString().split("\r\n");
        if (line.includes(" /cut ")) {
          got.push(line.replace(" HTTP/1.1", ""));
          socket.terminate();
        } else socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      },
    },
  });
  return { got, address: `127.0.0.1:${server.port}`, [Symbol.dispose]: () => server.stop(true) };
}

const echo: Answer = async (request) => {
  const headers = Object.fromEntries(request.headers);
  return Response.json({ headers, bytes: (await request.arrayBuffer()).byteLength });
};

interface Echo {
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: number;
}

/** An answer of a load balancer that reached no node. */
async function expectUnavailable(response: Response): Promise<void> {
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(response.headers.get("content-type")).toContain("application/json");
  const { error } = (await response.json()) as { readonly error: Readonly<Record<string, unknown>> };
  expect(error).toMatchObject({ code: "unavailable", details: [] });
  expect(error["request_id"]).toMatch(/^[\w-]{16,}$/);
}

for (const { name, path, start } of PROGRAMS) {
  if (path === null) test.skip(`deploy/ with ${name} (where it is installed)`, () => {});
  else describe(`deploy/ with ${name}`, () => suite((...nodes) => start(path, nodes)));
}

function suite(balanced: (...nodes: readonly string[]) => Promise<Balancer>): void {
  test("passes each event on at once", async () => {
    let say = (_text: string) => {};
    await using node = aNode(() => {
      const body = new ReadableStream<string>({ start: (stream) => void (say = (text) => stream.enqueue(text)) });
      setTimeout(() => say("data: 1\n\n"));
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    });
    await using balancer = await balanced(node.address);
    const response = await fetch(`${balancer.url}/v1/events`);
    const events = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await events?.read())?.value).toBe("data: 1\n\n");
    say("data: 2\n\n");
    expect((await events?.read())?.value).toBe("data: 2\n\n");
  });

  test("tells the node the host, and the client's address in place of what the client says", async () => {
    await using node = aNode(echo);
    await using balancer = await balanced(node.address);
    const headers = { "X-Forwarded-For": "198.51.100.7", Authorization: "Bearer og_x" };
    const told = (await (await fetch(`${balancer.url}/v1/account`, { headers })).json()) as Echo;
    expect(told.headers).toMatchObject({
      host: new URL(balancer.url).host,
      "x-forwarded-for": "127.0.0.1",
      authorization: "Bearer og_x",
    });
  });

  test("leaves it to the node to refuse a body that is too large", async () => {
    await using node = aNode(echo);
    await using balancer = await balanced(node.address);
    const bytes = 2 * REQUEST_BODY_BYTES_MAX;
    expect(bytes).toBeLessThan(REFUSED_BODY_BYTES_DROPPED_MAX);
    const body = new Uint8Array(bytes);
    const response = await fetch(`${balancer.url}/v1/actions`, { method: "POST", body });
    expect(((await response.json()) as Echo).bytes).toBe(bytes);
  });

  test("sends everything to the other node when one has ended", async () => {
    await using one = aNode(echo);
    await using other = aNode(echo);
    await using balancer = await balanced(one.address, other.address);
    const ask = async () => (await fetch(`${balancer.url}/v1/actions`, { method: "POST", body: "{}" })).status;
    const both = await Promise.all(Array.from({ length: 20 }, ask));
    expect(one.got.length).toBeGreaterThan(0);
    expect(other.got.length).toBeGreaterThan(0);
    await one.close();
    const after = [];
    // A balancer finds connections that it keeps to the ended node closed. Until then it may send a GET again, and never a POST.
    for (let n = 0; n < 20; n += 1) after.push((await fetch(`${balancer.url}/v1/account`)).status);
    for (let n = 0; n < 20; n += 1) after.push(await ask());
    expect(new Set([...both, ...after])).toEqual(new Set([200]));
  });

  test("never sends a POST twice, and answers as Outgate does when it doesn't know what became of it", async () => {
    using one = aCuttingNode();
    using other = aCuttingNode();
    await using balancer = await balanced(one.address, other.address);
    await expectUnavailable(await fetch(`${balancer.url}/cut`, { method: "POST", body: "{}" }));
    expect([...one.got, ...other.got]).toEqual(["POST /cut"]);
  });

  test("keeps asking nodes that close the connection of one request, as they do for one by an unknown method", async () => {
    using one = aCuttingNode();
    using other = aCuttingNode();
    await using balancer = await balanced(one.address, other.address);
    for (let n = 0; n < 4; n += 1) await fetch(`${balancer.url}/cut`, { method: "POST", body: "{}" });
    const signal = AbortSignal.timeout(2_000);
    expect((await fetch(`${balancer.url}/v1/account`, { signal })).status).toBe(200);
  });

  test("passes on what pages say in cookies and redirects, and takes the cookies back", async () => {
    const cookies = Array.from({ length: FLASH_COOKIES_MAX }, (_, n) => `a${n}=${"x".repeat(FLASH_COOKIE_CHARS_MAX)}`);
    const location = `/login?next=${"x".repeat(NEXT_CHARS_MAX)}`;
    await using node = aNode(({ method, headers }) => {
      if (method === "GET") return new Response(headers.get("cookie"));
      const answer = new Response(null, { status: 303, headers: { location } });
      for (const cookie of cookies) answer.headers.append("set-cookie", cookie);
      return answer;
    });
    await using balancer = await balanced(node.address);
    const redirect = await fetch(`${balancer.url}/keys`, { method: "POST", redirect: "manual" });
    expect([redirect.headers.get("location"), redirect.headers.getSetCookie()]).toEqual([location, cookies]);
    const cookie = cookies.join("; ");
    expect(await (await fetch(`${balancer.url}/keys`, { headers: { cookie } })).text()).toBe(cookie);
  });

  test("answers as Outgate does when no node is there", async () => {
    const node = aNode(echo);
    await using balancer = await balanced(node.address);
    await node.close();
    await expectUnavailable(await fetch(`${balancer.url}/v1/account`));
  });
}
