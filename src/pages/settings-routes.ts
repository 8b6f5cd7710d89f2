import { checkPausedHost } from "../api/pause-schemas.ts";
import type { SigningUse } from "../core/account-store.ts";
import type { OwnMailService } from "../accounts/own-mails.ts";
import type { ReadServerSize } from "../accounts/server-size.ts";
import type { SignUpGate } from "../accounts/sign-up-gate.ts";
import { type SigningService, checkOrigin } from "../accounts/signing-secrets.ts";
import type { ListNotifications } from "../actions/service.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { ChannelService } from "../channels/service.ts";
import type { Clock } from "../core/clock.ts";
import { DomainError, type ErrorCode, invalidField } from "../core/domain-error.ts";
import { NOTIFICATIONS_SHOWN_MAX } from "../core/limits.ts";
import type { EffectiveSettings } from "../config/config.ts";
import { ACCOUNTS_PAGE_PATH, accountsPage, MAIL_TEST_PATH, serverPage } from "./settings.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { NEXT_FIELD, PAUSES_PATH } from "../ui/layout.tsx";
import { answerForm, type ById, filled, type FormState } from "./forms.tsx";
import { PAUSE_SCOPES, pausesPage } from "./pauses.tsx";
import { reasonInForm } from "./decision-form.tsx";
import { AccountParams } from "../accounts/routes.ts";
import { PauseParams } from "../pauses/routes.ts";
import type { PauseService } from "../pauses/service.ts";
import type { KeyService } from "../accounts/keys.ts";
import { KEY_ID } from "../core/ids.ts";
import { notificationsPage } from "./notifications.tsx";
import { askRotationPage, secretPage, signingPage } from "./signing.tsx";
import {
  type Flash,
  type AnswerPerson,
  createPersonRoutes,
  nextOf,
  type Person,
  type PersonRouteDeps,
} from "../http/session.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";

interface SettingsPageDeps extends PersonRouteDeps {
  readonly signingService: SigningService;
  readonly listNotifications: ListNotifications;
  /** Names of channels. */
  readonly channelService: Pick<ChannelService, "list">;
  /** The server's settings that this caller can see. */
  readonly rulesFor: (caller: Caller) => Promise<EffectiveSettings>;
  readonly readSize: ReadServerSize;
  readonly signUpGate: Pick<SignUpGate, "isOperator">;
  readonly ownMails: Pick<OwnMailService, "test">;
  readonly flash: Flash;
  readonly clock: Pick<Clock, "now">;
  readonly version: string;
}

/** The pages of notifications, signing secrets and the server. A secret is only in the response to a form, never in a URL. */
export function settingsPages(deps: SettingsPageDeps) {
  const { personOf, listNotifications, formOf, clock } = deps;
  const notifications: AnswerPerson = async ({ context: { search }, person }) => {
    const before = rowIn(new URLSearchParams(search).get("before"));
    const [found, channels] = await Promise.all([
      listNotifications(person.caller, before, NOTIFICATIONS_SHOWN_MAX),
      deps.channelService.list(person.caller),
    ]);
    const names = new Map(channels.map(({ id, name }) => [id, name]));
    return page("own", notificationsPage({ user: person, ...found, channels: names, now: clock.now() }));
  };
  const secret = answerForm(
    formOf,
    async ({ person, form }) => {
      const use = useIn(form);
      const shown = await deps.signingService.read(person.caller, originIn(form), use);
      return page("own", secretPage({ user: person, shown: { ...shown, use } }));
    },
    ({ person }, typed) => signingHtml(deps, person, { typed }),
  );
  return (
    createPersonRoutes(personOf)
      .get(SETTINGS_PATHS.notifications, notifications)
      .get("/settings/callbacks", () => seeOther("own", SETTINGS_PATHS.notifications))
      .get(SETTINGS_PATHS.signing, async ({ person }) => page("own", await signingHtml(deps, person)))
      // Where the address of a refused form, or of a secret, is loaded again.
      .get("/settings/signing-secret", () => seeOther("own", SETTINGS_PATHS.signing))
      .post("/settings/signing-secret", secret)
      .get("/settings/rotation", ({ person }) => ask(deps, person, { origin: null, use: "calls" }))
      .post("/settings/rotation", rotate(deps))
      .get(ROTATED_PATH, showRotated(deps))
      .get(SETTINGS_PATHS.server, async ({ context, person }) => {
        // Safe: only the test below writes a flash for this path.
        const notice = deps.flash.read(context, person) as MailNotice | null;
        return page("own", await serverHtml(deps, person, notice));
      })
      .get(MAIL_TEST_PATH, () => seeOther("own", SETTINGS_PATHS.server))
      .post(MAIL_TEST_PATH, testMail(deps))
  );
}

async function signingHtml(
  { signingService, clock }: SettingsPageDeps,
  person: Person,
  more: Partial<Parameters<typeof signingPage>[0]> = {},
): Promise<string> {
  return signingPage({ user: person, origins: await signingService.origins(person.caller), now: clock.now(), ...more });
}

interface MailNotice {
  readonly isGood: boolean;
  readonly text: string;
}

async function serverHtml(deps: SettingsPageDeps, person: Person, notice: MailNotice | null): Promise<string> {
  authorize(person.caller, "manage");
  const { rulesFor, readSize, signUpGate, version } = deps;
  const { caller } = person;
  const [rules, size, isOperator] = await Promise.all([
    rulesFor(caller),
    readSize(caller),
    signUpGate.isOperator(caller),
  ]);
  return serverPage({ user: person, rules, size, isOperator, version, notice });
}

function testMail(deps: SettingsPageDeps): AnswerPerson {
  return answerForm(
    deps.formOf,
    async ({ person }) => {
      authorize(person.caller, "manage");
      const { error } = await deps.ownMails.test(person);
      const text = error === null ? `The test mail to ${person.email} was delivered to the mail provider.` : error;
      return deps.flash.redirect(person, SETTINGS_PATHS.server, { isGood: error === null, text });
    },
    ({ person }, { problem }) => serverHtml(deps, person, { isGood: false, text: problem ?? "" }),
    TOO_OFTEN,
  );
}

const TOO_OFTEN: ReadonlySet<ErrorCode> = new Set(["rate_limited"]);

/**
 * Asks for confirmation first. A confirmation is valid only for the state that was shown: the same one twice, by a double
 * click or a reload, would invalidate the previous secret, which targets still use.
 */
function rotate(deps: SettingsPageDeps): AnswerPerson {
  const { signingService, formOf, flash } = deps;
  return answerForm(
    formOf,
    async ({ person, form }) => {
      const origin = (form.get("origin") ?? "") === "" ? null : originIn(form);
      const use = useIn(form);
      const seen = form.get("seen");
      if (seen !== stateOf(await overlapEndOf(deps, person, { origin, use }))) {
        return ask(deps, person, { origin, use }, seen !== undefined);
      }
      const { previousExpiresAt } = await signingService.rotate(person.caller, origin, origin === null ? null : use);
      const result: Rotated = { origin, use, untilMs: previousExpiresAt.getTime() };
      // After a rotation of all secrets, none is shown.
      if (origin === null) return flash.redirect(person, ROTATED_PATH, result);
      return flash.showSecretOnce(person, ROTATED_PATH, result, async () =>
        page("own", await rotatedHtml(deps, person, result)),
      );
    },
    ({ person }, typed) => signingHtml(deps, person, { typed }),
  );
}

/** Shows the result of a rotation. Reloading it rotates nothing. */
const ROTATED_PATH = "/settings/rotated";

interface Rotated {
  readonly origin: string | null;
  readonly use: SigningUse;
  readonly untilMs: number;
}

function showRotated(deps: SettingsPageDeps): AnswerPerson {
  return async ({ context, person }) => {
    // Safe: only `rotate` writes a flash for this path.
    const result = deps.flash.read(context, person) as Rotated | null;
    return result === null
      ? seeOther("own", SETTINGS_PATHS.signing)
      : page("own", await rotatedHtml(deps, person, result));
  };
}

async function rotatedHtml(deps: SettingsPageDeps, person: Person, result: Rotated): Promise<string> {
  const { origin, use, untilMs } = result;
  if (origin === null) return signingHtml(deps, person, { rotatedUntil: new Date(untilMs) });
  const shown = await deps.signingService.read(person.caller, origin, use);
  return secretPage({ user: person, shown: { ...shown, use }, isRotated: true });
}

interface Asked {
  /** Null: all of them. */
  readonly origin: string | null;
  readonly use: SigningUse;
}

async function ask(deps: SettingsPageDeps, person: Person, asked: Asked, isLate = false): Promise<Response> {
  const endsNow = await overlapEndOf(deps, person, asked);
  return page("own", askRotationPage({ user: person, ...asked, seen: stateOf(endsNow), endsNow, isLate }));
}

function useIn(form: Form): SigningUse {
  return form.get("for") === "callbacks" ? "callbacks" : "calls";
}

/** A reserved name (RFC 6761, 6.4): its secret stands for every origin that was never rotated alone. */
const ANY_ORIGIN = "https://any.invalid";

/** When the previous secret expires; null if there is none. */
function overlapEndOf({ signingService }: SettingsPageDeps, { caller }: Person, { origin, use }: Asked) {
  return signingService.overlapEnd(caller, origin ?? ANY_ORIGIN, use);
}

function stateOf(overlapEnd: Date | null): string {
  return overlapEnd?.toISOString() ?? "none";
}

/** Throws `validation_error`. */
function originIn(form: Form): string {
  const origin = originOf(form.get("origin") ?? "");
  if (origin !== null) return origin;
  throw invalidField("origin", "Enter only the scheme, host and port of a target, like https://api.example.com.");
}

/** Null if it is not an origin. A slash at its end, as browsers add, is accepted. */
export function originOf(text: string): string | null {
  try {
    return checkOrigin(text.trim().replace(/\/$/, ""));
  } catch (error) {
    if (error instanceof DomainError) return null;
    throw error;
  }
}

function rowIn(text: string | null): string | null {
  return text !== null && /^[A-Za-z0-9_-]{1,64}$/.test(text) ? text : null;
}

interface PausePageDeps extends PersonRouteDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
  readonly keyService: Pick<KeyService, "list">;
  readonly signingService: Pick<SigningService, "origins">;
  readonly clock: Pick<Clock, "now">;
}

/** The pages of pauses, with the same service as /v1/pauses. They work without script. */
export function pausePages(deps: PausePageDeps) {
  const { pauseService, personOf, formOf } = deps;
  const pause = answerForm(
    formOf,
    async ({ person, form }) => {
      const reason = reasonInForm(form);
      const keyId = form.get("key_id") ?? "";
      const scope = PAUSE_SCOPES.find((one) => one === form.get("scope")) ?? null;
      // What the reader can't see of the form doesn't count: only the field of what was chosen does.
      if (scope === null) throw invalidField("scope", "Choose what to pause.");
      if (scope === "key" && !KEY_ID.test(keyId)) throw invalidField("key_id", "Choose a key.");
      const host = scope === "host" ? checkPausedHost((form.get("host") ?? "").trim(), null) : null;
      await pauseService.pause(person.caller, { keyId: scope === "key" ? keyId : null, host, reason });
      return PAUSES_PATH;
    },
    ({ person }, typed) => pausesHtml(deps, person, typed),
  );
  const resume = answerForm<ById>(formOf, async ({ person, params, form }) => {
    await pauseService.resume(person.caller, params.id);
    return nextOf(form.get(NEXT_FIELD)) ?? PAUSES_PATH;
  });
  return createPersonRoutes(personOf)
    .get(PAUSES_PATH, async ({ context, person }) => {
      const search = new URLSearchParams(context.search);
      const [key, host] = [search.get("key") ?? "", search.get("host") ?? ""];
      const scope = [host && "host", key && "key", search.get("scope") ?? ""].find((one) => one !== "") ?? "";
      return page("own", await pausesHtml(deps, person, filled({ key_id: key, host, scope })));
    })
    .post(PAUSES_PATH, pause)
    .post(`${PAUSES_PATH}/:id/resume`, resume, { params: PauseParams });
}

async function pausesHtml(deps: PausePageDeps, user: Person, typed: FormState): Promise<string> {
  const { pauseService, keyService, signingService, clock } = deps;
  const [pauses, keys, hosts] = await Promise.all([
    pauseService.list(user.caller),
    keyService.list(user.caller),
    calledHosts(signingService, user.caller),
  ]);
  return pausesPage({ user, pauses, keys, hosts, typed, now: clock.now() });
}

/** The hosts that the account's calls went to, with their ports, the last called first. */
export async function calledHosts(signingService: Pick<SigningService, "origins">, caller: Caller) {
  const origins = await signingService.origins(caller);
  return [...new Set(origins.flatMap(({ origin, use }) => (use === "calls" ? [new URL(origin).host] : [])))];
}

interface AccountsPageDeps extends PersonRouteDeps {
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy">;
}

/** The page of the accounts, for owners of the first one. */
export function accountsPages({ signUpGate, personOf, formOf }: AccountsPageDeps) {
  const allow = answerForm<ById>(formOf, async ({ person, params }) => {
    await signUpGate.allow(person.caller, params.id);
    return ACCOUNTS_PAGE_PATH;
  });
  return createPersonRoutes(personOf)
    .get(ACCOUNTS_PAGE_PATH, async ({ person }) => {
      const [accounts, closedBy] = await Promise.all([signUpGate.list(person.caller), signUpGate.closedBy()]);
      return page("own", accountsPage({ user: person, accounts, closedBy }));
    })
    .post(`${ACCOUNTS_PAGE_PATH}/:id/allow`, allow, { params: AccountParams });
}
