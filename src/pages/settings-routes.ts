import { type CallbackHostService, checkCallbackHost } from "../accounts/callback-hosts.ts";
import type { SignUpGate } from "../accounts/sign-up-gate.ts";
import { type SigningService, checkOrigin } from "../accounts/signing-secrets.ts";
import type { ListNotifications } from "../actions/service.ts";
import { type Caller, mayDo } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { NOTIFICATIONS_NEWEST_MAX, NOTIFICATIONS_SHOWN_MAX } from "../config/limits.ts";
import type { SigningUse } from "../crypto/secrets.ts";
import type { EffectiveSettings } from "../config/config.ts";
import { INVALID, showFormAgain } from "../http/errors.ts";
import { ACCOUNTS_PAGE_PATH, accountsPage, ownSettingsPage, settingsPage } from "./settings.tsx";
import { PAUSES_PATH, pausesPage, type PausesPageProps } from "./pauses.tsx";
import { checkReasonField } from "./decision-form.ts";
import { AccountParams } from "../accounts/routes.ts";
import { checkPausedHost } from "../pauses/pause.ts";
import { PauseParams } from "../pauses/routes.ts";
import type { PauseService } from "../pauses/service.ts";
import type { KeyService } from "../accounts/keys.ts";
import { KEY_ID } from "../runtime/ids.ts";
import { callbackHostsPage, notificationsPage } from "./callbacks.tsx";
import { askRotationPage, originPage, rotatedPage, secretPage } from "./signing.tsx";
import {
  type Flash,
  type AnswerPerson,
  createPersonRoutes,
  type Person,
  type PersonRouteDeps,
} from "../http/session.ts";
import type { Form, RequestContext } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";

export interface SettingsPageDeps extends PersonRouteDeps {
  readonly signingService: SigningService;
  readonly callbackHosts: CallbackHostService;
  readonly listNotifications: ListNotifications;
  /** The server's settings that this caller can see. */
  readonly rulesFor: (caller: Caller) => Promise<EffectiveSettings>;
  readonly signUpGate: Pick<SignUpGate, "isOperator">;
  readonly flash: Flash;
}

/** The settings pages. A secret is only in the response to a form, never in a URL. */
export function settingsPages(deps: SettingsPageDeps) {
  const { personOf, listNotifications, rulesFor, formOf } = deps;
  const settings: AnswerPerson = async ({ person }) => {
    if (!mayDo(person.role, "manage")) return page("own", ownSettingsPage({ user: person }));
    const [rules, callbackHosts, notifications, isOperator] = await Promise.all([
      rulesFor(person.caller),
      deps.callbackHosts.list(person.caller),
      listNotifications(person.caller, null, NOTIFICATIONS_NEWEST_MAX),
      deps.signUpGate.isOperator(person.caller),
    ]);
    return page("own", settingsPage({ user: person, rules, callbackHosts, notifications, isOperator }));
  };
  const callbacks: AnswerPerson = async ({ context: { search }, person }) => {
    const before = rowIn(new URLSearchParams(search).get("before"));
    const found = await listNotifications(person.caller, before, NOTIFICATIONS_SHOWN_MAX);
    return page("own", notificationsPage({ user: person, ...found }));
  };
  const secret: AnswerPerson = async ({ context, person }) => {
    const form = await formOf(context, person);
    const typed = form.get("origin") ?? "";
    const [origin, use] = [originOf(typed), useIn(form)];
    if (origin === null) return askOrigin(context, person, typed, use);
    const shown = await deps.signingService.read(person.caller, origin, use);
    return page("own", secretPage({ user: person, shown: { ...shown, use } }));
  };
  return createPersonRoutes(personOf)
    .get("/settings", settings)
    .get("/settings/callbacks", callbacks)
    .get("/settings/signing-secret", ({ person }) => page("own", originPage({ user: person })))
    .post("/settings/signing-secret", secret)
    .get("/settings/rotation", ({ person }) => ask(deps, person, { origin: null, use: "calls" }))
    .post("/settings/rotation", rotate(deps))
    .get(ROTATED_PATH, showRotated(deps))
    .post("/settings/callback-hosts", addCallbackHost(deps))
    .post("/settings/callback-hosts/remove", removeCallbackHost(deps));
}

/**
 * Asks for confirmation first. A confirmation is valid only for the state that was shown: the same one twice, by a double
 * click or a reload, would invalidate the previous secret, which targets still use.
 */
function rotate(deps: SettingsPageDeps): AnswerPerson {
  const { signingService, formOf, flash } = deps;
  return async ({ context, person }) => {
    const form = await formOf(context, person);
    const typed = form.get("origin") ?? "";
    const origin = typed === "" ? null : originOf(typed);
    const use = useIn(form);
    if (typed !== "" && origin === null) return askOrigin(context, person, typed, use);
    const seen = form.get("seen");
    if (seen !== stateOf(await overlapEndOf(deps, person, { origin, use })))
      return ask(deps, person, { origin, use }, seen !== undefined);
    const { previousExpiresAt } = await signingService.rotate(person.caller, origin, origin === null ? null : use);
    const result: Rotated = { origin, use, untilMs: previousExpiresAt.getTime() };
    // After a rotation of all secrets, none is shown.
    if (origin === null) return flash.redirect(person, ROTATED_PATH, result);
    return flash.showSecretOnce(person, ROTATED_PATH, result, async () =>
      page("own", await rotatedHtml(deps, person, result)),
    );
  };
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
    return result === null ? seeOther("own", "/settings") : page("own", await rotatedHtml(deps, person, result));
  };
}

async function rotatedHtml({ signingService }: SettingsPageDeps, person: Person, result: Rotated): Promise<string> {
  const { origin, use, untilMs } = result;
  if (origin === null) return rotatedPage({ user: person, until: new Date(untilMs) });
  const shown = await signingService.read(person.caller, origin, use);
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

function addCallbackHost(deps: SettingsPageDeps): AnswerPerson {
  const { callbackHosts, formOf } = deps;
  return async ({ context, person }) => {
    const typed = (await formOf(context, person)).get("host") ?? "";
    try {
      await callbackHosts.add(person.caller, checkCallbackHost(typed.trim(), "validation_error"));
    } catch (error) {
      return showFormAgain(context, error, INVALID, async (problem) =>
        callbackHostsPage({ user: person, hosts: await callbackHosts.list(person.caller), typed, problem }),
      );
    }
    return seeOther("own", CALLBACK_HOSTS);
  };
}

function removeCallbackHost({ callbackHosts, formOf }: SettingsPageDeps): AnswerPerson {
  return async ({ context, person }) => {
    const host = (await formOf(context, person)).get("host") ?? "";
    // Somebody else may have removed it already.
    await callbackHosts.remove(person.caller, host).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
    });
    return seeOther("own", CALLBACK_HOSTS);
  };
}

const CALLBACK_HOSTS = "/settings#callback-hosts";

/** A reserved name (RFC 6761, 6.4): its secret stands for every origin that was never rotated alone. */
const ANY_ORIGIN = "https://any.invalid";

/** When the previous secret expires; null if there is none. */
function overlapEndOf({ signingService }: SettingsPageDeps, { caller }: Person, { origin, use }: Asked) {
  return signingService.overlapEnd(caller, origin ?? ANY_ORIGIN, use);
}

function stateOf(overlapEnd: Date | null): string {
  return overlapEnd?.toISOString() ?? "none";
}

function askOrigin(context: RequestContext, user: Person, origin: string, use: SigningUse): Response {
  context.errorCode = "validation_error";
  const problem = "Enter only the scheme, host and port of a target, like https://api.example.com.";
  return page("own", originPage({ user, origin, use, problem }), { status: 400 });
}

/** Null if it is not an origin. A trailing slash, as browsers add, is accepted. */
function originOf(text: string): string | null {
  const trimmed = text.trim().replace(/\/$/, "");
  try {
    return checkOrigin(trimmed);
  } catch (error) {
    if (error instanceof DomainError) return null;
    throw error;
  }
}

function rowIn(text: string | null): string | null {
  return text !== null && /^[A-Za-z0-9_-]{1,64}$/.test(text) ? text : null;
}

export interface PausePageDeps extends PersonRouteDeps {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
  readonly keyService: Pick<KeyService, "list">;
}

/** The pages of pauses, with the same service as /v1/pauses. They work without script. */
export function pausePages(deps: PausePageDeps) {
  const { pauseService, personOf, formOf } = deps;
  return createPersonRoutes(personOf)
    .get(PAUSES_PATH, async ({ context, person }) => {
      const search = new URLSearchParams(context.search);
      const asked = { chosen: search.get("key") ?? "", host: search.get("host") ?? "" };
      return page("own", await pausesHtml(deps, person, asked));
    })
    .post(PAUSES_PATH, async ({ context, person }) => {
      const form = await formOf(context, person);
      const keyId = form.get("key_id") ?? "";
      const typedHost = (form.get("host") ?? "").trim();
      try {
        // A malformed key id must not be dropped, or the whole account would be paused.
        if (keyId !== "" && !KEY_ID.test(keyId)) throw new DomainError("not_found", "There is no such key.");
        const reason = checkReasonField(form);
        const key = keyId === "" ? null : keyId;
        const host = typedHost === "" ? null : checkPausedHost(typedHost, key);
        await pauseService.pause(person.caller, { keyId: key, host, reason });
      } catch (error) {
        const typed = { chosen: keyId, host: typedHost, reason: form.get("reason") };
        return showFormAgain(context, error, INVALID, (problem) => pausesHtml(deps, person, { ...typed, problem }));
      }
      return seeOther("own", PAUSES_PATH);
    })
    .post(
      `${PAUSES_PATH}/:id/resume`,
      async ({ context, person, params }) => {
        await formOf(context, person);
        await pauseService.resume(person.caller, params.id);
        return seeOther("own", PAUSES_PATH);
      },
      { params: PauseParams },
    );
}

async function pausesHtml(
  { pauseService, keyService }: PausePageDeps,
  person: Person,
  more: Pick<PausesPageProps, "chosen" | "host" | "problem" | "reason">,
): Promise<string> {
  const [pauses, keys] = await Promise.all([pauseService.list(person.caller), keyService.list(person.caller)]);
  return pausesPage({ user: person, pauses, keys, ...more });
}

export interface AccountsPageDeps extends PersonRouteDeps {
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy">;
}

/** The page of the accounts, for owners of the first one. */
export function accountsPages({ signUpGate, personOf, formOf }: AccountsPageDeps) {
  return createPersonRoutes(personOf)
    .get(ACCOUNTS_PAGE_PATH, async ({ person }) => {
      const [accounts, closedBy] = await Promise.all([signUpGate.list(person.caller), signUpGate.closedBy()]);
      return page("own", accountsPage({ user: person, accounts, closedBy }));
    })
    .post(
      `${ACCOUNTS_PAGE_PATH}/:id/allow`,
      async ({ context, person, params }) => {
        await formOf(context, person);
        await signUpGate.allow(person.caller, params.id);
        return seeOther("own", ACCOUNTS_PAGE_PATH);
      },
      { params: AccountParams },
    );
}
