import type { SigningService } from "../accounts/signing-secrets.ts";
import {
  type ReceivedMessage,
  SIGNATURE_HEADERS,
  type SignatureCheck,
  type VerifyService,
} from "../accounts/verify-signature.ts";
import { isJsonObject } from "../api/schema-helpers.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { createPersonRoutes, type Person, type PersonRouteDeps } from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { originOf } from "./settings-routes.ts";
import { CHECK_PATH, type CheckFormProps, type TypedCheck } from "./signature-check.tsx";
import { signingPage } from "./signing.tsx";

interface CheckPageDeps extends PersonRouteDeps {
  readonly signingService: Pick<SigningService, "origins">;
  readonly verifyService: VerifyService;
  readonly clock: Pick<Clock, "now">;
}

/** The form that checks a signature, with the service of POST /v1/signing-secret/verify. */
export function signatureCheckPages({ signingService, verifyService, personOf, formOf, clock }: CheckPageDeps) {
  const html = async (user: Person, check: Omit<CheckFormProps, "user" | "newest">) =>
    signingPage({ user, origins: await signingService.origins(user.caller), now: clock.now(), check });
  return (
    createPersonRoutes(personOf)
      // Where the address of the result is loaded again.
      .get(CHECK_PATH, () => seeOther("own", `${SETTINGS_PATHS.signing}#check`))
      .post(CHECK_PATH, async ({ context, person }) => {
        const typed = typedIn(await formOf(context, person));
        const message = messageOf(typed);
        const origin = originOf(typed.origin);
        if (origin === null || message === null) {
          context.errorCode = "validation_error";
          const problems = {
            ...(origin === null && { origin: "Enter only scheme, host and port, like https://api.example.com." }),
            ...(message === null && { body: "This is not base64. Copy it whole, or untick the box below." }),
          };
          return page("own", await html(person, { typed, problems }), { status: 400 });
        }
        const found: SignatureCheck = await verifyService.check(person.caller, origin, typed.use, message);
        return page("own", await html(person, { typed, found }));
      })
  );
}

function typedIn(form: Form): TypedCheck {
  return {
    origin: form.get("origin") ?? "",
    use: form.get("for") === "callbacks" ? "callbacks" : "calls",
    headers: form.get("headers") ?? "",
    body: form.get("body") ?? "",
    isBase64: form.get("base64") === "yes",
  };
}

/** Null if the body is not the base64 that it is said to be. */
function messageOf({ headers, body, isBase64 }: TypedCheck): ReceivedMessage | null {
  const lines = valuesIn(headers);
  const found = SIGNATURE_HEADERS.map((name) => [name, lines.get(name) ?? null] as const);
  // Safe: it has every header.
  const read = Object.fromEntries(found) as ReceivedMessage["headers"];
  if (isBase64) {
    const text = body.replaceAll(/\s/g, "");
    const bytes = Buffer.from(text, "base64");
    return bytes.toString("base64") === text ? { headers: read, bodies: [bytes] } : null;
  }
  // Browsers send every line break of a text field as CR LF.
  const unix = body.replaceAll("\r\n", "\n");
  return { headers: read, bodies: [...new Set([unix, body])].map((text) => Buffer.from(text)) };
}

/** Headers as people copy them: lines of names and values, perhaps quoted, or the JSON of an object. */
function valuesIn(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(objectIn(text) ?? {})) {
    if (typeof value === "string") values.set(name.toLowerCase(), value);
  }
  if (values.size > 0) return values;
  for (const line of text.split("\n")) {
    for (const name of SIGNATURE_HEADERS) {
      const at = line.toLowerCase().indexOf(name);
      if (at === -1) continue;
      values.set(name, unquoted(line.slice(at + name.length)));
      break;
    }
  }
  return values;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

const AROUND = " \t\r:\"'`,\\";

/** Without the punctuation around a value; base64 has none of it. */
function unquoted(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && AROUND.includes(text.charAt(from))) from += 1;
  while (to > from && AROUND.includes(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}
