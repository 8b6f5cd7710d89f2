import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { checkSignature, type ReceivedMessage } from "../../src/accounts/signature-check.ts";
import type { OriginSecret } from "../../src/accounts/signing-secrets.ts";
import { SIGNATURES_CHECKED_MAX } from "../../src/core/limits.ts";
import { sign, signingSecret } from "../../src/crypto/secrets.ts";
import { NOON, later } from "../support/factory.ts";

const ORIGIN = "https://api.example.com";

const secretOf = (byte: number, use: "calls" | "callbacks" = "calls") =>
  signingSecret(new Uint8Array(32).fill(byte), ORIGIN, use);

const CURRENT: OriginSecret = { secret: secretOf(1), endsAt: null };

const PREVIOUS: OriginSecret = { secret: secretOf(2), endsAt: later(3_600_000) };

const SECRETS = { own: [CURRENT, PREVIOUS], ofOtherUse: [secretOf(1, "callbacks")] };

const SECONDS = NOON.getTime() / 1_000;

const BODY = '{"order":7,"note":"a\\nb"}';

interface Change {
  readonly secret?: string;
  readonly seconds?: number;
  readonly signed?: string;
  readonly received?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
}

/** A message that was signed rightly, but for what is changed. */
function received({
  secret = CURRENT.secret,
  seconds = SECONDS,
  signed = BODY,
  received: got = signed,
  headers,
}: Change) {
  const right = {
    "webhook-id": "act_1",
    "webhook-timestamp": String(seconds),
    "webhook-signature": sign(secret, { id: "act_1", timestampSeconds: seconds, body: signed }),
  };
  return { headers: { ...right, ...headers }, bodies: [Buffer.from(got)] } satisfies ReceivedMessage;
}

const checked = (change: Change) => checkSignature(received(change), SECRETS, NOON);

interface Codes {
  readonly secret: string | null;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

const codesOf = (change: Change): Codes => {
  const { secret, problems, warnings } = checked(change);
  return { secret, problems: problems.map(({ code }) => code), warnings: warnings.map(({ code }) => code) };
};

const MATCH: Codes = { secret: "current", problems: [], warnings: [] };

test("a right signature matches, alone and beside others, and with blanks around the headers", () => {
  expect(codesOf({})).toEqual(MATCH);
  const right = received({}).headers["webhook-signature"];
  for (const signature of [`v1,AAAA ${right}`, `${right} v2,x`, ` ${right}\r`, `v1a,abc ${right}`]) {
    expect(codesOf({ headers: { "webhook-signature": signature } })).toEqual(MATCH);
  }
  expect(codesOf({ headers: { "webhook-id": " act_1 ", "webhook-timestamp": ` ${SECONDS}` } })).toEqual(MATCH);
  expect(codesOf({ signed: "" })).toEqual(MATCH);
  const late = "v2,x ".repeat(SIGNATURES_CHECKED_MAX) + right;
  expect(codesOf({ headers: { "webhook-signature": late } }).secret).toBeNull();
});

test("the previous secret matches with a warning, also when it has ended", () => {
  const previous = { secret: "previous", problems: [] };
  expect(codesOf({ secret: PREVIOUS.secret })).toEqual({ ...previous, warnings: ["previous_secret"] });
  const ended = { own: [CURRENT, { ...PREVIOUS, endsAt: NOON }], ofOtherUse: [] };
  const found = checkSignature(received({ secret: PREVIOUS.secret }), ended, NOON);
  expect([found.secret, found.warnings[0]?.code]).toEqual(["previous", "ended_secret"]);
});

test("a timestamp beyond five minutes is a warning", () => {
  expect(codesOf({ seconds: SECONDS - 300 })).toEqual(MATCH);
  expect(codesOf({ seconds: SECONDS + 300 })).toEqual(MATCH);
  expect(codesOf({ seconds: SECONDS - 301 })).toEqual({ ...MATCH, warnings: ["old_timestamp"] });
  expect(codesOf({ seconds: SECONDS + 301 })).toEqual({ ...MATCH, warnings: ["future_timestamp"] });
});

const digest = received({}).headers["webhook-signature"].slice(3);

describe("what is wrong is said:", () => {
  test.each([
    ["missing_header", { "webhook-id": null }],
    ["missing_header", { "webhook-signature": " " }],
    ["bad_timestamp", { "webhook-timestamp": "yesterday" }],
    ["bad_timestamp", { "webhook-timestamp": String(NOON.getTime()) }],
    ["bad_timestamp", { "webhook-timestamp": "1e9" }],
    ["bad_timestamp", { "webhook-timestamp": "-1" }],
    ["bad_signature", { "webhook-signature": digest }],
    ["unknown_version", { "webhook-signature": `v2,${digest}` }],
    ["wrong_length", { "webhook-signature": `v1,${digest.slice(0, 20)}` }],
    ["bad_signature", { "webhook-signature": `v1,${digest.replace("=", "")}` }],
    ["no_match", { "webhook-id": "act_2" }],
    ["no_match", { "webhook-timestamp": String(SECONDS + 1) }],
  ] as const)("%s of %j", (code, headers) => {
    expect(codesOf({ headers })).toMatchObject({ secret: null, problems: [code] });
  });

  test("the secret of the other kind", () => {
    expect(codesOf({ secret: secretOf(1, "callbacks") }).problems).toEqual(["other_use"]);
    expect(codesOf({ secret: secretOf(9) }).problems).toEqual(["no_match"]);
  });

  test.each([
    ["without a body", "", BODY],
    ["line break at its end", BODY, `${BODY}\n`],
    ["at the end of the body is missing", `${BODY}\n`, BODY],
    ["CR LF", "a\nb", "a\r\nb"],
    ["byte-order mark", BODY, `\uFEFF${BODY}`],
    ["written again", BODY, JSON.stringify(JSON.parse(BODY), null, 2)],
  ])("a body with a common change: %s", (words, signed, got) => {
    const { secret, problems } = checked({ signed, received: got });
    expect([secret, problems.map(({ code }) => code)]).toEqual([null, ["body_changed"]]);
    expect(problems[0]?.message).toContain(words);
  });
});

test("nothing that was not signed matches, and no answer holds a secret or the right signature", () => {
  const text = fc.string({ maxLength: 30, unit: "binary" });
  fc.assert(
    fc.property(text, text, text, text, (id, timestamp, signature, body) => {
      const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
      const found = checkSignature({ headers, bodies: [Buffer.from(body)] }, SECRETS, NOON);
      expect(found.secret).toBeNull();
      expect(found.problems.length).toBeGreaterThan(0);
    }),
  );
  const changes = [{ headers: { "webhook-signature": `v1,${digest.slice(0, 20)}` } }, { received: `${BODY} ` }, {}];
  for (const change of changes) {
    const answer = JSON.stringify(checked(change));
    for (const hidden of [digest, CURRENT.secret, PREVIOUS.secret]) expect(answer).not.toContain(hidden);
  }
});
