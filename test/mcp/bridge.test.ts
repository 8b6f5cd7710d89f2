import { describe, expect, test } from "bun:test";
import { sendTo, Relay, type BridgeRequest } from "../../mcp/bridge/relay.ts";
import { readEvents, readLines, TOO_LONG } from "../../mcp/bridge/messages.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

type Upstream = (sent: BridgeRequest) => Response | Promise<Response>;

/** A relay to a service that answers as the test says. */
function relayTo(upstream: Upstream) {
  const sent: BridgeRequest[] = [];
  const written: string[] = [];
  const warned: string[] = [];
  const relay = new Relay({
    send: async (one) => {
      sent.push(one);
      return upstream(one);
    },
    write: (line) => void written.push(line),
    warn: (sentence) => void warned.push(sentence),
  });
  return { relay, sent, written, warned };
}

const stream = (...events: string[]) =>
  new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });

const event = (json: string) => `event: message\ndata: ${json}\n\n`;

const modernCall = (id: number, more = "") =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"create"${more}}}`;

const legacyCall = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{}}`;

const INITIALIZE = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`;

const errorOf = (line: string | undefined) => JSON.parse(line ?? "null").error;

describe("a relay", () => {
  test("sends a message as it was written, with the headers of its revision", async () => {
    const { relay, sent, written } = relayTo(() => Response.json({ jsonrpc: "2.0", id: 7, result: {} }));
    const line = modernCall(7, `,"arguments":{"body":{"n":1.0,"big":12345678901234567890}}`);
    relay.take(line);
    await until(() => written.length === 1);
    expect(sent[0]?.body).toBe(line);
    expect(sent[0]?.headers).toMatchObject({
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "create",
      accept: "application/json, text/event-stream",
    });
  });

  test("writes a response as it was sent, in one line", async () => {
    const answer = `{"jsonrpc":"2.0","id":7,\n"result":{"n":1.0,"big":12345678901234567890}}`;
    const { relay, written } = relayTo(() => new Response(answer, { headers: { "content-type": "application/json" } }));
    relay.take(modernCall(7));
    await until(() => written.length === 1);
    expect(written).toEqual([answer.replace("\n", " ")]);
  });

  test("writes every message of a stream, error responses too", async () => {
    const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0}}`;
    const question = `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}`;
    const end = `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`;
    const { relay, written } = relayTo(() =>
      stream(":\n\n", event(progress), ": keepalive\n\n", event(question), event(end)),
    );
    relay.take(legacyCall(7));
    await until(() => written.length === 3);
    expect(written).toEqual([progress, question, end]);
  });

  test("answers with an error where the service is down, breaks off or refuses", async () => {
    const failed = (code: string) => Object.assign(new Error("Unable to connect to 10.0.0.7"), { code });
    const gone = failed("ECONNREFUSED");
    const cases: readonly (readonly [Upstream, string])[] = [
      [() => Promise.reject(gone), "does not answer at OUTGATE_URL"],
      [() => Promise.reject(new TypeError("fetch failed", { cause: gone })), "does not answer at OUTGATE_URL"],
      // As Bun and as Node say it.
      [
        () => Promise.reject(failed("CERT_HAS_EXPIRED")),
        "TLS certificate of Outgate at OUTGATE_URL was not accepted: it has expired.",
      ],
      [
        () => Promise.reject(new TypeError("fetch failed", { cause: failed("ERR_SSL_WRONG_VERSION_NUMBER") })),
        "TLS handshake with Outgate at OUTGATE_URL failed",
      ],
      ...(
        [
          () => Promise.reject(new Error("socket hang up")),
          () => stream(":\n\n"),
          () => new Response(null, { status: 202 }),
          () => new Response("<html>", { status: 504 }),
          () => Response.json({ error: { code: "unavailable", message: "Away." } }, { status: 503 }),
        ] as const
      ).map((upstream): readonly [Upstream, string] => [
        upstream,
        "if it had none, call list first: the action may exist. Before another retry call get",
      ]),
      [
        () => Response.json({ error: { code: "unauthorized", message: "Send a key." } }, { status: 401 }),
        "did not take the key in OUTGATE_API_KEY. Send a key.",
      ],
      [() => Response.json({ error: { code: "rate_limited", message: "Wait." } }, { status: 429 }), "Wait."],
      [() => new Response("<html>", { status: 502 }), "Outgate answered with status 502."],
      [() => new Response("<html>"), "What answers at OUTGATE_URL is no MCP server"],
      [() => Response.json({ ok: true }), "What answers at OUTGATE_URL is no MCP server"],
      [
        () => Response.json({ jsonrpc: "2.0", id: null, error: { code: -32_600, message: "no" } }, { status: 400 }),
        "no",
      ],
    ];
    for (const [upstream, sentence] of cases) {
      for (const line of [modernCall(7), legacyCall(7)]) {
        const { relay, written } = relayTo(upstream);
        relay.take(line);
        await until(() => written.length === 1);
        expect(JSON.parse(written[0] ?? "")).toMatchObject({ jsonrpc: "2.0", id: 7, error: { code: -32_000 } });
        expect(errorOf(written[0]).message).toContain(sentence);
        expect(written[0]).not.toContain("10.0.0.7");
      }
    }
  });

  test("writes a protocol error of the service unchanged", async () => {
    const error = { jsonrpc: "2.0", id: 7, error: { code: -32_022, message: "unsupported", data: { supported: [] } } };
    const { relay, written } = relayTo(() => Response.json(error, { status: 400 }));
    relay.take(modernCall(7));
    await until(() => written.length === 1);
    expect(JSON.parse(written[0] ?? "")).toEqual(error);
  });

  test("warns on standard error about a failed message that expects no response", async () => {
    const { relay, written, warned } = relayTo(() => new Response(null, { status: 500 }));
    relay.take(`{"jsonrpc":"2.0","method":"notifications/initialized"}`);
    relay.take(`{"jsonrpc":"2.0","id":3,"result":{"action":"decline"}}`);
    await until(() => warned.length === 2);
    expect(written).toEqual([]);
  });

  test("answers a line that is not JSON with a parse error", async () => {
    const { relay, sent, written } = relayTo(() => new Response(null, { status: 202 }));
    for (const line of ["{", "", "   ", "not json"]) relay.take(line);
    expect(written.map((line) => errorOf(line).code)).toEqual([-32_700, -32_700]);
    expect(sent).toEqual([]);
  });

  test("cancels a 2026 call by ending its request, and forwards the notification for a 2025 call", async () => {
    const left: boolean[] = [];
    const hang: Upstream = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          left.push(true);
          reject(new Error("left"));
        });
      });
    const cancel = (id: number) => `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
    const modern = relayTo(hang);
    modern.relay.take(modernCall(7));
    await until(() => modern.sent.length === 1);
    modern.relay.take(cancel(7));
    await until(() => left.length === 1);
    expect([modern.sent.length, modern.written]).toEqual([1, []]);

    const legacy = relayTo(hang);
    legacy.relay.take(legacyCall(7));
    legacy.relay.take(cancel(7));
    await until(() => legacy.sent.length === 2);
    expect(legacy.sent[1]?.body).toBe(cancel(7));
    await Promise.all([modern.relay.close(0), legacy.relay.close(0)]);
  });

  test("answers open requests after the client has closed its end", async () => {
    const answered = Promise.withResolvers<Response>();
    const { relay, sent, written } = relayTo(() => answered.promise);
    relay.take(legacyCall(7));
    await until(() => sent.length === 1);
    const closed = relay.close(60_000);
    answered.resolve(Response.json({ jsonrpc: "2.0", id: 7, result: {} }));
    await closed;
    expect(written.map((line) => JSON.parse(line).id)).toEqual([7]);
  });

  test("encodes names that a header can't hold", async () => {
    const { relay, sent } = relayTo(() => new Response(null, { status: 202 }));
    const read = (uri: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"uri":${JSON.stringify(uri)}}}`;
    const uris = ["outgate://actions", "outgate://ä", " x", "=?base64?eA==?=", "a\nb"];
    for (const uri of uris) relay.take(read(uri));
    await until(() => sent.length === uris.length);
    const plain = (field = "") =>
      field.startsWith("=?base64?") ? Buffer.from(field.slice(9, -2), "base64").toString() : field;
    expect(sent.map(({ headers }) => plain(headers["mcp-name"]))).toEqual(uris);
    expect(sent[0]?.headers["mcp-name"]).toBe("outgate://actions");
  });
});

describe("the session of a client of 2025", () => {
  const began = (id: string) =>
    new Response(event(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`), {
      headers: { "content-type": "text/event-stream", "mcp-session-id": id },
    });

  test("is kept by the relay, and ended when the client leaves", async () => {
    const { relay, sent, written } = relayTo(({ body }) =>
      body === INITIALIZE ? began("one") : Response.json({ jsonrpc: "2.0", id: 1, result: {} }),
    );
    relay.take(INITIALIZE);
    await until(() => written.length === 1);
    relay.take(legacyCall(1));
    await until(() => written.length === 2);
    expect(sent[1]?.headers).toMatchObject({ "mcp-session-id": "one", "mcp-protocol-version": "2025-11-25" });
    await relay.close();
    expect(sent[2]).toMatchObject({ method: "DELETE", headers: { "mcp-session-id": "one" } });
  });

  test("is begun again once for all calls after the service has lost it, unnoticed by the client", async () => {
    let alive = "one";
    const lost = () => Response.json({ error: { code: "not_found", message: "gone" } }, { status: 404 });
    const { relay, sent, written } = relayTo(({ body = "", headers }) => {
      if (body === INITIALIZE) return began(alive);
      if (body.includes("initialized")) return new Response(null, { status: 202 });
      if (headers["mcp-session-id"] !== alive) return lost();
      return Response.json({ jsonrpc: "2.0", id: JSON.parse(body).id, result: {} });
    });
    relay.take(INITIALIZE);
    await until(() => written.length === 1);
    alive = "two";
    relay.take(legacyCall(1));
    relay.take(legacyCall(2));
    await until(() => written.length === 3);
    expect(new Set(written.slice(1).map((line) => JSON.parse(line).id))).toEqual(new Set([1, 2]));
    expect(sent.filter(({ body }) => body === INITIALIZE)).toHaveLength(2);
    await relay.close();
  });

  test("that can't be begun again becomes an error", async () => {
    let isUp = true;
    const { relay, written } = relayTo(({ body }) => {
      if (body === INITIALIZE && isUp) return began("one");
      return Response.json({ error: { message: "gone" } }, { status: 404 });
    });
    relay.take(INITIALIZE);
    await until(() => written.length === 1);
    isUp = false;
    relay.take(legacyCall(1));
    await until(() => written.length === 2);
    expect(errorOf(written[1]).message).toContain("a new one could not be started");
  });
});

describe("lines", () => {
  const read = async (chunks: readonly (string | Uint8Array)[], bytesMax = 100) => {
    const source = async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    };
    return Array.fromAsync(readLines(source(), bytesMax));
  };

  test("are read from chunks that end anywhere", async () => {
    expect(await read(["a\nb", "c\r\n", "\n", "dé".slice(0, 1), "é\n", "end"])).toEqual(["a", "bc", "", "dé", "end"]);
    const bytes = [...new TextEncoder().encode("é\n")].map((byte) => new Uint8Array([byte]));
    expect(await read(bytes)).toEqual(["é"]);
  });

  test("that are too long are reported, and the next ones are read", async () => {
    expect(await read(["x".repeat(60), "x".repeat(60), "x\nnext\n"])).toEqual([TOO_LONG, "next"]);
    expect(await read([`${"x".repeat(101)}\nnext`])).toEqual([TOO_LONG, "next"]);
    expect(await read([`${"x".repeat(100)}\n`])).toEqual(["x".repeat(100)]);
  });

  test("of one event are joined, and comments are skipped", async () => {
    const events: string[] = [];
    const text = ': hi\n\nevent: message\ndata: {"a":\ndata: 1}\n\nid: 7\ndata:{}\n\n';
    const body = new Response(text).body;
    if (body !== null) for await (const one of readEvents(body)) events.push(one);
    expect(events).toEqual(['{"a": 1}', "{}"]);
  });
});

describe("the address", () => {
  test("may end in a slash, a path or /mcp", async () => {
    await using target = new Target(202);
    const base = target.url.replace(/\/$/, "");
    for (const url of [base, `${base}/`, `${base}/mcp`, `${base}/mcp/`, `${base}/outgate/`]) {
      await sendTo(url, "og_key")({ method: "POST", headers: {}, body: "{}", signal: AbortSignal.timeout(5_000) });
    }
    const asked = target.received.map(({ path, headers }) => `${path} ${headers.get("authorization")}`);
    const paths = ["/mcp", "/mcp", "/mcp", "/mcp", "/outgate/mcp"];
    expect(asked).toEqual(paths.map((path) => `${path} Bearer og_key`));
  });

  test.each([[""], ["outgate.example.com"], ["ftp://outgate.example.com"], ["http://"]])("is not %p", (url) => {
    expect(() => sendTo(url, "og_key")).toThrow("OUTGATE_URL must be the address of the service");
  });

  test("never leads the key to another place by a redirect", async () => {
    const moved = { status: 307, headers: { location: "/elsewhere" } };
    await using target = new Target(() => new Response(null, moved));
    const written: string[] = [];
    const write = (line: string) => void written.push(line);
    const relay = new Relay({ send: sendTo(target.url, "og_key"), write, warn: () => {} });
    relay.take(legacyCall(1));
    await until(() => written.length === 1);
    expect(target.received).toHaveLength(1);
    expect(errorOf(written[0])).toMatchObject({ code: -32_000 });
  });
});
