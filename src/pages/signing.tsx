/** @jsxImportSource hono/jsx */
import type { SigningUse } from "../core/account-store.ts";
import type { KnownOrigin, SigningSecret } from "../accounts/signing-secrets.ts";
import { Copied, EmptyState } from "../ui/controls.tsx";
import { Button, Field, PostForm } from "../ui/form.tsx";
import { EMPTY_FORM, type FormState } from "./forms.tsx";
import { Card, LinkButton, Notice, sentence, Time, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { CheckForm, type CheckFormProps } from "./signature-check.tsx";
import { AgoOr, List, RowAction, SETTINGS_PATHS, settingsFrame } from "./settings-frame.tsx";
import type { PageUser } from "../ui/text.ts";

/** Asks for an origin. A POST, so that the secret is in no URL. */
function OriginForm({ user, typed }: { readonly user: PageUser; readonly typed: FormState }) {
  return (
    <PostForm user={user} action={SECRET_PATH} class="ask">
      <Field
        name="origin"
        label="Origin"
        value={typed.values.get("origin")}
        hint="Scheme, host and port of a target, like https://api.example.com."
        required
        autocomplete="off"
        problem={typed.problem}
      />
      <Button look="plain">Show secret</Button>
      <label class="check">
        <input type="checkbox" name="for" value="callbacks" checked={typed.values.get("for") === "callbacks"} />
        <span>Secret for callbacks</span>
      </label>
    </PostForm>
  );
}

const SECRET_PATH = "/settings/signing-secret";

const ROTATION_PATH = "/settings/rotation";

interface SigningPageProps {
  readonly user: PageUser;
  /** The origin whose secret was asked for. */
  readonly typed?: FormState;
  /** Where calls and callbacks went, the last used first. */
  readonly origins: readonly KnownOrigin[];
  /** Until when the secrets before a rotation of all are valid; null: there was none just now. */
  readonly rotatedUntil?: Date | null;
  /** The state of the form that checks a signature. */
  readonly check?: Omit<CheckFormProps, "user" | "newest">;
  readonly now: Date;
}

/** The origins that have a signing secret in use, and a form for any other. */
export function signingPage({
  user,
  origins,
  rotatedUntil = null,
  check = {},
  typed = EMPTY_FORM,
  now,
}: SigningPageProps): string {
  return settingsFrame({
    user,
    section: "Signing secrets",
    title: "Signing secrets",
    intro: (
      <>
        Every call and callback is signed, with a secret of its own for each origin, so that one target can’t forge
        calls to another. <a href="/docs/verify">Verify signatures</a>
      </>
    ),
    actions: <LinkButton href={ROTATION_PATH}>Rotate all secrets</LinkButton>,
    now,
    children: (
      <>
        {rotatedUntil === null ? null : (
          <Notice tone="good">
            All secrets are rotated. The previous secrets are valid until <Time at={rotatedUntil} />.
          </Notice>
        )}
        <List
          title="Origins"
          rows={origins}
          columns={[
            [
              "Origin",
              ({ origin }) => (
                <Copied text={origin} what="origin">
                  <UntrustedText text={origin} />
                </Copied>
              ),
              "wide",
            ],
            ["Signs", ({ use }) => (use === "calls" ? "Calls" : "Callbacks")],
            ["Last used", ({ lastUsedAt }) => <AgoOr at={lastUsedAt} now={now} none="Not lately" />],
            [
              "Rotated",
              ({ rotatedAt, overlapEndsAt }) => (
                <>
                  <AgoOr at={rotatedAt} now={now} none="Never" />
                  {overlapEndsAt === null ? null : (
                    <span class="says">
                      both valid, ends <UntilTime at={overlapEndsAt} now={now} />
                    </span>
                  )}
                </>
              ),
            ],
          ]}
          actions={(origin) => <OriginActions {...origin} user={user} />}
          empty={
            <EmptyState icon="send" title="No calls yet">
              <p>Origins appear here with their first call. You can show the secret of any origin before that.</p>
            </EmptyState>
          }
        />
        <Card id="other" title="Another origin">
          <OriginForm user={user} typed={typed} />
        </Card>
        <CheckForm user={user} newest={origins[0]} {...check} />
      </>
    ),
  });
}

function OriginActions({ origin, use, user }: KnownOrigin & { readonly user: PageUser }) {
  const ofOrigin = sentence`of ${use} to ${<UntrustedText text={origin} />}`;
  const row = { user, look: "plain", fields: fieldsOf(origin, use), of: ofOrigin } as const;
  return (
    <div>
      <RowAction {...row} path={SECRET_PATH} name="Show secret" />
      <RowAction {...row} path={ROTATION_PATH} name="Rotate…" />
    </div>
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
  return settingsFrame({
    user,
    section: "Signing secrets",
    title: `Signing secret of ${use}`,
    back: SIGNING_LINK,
    intro: <Origin origin={origin} />,
    children: (
      <>
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
              <code class="code" data-copy="">
                {previous.secret}
              </code>
              <p class="quiet small">
                Valid until <Time at={previous.expiresAt} />.
              </p>
            </div>
          )}
          <p class="quiet">
            Targets verify calls with it and any library of Standard Webhooks. <a href="/docs/verify">How to verify</a>
          </p>
          <PostForm user={user} action={ROTATION_PATH} fields={fieldsOf(origin, use)}>
            <div class="buttons">
              <Button look="plain">Rotate secret…</Button>
            </div>
          </PostForm>
        </section>
      </>
    ),
  });
}

const SIGNING_LINK = { href: SETTINGS_PATHS.signing, name: "Signing secrets" } as const;

function Origin({ origin }: { readonly origin: string }) {
  return <UntrustedText text={origin} />;
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
  return settingsFrame({
    user,
    section: "Signing secrets",
    title: origin === null ? "Rotate the secrets of all origins?" : "Rotate this secret?",
    back: SIGNING_LINK,
    intro: origin === null ? undefined : <Origin origin={origin} />,
    children: (
      <>
        {isLate ? <Notice tone="wait">It was rotated a moment ago. Nothing else was changed.</Notice> : null}
        <PostForm
          user={user}
          action={ROTATION_PATH}
          class="card"
          fields={[...fieldsOf(origin ?? "", use), ["seen", seen]]}
        >
          <p>
            For 24 hours, every {SIGNED[origin === null ? "all" : use]} carries two signatures, with the new and with
            the previous secret. Use this time to give the new one to {origin === null ? "every target" : "the target"}.
          </p>
          {endsNow === null ? null : (
            <Notice tone="bad">
              It was rotated recently. The previous secret is valid until <Time at={endsNow} />; rotating again ends it
              immediately.
            </Notice>
          )}
          <div class="buttons">
            <Button look="bad">Rotate</Button>
            <LinkButton href={SETTINGS_PATHS.signing}>Cancel</LinkButton>
          </div>
        </PostForm>
      </>
    ),
  });
}

const SIGNED = { calls: "call", callbacks: "callback", all: "call and callback" } as const;
