import { describe, expect, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import { OPERATIONS } from "../support/operations.ts";
import { answering } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { type Draft, drafts, hugeBodies, JSON_TYPE, OWNER } from "./generated-requests.ts";
import { openRealServer, STRANGER, tablesIn } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { SEED } from "../support/long.ts";
import { shared } from "../support/shared.ts";

const URL = `"url":"http://127.0.0.1:9/"`;

const MAIL = `"approve":true,"notify":{"email":"ann@example.com"},"callback":"http://127.0.0.1:9/cb"`;

const GENERATED = 150;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer> | null;
}

type Row = readonly [code: string, status: number, asked: Asked];

const seen = { published: 0, nudged: 0 };

const app = await shared(openRealServer({ sender: answering(answered(200)) }));
const { engine } = app;
const done = await engine.create({});
await engine.saw(done.id, { status: "completed" });
const gone = await engine.create({ approve: true, dedupe: "taken" });
// A day later the key of the first is free, and a second one takes it.
engine.clock.advance(86_400_001);
const taken = await engine.create({ approve: true, dedupe: "taken" });
await engine.actionService.cancel(engine.owner, gone.id, null);
const held = await engine.create({ approve: true });
/** Actions in the states that decisions are refused in. */
const ids = { held: held.id, done: done.id, gone: gone.id, taken: taken.id };
engine.bus.subscribe(() => void (seen.published += 1));
const reserve = spyOn(engine.loop, "reserve");
reserve.mockImplementation(() => {
  seen.nudged += 1;
  return null;
});

/** Everything that a request could have changed, in the file and in memory. */
function state() {
  const { clock, folder } = app.engine;
  return { tables: tablesIn(folder), timers: clock.timers, ...seen };
}

async function send({ method, path, headers = {}, body = null }: Asked) {
  const response = await app.ask(path, { method, headers, ...(body === null ? {} : { body }) });
  const text = await response.text();
  return { status: response.status, code: /"code":"(\w+)"/.exec(text)?.[1] ?? "none" };
}

const post = (path: string, body: string, headers: Readonly<Record<string, string>> = {}): Asked => ({
  method: "POST",
  path,
  headers: { ...JSON_TYPE, ...headers },
  body,
});

const create = (members: string, headers?: Readonly<Record<string, string>>) =>
  post("/v1/actions", `{${URL},${MAIL},${members}}`, headers);

/** One request for each code that a client can bring about on a create: everything but one thing in it is right. */
const CREATES: readonly Row[] = [
  ["unauthorized", 401, create(`"retries":3`, { authorization: "Bearer og_nobody_0123456789abcdefghij" })],
  ["method_not_allowed", 405, { ...create(`"retries":3`), method: "PUT" }],
  ["not_found", 404, { ...create(`"retries":3`), path: "/v1/action" }],
  ["forbidden", 403, create(`"retries":3`, { authorization: `Bearer ${KEYS.reader}` })],
  ["invalid_query", 400, { ...create(`"retries":3`), path: "/v1/actions?wait=0" }],
  ["invalid_content_type", 400, create(`"retries":3`, { "content-type": "text/plain" })],
  ["payload_too_large", 413, create(`"body":{"a":"${"x".repeat(1_048_576)}"}`)],
  ["invalid_request", 400, create(`"retries":3,`)],
  ["missing_body", 400, post("/v1/actions", "")],
  ["missing_field", 400, post("/v1/actions", `{${MAIL}}`)],
  ["invalid_url", 400, post("/v1/actions", `{"url":"http://127.0.0.1:22/",${MAIL}}`)],
  ["invalid_url", 400, create(`"callback":"http://127.0.0.1:1/v1/actions"`)],
  ["invalid_sync", 400, create(`"sync":true`)],
  ["validation_error", 400, create(`"retries":101`)],
  ["validation_error", 400, create(`"retries":3`, { "idempotency-key": "x".repeat(256) })],
];

/** The same for decisions and keys. */
function decisions(): readonly Row[] {
  const verb = (id: string, name: string, body = "", headers?: Readonly<Record<string, string>>) =>
    post(`/v1/actions/${id}/${name}`, body, headers);
  return [
    ["not_approvable", 409, verb(ids.done, "approve")],
    ["not_approvable", 409, verb(ids.gone, "approve", `{"reason":"yes"}`)],
    ["not_cancellable", 409, verb(ids.done, "cancel")],
    ["not_cancellable", 409, verb(ids.gone, "cancel")],
    ["not_retryable", 409, verb(ids.done, "retry")],
    ["not_retryable", 409, verb(ids.held, "retry")],
    // Another live action holds its dedupe key by now.
    ["not_retryable", 409, verb(ids.gone, "retry")],
    ["not_found", 404, verb("act_nobody", "approve")],
    ["not_found", 404, verb(ids.held, "cancel", "", { authorization: `Bearer ${STRANGER}` })],
    ["forbidden", 403, verb(ids.held, "approve", "", { authorization: `Bearer ${KEYS.agent}` })],
    ["forbidden", 403, verb(ids.held, "cancel", "", { authorization: `Bearer ${KEYS.reader}` })],
    ["validation_error", 400, verb(ids.held, "approve", `{"reason":"\\ud800"}`)],
    ["invalid_request", 400, verb(ids.held, "cancel", `{"reason":`)],
    ["invalid_content_type", 400, verb(ids.held, "cancel", "x", { "content-type": "text/plain" })],
    ["invalid_query", 400, verb(ids.held, "cancel?reason=x")],
    ["validation_error", 400, post("/v1/keys", `{"name":"","role":"owner"}`)],
    ["forbidden", 403, post("/v1/keys", `{"name":"a","role":"owner"}`, { authorization: `Bearer ${KEYS.agent}` })],
    ["not_found", 404, { method: "DELETE", path: "/v1/keys/key_nobody" }],
    ["invalid_query", 400, { method: "GET", path: "/v1/actions?cursor=x" }],
    ["not_found", 404, { method: "GET", path: "/v1/actions/act_nobody?wait=100" }],
  ];
}

describe("a refused request changes nothing: no row, no news, no mail owed, nothing woken", () => {
  test("whatever the refusal is, every code of the contract among them", async () => {
    const rows = [...CREATES, ...decisions()];
    for (const [code, status, asked] of rows) {
      const before = state();
      const name = `${asked.method} ${asked.path}`;
      expect({ name, ...(await send(asked)) }).toEqual({ name, status, code });
      expect(state()).toEqual(before);
    }
    // What no request brings about by itself: too many of them, a bug, a disk that is away; sign-up, one key too many, the
    // last owner and what takes ten thousand held actions have tests of their own.
    const never = new Set([
      "rate_limited",
      "internal_error",
      "unavailable",
      "too_many_keys",
      "too_many_held",
      "too_many_jobs",
      "last_owner",
    ]);
    const promised = OPERATIONS.filter(({ path }) => path.startsWith("/v1/"));
    const tested = new Set(rows.map(([code]) => code));
    const missing = promised.flatMap(({ errors }) => errors).filter((code) => !tested.has(code) && !never.has(code));
    expect([...new Set(missing)]).toEqual([]);
  });

  test("however it was made: huge and deep bodies to every way in", async () => {
    const paths = ["/v1/actions", "/v1/keys", `/v1/actions/${ids.held}/approve`];
    const bodies = Object.entries(hugeBodies()).filter(([name]) => !ACCEPTED.has(name));
    const before = state();
    for (const path of paths) {
      for (const [name, body] of bodies) {
        const { status } = await send(post(path, body));
        expect(status >= 400 && status < 500, `${path} ${name}`).toBe(true);
      }
    }
    expect(state()).toEqual(before);
  });

  test("whatever field it was that was wrong", async () => {
    const wrong = drafts.filter(({ kind, body }) => kind === "nearly valid" && (body?.length ?? 0) < 10_000);
    const before = state();
    for (const draft of fc.sample(wrong, { seed: SEED, numRuns: GENERATED })) {
      const asked: Draft = {
        ...draft,
        path: draft.path.replace(/\{([\w ]+) \d+\}/, (_id, kind) => OTHER_IDS[kind] ?? ids.held),
      };
      const { status } = await send({ ...asked, headers: { ...asked.headers, authorization: OWNER } });
      expect(status, JSON.stringify([SEED, asked])).toBe(400);
    }
    expect(state()).toEqual(before);
  });
});

/** Where an action's id would be none. */
const OTHER_IDS: Readonly<Record<string, string>> = {
  account: "acc_1",
  rule: "rul_none",
  grant: "grt_none",
  person: "per_nobody",
  invitation: "inv_none",
  bulk: "blk_none",
  channel: "chn_none",
  request: "crq_none",
  "oauth client": "ocl_none",
};

/** What is large and nothing else. */
const ACCEPTED = new Set([
  "62 levels",
  "a text of a megabyte",
  "9,900 members",
  "40,000 long numbers",
  "340,000 empty lists",
  "260,000 spaced objects",
  "500,000 numbers",
]);
