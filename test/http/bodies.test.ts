import { afterAll, describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

/** What the target received: its bytes, and the headers that say what they are. */
const received: { readonly bytes: Buffer; readonly headers: Headers }[] = [];

const target = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    received.push({ bytes: Buffer.from(await request.arrayBuffer()), headers: request.headers });
    return new Response(null, { status: 204 });
  },
});

afterAll(() => target.stop(true));
const app = await shared(openRealServer());

const URL_OF_TARGET = `"url":"${target.url.href}"`;

const as = (role: keyof typeof KEYS, method: string, path: string, body?: string) =>
  app.call(method, path, body, KEYS[role]);

const create = (members: string) => as("owner", "POST", "/v1/actions", `{${URL_OF_TARGET},${members}}`);

const FORM = "application/x-www-form-urlencoded";

const TEXT = "text/plain; charset=utf-8";

const BODIES = [
  ["json", `"json":[1.0,12345678901234567890]`, "[1.0,12345678901234567890]", "application/json"],
  ["json null", `"json":null`, "null", "application/json"],
  ["form", `"form":{"2":"b","1":["a","c"],"d":"ä &"}`, "2=b&1=a&1=c&d=%C3%A4+%26", FORM],
  ["text", `"text":"a,b\\n\\"ä\\""`, 'a,b\n"ä"', TEXT],
  ["an empty text", `"text":""`, "", TEXT],
  ["base64", `"base64":"AAEC/w=="`, "\u0000\u0001\u0002\u00ff", "application/octet-stream"],
] as const;

describe.each(BODIES)("a body given as %s", (_name, member, sent, type) => {
  const bytesSent = Buffer.from(sent, member.startsWith('"base64"') ? "latin1" : "utf8");

  test("is sent as these bytes with its type, signed over them, and reads back as it was written", async () => {
    const { text, json } = await create(`${member},"sync":true`);
    expect(text).toContain(`"body":null,${member},`);
    expect(json.status).toBe("completed");
    const last = received.at(-1);
    expect(last?.bytes).toEqual(bytesSent);
    expect(last?.headers.get("content-type")).toBe(type);
    expect(last?.headers.get("content-length")).toBe(String(last?.bytes.length));
    const { json: signing } = await as("owner", "GET", `/v1/signing-secret?origin=${target.url.origin}`);
    const headers = Object.fromEntries(last?.headers ?? []);
    const { bytes = Buffer.alloc(0) } = last ?? {};
    // The library verifies text, of which bytes that are no UTF-8 have none.
    if (!member.startsWith('"base64"')) {
      const secret = new Webhook(signing.secret);
      // The clock of the test stands still.
      const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
      expect(secret.sign(headers["webhook-id"] ?? "", at, bytes.toString())).toBe(headers["webhook-signature"] ?? "");
    } else {
      const key = Buffer.from(signing.secret.slice("whsec_".length), "base64");
      const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), bytes]);
      const mac = new Bun.CryptoHasher("sha256", key).update(signed).digest("base64");
      expect(headers["webhook-signature"]).toBe(`v1,${mac}`);
    }
  });
});

test("a large form keeps its order, and lists in it their values", async () => {
  const fields = Array.from({ length: 300 }, (_, at) => `"${300 - at}":["${"x".repeat(500)}","y"]`);
  const { json } = await create(`"form":{${fields.join(",")}},"sync":true`);
  expect(json.status).toBe("completed");
  const pairs = [...new URLSearchParams(received.at(-1)?.bytes.toString())];
  expect(pairs).toHaveLength(600);
  expect(pairs.map(([name]) => Number(name))).toEqual(Array.from({ length: 600 }, (_, at) => 300 - Math.floor(at / 2)));
});

test("the caller's Content-Type is sent in place of the usual one", async () => {
  await create(`"text":"<a/>","headers":{"Content-Type":"application/xml"},"sync":true`);
  expect(received.at(-1)?.headers.get("content-type")).toBe("application/xml");
  const { status, text } = await create(`"text":"{}","headers":{"content-type":"application/json"}`);
  expect([status, text]).toEqual([400, expect.stringContaining("give it as json")]);
});

test("title, reason and metadata are shown to whoever may see the action, and reach no target", async () => {
  const said = `"title":"Refund 12 €","reason":"lost","metadata":{"order":"order-4711"}`;
  const { text, json } = await create(`${said},"body":{"a":1},"sync":true`);
  expect(text).toContain(`${said},`);
  const { bytes, headers } = received.at(-1) ?? { bytes: Buffer.alloc(0), headers: new Headers() };
  expect(`${bytes.toString()} ${JSON.stringify([...headers])}`).not.toMatch(/Refund|lost|order-4711/);
  for (const role of ["agent", "approver", "reader"] as const) {
    expect((await as(role, "GET", `/v1/actions/${json.id}`)).json).toMatchObject({ title: "Refund 12 €" });
  }
  const receipt = await fetch(`${app.url}${JSON.parse(text).receipt_url}`, { headers: { accept: "application/json" } });
  const shown = await receipt.text();
  expect(shown).toContain(`"title":"Refund 12 €"`);
  expect(shown).not.toContain("order-4711");
});
