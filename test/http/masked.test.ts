import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealDoor } from "./real-house.ts";
import { KEYS } from "./stub-house.ts";

let door: Awaited<ReturnType<typeof openRealDoor>>;
beforeAll(async () => {
  door = await openRealDoor();
});
afterAll(() => door[Symbol.asyncDispose]());

type Role = Exclude<keyof typeof KEYS, "revoked">;
const WHOLE = ["owner", "agent"] as const;
const MASKED = ["approver", "reader"] as const;

const as = async (role: Role, method: string, path: string, body?: string) => {
  const { status, text } = await door.call(method, path, body, { authorization: `Bearer ${KEYS[role]}` });
  expect({ role, method, path, ok: status < 300 }).toEqual({ role, method, path, ok: true });
  return text;
};

/** In the texts below each secret begins so, and is a word of its own. */
const CANARY = /canary-[\w-]+/g;
const canariesIn = (text: string) => [...new Set(text.match(CANARY) ?? [])].toSorted();

const SENT = {
  "canary-query": "?token=canary-query&page=2",
  "canary-body": '"password":"canary-body"',
  "canary-list": '"credentials":[{"n":"canary-list"}]',
  "canary-text": '"note":"say Bearer canary-text to it"',
  "canary-header": '"Authorization":"canary-header"',
  "canary-plan": '"X-Plan":"canary-plan"',
  "canary-agent": '"User-Agent":"bot ann:canary-agent@db"',
  "canary-callback": '?key=canary-callback"',
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
  new Response('{"session":{"id":"canary-answer"},"big":12345678901234567890}', {
    status: 302,
    headers: { location: "/login?code=canary-location&page=2", "content-type": "application/json" },
  });

describe("what was sent and answered", () => {
  test("is read back whole by owner and agent, and masked by approver and reader, wherever they read it", async () => {
    await using target = new Target(redirects);
    const created = await as("agent", "POST", "/v1/actions", bodyOf(target.url, `,"approve":true,"dedupe":"masked"`));
    expect(canariesIn(created)).toEqual(Object.keys(SENT).toSorted());
    const { id } = JSON.parse(created);

    const approved = await as("approver", "POST", `/v1/actions/${id}/approve`, '{"reason":"as ann:canary-reason@db"}');
    expect(canariesIn(approved)).toEqual([]);
    expect(JSON.parse(approved)).toMatchObject({ id, status: "pending", approved_by: "key:approver" });
    await door.engine.saw(id, { status: "failed" });
    // What is sent is what was asked for, whatever is shown to whom.
    const sent = target.received.find(({ headers }) => headers.has("x-outgate-attempt"));
    expect(sent?.body).toContain(SENT["canary-body"]);
    expect(sent?.headers.get("authorization")).toBe("canary-header");

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
      expect(text).toContain('"/login?code=••••&page=2"');
      expect(text).toContain('"as ••••@db"');
    }
  });

  test("is shown to approver and reader with all that is no secret", async () => {
    await using target = new Target(redirects);
    const { id } = JSON.parse(await as("agent", "POST", "/v1/actions", bodyOf(target.url, `,"sync":true`)));
    const whole = JSON.parse(await as("owner", "GET", `/v1/actions/${id}`));
    for (const role of MASKED) {
      expect(JSON.parse(await as(role, "GET", `/v1/actions/${id}`))).toEqual({
        ...whole,
        url: `${target.url}orders?token=••••&page=2`,
        callback: `${target.url}done?key=••••`,
        headers: { Authorization: "••••", "X-Plan": "••••", "User-Agent": "bot ••••@db", Accept: "text/plain" },
        body: { ...whole.body, password: "••••", credentials: "••••", note: "say Bearer •••• to it" },
        response_body: { ...whole.response_body, session: "••••" },
        error: { ...whole.error, response_body: { ...whole.response_body, session: "••••" } },
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
