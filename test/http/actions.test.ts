import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { until } from "../support/until.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());

/** Bodies of creates: one that is sent at once and one that waits for a person. */
const at = (url: string, members = "") => `{"url":"${url}"${members}}`;

const held = (members = "") => at("http://127.0.0.1:9/", `,"approve":true${members}`);

const create = async (body: string) => (await app.call("POST", "/v1/actions", body)).json;

describe("an action over REST", () => {
  test("that is there already is waited for too", async () => {
    const release = Promise.withResolvers<Response>();
    await using target = new Target(() => release.promise);
    const first = await create(at(target.url, `,"dedupe":"slow"`));
    await target.saw(1);
    const again = app.call("POST", "/v1/actions", at(target.url, `,"dedupe":"slow","sync":true`));
    // A wait sets a timer for its end.
    const { timers } = app.engine.clock;
    await until(() => app.engine.clock.timers > timers);
    release.resolve(new Response(null, { status: 204 }));
    const { status, json } = await again;
    expect({ status, id: json.id, state: json.status, deduplicated: json.deduplicated }).toEqual({
      status: 200,
      id: first.id,
      state: "completed",
      deduplicated: true,
    });
    expect(target.received).toHaveLength(1);
  });

  test("is found by the Idempotency-Key that matched it by dedupe, also when it has failed since", async () => {
    const answers = Promise.withResolvers<Response>();
    await using target = new Target(() => answers.promise);
    const first = await create(at(target.url, `,"dedupe":"meant","retries":1`));
    const again = () =>
      app.call("POST", "/v1/actions", at(target.url, `,"dedupe":"meant"`), { "Idempotency-Key": "order-7" });
    const found = await again();
    answers.resolve(new Response(null, { status: 500 }));
    await app.engine.saw(first.id, { status: "failed" });
    const retried = await again();
    const shown = [found, retried].map(({ status, json }) => [status, json.id, json.deduplicated]);
    expect(shown).toEqual([
      [200, first.id, true],
      [200, first.id, true],
    ]);
    expect(target.received).toHaveLength(1);
  });
});

describe("a decision that comes at the wrong time", () => {
  const codes = { approve: "not_approvable", cancel: "not_cancellable", retry: "not_retryable" } as const;
  type Verb = keyof typeof codes;

  const refuses = async (id: string, ...verbs: readonly Verb[]) => {
    for (const verb of verbs) {
      const { status, json } = await app.call("POST", `/v1/actions/${id}/${verb}`);
      expect({ status, code: json.error.code }, verb).toEqual({ status: 409, code: codes[verb] });
    }
  };

  test("is 409 with its own code, in every state", async () => {
    const release = Promise.withResolvers<Response>();
    await using target = new Target(() => release.promise);
    const active = await create(at(target.url, `,"retries":1`));
    await target.saw(1);
    await refuses(active.id, "approve", "cancel", "retry");
    release.resolve(new Response(null, { status: 500 }));
    await app.engine.saw(active.id, { status: "failed" });
    await refuses(active.id, "approve", "cancel");

    const waiting = await create(held());
    await refuses(waiting.id, "retry");
    expect((await app.call("POST", `/v1/actions/${waiting.id}/cancel`)).status).toBe(200);
    await refuses(waiting.id, "approve", "cancel");

    await using fine = new Target(200);
    const done = await create(at(fine.url, `,"sync":true`));
    await refuses(done.id, "approve", "cancel", "retry");
  });
});
