import { expect, test } from "bun:test";
import { answering } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const PER_SECOND = 3;

const JSON_TYPE = { "content-type": "application/json" };

const TOO_LARGE = "{".repeat(1_048_577);

const app = await shared(openRealServer({ sender: answering(answered(200)), rateLimitPerSecond: PER_SECOND }));
const { id } = await app.engine.create({});
await app.engine.saw(id, { status: "completed" });
const done = `/v1/actions/${id}/cancel`;

interface Wrong {
  readonly key?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * Each request is wrong in its own step and in every later one that can be wrong with it: a body is too large, no JSON or
 * not what the schema wants, and an action that has ended can't be cancelled.
 */
const STEPS: readonly (readonly [code: string, wrong: Wrong])[] = [
  ["unauthorized", { key: "nonsense", path: "/v1/nothing?x=1", method: "PUT", headers: {}, body: TOO_LARGE }],
  ["rate_limited", { key: KEYS.reader, path: "/v1/nothing?x=1", method: "PUT", headers: {}, body: TOO_LARGE }],
  ["not_found", { key: KEYS.reader, path: "/v1/nothing?x=1", method: "PUT", headers: {}, body: TOO_LARGE }],
  ["method_not_allowed", { key: KEYS.reader, path: "?x=1", method: "PUT", headers: {}, body: TOO_LARGE }],
  ["forbidden", { key: KEYS.reader, path: "?x=1", headers: {}, body: TOO_LARGE }],
  ["invalid_query", { path: "?x=1", headers: {}, body: TOO_LARGE }],
  ["invalid_content_type", { headers: { "content-type": "text/plain" }, body: TOO_LARGE }],
  ["invalid_content_type", { headers: { ...JSON_TYPE, "content-encoding": "gzip" }, body: TOO_LARGE }],
  ["payload_too_large", { body: TOO_LARGE }],
  ["invalid_request", { body: `{"x":` }],
  ["validation_error", { body: `{"x":1}` }],
  ["not_cancellable", { body: "{}" }],
];

test.each(STEPS)("the first failure answers: %s", async (code, wrong) => {
  const { key = KEYS.owner, path = "", method = "POST", headers = JSON_TYPE, body = "{}" } = wrong;
  app.engine.clock.advance(1_000);
  // The account has had its second; whoever has no key is refused for that all the same.
  const before = code === "unauthorized" || code === "rate_limited" ? PER_SECOND : 0;
  for (let count = 0; count < before; count += 1) await app.ask("/v1/account");
  const address = path.startsWith("/") ? path : done + path;
  const init = { method, headers: { ...headers, authorization: `Bearer ${key}` }, body };
  const response = await app.ask(address, init);
  expect(await response.text()).toContain(`"code":"${code}"`);
});
