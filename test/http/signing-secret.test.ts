import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer, STRANGER, tablesIn } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { shared } from "../support/shared.ts";

const BODY = '{"order": 7,\n "note": "<b>"}';

const app = await shared(openRealServer());
const target = await shared(new Target(200));
const { id } = (
  await app.call("POST", "/v1/actions", {
    url: `${target.url}hook`,
    text: BODY,
    headers: { Authorization: "Bearer secret-1" },
  })
).json;
await app.engine.saw(id, { status: "completed" });
/** The headers of the call that arrived. */
const headers = Object.fromEntries(target.received[0]?.headers ?? []);

interface Asked {
  readonly origin?: string;
  readonly use?: string;
  readonly key?: string;
  readonly body: object;
}

async function verify({ origin = new URL(target.url).origin, use = "calls", key, body }: Asked) {
  const path = `/v1/signing-secret/verify?origin=${origin}&for=${use}`;
  const { status, text } = await app.call("POST", path, body, key);
  // What the route answers, which the description has checked.
  const json: { valid: boolean; secret: string | null; problems: { code: string; message: string }[] } =
    JSON.parse(text);
  return { status, text, json };
}

describe("POST /v1/signing-secret/verify", () => {
  test("matches a call as it arrived, as text and as bytes, and stores nothing of it", async () => {
    const before = tablesIn(app.engine.folder);
    for (const body of [
      { headers, text: BODY },
      { headers, base64: Buffer.from(BODY).toString("base64") },
      { headers: Object.fromEntries(Object.entries(headers).map(([n, v]) => [n.toUpperCase(), v])), text: BODY },
    ]) {
      expect((await verify({ body })).json).toMatchObject({ valid: true, secret: "current", problems: [] });
    }
    const { first_steps: steps, ...rest } = tablesIn(app.engine.folder);
    const { first_steps: stepsBefore, ...restBefore } = before;
    expect(rest).toEqual(restBefore);
    expect([stepsBefore?.length, steps?.length]).toEqual([0, 1]);
    expect(JSON.stringify(app.lines)).not.toContain("secret-1");
  });

  test("knows what was sent by the id, and says what differs", async () => {
    const codeOf = async (asked: Asked) => (await verify(asked)).json.problems[0]?.code;
    const changed = (await verify({ body: { headers, text: BODY.replace("7", "8") } })).json;
    expect(changed).toMatchObject({ valid: false, secret: null, problems: [{ code: "body_changed" }] });
    expect(changed.problems[0]?.message).toContain("byte 11 is the first that differs");
    expect(await codeOf({ origin: "https://other.example", body: { headers, text: BODY } })).toBe("other_origin");
    expect(await codeOf({ use: "callbacks", body: { headers, text: BODY } })).toBe("other_use");
    const later = { ...headers, "webhook-timestamp": "1772625601" };
    expect(await codeOf({ body: { headers: later, text: BODY } })).toBe("no_match");
    expect(await codeOf({ body: { headers: { ...headers, "webhook-id": "act_nobody" }, text: BODY } })).toBe(
      "unknown_id",
    );
    // To another account it tells nothing about the action.
    const theirs = await verify({ key: STRANGER, body: { headers, text: BODY } });
    expect(theirs.json).toMatchObject({ valid: false, problems: [{ code: "unknown_id" }] });
    expect(theirs.text).not.toContain(id);
  });

  test.each([
    [{ headers: {}, text: "a", base64: "YQ==" }, "base64"],
    [{ headers: {}, base64: "YQ" }, "base64"],
    [{ headers: {}, text: "\ud800" }, "text"],
    [{ text: "a" }, "headers"],
    [{ headers: { "webhook-id": 7 } }, "headers.webhook-id"],
    [{ headers: { "webhook-id": "act_1", "Webhook-Id": "act_2" } }, "headers.webhook-id"],
  ])("refuses %j", async (body, field) => {
    const { status, text } = await app.call("POST", "/v1/signing-secret/verify?origin=https://a.example", body);
    expect([status, JSON.parse(text)]).toMatchObject([400, { error: { details: [{ field }] } }]);
  });
});

const ann = await signedIn(app);

describe("Check a signature, on the page of signing secrets", () => {
  const asked = () => ({ origin: `${new URL(target.url).origin}/`, body: BODY.replaceAll("\n", "\r\n") });
  const lines = () =>
    ["id", "timestamp", "signature"].map((name) => `webhook-${name}: ${headers[`webhook-${name}`]}\r\n`).join("");

  test("takes headers as lines or JSON and a body whose line breaks the browser changed", async () => {
    const own = await ann.hiddenOf("/settings/signing");
    const quoted = lines().replaceAll(/(webhook-\w+): (.+)\r/g, `  "$1": "$2",\r`);
    for (const typed of [lines(), quoted, JSON.stringify(headers, null, 2)]) {
      const answer = await ann.send("/settings/signing/check", { ...own, ...asked(), headers: typed });
      const html = await answer.text();
      expect([answer.status, html.includes("The signature matches the current secret")]).toEqual([200, true]);
      expect(html).not.toContain("whsec_");
    }
  });

  test("says what is wrong, and keeps what was typed", async () => {
    const own = await ann.hiddenOf("/settings/signing");
    const send = async (fields: Readonly<Record<string, string>>) => {
      const answer = await ann.send("/settings/signing/check", { ...own, ...asked(), headers: lines(), ...fields });
      return { status: answer.status, html: await answer.text() };
    };
    const other = await send({ body: "<b>other</b>" });
    expect(other.status).toBe(200);
    for (const shown of ["is not the one that was sent", "&lt;b&gt;other", "webhook-signature: v1,"]) {
      expect(other.html).toContain(shown);
    }
    expect(await send({ for: "callbacks" })).toMatchObject({ html: expect.stringContaining("separate ones") });
    expect(await send({ headers: "" })).toMatchObject({ html: expect.stringContaining("webhook-id is missing") });
    expect(await send({ origin: "nowhere" })).toMatchObject({
      status: 400,
      html: expect.stringContaining("origin-check-problem"),
    });
    expect(await send({ base64: "yes" })).toMatchObject({ status: 400, html: expect.stringContaining("body-problem") });
  });
});

const ORIGIN = "https://api.example.com";

const ELSEWHERE = "http://other.example:8080";

const read = async (origin = ORIGIN): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse((await app.call("GET", `/v1/signing-secret?origin=${origin}`)).text);

const rotate = (query = "", body?: string) => app.call("POST", `/v1/signing-secret/rotate${query}`, body);

describe("POST /v1/signing-secret/rotate", () => {
  test("knows an origin in whatever case, with a trailing dot and with the scheme's own port", async () => {
    const { secret } = await read();
    expect(JSON.parse((await rotate("?origin=HTTPS://API.example.com.:443")).text)).toMatchObject({ origin: ORIGIN });
    expect(await read()).toMatchObject({ previous: { secret } });
  });

  test.each([
    ["?origin=", "invalid_query", "origin"],
    ["?origin=https://a.example/x", "invalid_query", "origin"],
    ["?origin=https://a.example&origin=https://b.example", "invalid_query", "origin"],
    ["?orgin=https://a.example", "invalid_query", "orgin"],
    [`?origin=https://${"a".repeat(14_000)}`, "invalid_query", "origin"],
  ])("rotates nothing with %s", async (query, code, field) => {
    const before = [await read(), await read("https://a.example")];
    const refused = await rotate(query);
    expect({ status: refused.status, code: refused.json.error.code }).toEqual({ status: 400, code });
    expect(refused.json.error.details).toMatchObject([{ field }]);
    expect([await read(), await read("https://a.example")]).toEqual(before);
  });

  test("takes no body, so that nobody rotates every origin with one that names a single one", async () => {
    const before = [await read(), await read(ELSEWHERE)];
    const refused = await rotate("", `{"origin":"${ORIGIN}"}`);
    expect(refused.json.error).toMatchObject({ code: "validation_error", details: [{ field: "origin" }] });
    expect([await read(), await read(ELSEWHERE)]).toEqual(before);
    expect((await rotate(`?origin=${ORIGIN}`, "{}")).status).toBe(200);
  });
});

test("GET /v1/signing-origins lists where calls went, without secrets, and only those of the account", async () => {
  await app.call("POST", "/v1/actions", { url: "https://used.example:8443/x", approve: true });
  await rotate("?origin=https://used.example:8443");
  const { text, json } = await app.call("GET", "/v1/signing-origins");
  const row = { origin: "https://used.example:8443", for: "calls", rotated_at: expect.any(String) };
  expect(json.data).toContainEqual(expect.objectContaining(row));
  expect(text).not.toContain("whsec_");
  const theirs = await app.call("GET", "/v1/signing-origins", undefined, STRANGER);
  expect(theirs.text).not.toContain("used.example");
});
