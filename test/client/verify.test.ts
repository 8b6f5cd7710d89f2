import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { OutgateError } from "../../src/client/transport.ts";
import { verify } from "../../src/client/verify.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
const BODY = '{"n":1}';

function signed(body: string, { secret = SECRET, at = new Date() } = {}): Record<string, string> {
  return {
    "webhook-id": "act_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": new Webhook(secret).sign("act_1", at, body),
  };
}

function refusalOf(...given: Parameters<typeof verify>): string {
  try {
    verify(...given);
  } catch (error) {
    if (error instanceof OutgateError && error.code === "invalid_signature") return error.message;
    throw error;
  }
  throw new Error("It was verified.");
}

test("a signed request is verified, with its headers and body in any form", () => {
  const headers = signed(BODY);
  const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  for (const given of [headers, new Headers(headers), { "Webhook-Id": ["act_1"], ...headers }]) {
    expect(verify(SECRET, { headers: given, body: BODY })).toEqual({ id: "act_1", timestamp: at });
  }
  expect(verify(SECRET, { headers, body: Buffer.from(BODY) }).id).toBe("act_1");
  expect(verify(SECRET, { headers: signed(""), body: new Uint8Array() }).id).toBe("act_1");
  expect(verify(SECRET, { headers: signed("\uFEFFa"), body: Buffer.from("\uFEFFa") }).id).toBe("act_1");
});

test("any of several secrets may have signed", () => {
  expect(verify([OTHER, SECRET], { headers: signed(BODY), body: BODY }).id).toBe("act_1");
  expect(verify([SECRET, OTHER], { headers: signed(BODY), body: BODY }).id).toBe("act_1");
  expect(refusalOf([OTHER], { headers: signed(BODY), body: BODY })).toContain("No matching signature");
  expect(refusalOf([], { headers: signed(BODY), body: BODY })).toContain("secret");
});

test("what was changed, is old, unsigned or not text is refused", () => {
  const headers = signed(BODY);
  expect(refusalOf(SECRET, { headers, body: '{"n":2}' })).toContain("No matching signature");
  expect(refusalOf(SECRET, { headers: { ...headers, "webhook-id": "act_2" }, body: BODY })).toContain("No matching");
  expect(refusalOf(SECRET, { headers: {}, body: BODY })).toContain("Missing required headers");
  const old = signed(BODY, { at: new Date(Date.now() - 301_000) });
  expect(refusalOf(SECRET, { headers: old, body: BODY })).toContain("too old");
  expect(refusalOf("whsec_%", { headers, body: BODY })).toContain("The secret can't be read");
  expect(refusalOf(SECRET, { headers, body: Uint8Array.of(0xff, 0xfe) })).toContain("not UTF-8");
});
