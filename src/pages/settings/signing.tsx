/** @jsxImportSource hono/jsx */
import { SIGNING_OVERLAP_MS } from "../../core/limits.ts";
import { SIGNING_USES, type SigningUse } from "../../core/account-store.ts";
import { checkOrigin, type SigningSecrets, SigningSecretParameters } from "../../accounts/signing-secrets.ts";
import { type ReceivedMessage, SIGNATURE_HEADERS, type SignatureFindings } from "../../accounts/signature-check.ts";
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { isJsonObject, jsonIn } from "../../core/json.ts";
import { nullable, yesNo } from "../../api/schema-helpers.ts";
import { invalidField } from "../../core/domain-error.ts";
import type { Form } from "../../http/body.ts";
import { seeOther } from "../../http/response.ts";
import type { Person } from "../../http/session.ts";
import { Copied, Secret } from "../../ui/controls.tsx";
import { PostForm, Submit } from "../../ui/form.tsx";
import { render } from "../../ui/layout.tsx";
import { Card, LinkButton, Notice, sentence, time, until, untrusted } from "../../ui/parts.tsx";
import { duration } from "../../ui/text.ts";
import { EMPTY_FORM, filled, type FormState } from "../frame/forms.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { schemaForm } from "../frame/schema-form.tsx";
import { agoOr, List, RowAction } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";

const SECRET_PATH = "/settings/signing-secret";

const ROTATION_PATH = "/settings/rotation";

/** Shows the result of a rotation. Reloading it rotates nothing. */
const ROTATED_PATH = "/settings/rotated";

const CHECK_PATH = "/settings/signing/check";

/** What a secret is for. */
interface Place {
  readonly origin: string;
  readonly use: SigningUse;
}

/** `place` is null for all secrets. */
const ROTATED = compile(
  Type.Object({
    place: nullable(Type.Object({ origin: Type.String(), use: Type.Enum([...SIGNING_USES]) })),
    untilMs: Type.Number(),
  }),
);

const PLACE_FIELDS = {
  origin: {
    hint: "Scheme, host and port of a target, like https://api.example.com.",
    refused: "Enter only the scheme, host and port of a target, like https://api.example.com.",
  },
  for: {
    label: "What it signs",
    options: [
      ["calls", "Calls"],
      ["callbacks", "Callbacks"],
    ],
  },
} as const;

const PLACE_FORM = schemaForm(SigningSecretParameters, PLACE_FIELDS);

/** The form that checks a signature. The body is text or base64. */
const CHECK_FORM = schemaForm(
  Type.Object({
    ...SigningSecretParameters.properties,
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

interface SigningState {
  /** The form with the origin whose secret was asked for. */
  readonly typed?: FormState;
  /** How long the old secrets stay valid after a rotation of all. */
  readonly rotatedUntil?: Date;
  /** The form that checks a signature, with its result. */
  readonly checked?: FormState;
  readonly found?: SignatureFindings;
}

async function signingPage(deps: PageDeps, user: Person, more: SigningState = {}): Promise<string> {
  const { typed = EMPTY_FORM, rotatedUntil, checked, found } = more;
  const origins = await deps.signingService.origins(user.caller);
  const [newest] = origins;
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
      {rotatedUntil === undefined ? null : (
        <Notice tone="good">All secrets are rotated. The previous secrets are valid until {time(rotatedUntil)}.</Notice>
      )}
      <List
        title="Origins"
        rows={origins}
        columns={[
          [
            "Origin",
            ({ origin }) => (
              <Copied text={origin} what={`origin ${origin}`}>
                {untrusted(origin)}
              </Copied>
            ),
            "wide",
          ],
          ["Signs", ({ use }) => (use === "calls" ? "Calls" : "Callbacks")],
          ["Last used", ({ lastUsedAt }) => agoOr(lastUsedAt, now, "Not lately")],
          [
            "Rotated",
            ({ rotatedAt, previousExpiresAt }) => (
              <>
                {agoOr(rotatedAt, now, "Never")}
                {previousExpiresAt === null ? null : (
                  <span class="says">both valid, ends {until(previousExpiresAt, now)}</span>
                )}
              </>
            ),
          ],
        ]}
        actions={({ origin, use }) => {
          const of = sentence`of ${use} to ${untrusted(origin)}`;
          const row = { user, look: "plain", fields: placeFields(origin, use), of } as const;
          return (
            <div>
              <RowAction {...row} path={SECRET_PATH} name="Show secret" />
              <RowAction {...row} path={ROTATION_PATH} name="Rotate…" />
            </div>
          );
        }}
        empty={{
          icon: "send",
          title: "No calls yet",
          text: "Origins appear here with their first call. You can show the secret of any origin before that.",
        }}
      />
      <Card id="other" title="Another origin">
        <PLACE_FORM.Form user={user} action={SECRET_PATH} state={typed} submit="Show secret" look="plain" />
      </Card>
      <Card id="check" title="Check a signature">
        <p class="quiet">
          Does a receiver refuse a call or callback? Paste what it got to see why. It is not stored.{" "}
          <a href="/docs/verify#when-verification-fails">When verification fails</a>
        </p>
        {found === undefined ? null : <Findings found={found} />}
        {/* Most questions are about the newest call or callback. */}
        <CHECK_FORM.Form
          user={user}
          action={`${CHECK_PATH}#check`}
          state={checked ?? filled({ origin: newest?.origin ?? "", for: newest?.use ?? "calls" })}
          submit="Check signature"
        />
      </Card>
    </SettingsPage>,
  );
}

function secretPage(user: Person, { origin, secret, previous }: SigningSecrets, use: SigningUse, isRotated: boolean) {
  return render(
    <SettingsPage
      user={user}
      section="Signing secrets"
      title={`Signing secret of ${use}`}
      windowTitle={`Signing secret of ${origin}`}
      back={SIGNING_LINK}
      intro={untrusted(origin)}
    >
      {isRotated ? (
        <Notice tone="good">Secret rotated. Give the new one to the target while both are valid.</Notice>
      ) : null}
      <section class="card" aria-label="Secrets">
        <Secret title={previous === null ? "Secret" : "New secret"} text={secret} />
        {previous === null ? null : (
          <Secret title="Previous secret" text={previous.secret}>
            <p class="quiet small">Valid until {time(previous.expiresAt)}.</p>
          </Secret>
        )}
        <p class="quiet">
          Targets verify calls with it and any library of Standard Webhooks. <a href="/docs/verify">How to verify</a>
        </p>
        <PostForm user={user} action={ROTATION_PATH} fields={placeFields(origin, use)}>
          <Submit look="plain">Rotate secret…</Submit>
        </PostForm>
      </section>
    </SettingsPage>,
  );
}

const SIGNING_LINK = { href: SETTINGS_PATHS.signing, name: "Signing secrets" } as const;

function placeFields(origin: string, use: SigningUse) {
  return [
    ["origin", origin],
    ["for", use],
  ] as const;
}

/**
 * Asks for confirmation before a rotation. The form contains the state shown, so that confirming twice rotates once. A rotation
 * ends the previous secret at once; `endsNow` is when it would have ended, null if there is none.
 */
function askRotationPage(user: Person, place: Place | null, endsNow: Date | null, isLate: boolean): string {
  return render(
    <SettingsPage
      user={user}
      section="Signing secrets"
      title={place === null ? "Rotate the secrets of all origins?" : "Rotate this secret?"}
      back={SIGNING_LINK}
      intro={place === null ? undefined : untrusted(place.origin)}
    >
      {/* Another rotation came between question and answer. */}
      {isLate ? <Notice tone="wait">It was rotated a moment ago. Nothing else was changed.</Notice> : null}
      <PostForm
        user={user}
        action={ROTATION_PATH}
        class="card"
        fields={[...placeFields(place?.origin ?? "", place?.use ?? "calls"), ["seen", overlapState(endsNow)]]}
      >
        <p>
          For {duration(SIGNING_OVERLAP_MS)}, every {SIGNED[place?.use ?? "all"]} carries two signatures, with the new
          and with the previous secret. Use this time to give the new one to{" "}
          {place === null ? "every target" : "the target"}.
        </p>
        {endsNow === null ? null : (
          <Notice tone="bad">
            It was rotated recently. The previous secret is valid until {time(endsNow)}; rotating again ends it
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

/** The pages of signing secrets. A secret appears only in the response to a form, never in a URL. */
export function signingPages(deps: PageDeps) {
  const { signingService, verifyService, answer, flash } = deps;
  const again = ({ person }: { readonly person: Person }, typed: FormState) => signingPage(deps, person, { typed });
  const secretHtml = async (user: Person, { origin, use }: Place, isRotated: boolean) =>
    secretPage(user, await signingService.read(user.caller, origin, use), use, isRotated);
  const show = answer(
    ({ person, form }) => deps.pageFor(person, (user) => secretHtml(user, placeIn(form), false)),
    again,
  );

  /** When the previous secret expires; null if there is none. */
  const findOverlapEnd = ({ caller }: Person, place: Place | null) =>
    signingService.overlapEnd(caller, place?.origin ?? ANY_ORIGIN, place?.use);
  const rotatedHtml = async (person: Person, { place, untilMs }: Checked<typeof ROTATED>) =>
    place === null ? signingPage(deps, person, { rotatedUntil: new Date(untilMs) }) : secretHtml(person, place, true);

  /**
   * Asks for confirmation first, which counts only for the state shown: a second rotation by a double click or a reload would
   * end the previous secret, which targets still use.
   */
  const rotate = answer(async ({ person, form }) => {
    const place = (form.get("origin") ?? "") === "" ? null : placeIn(form);
    const seen = form.get("seen");
    const endsNow = await findOverlapEnd(person, place);
    if (seen !== overlapState(endsNow))
      return deps.pageFor(person, (user) => askRotationPage(user, place, endsNow, seen !== undefined));
    const [origin, use] = [place?.origin ?? null, place?.use ?? null];
    const shown = { origin: origin ?? ANY_ORIGIN, use: use ?? "calls", end: endsNow } as const;
    const { previousExpiresAt } = await signingService.rotate(person.caller, origin, use, shown);
    const result = { place, untilMs: previousExpiresAt.getTime() };
    // A rotation of all secrets shows none.
    if (place === null) return flash.redirect(person, ROTATED_PATH, ROTATED, result);
    return deps.showOnce(person, ROTATED_PATH, ROTATED, result, rotatedHtml);
  }, again);

  /** Checks a signature, like POST /v1/signing-secret/verify. */
  const check = answer(
    async ({ person, form }) => {
      const { origin, use } = placeIn(form);
      const found = await verifyService.check(person.caller, origin, use, messageIn(form));
      return deps.pageFor(person, (user) =>
        signingPage(deps, user, { checked: { ...EMPTY_FORM, values: form }, found }),
      );
    },
    ({ person }, checked) => signingPage(deps, person, { checked }),
  );
  return personPages(deps, { [SECRET_PATH]: SETTINGS_PATHS.signing, [CHECK_PATH]: `${SETTINGS_PATHS.signing}#check` })
    .get(SETTINGS_PATHS.signing, ({ person }) => signingPage(deps, person))
    .post(SECRET_PATH, show)
    .get(ROTATION_PATH, async ({ person }) => askRotationPage(person, null, await findOverlapEnd(person, null), false))
    .post(ROTATION_PATH, rotate)
    .get(ROTATED_PATH, async ({ context, person }) => {
      const result = flash.read(context, person, ROTATED);
      return result === null ? seeOther("own", SETTINGS_PATHS.signing) : rotatedHtml(person, result);
    })
    .post(CHECK_PATH, check);
}

/** A reserved name (RFC 6761, 6.4), whose secret is the one of every origin that was never rotated alone. */
const ANY_ORIGIN = "https://any.invalid";

function overlapState(overlapEnd: Date | null): string {
  return overlapEnd?.toISOString() ?? "none";
}

/** Accepts a slash at the end of the origin, which browsers add. Throws `validation_error` or `invalid_query`. */
function placeIn(form: Form): Place {
  const { origin, for: use = "calls" } = PLACE_FORM.check(form);
  return { origin: checkOrigin(origin.replace(/\/$/, "")), use };
}

function Findings({ found: { secret, problems, warnings } }: { readonly found: SignatureFindings }) {
  return (
    <>
      {secret === null ? null : (
        <Notice tone="good">{`The signature matches the ${secret} secret of this origin.`}</Notice>
      )}
      {problems.map(({ code, message }) => (
        // `other_origin` names the host of an action, which its agent chose.
        <Notice tone="bad">{code === "other_origin" ? untrusted(message) : message}</Notice>
      ))}
      {warnings.map(({ message }) => (
        <Notice tone="wait">{message}</Notice>
      ))}
    </>
  );
}

/** Reads the message in a form. Throws `validation_error` if a base64 body is none. */
function messageIn(form: Form): ReceivedMessage {
  const body = form.get("body") ?? "";
  const headers = headersIn(form.get("headers") ?? "");
  if (form.get("base64") === "yes") {
    const text = body.replaceAll(/\s/g, "");
    const bytes = Buffer.from(text, "base64");
    if (bytes.toString("base64") === text) return { headers, bodies: [bytes] };
    throw invalidField("body", "This is not base64. Copy it whole, or untick the box below.");
  }
  // Browsers send every line break of a text field as CR LF.
  const unix = body.replaceAll("\r\n", "\n");
  return { headers, bodies: [...new Set([unix, body])].map((text) => Buffer.from(text)) };
}

/** Reads headers as people copy them: lines of names and values, perhaps quoted, or a JSON object. */
function headersIn(text: string): ReceivedMessage["headers"] {
  const lines = jsonLines(text) ?? text.split("\n");
  const sampleValue = (name: (typeof SIGNATURE_HEADERS)[number]) => {
    const line = lines.findLast((one) => one.toLowerCase().includes(name)) ?? null;
    return line === null ? null : unquoted(line.slice(line.toLowerCase().indexOf(name) + name.length));
  };
  // Safe: it has every header.
  return Object.fromEntries(SIGNATURE_HEADERS.map((name) => [name, sampleValue(name)])) as ReceivedMessage["headers"];
}

/** The members of a JSON object as lines; null for any other text. */
function jsonLines(text: string): readonly string[] | null {
  const value = jsonIn(text);
  return isJsonObject(value) ? Object.entries(value).map(([name, one]) => `${name}: ${String(one)}`) : null;
}

const AROUND = " \t\r:\"'`,\\";

/** Removes punctuation around a value, which base64 never has. */
function unquoted(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && AROUND.includes(text.charAt(from))) from += 1;
  while (to > from && AROUND.includes(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}
