import { expect, test } from "bun:test";
import { matchesApproval, requestDigest } from "../../src/actions/dedupe.ts";
import { anAction } from "../support/factory.ts";
import { testSecrets } from "../support/store.ts";

const hashOf = (text: string) => testSecrets.hash(text);

const request = anAction({ approve: true, headers: { "X-Plan": "a" }, body: '{"n":1.0}' });

const approved = { ...request, approvedDigest: requestDigest(request, hashOf) };

test("what was approved may be sent, in every attempt of its run", () => {
  expect(matchesApproval(approved, hashOf)).toBe(true);
  expect(matchesApproval({ ...approved, attempts: 3, status: "active", revision: 9 }, hashOf)).toBe(true);
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
  ["another callback", { callback: "https://evil.example/" }],
  ["no approval at all", { approvedDigest: null }],
])("%s may not", (_what, altered) => {
  expect(matchesApproval({ ...approved, ...altered }, hashOf)).toBe(false);
});

test("what was approved before digests covered the callback is still sent, and nothing else is", () => {
  const { method, url, headers, body } = request;
  const approvedDigest = hashOf(JSON.stringify([method, url, Object.entries(headers ?? {}), body]));
  expect(matchesApproval({ ...request, approvedDigest }, hashOf)).toBe(true);
  expect(matchesApproval({ ...request, approvedDigest, callback: "https://h.example/" }, hashOf)).toBe(true);
  expect(matchesApproval({ ...request, approvedDigest, body: "7" }, hashOf)).toBe(false);
  expect(matchesApproval({ ...request, approvedDigest: `2:${approvedDigest}` }, hashOf)).toBe(false);
});

test("what needs no approval is not looked at", () => {
  const unused = () => {
    throw new Error("Nothing is to be hashed.");
  };
  expect(matchesApproval(anAction(), unused)).toBe(true);
});
