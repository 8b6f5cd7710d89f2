import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { fresh } from "../support/shared.ts";
import { until } from "../support/until.ts";

let app: RealServer;
let target: Target;

fresh(async () => (app = await openRealServer()));
fresh(() => (target = new Target(200)));

const HOUR = 3_600_000;

const create = (body: object, key: string = KEYS.owner, query = "") =>
  app.call("POST", `/v1/actions${query}`, { url: target.url, ...body }, key);

const post = (path: string, body?: object, key: string = KEYS.owner) =>
  app.call("POST", path, body === undefined ? undefined : JSON.stringify(body), key);

const inMs = (ms: number) => new Date(app.engine.clock.now().getTime() + ms).toISOString();

describe("a create", () => {
  test("says when and how it is sent, and the action has exactly that; one that says nothing has nothing of it", async () => {
    const rules = { timeout_ms: 60_000, backoff: { base_ms: 100, cap_ms: 200 }, give_up_on: [401, "5xx"] };
    const made = await create({ run_at: inMs(HOUR), expires_at: inMs(2 * HOUR), ...rules });
    const times = { run_at: inMs(HOUR), expires_at: inMs(2 * HOUR) };
    expect(made.json).toMatchObject({ status: "pending", attempts: 0, ...times, ...rules });
    expect(made.text).toContain('"next_retry_at":null');
    for (const path of [`/v1/actions/${made.json.id}`, "/v1/actions"]) {
      const { text } = await app.call("GET", path, undefined, KEYS.reader);
      expect(text).toContain(`"run_at":"${times.run_at}","expires_at":"${times.expires_at}","timeout_ms":60000`);
    }
    expect((await create({ delay_seconds: 90 })).json).toMatchObject({ run_at: inMs(90_000) });
    const { json } = await create({});
    for (const name of ["run_at", "expires_at", "delay_seconds", ...Object.keys(rules)]) {
      expect(json).not.toHaveProperty(name);
    }
  });

  test("that is repeated after its end finds its action by its key, and is refused as before without one", async () => {
    const body = { url: target.url, expires_at: inMs(HOUR), delay_seconds: 60 };
    const repeat = (headers = {}) => app.call("POST", "/v1/actions", body, headers);
    const keyed = { "idempotency-key": "once" };
    const { id } = (await repeat(keyed)).json;
    for (const [passed, message] of [
      [HOUR - 60_000, "Must be after the end of delay_seconds."],
      [60_000, "Must be in the future."],
    ] as const) {
      app.engine.clock.advance(passed);
      expect((await repeat(keyed)).json).toMatchObject({ id, deduplicated: true, differs: [] });
      for (const headers of [{}, { "idempotency-key": "another" }]) {
        const details = [{ field: "expires_at", message, code: "invalid" }];
        expect((await repeat(headers)).json.error).toMatchObject({ code: "validation_error", details });
      }
    }
  });

  // What is refused: test/actions/create-times.test.ts.
  test("in sync is answered at the end if its time comes within the wait that was asked for", async () => {
    const late = await create({ sync: true, delay_seconds: 5 }, KEYS.owner, "?wait=4");
    expect(late.json.error.code).toBe("invalid_sync");
    const before = app.engine.clock.timers;
    const waiting = create({ sync: true, delay_seconds: 3 }, KEYS.owner, "?wait=60");
    await until(() => app.engine.clock.timers > before);
    app.engine.clock.advance(3_000);
    expect((await waiting).json).toMatchObject({ status: "completed" });
  });
});

test("a create in sync that finds an older action waits for that one", async () => {
  const release = Promise.withResolvers<Response>();
  await using slow = new Target(() => release.promise);
  const first = (await create({ url: slow.url, dedupe: "slow" })).json;
  await slow.saw(1);
  const { timers } = app.engine.clock;
  const again = create({ url: slow.url, dedupe: "slow", sync: true });
  // A wait sets a timer for its end.
  await until(() => app.engine.clock.timers > timers);
  release.resolve(new Response(null, { status: 204 }));
  expect(await again).toMatchObject({
    status: 200,
    json: { id: first.id, status: "completed", deduplicated: true },
  });
  expect(slow.received).toHaveLength(1);
});

describe("POST /v1/actions/{id}/send-now", () => {
  test("sends what waits, with its reason in the timeline and the audit log; again it is 409", async () => {
    const { id } = (await create({ delay_seconds: 86_400 }, KEYS.agent)).json;
    const sent = await post(`/v1/actions/${id}/send-now`, { reason: "Ann asked." }, KEYS.agent);
    expect([sent.status, sent.json]).toMatchObject([200, { id, status: "pending" }]);
    await app.engine.saw(id, { status: "completed" });
    const { json } = await app.call("GET", `/v1/actions/${id}/timeline`, undefined, KEYS.owner);
    expect(json.data).toMatchObject([{ type: "created" }, { type: "sent_now", actor: "key:agent" }, {}, {}, {}]);
    const audit = await app.call("GET", "/v1/audit?kind=sent_now", undefined, KEYS.owner);
    expect(audit.json.data).toMatchObject([{ subject: id, detail: { reason: "Ann asked." } }]);
    const again = await post(`/v1/actions/${id}/send-now`);
    expect([again.status, again.json.error.code]).toEqual([409, "not_retryable"]);
  });

  test("of what a pause holds back is refused with that word", async () => {
    await post("/v1/pauses", { host: new URL(target.url).host });
    const { id } = (await create({})).json;
    const { message } = (await post(`/v1/actions/${id}/send-now`)).json.error;
    expect(message).toContain("is already due, and waits for its turn or for the end of a pause;");
    expect(target.received).toHaveLength(0);
  });
});

describe("for people, without script,", () => {
  test("a page tells when an action is sent and expires, and sends it now", async () => {
    const ann = await signedIn(app);
    const { id } = (await create({ delay_seconds: 3_600, expires_at: inMs(2 * HOUR), give_up_on: ["4xx"] })).json;
    const html = await ann.pageOf(`/actions/${id}`);
    for (const words of [
      "It has not been sent. It starts",
      "Not before",
      "Expires",
      "Gives up on",
      "4xx",
      "Send now",
    ]) {
      expect(html).toContain(words);
    }
    expect(await ann.pageOf("/actions")).toContain("Scheduled");
    const hidden = await ann.hiddenOf(`/actions/${id}`);
    const answer = await ann.send(`/actions/${id}`, { ...hidden, decision: "send_now", reason: "now" });
    expect(answer.status).toBe(303);
    await target.saw(1);
    await app.engine.saw(id, { status: "completed" });
    const after = await ann.pageOf(`/actions/${id}`);
    expect(after).toContain("Brought forward");
    expect(after).not.toContain("Send now");
    // Sent again as a new action it keeps how it is sent, and none of its times.
    const again = await ann.send(`/actions/${id}/edit`, await ann.editFieldsOf(id));
    const copy = (await app.call("GET", `/v1/actions/${again.headers.get("location")?.split("/").at(-1)}`)).json;
    expect(copy).toMatchObject({ give_up_on: ["4xx"] });
    expect(copy).not.toHaveProperty("run_at");
    expect(copy).not.toHaveProperty("expires_at");
  });

  test("who decides sees when it is sent and expires", async () => {
    const { id } = (await create({ delay_seconds: 3_600, expires_at: inMs(2 * HOUR), approve: true })).json;
    const { text } = await app.call("GET", `/v1/actions/${id}/facts`, undefined, KEYS.owner);
    expect(text).toContain('"label":"Not sent before"');
    expect(text).toContain('"label":"Expires at"');
    const ann = await signedIn(app);
    expect(await ann.pageOf(`/approvals/${id}`)).toContain("Not sent before");
  });
});
