import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import type { SigningUse } from "../core/account-store.ts";
import { invalidFields } from "../core/domain-error.ts";
import { ACTION_ID } from "../core/ids.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import type { AppPart } from "../runtime/app-context.ts";
import {
  checkSignature,
  idIn,
  problemOfAction,
  type ReceivedMessage,
  SIGNATURE_HEADERS,
  type SignatureFindings,
  SignatureCheckJson,
} from "./signature-check.ts";
import {
  checkOrigin,
  nullIfUnreadable,
  type SigningService,
  SigningSecretParameters,
  throwExplained,
} from "./signing-secrets.ts";

/** Answers owners why a receiver can't verify what it got. It reveals no secret and makes no signature. */
export type VerifyService = ReturnType<typeof createVerifyService>;

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
      return jsonOf({ origin: checked, for: use, valid: found.secret !== null, ...found });
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
