/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { SigningSecret } from "../accounts/signing-secrets.ts";
import type { SigningUse } from "../crypto/secrets.ts";
import { Button, Field, OrCancel, PostForm } from "./form.tsx";
import { Layout, render, SETTINGS_LINK } from "./layout.tsx";
import { Notice, PageHead, Time, UntrustedText } from "./parts.tsx";
import type { PageUser } from "./text.ts";

interface OriginFormProps {
  readonly user: PageUser;
  readonly origin?: string;
  readonly use?: SigningUse;
  readonly problem?: string | null;
}

/** Asks for an origin. A POST, so that the secret is in no URL. */
export function OriginForm({ user, origin = "", use = "calls", problem = null }: OriginFormProps) {
  return (
    <PostForm user={user} action="/settings/signing-secret" class="ask">
      <Field
        name="origin"
        label="Origin"
        value={origin}
        hint="Scheme, host and port of a target, like https://api.example.com."
        required
        autocomplete="off"
        problem={problem}
      />
      <label class="check">
        <input type="checkbox" name="for" value="callbacks" checked={use === "callbacks"} />
        <span>Secret for callbacks</span>
      </label>
      <Button>Show secret</Button>
    </PostForm>
  );
}

/** The form on a page of its own. */
export function originPage(props: OriginFormProps): string {
  return render(<OriginPage title="Signing secret" {...props} />);
}

/** After a rotation of all secrets. */
export function rotatedPage({ user, until }: { readonly user: PageUser; readonly until: Date }): string {
  return render(
    <OriginPage title="All secrets rotated" user={user}>
      <Notice tone="good">
        The previous secrets are valid until <Time at={until} />.
      </Notice>
    </OriginPage>,
  );
}

function OriginPage({
  title,
  children,
  ...props
}: OriginFormProps & { readonly title: string; readonly children?: Child }) {
  return (
    <Layout title={title} nav="Settings" user={props.user}>
      <PageHead title={title} back={SETTINGS_LINK} />
      {children}
      <section class="card" aria-label="Which one">
        <OriginForm {...props} />
      </section>
    </Layout>
  );
}

interface SecretPageProps {
  readonly user: PageUser;
  readonly shown: SigningSecret & { readonly use: SigningUse };
  readonly isRotated?: boolean;
}

/** The secret of an origin, with a button to rotate it. */
export function secretPage({ user, shown, isRotated = false }: SecretPageProps): string {
  const { origin, use, secret, previous } = shown;
  return render(
    <Layout title="Signing secret" nav="Settings" user={user}>
      <PageHead title={`Signing secret of ${use}`} back={SETTINGS_LINK}>
        <Origin origin={origin} />
      </PageHead>
      {isRotated ? (
        <Notice tone="good">Secret rotated. Give the new one to the target while both are valid.</Notice>
      ) : null}
      <section class="card" aria-label="Secrets">
        <div class="stack">
          <h2>{previous === null ? "Secret" : "New secret"}</h2>
          <code class="code" data-copy="">
            {secret}
          </code>
        </div>
        {previous === null ? null : (
          <div class="stack">
            <h2>Previous secret</h2>
            <code class="code">{previous.secret}</code>
            <p class="quiet small">
              Valid until <Time at={previous.expiresAt} />.
            </p>
          </div>
        )}
        <PostForm user={user} action="/settings/rotation" fields={fieldsOf(origin, use)}>
          <div class="buttons">
            <Button look="plain">Rotate secret…</Button>
          </div>
        </PostForm>
      </section>
    </Layout>,
  );
}

function Origin({ origin }: { readonly origin: string }) {
  return (
    <p>
      <UntrustedText text={origin} />
    </p>
  );
}

function fieldsOf(origin: string, use: SigningUse) {
  return [
    ["origin", origin],
    ["for", use],
  ] as const;
}

interface AskRotationProps {
  readonly user: PageUser;
  /** Null: all secrets, for calls and callbacks. */
  readonly origin: string | null;
  readonly use: SigningUse;
  /** The state when the question was shown. It is sent back, so that confirming twice rotates once. */
  readonly seen: string;
  /** When the previous secret expires. Another rotation invalidates it immediately. Null if there is none. */
  readonly endsNow: Date | null;
  /** The confirmed question was shown before another rotation. */
  readonly isLate: boolean;
}

/** Asks for confirmation before a rotation. */
export function askRotationPage({ user, origin, use, seen, endsNow, isLate }: AskRotationProps): string {
  const title = origin === null ? "Rotate the secrets of all origins?" : "Rotate this secret?";
  return render(
    <Layout title={title} nav="Settings" user={user}>
      <PageHead title={title} back={SETTINGS_LINK}>
        {origin === null ? null : <Origin origin={origin} />}
      </PageHead>
      {isLate ? <Notice tone="wait">It was rotated a moment ago. Nothing else was changed.</Notice> : null}
      <PostForm
        user={user}
        action="/settings/rotation"
        class="card"
        fields={[...fieldsOf(origin ?? "", use), ["seen", seen]]}
      >
        <p>
          For 24 hours, every {SIGNED[origin === null ? "all" : use]} carries two signatures, with the new and with the
          previous secret. Use this time to give the new one to {origin === null ? "every target" : "the target"}.
        </p>
        {endsNow === null ? null : (
          <Notice tone="bad">
            It was rotated recently. The previous secret is valid until <Time at={endsNow} />; rotating again ends it
            immediately.
          </Notice>
        )}
        <OrCancel href="/settings">
          <Button look="bad">Rotate</Button>
        </OrCancel>
      </PostForm>
    </Layout>,
  );
}

const SIGNED = { calls: "call", callbacks: "callback", all: "call and callback" } as const;
