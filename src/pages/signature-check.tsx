/** @jsxImportSource hono/jsx */
import type { SigningUse } from "../core/account-store.ts";
import type { KnownOrigin } from "../accounts/signing-secrets.ts";
import type { SignatureCheck } from "../accounts/verify-signature.ts";
import { Button, Field, PostForm } from "../ui/form.tsx";
import { Card, Notice, UntrustedText } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";

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
        A receiver refuses a call or callback? Paste what it got and see why. Nothing of it is stored.{" "}
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
