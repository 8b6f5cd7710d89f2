/** @jsxImportSource hono/jsx */
import type { SigningUse } from "../core/account-store.ts";
import type { KnownOrigin } from "../accounts/signing-secrets.ts";
import { type ReceivedMessage, SIGNATURE_HEADERS, type SignatureCheck } from "../accounts/verify-signature.ts";
import { Button, Field, PostForm } from "../ui/form.tsx";
import { Card, Notice, UntrustedText } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";
import { isJsonObject } from "../api/schema-helpers.ts";
import type { Form } from "../http/request.ts";

export const CHECK_PATH = "/settings/signing/check";

/** What somebody typed into the form. */
export interface TypedCheck {
  readonly origin: string;
  readonly use: SigningUse;
  readonly headers: string;
  readonly body: string;
  readonly isBase64: boolean;
}

const NOT_TYPED: TypedCheck = { origin: "", use: "calls", headers: "", body: "", isBase64: false };

export interface CheckFormProps {
  readonly user: PageUser;
  readonly typed?: TypedCheck | undefined;
  /** Where the newest call or callback went: most likely what is asked about. */
  readonly newest?: Pick<KnownOrigin, "origin" | "use"> | undefined;
  /** What was found; null: nothing was checked yet. */
  readonly found?: SignatureCheck | null;
  /** What is wrong with a field. */
  readonly problems?: Readonly<Partial<Record<"origin" | "headers" | "body", string>>>;
}

/** A form that says whether a signature matches, and if not, why. It shows no secret. */
export function CheckForm({ user, newest, found = null, problems = {}, ...props }: CheckFormProps) {
  const typed = props.typed ?? { ...NOT_TYPED, origin: newest?.origin ?? "", use: newest?.use ?? "calls" };
  return (
    <Card id="check" title="Check a signature">
      <p class="quiet">
        Does a receiver refuse a call or callback? Paste what it got to see why. Nothing is stored.{" "}
        <a href="/docs/verify#when-verification-fails">When verification fails</a>
      </p>
      {found === null ? null : <Found found={found} />}
      <PostForm user={user} action={`${CHECK_PATH}#check`}>
        <Field
          name="origin"
          label="Origin"
          value={typed.origin}
          hint="Where Outgate sent it: scheme, host and port, like https://api.example.com."
          required
          autocomplete="off"
          problem={problems.origin ?? null}
          idSuffix="-check"
        />
        <label class="check">
          <input type="checkbox" name="for" value="callbacks" checked={typed.use === "callbacks"} />
          <span>It is a callback</span>
        </label>
        <Field
          name="headers"
          label="Headers"
          type="lines"
          value={typed.headers}
          hint="Those that begin with webhook-, one a line, or all of them as JSON."
          required
          autocomplete="off"
          problem={problems.headers ?? null}
        />
        <Field
          name="body"
          label="Raw body"
          type="code"
          value={typed.body}
          hint="Before any parser. Empty if there is none. Larger than 20 KB: use the API."
          autocomplete="off"
          problem={problems.body ?? null}
        />
        <label class="check">
          <input type="checkbox" name="base64" value="yes" checked={typed.isBase64} />
          <span>The body is base64</span>
        </label>
        <div class="buttons">
          <Button>Check signature</Button>
        </div>
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

/** What the form has. */
export function typedIn(form: Form): TypedCheck {
  return {
    origin: form.get("origin") ?? "",
    use: form.get("for") === "callbacks" ? "callbacks" : "calls",
    headers: form.get("headers") ?? "",
    body: form.get("body") ?? "",
    isBase64: form.get("base64") === "yes",
  };
}

/** Null if the body is not the base64 that it is said to be. */
export function receivedMessage({ headers, body, isBase64 }: TypedCheck): ReceivedMessage | null {
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
