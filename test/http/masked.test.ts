import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";

/** Answers that are in no row of canaries.test.ts, which has every place that shows an action. */
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
  test("is masked for an approver who waits for the end, and for a reader, but for all that is no secret", async () => {
    await using target = new Target(redirects);
    const { id } = JSON.parse(await as("agent", "POST", "/v1/actions", bodyOf(target.url, "")));
    await app.engine.saw(id, { status: "failed" });
    for (const role of WHOLE) expect(canariesIn(await as(role, "GET", `/v1/actions/${id}?wait=1`))).toEqual(ALL);
    for (const role of MASKED) {
      const text = await as(role, "GET", `/v1/actions/${id}?wait=1`);
      expect(canariesIn(text)).toEqual([]);
      expect(text).toContain('"max_tokens":12345678901234567890,"one":1.0}');
      expect(text.split('"big":12345678901234567890}')).toHaveLength(3);
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
