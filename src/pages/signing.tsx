/** @jsxImportSource hono/jsx */
import { Button, Field, FormToken } from "./form.tsx";
import { UntrustedText } from "./code.tsx";
import { Layout, render, actionPath } from "./layout.tsx";
import type { SigningUse } from "../crypto/secrets.ts";
import { Notice, Time } from "./parts.tsx";
import type { PageUser } from "./words.ts";
import type { Action } from "../actions/action.ts";
import { sentUrl } from "../outbound/target.ts";
import { Answer, RequestView } from "./request.tsx";
import { DecisionForm } from "./decide.tsx";

export interface OriginFormProps {
  readonly user: PageUser;
  readonly origin?: string;
  readonly use?: SigningUse;
  readonly problem?: string | null;
}

/** Asks for an origin. A POST, so that the secret is in no URL. */
export function OriginForm({ user, origin = "", use = "calls", problem = null }: OriginFormProps) {
  return (
    <form method="post" action="/settings/signing-secret" class="ask">
      <FormToken user={user} />
      <Field
        name="origin"
        label="Origin"
        value={origin}
        hint="Scheme, host and port of a target, like https://api.example.com."
        isRequired
        autocomplete="off"
        problem={problem}
      />
      <label class="check">
        <input type="checkbox" name="for" value="callbacks" checked={use === "callbacks"} />
        <span>Secret for callbacks</span>
      </label>
      <Button>Show secret</Button>
    </form>
  );
}

/** The form on a page of its own. */
export function originPage(props: OriginFormProps): string {
  return render(
    <Layout title="Signing secret" place="Settings" user={props.user}>
      <Head title="Signing secret" />
      <section class="card" aria-label="Which one">
        <OriginForm {...props} />
      </section>
    </Layout>,
  );
}

export interface ShownSecret {
  readonly origin: string;
  readonly use: SigningUse;
  readonly secret: string;
  /** The previous secret, while it is valid. */
  readonly previous: { readonly secret: string; readonly expiresAt: Date } | null;
}

export interface SecretPageProps {
  readonly user: PageUser;
  readonly shown: ShownSecret;
  readonly isRotated?: boolean;
}

/** The secret of an origin, with a button to rotate it. */
export function secretPage({
  user,
  shown: { origin, use, secret, previous },
  isRotated = false,
}: SecretPageProps): string {
  return render(
    <Layout title="Signing secret" place="Settings" user={user}>
      <Head title={TITLES[use]} origin={origin} />
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
        <form method="post" action="/settings/rotation">
          <FormToken user={user} />
          <input type="hidden" name="origin" value={origin} />
          <input type="hidden" name="for" value={use} />
          <div class="buttons">
            <Button look="plain">Rotate secret…</Button>
          </div>
        </form>
      </section>
    </Layout>,
  );
}

const TITLES = {
  calls: "Signing secret of calls",
  callbacks: "Signing secret of callbacks",
} as const satisfies Record<SigningUse, string>;

export interface AskRotationProps {
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
    <Layout title={title} place="Settings" user={user}>
      <Head title={title} origin={origin} />
      {isLate ? <Notice tone="wait">It was rotated a moment ago. Nothing else was changed.</Notice> : null}
      <form method="post" action="/settings/rotation" class="card">
        <FormToken user={user} />
        <input type="hidden" name="origin" value={origin ?? ""} />
        <input type="hidden" name="for" value={use} />
        <input type="hidden" name="seen" value={seen} />
        <p>
          For 24 hours, every {WHAT_IS_SIGNED[origin === null ? "all" : use]} carries two signatures, with the new and
          with the previous secret. Use this time to give the new one to{" "}
          {origin === null ? "every target" : "the target"}.
        </p>
        {endsNow === null ? null : (
          <Notice tone="bad">
            It was rotated recently. The previous secret is valid until <Time at={endsNow} />; rotating again ends it
            immediately.
          </Notice>
        )}
        <div class="choices">
          <Button look="bad">Rotate</Button>
          <a class="button button-plain" href="/settings">
            Cancel
          </a>
        </div>
      </form>
    </Layout>,
  );
}

const WHAT_IS_SIGNED = { calls: "call", callbacks: "callback", all: "call and callback" } as const;

export function rotatedPage({ user, until }: { readonly user: PageUser; readonly until: Date }): string {
  return render(
    <Layout title="All secrets rotated" place="Settings" user={user}>
      <Head title="All secrets rotated" />
      <Notice tone="good">
        The previous secrets are valid until <Time at={until} />.
      </Notice>
      <section class="card" aria-label="Which one">
        <OriginForm user={user} />
      </section>
    </Layout>,
  );
}

function Head({ title, origin = null }: { readonly title: string; readonly origin?: string | null }) {
  return (
    <div class="head">
      <p class="small">
        <a href="/settings">Settings</a>
      </p>
      <h1>{title}</h1>
      {origin === null ? null : (
        <p>
          <UntrustedText text={origin} />
        </p>
      )}
    </div>
  );
}

/** Request and response with secrets, in the response to a form. */
export function revealedPage({ action, user }: { readonly action: Action; readonly user: PageUser }): string {
  const isHeld = action.status === "awaiting_approval";
  return render(
    <Layout title={`Secrets of ${action.method} ${action.host}`} place="Actions" user={user}>
      <div class="head">
        <p class="small">
          <a href={actionPath(action.id)}>Hide secrets</a>
        </p>
        <h1>
          {action.method} {action.host}
        </h1>
      </div>
      <Notice tone="wait">Secrets are shown in full. They are hidden again when you leave this page.</Notice>
      <RequestView action={{ ...action, url: sentUrl(action.url) }} tellsCallback={isHeld} isWhole={isHeld} />
      <Answer action={action} />
      {isHeld ? (
        <section class="card" aria-labelledby="decision">
          <h2 id="decision">Your decision</h2>
          <DecisionForm user={user} run={action.run} path={actionPath(action.id)} about={action} />
        </section>
      ) : null}
    </Layout>,
  );
}
