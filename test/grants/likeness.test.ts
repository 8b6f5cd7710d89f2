import { expect, test } from "bun:test";
import type { ActionRequest } from "../../src/core/action.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import { GRANT_BODY_CHARS_MAX, GRANT_FIELDS_MAX } from "../../src/core/limits.ts";
import { describeLikeness } from "../../src/grants/grants.ts";
import { aRequest, NOON } from "../support/factory.ts";

const BASE = { body: '{"amount":1,"to":"acme"}', headers: { "X-Tenant": "a", "X-Plan": "b" } };

const likeness = (changes: Partial<ActionRequest>, vary: readonly string[] = []) =>
  describeLikeness(aRequest({ ...BASE, ...changes }), vary, (text) => text);

const extras = (members: ActionRequest["extras"]) => ({ extras: members });

const SOON = NOON.getTime() + 60_000;

const credential = (id: string) =>
  extras({ credential: { id, name: "a", kind: "bearer", hosts: ["api.example.com"] } });

test.each<[string, Partial<ActionRequest>]>([
  ["method", { method: "PUT" }],
  ["scheme", { url: "http://api.example.com/orders" }],
  ["port", { url: "https://api.example.com:8443/orders" }],
  ["path", { url: "https://api.example.com/orders/x" }],
  ["query", { url: "https://api.example.com/orders?x=1" }],
  ["header", { headers: { "X-Tenant": "b", "X-Plan": "b" } }],
  ["number of headers", { headers: { "X-Tenant": "a", "X-Plan": "b", "X-Admin": "1" } }],
  ["body", { body: '{"amount":1,"to":"evil"}' }],
  ["kind of body", extras({ bodyKind: "base64" })],
  ["callback", { callback: "https://listed.example/x" }],
  ["time", extras({ runAt: SOON })],
  ["delay", extras({ delaySeconds: 60, runAt: SOON })],
  ["time limit", extras({ timeoutMs: 1_000 })],
  ["number of attempts", { retries: 10 }],
  ["answer to unknown outcomes", { onUnknown: "stop" }],
  ["wait between attempts", extras({ backoff: { baseMs: 1, capMs: 2 } })],
  ["answers that end it", extras({ giveUpOn: ["5xx"] })],
  ["member of another version", extras(parseExtras('{"invented":1}') ?? {})],
  ["credential", credential("crd_1")],
])("a request with another %s is not alike", (_name, changes) => {
  expect(likeness(changes)).not.toBe(likeness({}));
});

test("requests are alike whatever the requester says about them, in any order and case of header names", () => {
  const said = { title: "Other words", dedupe: "k1", headers: { "x-plan": "b", "X-TENANT": "a" } };
  expect(likeness(said)).toBe(likeness({}));
  const [soon, late] = [SOON, SOON + 1].map((runAt) => likeness(extras({ delaySeconds: 60, runAt })));
  expect(soon).toBe(late);
  expect(likeness(credential("crd_1"))).not.toBe(likeness(credential("crd_2")));
});

test("a body with a member that may differ is compared by the paths of its JSON, and only as a whole", () => {
  const alike = (body: string | null, more: Partial<ActionRequest> = {}) =>
    likeness({ body, ...more }, ["body.amount"]);
  const base = alike(BASE.body);
  expect(alike('{"amount":2,"to":"acme"}')).toBe(base);
  expect(alike('{"amount":2,"bcc":"acme"}')).not.toBe(base);
  expect(alike('{"to":"acme"}')).not.toBe(base);
  expect(alike(JSON.stringify({ amount: 1, to: Array(GRANT_FIELDS_MAX).fill(0) }))).toBeNull();
  expect(alike(JSON.stringify({ amount: 1, to: "x".repeat(GRANT_BODY_CHARS_MAX) }))).toBeNull();
  expect(alike(BASE.body, extras({ bodyKind: "text" }))).toBeNull();
});
