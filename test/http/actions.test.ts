import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { until } from "../support/until.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());

const at = (url: string, members = "") => `{"url":"${url}"${members}}`;

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
