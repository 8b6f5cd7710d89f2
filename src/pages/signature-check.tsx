/** @jsxImportSource hono/jsx */
import type { KnownOrigin } from "../accounts/signing-secrets.ts";
import { type ReceivedMessage, SIGNATURE_HEADERS, type SignatureCheck } from "../accounts/verify-signature.ts";
import { isJsonObject } from "../api/schema-helpers.ts";
import type { Form } from "../http/request.ts";
import { Check, Field, type FieldProps, PostForm, Submit } from "../ui/form.tsx";
import { Card, Notice, UntrustedText } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";
import { filled, type FormState, problemOf } from "./forms.tsx";

export const CHECK_PATH = "/settings/signing/check";

export interface CheckFormProps {
  readonly user: PageUser;
  readonly typed?: FormState | undefined;
  /** Where the newest call or callback went: most likely what is asked about. */
  readonly newest?: Pick<KnownOrigin, "origin" | "use"> | undefined;
  /** What was found; left out where nothing was checked. */
  readonly found?: SignatureCheck;
}

/** A form that says whether a signature matches, and if not, why. It shows no secret. */
export function CheckForm({ user, newest, found, ...props }: CheckFormProps) {
  const typed = props.typed ?? filled({ origin: newest?.origin ?? "", for: newest?.use ?? "calls" });
  const field = (name: string, more: Pick<FieldProps, "label" | "hint" | "type" | "required" | "idSuffix">) => (
    <Field {...more} name={name} value={typed.values.get(name)} autocomplete="off" problem={problemOf(typed, name)} />
  );
  return (
    <Card id="check" title="Check a signature">
      <p class="quiet">
        Does a receiver refuse a call or callback? Paste what it got to see why. Nothing is stored.{" "}
        <a href="/docs/verify#when-verification-fails">When verification fails</a>
      </p>
      {found === undefined ? null : <Found found={found} />}
      <PostForm user={user} action={`${CHECK_PATH}#check`}>
        {field("origin", {
          label: "Origin",
          hint: "Where Outgate sent it: scheme, host and port, like https://api.example.com.",
          required: true,
          idSuffix: "-check",
        })}
        <Check
          name="for"
          value="callbacks"
          label="It is a callback"
          isChecked={typed.values.get("for") === "callbacks"}
        />
        {field("headers", {
          label: "Headers",
          type: "lines",
          hint: "Those that begin with webhook-, one a line, or all of them as JSON.",
          required: true,
        })}
        {field("body", {
          label: "Raw body",
          type: "code",
          hint: "Before any parser. Empty if there is none. Larger than 20 KB: use the API.",
        })}
        <Check name="base64" label="The body is base64" isChecked={typed.values.get("base64") === "yes"} />
        <Submit>Check signature</Submit>
      </PostForm>
    </Card>
  );
}

function Found({ found: { secret, problems, warnings } }: { readonly found: SignatureCheck }) {
  return (
    <>
      {secret === null ? null : (
        <Notice tone="good">{`The signature matches the ${secret} secret of this origin.`}</Notice>
      )}
      {problems.map(({ code, message }) => (
        // One names the host of an action, which its agent chose.
        <Notice tone="bad">{code === "other_origin" ? <UntrustedText text={message} /> : message}</Notice>
      ))}
      {warnings.map(({ message }) => (
        <Notice tone="wait">{message}</Notice>
      ))}
    </>
  );
}

/** Null if the body is not the base64 that it is said to be. */
export function receivedMessage(form: Form): ReceivedMessage | null {
  const body = form.get("body") ?? "";
  const lines = valuesIn(form.get("headers") ?? "");
  const found = SIGNATURE_HEADERS.map((name) => [name, lines.get(name) ?? null] as const);
  // Safe: it has every header.
  const read = Object.fromEntries(found) as ReceivedMessage["headers"];
  if (form.get("base64") === "yes") {
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
