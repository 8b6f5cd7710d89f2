/** @jsxImportSource hono/jsx */
import { SIGNING_OVERLAP_MS } from "../core/limits.ts";
import type { SigningUse } from "../core/account-store.ts";
import { checkOrigin, type KnownOrigin, type SigningSecret } from "../accounts/signing-secrets.ts";
import { type ReceivedMessage, SIGNATURE_HEADERS, type SignatureCheck } from "../accounts/verify-signature.ts";
import Type from "typebox";
import { choice, isJsonObject, yesNo } from "../api/schema-helpers.ts";
import { DomainError, invalidFields } from "../core/domain-error.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import type { Person } from "../http/session.ts";
import { Copied } from "../ui/controls.tsx";
import { PostForm, Submit } from "../ui/form.tsx";
import { render } from "../ui/layout.tsx";
import { Card, LinkButton, Notice, sentence, Time, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { duration } from "../ui/text.ts";
import { EMPTY_FORM, filled, type FormState, personPages } from "./forms.ts";
import type { PageDeps } from "./needs.ts";
import { schemaForm } from "./schema-form.tsx";
import { AgoOr, List, RowAction, Secret, SETTINGS_PATHS, SettingsPage } from "./settings-frame.tsx";

const SECRET_PATH = "/settings/signing-secret";

const ROTATION_PATH = "/settings/rotation";

const PLACE = {
  origin: Type.String(),
  for: choice(["calls", "callbacks"], "What is signed.", "calls"),
};

const PLACE_FIELDS = {
  origin: { hint: "Scheme, host and port of a target, like https://api.example.com." },
  for: {
    label: "What it signs",
    options: [
      ["calls", "Calls"],
      ["callbacks", "Callbacks"],
    ],
  },
} as const;

const PLACE_FORM = schemaForm(Type.Object(PLACE), PLACE_FIELDS);

/** The body is sent as it is, or as base64. */
const CHECK_FORM = schemaForm(
  Type.Object({
    ...PLACE,
    headers: Type.String(),
    body: Type.Optional(Type.String()),
    base64: yesNo("Whether the body is base64.", false),
  }),
  {
    origin: { ...PLACE_FIELDS.origin, idSuffix: "-check" },
    for: { ...PLACE_FIELDS.for, idSuffix: "-check" },
    headers: { type: "lines", hint: "Those that begin with webhook-, one a line, or all of them as JSON." },
    body: {
      label: "Raw body",
      type: "code",
      hint: "Before any parser. Empty if there is none. Larger than 20 KB: use the API.",
    },
    base64: { label: "The body is base64" },
  },
);

async function signingPage(deps: PageDeps, user: Person, more: SigningState = {}): Promise<string> {
  const { typed = EMPTY_FORM, rotatedUntil = null, check = {} } = more;
  const origins = await deps.signingService.origins(user.caller);
  const now = deps.clock.now();
  return render(
    <SettingsPage
      user={user}
      section="Signing secrets"
      intro={
        <>
          Every call and callback is signed, with a secret of its own for each origin, so that one target can’t forge
          calls to another. <a href="/docs/verify">Verify signatures</a>
        </>
      }
      actions={<LinkButton href={ROTATION_PATH}>Rotate all secrets</LinkButton>}
      now={now}
    >
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
          ["Last used", ({ lastUsedAt }) => <AgoOr at={lastUsedAt} none="Not lately" now={now} />],
          [
            "Rotated",
            ({ rotatedAt, overlapEndsAt }) => (
              <>
                <AgoOr at={rotatedAt} none="Never" now={now} />
                {overlapEndsAt === null ? null : (
                  <span class="says">
                    both valid, ends <UntilTime at={overlapEndsAt} now={now} />
                  </span>
                )}
              </>
            ),
          ],
        ]}
        actions={(one) => originActions(user, one)}
        empty={{
          icon: "send",
          title: "No calls yet",
          text: "Origins appear here with their first call. You can show the secret of any origin before that.",
        }}
      />
      <Card id="other" title="Another origin">
        <PLACE_FORM.Form user={user} action={SECRET_PATH} state={typed} submit="Show secret" look="plain" />
      </Card>
      <CheckForm user={user} newest={origins[0]} {...check} />
    </SettingsPage>,
  );
}

function originActions(user: Person, { origin, use }: KnownOrigin) {
  const of = sentence`of ${use} to ${<UntrustedText text={origin} />}`;
  const row = { user, look: "plain", fields: fieldsOf(origin, use), of } as const;
  return (
    <div>
      <RowAction {...row} path={SECRET_PATH} name="Show secret" />
      <RowAction {...row} path={ROTATION_PATH} name="Rotate…" />
    </div>
  );
}

function secretPage(user: Person, { origin, secret, previous }: SigningSecret, use: SigningUse, isRotated: boolean) {
  return render(
    <SettingsPage
      user={user}
      section="Signing secrets"
      title={`Signing secret of ${use}`}
      back={SIGNING_LINK}
      intro={<UntrustedText text={origin} />}
    >
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
    </SettingsPage>,
  );
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
function askRotationPage(user: Person, { origin, use }: Asked, endsNow: Date | null, isLate: boolean): string {
  return render(
    <SettingsPage
      user={user}
      section="Signing secrets"
      title={origin === null ? "Rotate the secrets of all origins?" : "Rotate this secret?"}
      back={SIGNING_LINK}
      intro={origin === null ? undefined : <UntrustedText text={origin} />}
    >
      {/* The confirmed question was shown before another rotation. */}
      {isLate ? <Notice tone="wait">It was rotated a moment ago. Nothing else was changed.</Notice> : null}
      <PostForm
        user={user}
        action={ROTATION_PATH}
        class="card"
        fields={[...fieldsOf(origin ?? "", use), ["seen", stateOf(endsNow)]]}
      >
        <p>
          For {duration(SIGNING_OVERLAP_MS)}, every {SIGNED[origin === null ? "all" : use]} carries two signatures, with
          the new and with the previous secret. Use this time to give the new one to{" "}
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
    </SettingsPage>,
  );
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

/** The pages of signing secrets. A secret is only in the response to a form, never in a URL. */
export function signingPages(deps: PageDeps) {
  const { signingService, verifyService, answer, flash } = deps;
  const again = ({ person }: { readonly person: Person }, typed: FormState) => signingPage(deps, person, { typed });
  const secretHtml = async (user: Person, origin: string, use: SigningUse, isRotated = false) =>
    secretPage(user, await signingService.read(user.caller, origin, use), use, isRotated);
  const show = answer(
    async ({ person, form }) => page("own", await secretHtml(person, originIn(form), useIn(form))),
    again,
  );

  /** When the previous secret expires; null if there is none. */
  const overlapEndOf = ({ caller }: Person, { origin, use }: Asked) =>
    signingService.overlapEnd(caller, origin ?? ANY_ORIGIN, use);
  const rotatedHtml = async (person: Person, { origin, use, untilMs }: Rotated) =>
    origin === null
      ? signingPage(deps, person, { rotatedUntil: new Date(untilMs) })
      : secretHtml(person, origin, use, true);

  /**
   * Asks for confirmation first. A confirmation is valid only for the state that was shown: the same one twice, by a double
   * click or a reload, would invalidate the previous secret, which targets still use.
   */
  const rotate = answer(async ({ person, form }) => {
    const asked: Asked = { origin: (form.get("origin") ?? "") === "" ? null : originIn(form), use: useIn(form) };
    const { origin, use } = asked;
    const seen = form.get("seen");
    const endsNow = await overlapEndOf(person, asked);
    if (seen !== stateOf(endsNow)) return page("own", askRotationPage(person, asked, endsNow, seen !== undefined));
    const { previousExpiresAt } = await signingService.rotate(person.caller, origin, origin === null ? null : use);
    const result: Rotated = { origin, use, untilMs: previousExpiresAt.getTime() };
    // After a rotation of all secrets, none is shown.
    if (origin === null) return flash.redirect(person, ROTATED_PATH, result);
    return flash.showSecretOnce(person, ROTATED_PATH, result, async () =>
      page("own", await rotatedHtml(person, result)),
    );
  }, again);

  /** With the service of POST /v1/signing-secret/verify. */
  const check = answer(
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
      const typed = { ...EMPTY_FORM, values: form };
      return page("own", await signingPage(deps, person, { check: { typed, found } }));
    },
    ({ person }, typed) => signingPage(deps, person, { check: { typed } }),
  );
  return (
    personPages(deps)
      .get(SETTINGS_PATHS.signing, ({ person }) => signingPage(deps, person))
      // Where the address of a refused form, of a secret or of a result is loaded again.
      .get(SECRET_PATH, () => seeOther("own", SETTINGS_PATHS.signing))
      .post(SECRET_PATH, show)
      .get(ROTATION_PATH, async ({ person }) => {
        const asked: Asked = { origin: null, use: "calls" };
        return askRotationPage(person, asked, await overlapEndOf(person, asked), false);
      })
      .post(ROTATION_PATH, rotate)
      .get(ROTATED_PATH, async ({ context, person }) => {
        // Safe: only `rotate` writes a flash for this path.
        const result = flash.read(context, person) as Rotated | null;
        return result === null ? seeOther("own", SETTINGS_PATHS.signing) : rotatedHtml(person, result);
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

const CHECK_PATH = "/settings/signing/check";

interface CheckFormProps {
  readonly user: Person;
  readonly typed?: FormState | undefined;
  /** Where the newest call or callback went: most likely what is asked about. */
  readonly newest?: Pick<KnownOrigin, "origin" | "use"> | undefined;
  /** What was found; left out where nothing was checked. */
  readonly found?: SignatureCheck;
}

/** A form that says whether a signature matches, and if not, why. It shows no secret. */
function CheckForm({ user, newest, found, typed }: CheckFormProps) {
  return (
    <Card id="check" title="Check a signature">
      <p class="quiet">
        Does a receiver refuse a call or callback? Paste what it got to see why. Nothing is stored.{" "}
        <a href="/docs/verify#when-verification-fails">When verification fails</a>
      </p>
      {found === undefined ? null : <Found found={found} />}
      <CHECK_FORM.Form
        user={user}
        action={`${CHECK_PATH}#check`}
        state={typed ?? filled({ origin: newest?.origin ?? "", for: newest?.use ?? "calls" })}
        submit="Check signature"
      />
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
function receivedMessage(form: Form): ReceivedMessage | null {
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
