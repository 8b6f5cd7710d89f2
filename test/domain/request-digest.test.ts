import { expect, test } from "bun:test";
import { isAsApproved, requestDigest } from "../../src/domain/request-digest.ts";
import { verifies } from "../spec/verifies.ts";
import { anAction } from "../support/factory.ts";
import { testSecrets } from "../support/store.ts";

const hashOf = (text: string) => testSecrets.hash(text);
const request = anAction({ approve: true, headers: { "X-Plan": "a" }, body: '{"n":1.0}' });
const approved = { ...request, approvedDigest: requestDigest(request, hashOf) };

test("what was approved may be sent, in every attempt of its run", () => {
  expect(isAsApproved(approved, hashOf)).toBe(true);
  expect(isAsApproved({ ...approved, attempts: 3, status: "active", revision: 9 }, hashOf)).toBe(true);
});

test.each([
  ["another method", { method: "DELETE" as const }],
  ["another path", { url: `${request.url}/7` }],
  ["another header value", { headers: { "X-Plan": "b" } }],
  ["another header name", { headers: { "X-Plam": "a" } }],
  ["one header more", { headers: { "X-Plan": "a", "X-More": "" } }],
  ["no headers", { headers: null }],
  ["the same number, spelled another way", { body: '{"n":1}' }],
  ["no body", { body: null }],
  ["no approval at all", { approvedDigest: null }],
])("%s may not", (_what, altered) => {
  verifies("hostile.7.approval-bytes");
  expect(isAsApproved({ ...approved, ...altered }, hashOf)).toBe(false);
});

test("what needs no approval is not looked at", () => {
  const unused = () => {
    throw new Error("Nothing is to be hashed.");
  };
  expect(isAsApproved(anAction(), unused)).toBe(true);
});
