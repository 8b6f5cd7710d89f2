import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { SIGNING_USES, type SigningUse } from "../core/account-store.ts";
import type { Action } from "../core/action.ts";
import { sentBody } from "../core/body.ts";
import { ACTION_ID } from "../core/ids.ts";
import { jsonIn } from "../core/json.ts";
import { SIGNATURE_HINT_BYTES_MAX, SIGNATURE_TOLERANCE_MS, SIGNATURES_CHECKED_MAX } from "../core/limits.ts";
import { normalTarget } from "../core/target.ts";
import { isSignedBy, SIGNATURE_BYTES } from "../crypto/secrets.ts";
import {
  type OriginSecret,
  checkOrigin,
  nullIfUnreadable,
  type SigningService,
  SigningSecretParameters,
  throwExplained,
} from "./signing-secrets.ts";
import { invalidFields } from "../core/domain-error.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import type { AppPart } from "../runtime/app-context.ts";

/** The headers of Standard Webhooks that a signature covers or is in. */
export const SIGNATURE_HEADERS = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;

/** A call or callback as somebody received it. */
export interface ReceivedMessage {
  /** Null: the header was not there. */
  readonly headers: Readonly<Record<(typeof SIGNATURE_HEADERS)[number], string | null>>;
  /** The body, in two spellings if a form may have changed its line ends. Either may match. */
  readonly bodies: readonly Uint8Array[];
}

const findingSchema = <Code extends string>(codes: readonly [Code, ...Code[]], title: string, description: string) =>
  t.answerObject(title, description, {
    code: t.choice(codes, "What it is.", codes[0]),
    message: t.plainText(
      "What it means and what to do.",
      "The header webhook-id is missing. A proxy or framework may have dropped it.",
    ),
  });

const SignatureProblem = findingSchema(
  [
    "missing_header",
    "bad_timestamp",
    "bad_signature",
    "unknown_version",
    "wrong_length",
    "other_use",
    "other_origin",
    "unknown_id",
    "body_changed",
    "no_match",
  ],
  "SignatureProblem",
  "A reason why it doesn't match.",
);

type SignatureProblem = Static<typeof SignatureProblem>;

const SignatureWarning = findingSchema(
  ["old_timestamp", "future_timestamp", "previous_secret", "ended_secret"],
  "SignatureWarning",
  "A reason why a receiver may refuse a signature that matches.",
);

type SignatureWarning = Static<typeof SignatureWarning>;

export const SignatureCheckJson = t.answerObject(
  "SignatureCheck",
  "Whether a signature matches, and if not, why. It holds no secret.",
  {
    origin: t.url("The origin whose secrets were compared.", "https://api.example.com"),
    for: t.choice(SIGNING_USES, "What they sign.", "calls"),
    valid: t.yesNo("Whether one of the signatures matches.", false),
    secret: Type.Union([Type.Enum(["current", "previous"], { type: "string" }), Type.Null()], {
      description: "The secret that made it; null: none.",
      examples: ["current"],
    }),
    problems: Type.Array(SignatureProblem, {
      description: "Why it doesn't match, the most likely reason first; empty if it does.",
    }),
    warnings: Type.Array(SignatureWarning, { description: "Why a receiver may refuse it all the same." }),
  },
);

/** What is known about a signature. It holds no secret and no signature. */
export type SignatureFindings = Pick<Static<typeof SignatureCheckJson>, "secret" | "problems" | "warnings">;

const finding = <const Code extends string>(code: Code, message: string) => ({ code, message });

interface SignatureSecrets {
  readonly own: readonly OriginSecret[];
  /** The secrets that sign the other kind (callbacks instead of calls) to the same origin. */
  readonly ofOtherUse: readonly string[];
}

/** Whether a secret made one of the signatures and, if not, why. Compares in constant time. */
export function checkSignature(message: ReceivedMessage, secrets: SignatureSecrets, now: Date): SignatureFindings {
  const { headers, bodies } = message;
  const failed = (problems: SignatureProblem[], warnings: SignatureWarning[]) => {
    return { secret: null, problems, warnings };
  };
  const missing = SIGNATURE_HEADERS.filter((name) => (headers[name] ?? "").trim() === "").map((name) =>
    finding("missing_header", `The header ${name} is missing. A proxy or framework may have dropped it.`),
  );
  const seconds = secondsIn((headers["webhook-timestamp"] ?? "").trim());
  const { signatures, problems } = signaturesIn(headers["webhook-signature"] ?? "");
  if (missing.length > 0 || typeof seconds === "object" || signatures.length === 0) {
    const badTimes = typeof seconds === "object" && headers["webhook-timestamp"] !== null ? [seconds] : [];
    return failed([...missing, ...badTimes, ...(signatures.length === 0 ? problems : [])], []);
  }

  const id = idIn(message);
  const isSigned = (secret: string, some: readonly Uint8Array[]) =>
    some.some((body) => isSignedBy(secret, { id, timestampSeconds: seconds, body }, signatures));
  const warnings = timeWarnings(seconds, now);
  const made = secrets.own.find(({ secret }) => isSigned(secret, bodies));
  if (made !== undefined) {
    const secret = made.endsAt === null ? "current" : "previous";
    return { secret, problems: [], warnings: [...warnings, ...endWarnings(made, now)] };
  }
  if (secrets.ofOtherUse.some((secret) => isSigned(secret, bodies))) return failed([OTHER_USE], warnings);
  const change = bodies
    .flatMap(likelyChanges)
    .find(({ signed }) => secrets.own.some(({ secret }) => isSigned(secret, [signed])));
  if (change !== undefined) return failed([finding("body_changed", change.message)], warnings);
  return failed([NO_MATCH, ...problems], warnings);
}

const OTHER_USE = finding(
  "other_use",
  "It was signed with the other secret of this origin: calls and callbacks have separate ones. Check it as the other kind, and let the receiver use that secret.",
);

const RAW = "Verify the raw bytes of the body, before any parser.";

const NO_MATCH = finding(
  "no_match",
  `No secret of this origin made this signature: the body, the id or the timestamp is not what was signed, or the origin is another one. ${RAW}`,
);

/** Whole seconds since 1970, or what is wrong. */
function secondsIn(text: string): number | SignatureProblem {
  if (/^(?:0|[1-9]\d{0,10})$/.test(text)) return Number(text);
  const isMilliseconds = /^[1-9]\d{12}$/.test(text);
  const what = isMilliseconds ? "It looks like milliseconds." : "Outgate writes digits only, such as 1772625600.";
  return finding("bad_timestamp", `The header webhook-timestamp must be whole seconds since 1970. ${what}`);
}

/** The `v1` signatures of a header, and what is wrong with the others. */
function signaturesIn(header: string) {
  const parts = header.split(/\s/).filter((part) => part !== "");
  const parsed = parts.slice(0, SIGNATURES_CHECKED_MAX).map(signatureIn);
  return {
    signatures: parsed.filter((one) => one instanceof Uint8Array),
    problems: parsed.filter((one): one is SignatureProblem => !(one instanceof Uint8Array)),
  };
}

function signatureIn(part: string): Uint8Array | SignatureProblem {
  const comma = part.indexOf(",");
  if (comma === -1) {
    return finding("bad_signature", "A signature has no version: the header must have `v1,` before the base64.");
  }
  if (part.slice(0, comma) !== "v1") {
    return finding("unknown_version", "A signature has an unknown version: Outgate signs with `v1` (HMAC-SHA256).");
  }
  const base64 = part.slice(comma + 1);
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length !== SIGNATURE_BYTES) {
    const size = `A signature has ${bytes.length} bytes after decoding its base64, and must have ${SIGNATURE_BYTES}`;
    return finding("wrong_length", `${size}: it was cut or is not HMAC-SHA256.`);
  }
  // The decoder skips unknown characters and takes base64url, which other decoders refuse.
  if (bytes.toString("base64") === base64) return bytes;
  return finding("bad_signature", "A signature is not standard base64 with padding.");
}

function timeWarnings(seconds: number, now: Date): SignatureWarning[] {
  const ageMs = now.getTime() - seconds * 1_000;
  const minutes = `${SIGNATURE_TOLERANCE_MS / 60_000} minutes`;
  if (Math.abs(ageMs) <= SIGNATURE_TOLERANCE_MS) return [];
  const old = `It was signed more than ${minutes} ago. A receiver should refuse it by now, as a repeat.`;
  const early = `Its timestamp is more than ${minutes} ahead of this server’s clock. A receiver should refuse it.`;
  return [ageMs > 0 ? finding("old_timestamp", old) : finding("future_timestamp", early)];
}

function endWarnings({ endsAt }: OriginSecret, now: Date): SignatureWarning[] {
  if (endsAt === null) return [];
  const end = endsAt.toISOString();
  const ended = `It was made with the previous secret, which expired at ${end}. Give the receiver the current one.`;
  const ends = `It was made with the previous secret, which signs until ${end}. Give the receiver the current one too.`;
  return [now >= endsAt ? finding("ended_secret", ended) : finding("previous_secret", ends)];
}

/** The bodies that may have been signed if this one was changed in a common way, with what happened to it. */
function likelyChanges(body: Uint8Array) {
  if (body.length > SIGNATURE_HINT_BYTES_MAX) return [];
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const changes = [
    ["", "The signature is that of a message without a body, and a body was given."],
    [text.replace(/\r?\n$/, ""), `The body has a line break at its end that was not signed. ${RAW}`],
    [`${text}\n`, `The line break at the end of the body is missing. ${RAW}`],
    [text.replaceAll("\r\n", "\n"), `The body has CR LF where LF was signed. ${RAW}`],
    [text.replace(/^\uFEFF/, ""), `The body begins with a byte-order mark that was not signed. ${RAW}`],
    [compactJson(text), `The JSON was written again, with other white space than what was signed. ${RAW}`],
  ] as const;
  return changes
    .filter(([signed]) => signed !== text)
    .map(([signed, message]) => ({ signed: Buffer.from(signed), message }));
}

/** A JSON text without white space; any other text as it is. */
function compactJson(text: string): string {
  const value = jsonIn(text);
  return value === undefined ? text : JSON.stringify(value);
}

/** The id of the message, which is that of the action if it is a call. */
function idIn({ headers }: ReceivedMessage): string {
  return (headers["webhook-id"] ?? "").trim();
}

/** Why no secret of this origin made a call, by its action; null: the account has none with the call's id. */
function problemOfAction(message: ReceivedMessage, origin: string, action: Action | null): SignatureProblem {
  if (!ACTION_ID.test(idIn(message))) {
    return finding(
      "unknown_id",
      "This is not the id of a call: those begin with act_. Is it a callback, or from another sender?",
    );
  }
  if (action === null) {
    return finding(
      "unknown_id",
      "No action of this account has this id: another account or another Outgate may have signed.",
    );
  }
  const sentTo = normalTarget(action.url)?.origin ?? null;
  if (sentTo !== null && sentTo !== origin) {
    return finding(
      "other_origin",
      `This call went to ${sentTo}, so that origin’s secret signed it. Behind a proxy, use the origin that Outgate calls.`,
    );
  }
  const sent = Buffer.from(sentBody(action) ?? "");
  if (message.bodies.some((body) => Buffer.compare(body, sent) === 0)) {
    return finding(
      "no_match",
      "The body is the one that was sent. So the timestamp, the id or the signature is of another attempt or was changed: take all three headers of one request.",
    );
  }
  const [body = new Uint8Array()] = message.bodies;
  const at = sent.findIndex((byte, index) => body[index] !== byte);
  const first = at === -1 ? sent.length : at;
  return finding(
    "body_changed",
    `The body is not the one that was sent: ${body.length} bytes instead of ${sent.length}; byte ${first + 1} is the first that differs. Verify the raw bytes, before any parser.`,
  );
}

/** Answers owners why a receiver can't verify what it got. It reveals no secret and makes no signature. */
type VerifyService = ReturnType<typeof createVerifyService>;

export function createVerifyService(
  { store: { actions, firstSteps }, clock }: AppPart<"clock", "actions" | "firstSteps">,
  signing: Pick<SigningService, "find">,
) {
  return {
    /** Checks a message against the secrets of an origin (`checkOrigin`). A match is a first step of the account. */
    async check(caller: Caller, origin: string, use: SigningUse, message: ReceivedMessage): Promise<SignatureFindings> {
      authorize(caller, "manage");
      const { accountId } = caller;
      const now = clock.now();
      const own = await signing.find(accountId, origin, now, use).catch(throwExplained);
      const otherUse = use === "calls" ? "callbacks" : "calls";
      // An unreadable secret of the other kind only means one hint less.
      const others = (await signing.find(accountId, origin, now, otherUse).catch(nullIfUnreadable)) ?? [];
      const found = checkSignature(message, { own, ofOtherUse: others.map(({ secret }) => secret) }, now);
      if (found.secret !== null) {
        await firstSteps.add({ accountId, personId: "", step: "signature", at: now });
        return found;
      }
      if (use !== "calls" || !found.problems.some(({ code }) => code === "no_match")) return found;
      const id = idIn(message);
      const action = ACTION_ID.test(id) ? await actions.find(accountId, id) : null;
      // This says more than that nothing matched.
      const rest = found.problems.filter(({ code }) => code !== "no_match");
      return { ...found, problems: [problemOfAction(message, origin, action), ...rest] };
    },
  };
}

export const VerifySignatureBody = t.requestObject("VerifySignature", "A call or callback as it was received.", {
  headers: t.stringMap(
    "The headers as they arrived, with names in any case. webhook-id, webhook-timestamp and webhook-signature are read, others ignored.",
    {
      examples: [
        {
          "webhook-id": "act_01kjwa5v00e7v8c9x2m4n6p8qr",
          "webhook-timestamp": "1772625600",
          "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        },
      ],
    },
  ),
  text: Type.Optional(
    Type.Refine(
      t.plainText("The raw body, where it is UTF-8. Leave out both where there is none.", '{"order":7}'),
      (text) => text.isWellFormed(),
      () => "Must be well-formed Unicode: give other bytes as base64.",
    ),
  ),
  base64: Type.Optional(t.plainText("Instead of text: the raw body in standard base64.", "eyJvcmRlciI6N30=")),
});

type VerifySignatureBody = Static<typeof VerifySignatureBody>;

/** The message in a body that has the right form. Throws `validation_error`. */
function receivedIn({ headers, text: plain, base64 }: VerifySignatureBody): ReceivedMessage {
  const issues = [];
  if (plain !== undefined && base64 !== undefined) {
    issues.push({ field: "base64", message: "Give text or base64, not both." });
  }
  const bytes = Buffer.from(base64 ?? plain ?? "", base64 === undefined ? "utf8" : "base64");
  if (base64 !== undefined && bytes.toString("base64") !== base64) {
    const message = "Must be base64 with padding, without white space (RFC 4648, section 4).";
    issues.push({ field: "base64", message });
  }
  const received = SIGNATURE_HEADERS.map((name) => {
    const values = Object.entries(headers).filter(([one]) => one.toLowerCase() === name);
    if (values.length > 1) issues.push({ field: `headers.${name}`, message: "Is given in two spellings." });
    return [name, values[0]?.[1] ?? null] as const;
  });
  if (issues.length > 0) throw invalidFields(issues);
  // Safe: it has every header.
  return { headers: Object.fromEntries(received) as ReceivedMessage["headers"], bodies: [bytes] };
}

export function verifyRoutes({ verifyService }: { readonly verifyService: VerifyService }) {
  return createApiRoutes().post(
    "/v1/signing-secret/verify",
    async ({ caller, query: { origin, for: use = "calls" }, body }) => {
      const [checked, message] = [checkOrigin(origin), receivedIn(body)];
      const found = await verifyService.check(caller, checked, use, message);
      return jsonResponse({ origin: checked, for: use, valid: found.secret !== null, ...found });
    },
    operation({
      operationId: "verifySignature",
      permission: "manage",
      summary: "Check why a receiver can't verify a signature",
      description: "Says whether a signature that was received matches, with which secret, and if not, why.",
      notes: [
        "It shows no secret and makes no signature. Nothing of the request is stored.",
        "A timestamp beyond the tolerance of five minutes is a warning here; a receiver should refuse it.",
      ],
      query: SigningSecretParameters,
      body: jsonBody(VerifySignatureBody),
      answers: { 200: { description: "What was found, also where nothing matches.", schema: SignatureCheckJson } },
    }),
  );
}
