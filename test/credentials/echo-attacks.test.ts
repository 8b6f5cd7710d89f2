import { describe, expect, test } from "bun:test";
import { RESPONSE_BODY_BYTES_MAX, CREDENTIALS_HIDDEN_PER_HOST_MAX } from "../../src/core/limits.ts";
import { KEYS } from "../http/stub-server.ts";
import type { Received } from "../support/target.ts";
import { longestTurnMs, quickestOf } from "../support/core.ts";
import { eventually } from "../support/eventually.ts";
import { openRawTarget, says } from "../support/raw-target.ts";
import { echoes, openCredentials, SECRET, type CredentialRig } from "./rig.ts";
import { runStatements } from "../../db/commands/command.ts";
import { openFile } from "../../db/libsql/file.ts";
import { ECHO_MASK } from "../../src/credentials/echo.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Every place in which the agent could read what came back. */
async function everything(rig: Awaited<ReturnType<typeof openCredentials>>, id: string): Promise<string> {
  const read = async (path: string, key: string) => (await rig.call("GET", path, undefined, key)).text;
  const paths = [
    `/v1/actions/${id}`,
    `/v1/actions/${id}/timeline`,
    `/v1/actions/${id}/attempts`,
    "/v1/actions",
    "/v1/actions/export?format=ndjson",
    "/v1/credentials",
  ];
  const texts = await Promise.all([KEYS.agent, KEYS.owner].flatMap((key) => paths.map((path) => read(path, key))));
  const { engine } = rig.app;
  const stored = await engine.store.actions.find(engine.owner.accountId, id);
  return [...texts, JSON.stringify(stored), JSON.stringify(await read("/v1/audit", KEYS.owner))].join("\n");
}

const TRACES = [
  SECRET,
  SECRET.toUpperCase(),
  SECRET.slice(8, 20),
  base64(SECRET).slice(4, 20),
  Buffer.from(SECRET).toString("hex"),
];

function expectNothing(text: string): void {
  for (const trace of TRACES) expect(text.toLowerCase()).not.toContain(trace.toLowerCase());
}

describe("a target that sends back what it got shows nothing of the secret to the agent", () => {
  test.each<[string, (received: Received) => Response]>([
    // `echo.test.ts` has every form of a body.
    ["as JSON", echoes((text) => JSON.stringify({ headers: { authorization: text } }))],
    [
      "in a header",
      ({ headers }) =>
        new Response("x", {
          headers: { location: `/?t=${headers.get("authorization")}`, etag: headers.get("authorization") ?? "" },
        }),
    ],
    ["in the name of a header", () => new Response("x", { headers: { [`x-${SECRET}`]: "1" } })],
    [
      "in a redirect",
      ({ headers }) =>
        new Response(null, { status: 302, headers: { location: `https://a.example/${headers.get("authorization")}` } }),
    ],
    [
      "in Retry-After",
      ({ headers }) =>
        new Response("no", { status: 429, headers: { "retry-after": headers.get("authorization") ?? "" } }),
    ],
  ])("%s", async (_what, answer) => {
    await using rig = await openCredentials(answer);
    await rig.add();
    const { json } = await rig.ended(await rig.create());
    const id = json.id;
    expectNothing(await everything(rig, id));
    // The end of the action does not wait for the note of the host.
    const noted = await eventually(async () => {
      const { json: credential } = await rig.call("GET", "/v1/credentials/stripe-live");
      return String(credential["echoed_by"]) === "" ? null : credential["echoed_by"];
    }, "the note of the host");
    expect(noted).toEqual([rig.host]);
    expect((await rig.call("GET", "/v1/audit?kind=credential_echoed")).json.data).toHaveLength(1);
  });

  test("in headers of hundreds of kilobytes, which are searched as far as they are kept", async () => {
    const forms = String.raw`%252525 \\u005cx &#x26;amp; =3D41 65,66,67 41 42 43 QUJDREVGR0hJSktMTU5P `;
    const value = forms + `${SECRET}!`.repeat(8_000);
    const head = `Location: ${value}\r\nX-RateLimit-Limit: ${value}\r\n`;
    await using target = await openRawTarget(says(`HTTP/1.1 200 OK\r\n${head}Content-Length: 2\r\n\r\nok`));
    await using rig = await openCredentials();
    await rig.add({ hosts: [new URL(target.url("/")).host] });
    const call = async () => {
      const { json } = await rig.ended(await rig.create({ url: target.url("/") }));
      expect(json).toMatchObject({ status: "completed", response_body: "ok" });
      expectNothing(await everything(rig, json.id));
    };
    // In one piece it takes seconds.
    expect(await quickestOf(500, () => longestTurnMs(call))).toBeLessThan(500);
  });

  test("where it is compressed, which is withheld with its headers kept", async () => {
    const packed = (secret: string) => new Response(Bun.gzipSync(secret), { headers: { "content-encoding": "gzip" } });
    await using rig = await openCredentials(({ headers }) => packed(headers.get("authorization") ?? ""));
    await rig.add();
    const { json } = await rig.ended(await rig.create());
    const withheld = "withheld: it may contain the credential";
    expect(json).toMatchObject({ status: "completed", response_code: 200, response_body: withheld });
    expectNothing(await everything(rig, json.id));
  });

  test("where it stands across the end of what is read", async () => {
    let padding = "";
    await using rig = await openCredentials(({ headers }) => {
      const secret = (headers.get("authorization") ?? "").slice("Bearer ".length);
      return new Response(`${padding}${secret}${"-".repeat(100)}`);
    });
    await rig.add();
    for (const before of [0, 1, 5, SECRET.length - 1, SECRET.length, SECRET.length + 7]) {
      padding = "-".repeat(RESPONSE_BODY_BYTES_MAX - before);
      const { json } = await rig.ended(await rig.create());
      const body = String(json["response_body"]);
      expect(json["response_truncated"]).toBe(true);
      expect(body.replaceAll("-", "")).toBe("••••");
    }
  });

  test("where the connection breaks in the middle of it", async () => {
    await using target = await openRawTarget((socket, request) => {
      const secret = /bearer (\S+)/i.exec(request)?.[1] ?? "";
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${secret.slice(0, 12)}`);
    });
    await using rig = await openCredentials();
    await rig.add({ hosts: [new URL(target.url("/")).host] });
    const { json } = await rig.ended(await rig.create({ url: target.url("/") }));
    expectNothing(await everything(rig, json.id));
    expect(JSON.stringify(json)).not.toContain(SECRET.slice(0, 8));
  });
});

test("the pair of basic is masked too, and a search finds nothing letter by letter", async () => {
  await using rig = await openCredentials(
    echoes((text) => JSON.stringify({ sent: text, pair: Buffer.from(text.slice(6), "base64").toString() })),
  );
  await rig.add({ kind: "basic", username: "ann" });
  const { json } = await rig.ended(await rig.create());
  const text = await everything(rig, json.id);
  expectNothing(text);
  expect(text).not.toContain(base64(`ann:${SECRET}`).slice(0, 12));
  for (let length = 3; length <= 8; length += 1) {
    const found = await rig.call("GET", `/v1/actions?q=${SECRET.slice(4, 4 + length)}`, undefined, KEYS.agent);
    expect([found.status, found.json.data]).toEqual([200, []]);
  }
});

test.each<[string, object]>([
  ["shorter than the secret", { algorithm: "sha1", encoding: "base64" }],
  ["behind its time", { value: "t={timestamp},v1={signature}" }],
])("a signature is masked too, %s", async (_what, hmac) => {
  let signature = "";
  await using rig = await openCredentials(({ headers }) => {
    signature = (headers.get("x-signature") ?? "").split("v1=").at(-1) ?? "";
    return Response.json({ signature });
  });
  await rig.add({ kind: "hmac", header: "X-Signature", secret: SECRET.repeat(3), hmac });
  const { json } = await rig.ended(await rig.create({ body: { amount: 1 } }));
  expect(signature.length).toBeGreaterThan(20);
  expect(json["response_body"]).toEqual({ signature: "••••" });
});

type Form = (authorization: string) => Response;

/** A target that keeps what its last call was sent with, and shows it to whoever asks later, as logs and inspectors do. */
function keeping(form: Form) {
  let kept = "";
  return ({ headers, path }: Received) => {
    if (path === "/log") return form(kept);
    kept = headers.get("authorization") ?? "";
    return new Response("ok");
  };
}

/** What a call without a credential reads, after one with it. */
async function readLater(form: Form, more: object = {}) {
  await using rig = await openCredentials(keeping(form));
  await rig.add(more);
  await rig.ended(await rig.create());
  return (await log(rig)).json["response_body"];
}

const log = async (rig: CredentialRig) =>
  rig.ended(
    await rig.call("POST", "/v1/actions", { url: `${rig.target.url}log`, method: "GET", retries: 1 }, KEYS.agent),
  );

describe("what a host shows of a credential in an answer to a later call", () => {
  test("is masked, also where that call has no credential or another one", async () => {
    const shows = (last: string) => Response.json({ last });
    expect(await readLater(shows)).toEqual({ last: ECHO_MASK });
    const basic = { kind: "basic", username: "ann" };
    expect(await readLater(shows, basic)).toEqual({ last: ECHO_MASK });
    await using rig = await openCredentials(keeping(shows));
    await rig.add({ keys: [] });
    await rig.add({ name: "other", secret: "another-secret-of-4242" });
    await rig.ended(await rig.create({ credential: "stripe-live" }, KEYS.owner), KEYS.owner);
    const other = await rig.ended(
      await rig.create({ url: `${rig.target.url}log`, method: "GET", credential: "other" }),
    );
    expect(other.json["response_body"]).toEqual({ last: ECHO_MASK });
    // It says nothing of the credential with which the second call went.
    expect((await rig.call("GET", "/v1/credentials/other")).json["echoed_by"] ?? []).toEqual([]);
  });

  test("is withheld in bytes that are no text, which stay as they are without it", async () => {
    const withheld = "withheld: it may contain the credential";
    const bytes = (text: string) => new Response(Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.from(text)]));
    expect(await readLater(bytes)).toBe(withheld);
    expect(await readLater((text) => new Response(Buffer.from(`\u00ff${text}`, "utf16le")))).toBe(withheld);
    expect(await readLater((text) => new Response(text.slice(7, 14), { status: 206 }))).toBe(withheld);
    // Their end may be the beginning of it, and the caller may choose where that is.
    const cut = (text: string) => bytes("-".repeat(RESPONSE_BODY_BYTES_MAX - text.length - 1) + text);
    expect(await readLater(cut)).toBe(withheld);
    expect(await readLater(() => bytes("an image"))).toEqual({ encoding: "base64", data: "/9hhbiBpbWFnZQ==" });
  });
});

test("credentials that the key may use are looked for before those of others", async () => {
  await using rig = await openCredentials(keeping((last) => Response.json({ last })));
  for (let at = 0; at <= CREDENTIALS_HIDDEN_PER_HOST_MAX; at += 1) {
    await rig.add({ name: `owner-${at}`, secret: `another-secret-${at}`, keys: [] });
    await rig.ended(await rig.create({ credential: `owner-${at}` }, KEYS.owner), KEYS.owner);
  }
  await rig.add();
  await rig.ended(await rig.create());
  expect((await log(rig)).json["response_body"]).toEqual({ last: ECHO_MASK });
});

test.each([`'{"kind":"of-a-later-version"}'`, "'no JSON'"])(
  "one that is altered to %s keeps no other call from its host",
  async (settings) => {
    await using rig = await openCredentials(keeping((last) => Response.json({ last })));
    await rig.add();
    await rig.add({ name: "altered", secret: "another-secret-of-4242" });
    const file = openFile(`${rig.app.engine.folder}/outgate.db`, "shared");
    await runStatements(file, [
      { sql: `update credentials set settings = ${settings} where name = 'altered'`, args: [] },
    ]);
    await file.close();
    expect((await rig.ended(await rig.create())).json.status).toBe("completed");
    expect((await log(rig)).json["response_body"]).toEqual({ last: ECHO_MASK });
  },
);

test("calls to hosts for which there is no credential are searched for none", async () => {
  const shows = (last: string) => Response.json({ last });
  await using rig = await openCredentials(keeping(shows));
  await rig.add({ hosts: ["api.example.com"] });
  await rig.ended(
    await rig.call(
      "POST",
      "/v1/actions",
      { url: rig.target.url, headers: { authorization: `Bearer ${SECRET}` }, retries: 1 },
      KEYS.owner,
    ),
    KEYS.owner,
  );
  const asked = { url: `${rig.target.url}log`, method: "GET", retries: 1 };
  const read = await rig.ended(await rig.call("POST", "/v1/actions", asked, KEYS.owner), KEYS.owner);
  expect(read.json["response_body"]).toEqual({ last: `Bearer ${SECRET}` });
});
