import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";

let app: Awaited<ReturnType<typeof openRealServer>>;

beforeAll(async () => {
  app = await openRealServer();
});

afterAll(() => app[Symbol.asyncDispose]());

type Role = Exclude<keyof typeof KEYS, "revoked">;

const WHOLE = ["owner", "agent"] as const;

const MASKED = ["approver", "reader"] as const;

const as = async (role: Role, method: string, path: string, body?: string) => {
  const { status, text } = await app.call(method, path, body, { authorization: `Bearer ${KEYS[role]}` });
  expect({ role, method, path, ok: status < 300 }).toEqual({ role, method, path, ok: true });
  return text;
};

/** In the texts below each secret begins so; what follows looks drawn at random, or whoever decides would see it. */
const CANARY = /canary-[a-z]+/g;

const canariesIn = (text: string) => [...new Set(text.match(CANARY) ?? [])].toSorted();

const SENT = {
  "canary-query": "?token=canary-query-x9Kq2Lm8Vb3Zt7Rw&page=2",
  "canary-body": '"password":"canary-body-x9Kq2Lm8Vb3Zt7Rw"',
  "canary-list": '"credentials":[{"n":"canary-list-x9Kq2Lm8Vb3Zt7Rw"}]',
  "canary-text": '"note":"say Bearer canary-text-x9Kq2Lm8Vb3Zt7Rw to it"',
  "canary-header": '"Authorization":"canary-header-x9Kq2Lm8Vb3Zt7Rw"',
  "canary-plan": '"X-Plan":"canary-plan-x9Kq2Lm8Vb3Zt7Rw"',
  "canary-agent": '"User-Agent":"bot ann:canary-agent-x9Kq2Lm8Vb3Zt7Rw@db"',
  "canary-callback": '?key=canary-callback-x9Kq2Lm8Vb3Zt7Rw"',
} as const;

const bodyOf = (url: string, members: string) =>
  `{"url":"${url}orders${SENT["canary-query"]}","method":"PUT","retries":1${members}` +
  `,"callback":"${url}done${SENT["canary-callback"]}` +
  `,"headers":{${SENT["canary-header"]},${SENT["canary-plan"]},${SENT["canary-agent"]},"Accept":"text/plain"}` +
  `,"body":{${SENT["canary-body"]},${SENT["canary-list"]},${SENT["canary-text"]},"max_tokens":12345678901234567890,"one":1.0}}`;

/** What the target says, and what a person says, beside what was sent. */
const ANSWERED = ["canary-answer", "canary-location", "canary-reason"];

const ALL = [...Object.keys(SENT), "canary-answer"].toSorted();

const redirects = () =>
  new Response('{"session":{"id":"canary-answer-x9Kq2Lm8Vb3Zt7Rw"},"big":12345678901234567890}', {
    status: 302,
    headers: {
      location: "/login?code=canary-location-x9Kq2Lm8Vb3Zt7Rw&page=2",
      "content-type": "application/json",
      "set-cookie": "sid=canary-cookie",
    },
  });

describe("what was sent and answered", () => {
  test("is read back whole by owner and agent, and masked by approver and reader, wherever they read it", async () => {
    await using target = new Target(redirects);
    const created = await as("agent", "POST", "/v1/actions", bodyOf(target.url, `,"approve":true,"dedupe":"masked"`));
    expect(canariesIn(created)).toEqual(Object.keys(SENT).toSorted());
    const { id } = JSON.parse(created);

    const approved = await as(
      "approver",
      "POST",
      `/v1/actions/${id}/approve`,
      '{"reason":"as ann:canary-reason-x9Kq2Lm8Vb3Zt7Rw@db"}',
    );
    expect(canariesIn(approved)).toEqual([]);
    expect(JSON.parse(approved)).toMatchObject({ id, status: "pending", approved_by: "key:approver" });
    await app.engine.saw(id, { status: "failed" });
    // What is sent is what was asked for, whatever is shown to whom.
    const sent = target.received.find(({ headers }) => headers.has("x-outgate-attempt"));
    expect(sent?.body).toContain(SENT["canary-body"]);
    expect(sent?.headers.get("authorization")).toBe("canary-header-x9Kq2Lm8Vb3Zt7Rw");

    const reads = [`/v1/actions/${id}`, `/v1/actions/${id}?wait=1`, "/v1/actions?dedupe=masked"];
    for (const path of reads) {
      for (const role of WHOLE) expect(canariesIn(await as(role, "GET", path))).toEqual(ALL);
      for (const role of MASKED) {
        const text = await as(role, "GET", path);
        expect(canariesIn(text)).toEqual([]);
        expect(text).toContain('"max_tokens":12345678901234567890,"one":1.0}');
        expect(text.split('"big":12345678901234567890}')).toHaveLength(3);
      }
    }
    const timeline = `/v1/actions/${id}/timeline`;
    for (const role of WHOLE) {
      expect(canariesIn(await as(role, "GET", timeline))).toEqual(ANSWERED.slice(1));
    }
    for (const role of MASKED) {
      const text = await as(role, "GET", timeline);
      expect(canariesIn(text)).toEqual([]);
      expect(text).toContain('"/login?code=••••(code,32-chars,…t7Rw)&page=2"');
      expect(text).toMatch(/"as (?:ann:)?••••\(password,30-chars,…t7Rw\)@db"/);
    }
    const attempts = `/v1/actions/${id}/attempts`;
    for (const role of WHOLE) {
      const text = await as(role, "GET", attempts);
      expect(canariesIn(text)).toEqual(ANSWERED.slice(0, 2));
      // A cookie is not stored, so nobody sees it.
      expect(text).toContain('{"name":"set-cookie","value":"••••"}');
      expect(text).toContain('"big":12345678901234567890}');
    }
    for (const role of MASKED) {
      const text = await as(role, "GET", attempts);
      expect(canariesIn(text)).toEqual([]);
      expect(text.split('"/login?code=••••(code,32-chars,…t7Rw)&page=2"')).toHaveLength(3);
      expect(text).toContain('"big":12345678901234567890}');
    }
  });

  test("is shown to approver and reader with all that is no secret", async () => {
    await using target = new Target(redirects);
    const { id } = JSON.parse(await as("agent", "POST", "/v1/actions", bodyOf(target.url, `,"sync":true`)));
    const whole = JSON.parse(await as("owner", "GET", `/v1/actions/${id}`));
    const hidden = (kind: string, chars: number) => `••••(${kind},${chars}-chars,…t7Rw)`;
    for (const role of MASKED) {
      const login = role === "reader" ? "" : "ann:";
      const session = { id: hidden("session", 30) };
      expect(JSON.parse(await as(role, "GET", `/v1/actions/${id}`))).toEqual({
        ...whole,
        hidden_values: 8,
        url: `${target.url}orders?token=${hidden("token", 29)}&page=2`,
        callback: `${target.url}done?key=${hidden("key", 32)}`,
        headers: {
          Authorization: hidden("credentials", 30),
          "X-Plan": hidden("header", 28),
          "User-Agent": `bot ${login}${hidden("password", 29)}@db`,
          Accept: "text/plain",
        },
        body: {
          ...whole.body,
          password: hidden("password", 28),
          credentials: [{ n: hidden("credentials", 28) }],
          note: `say Bearer ${hidden("Bearer-token", 28)} to it`,
        },
        response_body: { ...whole.response_body, session },
        error: { ...whole.error, response_body: { ...whole.response_body, session } },
      });
    }
  });

  test("is masked in the answer to an approver who cancels, and whole to an agent who does", async () => {
    for (const [role, canaries] of [
      ["approver", []],
      ["agent", Object.keys(SENT).toSorted()],
      ["owner", Object.keys(SENT).toSorted()],
    ] as const) {
      const url = `http://127.0.0.1:9/${role}/`;
      const { id } = JSON.parse(await as("agent", "POST", "/v1/actions", bodyOf(url, `,"approve":true`)));
      const cancelled = await as(role, "POST", `/v1/actions/${id}/cancel`, '{"reason":"no"}');
      expect({ role, canaries: canariesIn(cancelled) }).toEqual({ role, canaries: [...canaries] });
    }
  });
});
