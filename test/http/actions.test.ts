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
});
