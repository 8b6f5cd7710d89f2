import { describe, expect, test } from "bun:test";
import { matchesApproval, requestDigest } from "../../src/core/dedupe.ts";
import { NO_EXTRAS } from "../../src/core/action.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import { anAction } from "../support/factory.ts";
import { testSecrets } from "../support/store.ts";

const hashText = (text: string) => testSecrets.hash(text);

const request = anAction({ approve: true, headers: { "X-Plan": "a" }, body: '{"n":1.0}' });

const approved = { ...request, approvedDigest: requestDigest(request, hashText) };

test("what was approved may be sent, in every attempt of its run", () => {
  expect(matchesApproval(approved, hashText)).toBe(true);
  expect(matchesApproval({ ...approved, attempts: 3, status: "active", revision: 9 }, hashText)).toBe(true);
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
  expect(matchesApproval({ ...approved, ...altered }, hashText)).toBe(false);
});

test("what was approved before digests covered the callback is still sent, and nothing else is", () => {
  const { method, url, headers, body } = request;
  const approvedDigest = hashText(JSON.stringify([method, url, Object.entries(headers ?? {}), body]));
  expect(matchesApproval({ ...request, approvedDigest }, hashText)).toBe(true);
  expect(matchesApproval({ ...request, approvedDigest, callback: "https://h.example/" }, hashText)).toBe(true);
  expect(matchesApproval({ ...request, approvedDigest, body: "7" }, hashText)).toBe(false);
  expect(matchesApproval({ ...request, approvedDigest: `2:${approvedDigest}` }, hashText)).toBe(false);
});

test("what was approved with a credential may not be sent with another one, or without", () => {
  const credential = { id: "crd_1", name: "a", kind: "bearer" as const, hosts: ["h.example"] };
  const own = anAction({ approve: true, extras: { credential } });
  const approvedOwn = { ...own, approvedDigest: requestDigest(own, hashText) };
  const other = { ...credential, id: "crd_2" };
  const mayBeSent = [own.extras, { credential: other }, NO_EXTRAS].map((extras) =>
    matchesApproval({ ...approvedOwn, extras }, hashText),
  );
  expect(mayBeSent).toEqual([true, false, false]);
});

test("what needs no approval is not looked at", () => {
  const unused = () => {
    throw new Error("Nothing is to be hashed.");
  };
  expect(matchesApproval(anAction(), unused)).toBe(true);
});

describe("the digest of a body that is no JSON object", () => {
  const text = anAction({ approve: true, body: "a=1", extras: { bodyKind: "text" } });
  const approvedText = { ...text, approvedDigest: requestDigest(text, hashText) };

  test.each([
    ["as a form", { extras: { bodyKind: "form" as const } }],
    ["as base64", { extras: { bodyKind: "base64" as const } }],
    ["as a JSON object", { extras: {} }],
    ["with another Content-Type", { headers: { "Content-Type": "text/html" } }],
    ["with another text", { body: "a=2" }],
  ])("covers what it is: %s it may not be sent", (_what, altered) => {
    expect(matchesApproval(approvedText, hashText)).toBe(true);
    expect(matchesApproval({ ...approvedText, ...altered }, hashText)).toBe(false);
  });

  test("does not cover what the requester says of it", () => {
    const said = { title: "Another", extras: { ...text.extras, reason: "x", metadata: { a: "b" } } };
    expect(matchesApproval({ ...approvedText, ...said }, hashText)).toBe(true);
  });

  test("is no digest of earlier versions, which knew no such bodies", () => {
    const { method, url, headers, body, callback } = text;
    const parts = [method, url, Object.entries(headers ?? {}), body];
    const first = hashText(JSON.stringify(parts));
    const second = `2:${hashText(JSON.stringify([...parts, callback]))}`;
    for (const approvedDigest of [first, second])
      expect(matchesApproval({ ...text, approvedDigest }, hashText)).toBe(false);
  });
});

describe("the digest of an action with members that this version doesn't know", () => {
  const from = (text: string) => parseExtras(text) ?? NO_EXTRAS;
  const newer = anAction({ approve: true, extras: from('{"reason":"x","b":[1],"a":"y"}') });
  const approvedNewer = { ...newer, approvedDigest: requestDigest(newer, hashText) };

  test.each([
    ["another value", '{"reason":"x","b":[2],"a":"y"}'],
    ["one member less", '{"reason":"x","b":[1]}'],
    ["one member more", '{"reason":"x","b":[1],"a":"y","c":null}'],
    ["none of them", '{"reason":"x"}'],
  ])("covers them: with %s it may not be sent", (_what, text) => {
    expect(matchesApproval(approvedNewer, hashText)).toBe(true);
    expect(matchesApproval({ ...approvedNewer, extras: from(text) }, hashText)).toBe(false);
  });

  test("covers everything else as before, and no order of members", () => {
    expect(matchesApproval({ ...approvedNewer, extras: from('{"a":"y","b":[1]}') }, hashText)).toBe(true);
    expect(matchesApproval({ ...approvedNewer, url: `${newer.url}/7` }, hashText)).toBe(false);
    const text = { ...newer, body: "a", extras: from('{"bodyKind":"text","a":"y"}') };
    const approvedText = { ...text, approvedDigest: requestDigest(text, hashText) };
    expect(matchesApproval({ ...approvedText, extras: from('{"bodyKind":"form","a":"y"}') }, hashText)).toBe(false);
  });

  test("is another one than that of earlier versions, whose approvals hold for nothing that they didn't know", () => {
    for (const known of [{}, { bodyKind: "text" as const }]) {
      const before = anAction({ approve: true, body: "a", extras: known });
      const approvedDigest = requestDigest(before, hashText);
      const altered = { ...before, approvedDigest, extras: { ...known, ...from('{"a":"y"}') } };
      expect(matchesApproval({ ...before, approvedDigest }, hashText)).toBe(true);
      expect(matchesApproval(altered, hashText)).toBe(false);
    }
  });
});
