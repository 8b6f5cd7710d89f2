import { SIGNING_USES, type SigningUse } from "../core/account-store.ts";
import Type, { type Static } from "typebox";
import type { FirstStepStore } from "../core/activity-store.ts";
import type { ActionStore } from "../core/store.ts";
import { sentBody } from "../core/body.ts";
import { invalidFields } from "../core/domain-error.ts";
import { stringMap, url, choice, plainText, yesNo } from "../api/schema-helpers.ts";
import { normalTarget } from "../core/target.ts";
import type { Clock } from "../core/clock.ts";
import { ACTION_ID } from "../core/ids.ts";
import { authorize, type Caller } from "../core/roles.ts";
import {
  checkSignature,
  type ReceivedMessage,
  SIGNATURE_HEADERS,
  SIGNATURE_PROBLEMS,
  SIGNATURE_WARNINGS,
  type SignatureCheck,
  type SignatureProblem,
  type SigningCandidate,
} from "./signature-check.ts";
import { nullIfUnreadable, throwExplained, type SigningSecrets } from "./signing-secrets.ts";

interface VerifyDeps {
  readonly signingSecrets: Pick<SigningSecrets, "find">;
  readonly actions: Pick<ActionStore, "find">;
  readonly firstSteps: Pick<FirstStepStore, "add">;
  readonly clock: Pick<Clock, "now">;
}

/** Answers owners why a receiver can't verify what it got. It reveals no secret and makes no signature. */
export type VerifyService = ReturnType<typeof createVerifyService>;

export function createVerifyService({ signingSecrets, actions, firstSteps, clock }: VerifyDeps) {
  const secretsOf = async (accountId: string, origin: string, use: SigningUse, now: Date) => {
    const found = await signingSecrets.find(accountId, origin, now, use).catch(throwExplained);
    const { secret, previous, callsUntil } = found;
    const other = use === "calls" ? "callbacks" : "calls";
    // An unreadable secret of the other kind only means that there is one hint less.
    const others = await signingSecrets.find(accountId, origin, now, other).catch(nullIfUnreadable);
    const ofOtherUse =
      others === null ? [] : [others.secret, ...(others.previous === null ? [] : [others.previous.secret])];
    const own: SigningCandidate[] = [{ name: "current", secret, endsAt: null }];
    if (previous !== null) own.push({ name: "previous", secret: previous.secret, endsAt: previous.expiresAt });
    // Callbacks may still be signed with the secrets of calls too.
    if (callsUntil !== null && now < callsUntil) {
      own.push(...ofOtherUse.map((one) => ({ name: "previous", secret: one, endsAt: callsUntil }) as const));
    }
    return { own, ofOtherUse };
  };

  /** What the action of the message's id tells, where no signature matched. */
  const problemsOfAction = async (
    accountId: string,
    { headers, bodies }: ReceivedMessage,
    origin: string,
  ): Promise<readonly SignatureProblem[]> => {
    const id = (headers["webhook-id"] ?? "").trim();
    if (!ACTION_ID.test(id)) {
      const message = "The id is none of a call, which begins with act_. Is it a callback, or of another sender?";
      return [{ code: "unknown_id", message }];
    }
    const action = await actions.find(accountId, id);
    if (action === null) {
      const message = "No action of this account has this id: another account or another Outgate may have signed.";
      return [{ code: "unknown_id", message }];
    }
    const sentTo = normalTarget(action.url)?.origin ?? null;
    if (sentTo !== null && sentTo !== origin) {
      const message = `This call went to ${sentTo}, so that origin’s secret signed it. Behind a proxy, use the origin that Outgate calls.`;
      return [{ code: "other_origin", message }];
    }
    return bodyProblems(Buffer.from(sentBody(action) ?? ""), bodies);
  };

  return {
    /**
     * Whether a signature was made with the secrets of an origin, and if not, why. A match is the account's first verified
     * signature. Takes an origin that `checkOrigin` returned.
     */
    async check(caller: Caller, origin: string, use: SigningUse, message: ReceivedMessage): Promise<SignatureCheck> {
      authorize(caller, "manage");
      const { accountId } = caller;
      const now = clock.now();
      const found = checkSignature(message, await secretsOf(accountId, origin, use, now), now);
      if (found.secret !== null) {
        await firstSteps.add({ accountId, personId: "", step: "signature", at: now });
        return found;
      }
      if (use !== "calls" || !found.problems.some(({ code }) => code === "no_match")) return found;
      const known = await problemsOfAction(accountId, message, origin);
      // They say more than that nothing matched.
      const rest = found.problems.filter(({ code }) => known.length === 0 || code !== "no_match");
      return { ...found, problems: [...known, ...rest] };
    },
  };
}

function bodyProblems(sent: Uint8Array, bodies: readonly Uint8Array[]): readonly SignatureProblem[] {
  if (bodies.some((body) => Buffer.compare(body, sent) === 0)) {
    const message =
      "The body is the one that was sent. So the timestamp, the id or the signature is of another attempt or was changed: take all three headers of one request.";
    return [{ code: "no_match", message }];
  }
  const [body = new Uint8Array()] = bodies;
  const at = sent.findIndex((byte, index) => body[index] !== byte);
  const first = at === -1 ? sent.length : at;
  const message = `The body is not the one that was sent: ${body.length} bytes instead of ${sent.length}; byte ${first + 1} is the first that differs. Verify the raw bytes, before any parser.`;
  return [{ code: "body_changed", message }];
}

const text = (description: string) =>
  Type.Refine(
    Type.String({ description, examples: ['{"order":7}'] }),
    (value) => value.isWellFormed(),
    () => "Must be well-formed Unicode: give other bytes as base64.",
  );

/** What was received, as the API takes it. */
export const VerifySignature = Type.Object(
  {
    headers: stringMap(
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
    text: Type.Optional(text("The raw body, where it is UTF-8. Leave out both where there is none.")),
    base64: Type.Optional(plainText("Instead of text: the raw body in standard base64.", "eyJvcmRlciI6N30=")),
  },
  { title: "VerifySignature", additionalProperties: false, description: "A call or callback as it was received." },
);

export type VerifySignature = Static<typeof VerifySignature>;

const finding = <Code extends string>(codes: readonly Code[], title: string, description: string) =>
  Type.Object(
    {
      code: Type.Enum([...codes], { type: "string", description: "What it is.", examples: [codes[0] ?? ""] }),
      message: plainText(
        "What it means and what to do.",
        "The header webhook-id is missing. A proxy or framework may have dropped it.",
      ),
    },
    { title, description },
  );

export const SignatureCheckJson = Type.Object(
  {
    origin: url("The origin whose secrets were compared.", "https://api.example.com"),
    for: choice(SIGNING_USES, "What they sign.", "calls"),
    valid: yesNo("Whether one of the signatures matches.", false),
    secret: Type.Union([Type.Enum(["current", "previous"], { type: "string" }), Type.Null()], {
      description: "The secret that made it; null: none.",
      examples: ["current"],
    }),
    problems: Type.Array(finding(SIGNATURE_PROBLEMS, "SignatureProblem", "A reason why it doesn't match."), {
      description: "Why it doesn't match, the most likely reason first; empty if it does.",
    }),
    warnings: Type.Array(
      finding(SIGNATURE_WARNINGS, "SignatureWarning", "A reason why a receiver may refuse a signature that matches."),
      { description: "Why a receiver may refuse it all the same." },
    ),
  },
  { title: "SignatureCheck", description: "Whether a signature matches, and if not, why. It holds no secret." },
);

export type SignatureCheckJson = Static<typeof SignatureCheckJson>;

/** A check as the API shows it. */
export function serializeCheck(
  { origin, use }: { readonly origin: string; readonly use: SigningUse },
  { secret, problems, warnings }: SignatureCheck,
): SignatureCheckJson {
  return {
    origin,
    for: use,
    valid: secret !== null,
    secret,
    problems: [...problems],
    warnings: [...warnings],
  };
}

/** The message in a body that has the right form. Throws `validation_error`. */
export function receivedIn({ headers, text: plain, base64 }: VerifySignature): ReceivedMessage {
  const issues = [];
  if (plain !== undefined && base64 !== undefined) {
    issues.push({ field: "base64", message: "Give text or base64, not both." });
  }
  const bytes = Buffer.from(base64 ?? plain ?? "", base64 === undefined ? "utf8" : "base64");
  if (base64 !== undefined && bytes.toString("base64") !== base64) {
    issues.push({
      field: "base64",
      message: "Must be base64 with padding, without white space (RFC 4648, section 4).",
    });
  }
  const given = readHeaders(headers);
  for (const name of given.repeated) issues.push({ field: `headers.${name}`, message: "Is given in two spellings." });
  if (issues.length > 0) throw invalidFields(issues);
  return { headers: given.headers, bodies: [bytes] };
}

function readHeaders(given: Readonly<Record<string, string>>) {
  const found = SIGNATURE_HEADERS.map(
    (name) => [name, Object.entries(given).filter(([one]) => one.toLowerCase() === name)] as const,
  );
  const entries = found.map(([name, all]) => [name, all[0]?.[1] ?? null] as const);
  return {
    // Safe: it has every header.
    headers: Object.fromEntries(entries) as ReceivedMessage["headers"],
    repeated: found.filter(([, all]) => all.length > 1).map(([name]) => name),
  };
}
