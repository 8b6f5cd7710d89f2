/** @jsxImportSource hono/jsx */
import { SIGNING_OVERLAP_MS } from "../core/limits.ts";
import type { SigningUse } from "../core/account-store.ts";
import { checkOrigin, type KnownOrigin, type SigningSecret } from "../accounts/signing-secrets.ts";
import { DomainError, invalidFields } from "../core/domain-error.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { createPersonRoutes, type Person } from "../http/session.ts";
import { Copied } from "../ui/controls.tsx";
import { Button, Check, Field, PostForm, Submit } from "../ui/form.tsx";
import { answerForm, EMPTY_FORM, filled, type FormState } from "./forms.tsx";
import { Card, LinkButton, Notice, sentence, Time, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { CHECK_PATH, CheckForm, type CheckFormProps, receivedMessage } from "./signature-check.tsx";
import { AgoOr, List, RowAction, Secret, SETTINGS_PATHS, settingsFrame } from "./settings-frame.tsx";
import { duration, type PageUser } from "../ui/text.ts";
import type { PageDeps } from "./needs.ts";

const SECRET_PATH = "/settings/signing-secret";

const ROTATION_PATH = "/settings/rotation";

/** The origins that have a signing secret in use, and a form for any other. */
async function signingPage(deps: SigningPageDeps, user: Person, more: SigningState = {}): Promise<string> {
  const { typed = EMPTY_FORM, rotatedUntil = null, check = {} } = more;
  const origins = await deps.signingService.origins(user.caller);
  const now = deps.clock.now();
  return settingsFrame({
    user,
    section: "Signing secrets",
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
          empty={{
            icon: "send",
            title: "No calls yet",
            text: "Origins appear here with their first call. You can show the secret of any origin before that.",
          }}
        />
        <Card id="other" title="Another origin">
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
            <Check
              name="for"
              value="callbacks"
              label="Secret for callbacks"
              isChecked={typed.values.get("for") === "callbacks"}
            />
          </PostForm>
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

/** The secret of an origin, with a button to rotate it. */
function secretPage(user: PageUser, { origin, secret, previous }: SigningSecret, use: SigningUse, isRotated: boolean) {
  return settingsFrame({
    user,
    section: "Signing secrets",
    title: `Signing secret of ${use}`,
    back: SIGNING_LINK,
    intro: <UntrustedText text={origin} />,
    children: (
      <>
        {isRotated ? (
          <Notice tone="good">Secret rotated. Give the new one to the target while both are valid.</Notice>
        ) : null}
        <section class="card" aria-label="Secrets">
          <Secret title={previous === null ? "Secret" : "New secret"} text={secret} />
          {previous === null ? null : (
            <Secret title="Previous secret" text={previous.secret}>
              <p class="quiet small">
                Valid until <Time at={previous.expiresAt} />.
              </p>
            </Secret>
          )}
          <p class="quiet">
            Targets verify calls with it and any library of Standard Webhooks. <a href="/docs/verify">How to verify</a>
          </p>
          <PostForm user={user} action={ROTATION_PATH} fields={fieldsOf(origin, use)}>
            <Submit look="plain">Rotate secret…</Submit>
          </PostForm>
        </section>
      </>
    ),
  });
}

const SIGNING_LINK = { href: SETTINGS_PATHS.signing, name: "Signing secrets" } as const;

function fieldsOf(origin: string, use: SigningUse) {
  return [
    ["origin", origin],
    ["for", use],
  ] as const;
}

/**
 * Asks for confirmation before a rotation, with the state that is shown, so that confirming twice rotates once. Another rotation
 * ends the previous secret at once; `endsNow` is when it would have ended, null where there is none.
 */
function askRotationPage(user: PageUser, { origin, use }: Asked, endsNow: Date | null, isLate: boolean): string {
  return settingsFrame({
    user,
    section: "Signing secrets",
    title: origin === null ? "Rotate the secrets of all origins?" : "Rotate this secret?",
    back: SIGNING_LINK,
    intro: origin === null ? undefined : <UntrustedText text={origin} />,
    children: (
      <>
        {/* The confirmed question was shown before another rotation. */}
        {isLate ? <Notice tone="wait">It was rotated a moment ago. Nothing else was changed.</Notice> : null}
        <PostForm
          user={user}
          action={ROTATION_PATH}
          class="card"
          fields={[...fieldsOf(origin ?? "", use), ["seen", stateOf(endsNow)]]}
        >
          <p>
            For {duration(SIGNING_OVERLAP_MS)}, every {SIGNED[origin === null ? "all" : use]} carries two signatures,
            with the new and with the previous secret. Use this time to give the new one to{" "}
            {origin === null ? "every target" : "the target"}.
          </p>
          {endsNow === null ? null : (
            <Notice tone="bad">
              It was rotated recently. The previous secret is valid until <Time at={endsNow} />; rotating again ends it
              immediately.
            </Notice>
          )}
          <Submit look="bad" cancel={SETTINGS_PATHS.signing}>
            Rotate
          </Submit>
        </PostForm>
      </>
    ),
  });
}

const SIGNED = { calls: "call", callbacks: "callback", all: "call and callback" } as const;

interface SigningState {
  /** The origin whose secret was asked for. */
  readonly typed?: FormState;
  /** Until when the secrets before a rotation of all are valid; null: there was none just now. */
  readonly rotatedUntil?: Date | null;
  /** The state of the form that checks a signature. */
  readonly check?: Omit<CheckFormProps, "user" | "newest">;
}

type SigningPageDeps = Pick<PageDeps, "personOf" | "formOf" | "signingService" | "verifyService" | "flash" | "clock">;

/** The pages of signing secrets. A secret is only in the response to a form, never in a URL. */
export function signingPages(deps: SigningPageDeps) {
  const { signingService, verifyService, personOf, formOf, flash } = deps;
  const html = (user: Person, more?: SigningState) => signingPage(deps, user, more);
  const again = ({ person }: { readonly person: Person }, typed: FormState) => html(person, { typed });
  const secretHtml = async (user: Person, origin: string, use: SigningUse, isRotated = false) =>
    secretPage(user, await signingService.read(user.caller, origin, use), use, isRotated);
  const show = answerForm(
    formOf,
    async ({ person, form }) => page("own", await secretHtml(person, originIn(form), useIn(form))),
    again,
  );

  /** When the previous secret expires; null if there is none. */
  const overlapEndOf = ({ caller }: Person, { origin, use }: Asked) =>
    signingService.overlapEnd(caller, origin ?? ANY_ORIGIN, use);
  const ask = async (user: Person, asked: Asked, isLate = false) => {
    return page("own", askRotationPage(user, asked, await overlapEndOf(user, asked), isLate));
  };
  const rotatedHtml = async (person: Person, { origin, use, untilMs }: Rotated) =>
    origin === null ? html(person, { rotatedUntil: new Date(untilMs) }) : secretHtml(person, origin, use, true);

  /**
   * Asks for confirmation first. A confirmation is valid only for the state that was shown: the same one twice, by a double
   * click or a reload, would invalidate the previous secret, which targets still use.
   */
  const rotate = answerForm(
    formOf,
    async ({ person, form }) => {
      const asked: Asked = { origin: (form.get("origin") ?? "") === "" ? null : originIn(form), use: useIn(form) };
      const { origin, use } = asked;
      const seen = form.get("seen");
      if (seen !== stateOf(await overlapEndOf(person, asked))) return ask(person, asked, seen !== undefined);
      const { previousExpiresAt } = await signingService.rotate(person.caller, origin, origin === null ? null : use);
      const result: Rotated = { origin, use, untilMs: previousExpiresAt.getTime() };
      // After a rotation of all secrets, none is shown.
      if (origin === null) return flash.redirect(person, ROTATED_PATH, result);
      return flash.showSecretOnce(person, ROTATED_PATH, result, async () =>
        page("own", await rotatedHtml(person, result)),
      );
    },
    again,
  );

  /** With the service of POST /v1/signing-secret/verify. */
  const check = answerForm(
    formOf,
    async ({ person, form }) => {
      const origin = originOf(form.get("origin") ?? "");
      const message = receivedMessage(form);
      if (origin === null || message === null) {
        throw invalidFields([
          ...(origin === null ? [NO_ORIGIN] : []),
          ...(message === null
            ? [{ field: "body", message: "This is not base64. Copy it whole, or untick the box below." }]
            : []),
        ]);
      }
      const found = await verifyService.check(person.caller, origin, useIn(form), message);
      return page("own", await html(person, { check: { typed: filled(Object.fromEntries(form)), found } }));
    },
    ({ person }, typed) => html(person, { check: { typed } }),
  );
  return (
    createPersonRoutes(personOf)
      .get(SETTINGS_PATHS.signing, async ({ person }) => page("own", await html(person)))
      // Where the address of a refused form, of a secret or of a result is loaded again.
      .get(SECRET_PATH, () => seeOther("own", SETTINGS_PATHS.signing))
      .post(SECRET_PATH, show)
      .get(ROTATION_PATH, ({ person }) => ask(person, { origin: null, use: "calls" }))
      .post(ROTATION_PATH, rotate)
      .get(ROTATED_PATH, async ({ context, person }) => {
        // Safe: only `rotate` writes a flash for this path.
        const result = flash.read(context, person) as Rotated | null;
        if (result === null) return seeOther("own", SETTINGS_PATHS.signing);
        return page("own", await rotatedHtml(person, result));
      })
      .get(CHECK_PATH, () => seeOther("own", `${SETTINGS_PATHS.signing}#check`))
      .post(CHECK_PATH, check)
  );
}

/** Shows the result of a rotation. Reloading it rotates nothing. */
const ROTATED_PATH = "/settings/rotated";

interface Asked {
  /** Null: all of them. */
  readonly origin: string | null;
  readonly use: SigningUse;
}

interface Rotated extends Asked {
  readonly untilMs: number;
}

/** A reserved name (RFC 6761, 6.4): its secret stands for every origin that was never rotated alone. */
const ANY_ORIGIN = "https://any.invalid";

function stateOf(overlapEnd: Date | null): string {
  return overlapEnd?.toISOString() ?? "none";
}

function useIn(form: Form): SigningUse {
  return form.get("for") === "callbacks" ? "callbacks" : "calls";
}

/** Throws `validation_error`. */
function originIn(form: Form): string {
  const origin = originOf(form.get("origin") ?? "");
  if (origin !== null) return origin;
  throw invalidFields([NO_ORIGIN]);
}

const NO_ORIGIN = {
  field: "origin",
  message: "Enter only the scheme, host and port of a target, like https://api.example.com.",
} as const;

/** Null if it is not an origin. A slash at its end, as browsers add, is accepted. */
function originOf(text: string): string | null {
  try {
    return checkOrigin(text.trim().replace(/\/$/, ""));
  } catch (error) {
    if (error instanceof DomainError) return null;
    throw error;
  }
}
