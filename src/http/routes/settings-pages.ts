import type { SigningDesk } from "../../accounts/signing-desk.ts";
import type { ListNotifications } from "../../actions/notifications.ts";
import { checkOrigin } from "../../contract/signing-secret.ts";
import type { Caller } from "../../domain/caller.ts";
import { DomainError } from "../../domain/errors.ts";
import { NOTIFICATIONS_NEWEST_MAX, NOTIFICATIONS_SHOWN_MAX, ORIGIN_CHARS_MAX } from "../../domain/limits.ts";
import { notificationsPage } from "../../web/notifications.tsx";
import type { Rules } from "../../web/rules.tsx";
import { settingsPage } from "../../web/settings.tsx";
import { askRotationPage, originPage, rotatedPage, secretPage } from "../../web/signing.tsx";
import { page } from "../page.ts";
import { type AnswerPerson, personPage } from "../person-page.ts";
import type { Route } from "../route.ts";
import type { FormOf, Person, PersonOf } from "../session.ts";
import type { Visit } from "../visit.ts";

export interface SettingsPageDeps {
  readonly signingDesk: SigningDesk;
  readonly listNotifications: ListNotifications;
  /** What of the server's settings this caller may be told. */
  readonly rulesFor: (caller: Caller) => Promise<Rules>;
  readonly personOf: PersonOf;
  readonly formOf: FormOf;
}

/** Signing secrets, callbacks and what is in force. A secret stands in the answer to a form, never in a URL. */
export function settingsPages(deps: SettingsPageDeps): readonly Route[] {
  const { personOf, listNotifications, rulesFor, formOf } = deps;
  const settings: AnswerPerson = async (_visit, person) => {
    const [rules, notifications] = await Promise.all([
      rulesFor(person.caller),
      listNotifications(person.caller, null, NOTIFICATIONS_NEWEST_MAX),
    ]);
    return page("own", settingsPage({ visitor: person, rules, notifications }));
  };
  const callbacks: AnswerPerson = async ({ search }, person) => {
    const before = rowIn(new URLSearchParams(search).get("before"));
    const found = await listNotifications(person.caller, before, NOTIFICATIONS_SHOWN_MAX);
    return page("own", notificationsPage({ visitor: person, ...found }));
  };
  const secret: AnswerPerson = async (visit, person) => {
    const typed = (await formOf(visit, person)).get("origin") ?? "";
    const origin = originOf(typed);
    if (origin === null) return askOrigin(visit, person, typed);
    return page("own", secretPage({ visitor: person, shown: await deps.signingDesk.read(person.caller, origin) }));
  };
  return [
    personPage(personOf, "GET", "/settings", settings),
    personPage(personOf, "GET", "/settings/callbacks", callbacks),
    personPage(personOf, "GET", "/settings/signing-secret", (_visit, person) => {
      return page("own", originPage({ visitor: person }));
    }),
    personPage(personOf, "POST", "/settings/signing-secret", secret),
    personPage(personOf, "GET", "/settings/rotation", async (_visit, person) => ask(deps, person, null)),
    personPage(personOf, "POST", "/settings/rotation", rotate(deps)),
  ];
}

/**
 * Asks first, and takes a yes for what it was said to: one that comes twice, by two clicks or a page that is loaded again,
 * would end the secret before the last one, which targets still verify by.
 */
function rotate(deps: SettingsPageDeps): AnswerPerson {
  const { signingDesk, formOf } = deps;
  return async (visit, person) => {
    const form = await formOf(visit, person);
    const typed = form.get("origin") ?? "";
    const origin = typed === "" ? null : originOf(typed);
    if (typed !== "" && origin === null) return askOrigin(visit, person, typed);
    const seen = form.get("seen");
    if (seen !== stateOf(await overlapEndOf(deps, person, origin)))
      return ask(deps, person, origin, seen !== undefined);
    const { previousExpiresAt } = await signingDesk.rotate(person.caller, origin);
    if (origin === null) return page("own", rotatedPage({ visitor: person, until: previousExpiresAt }));
    const shown = await signingDesk.read(person.caller, origin);
    return page("own", secretPage({ visitor: person, shown, isRotated: true }));
  };
}

async function ask(deps: SettingsPageDeps, person: Person, origin: string | null, isLate = false): Promise<Response> {
  const endsNow = await overlapEndOf(deps, person, origin);
  return page("own", askRotationPage({ visitor: person, origin, seen: stateOf(endsNow), endsNow, isLate }));
}

/** No host has this name (RFC 6761, 6.4): its secret is that of every origin which was never rotated alone. */
const ANY_ORIGIN = "https://any.invalid";

/** Until when the secret before the last rotation signs; null: there is none. */
function overlapEndOf({ signingDesk }: SettingsPageDeps, { caller }: Person, origin: string | null) {
  return signingDesk.overlapEnd(caller, origin ?? ANY_ORIGIN);
}

function stateOf(overlapEnd: Date | null): string {
  return overlapEnd?.toISOString() ?? "none";
}

function askOrigin(visit: Visit, visitor: Person, origin: string): Response {
  visit.errorCode = "validation_error";
  const problem = "Enter scheme, host and port of a target and nothing more, like https://api.example.com.";
  return page("own", originPage({ visitor, origin, problem }), { status: 400 });
}

/** Null: it is none. The slash that browsers put behind an address is no reason to ask again. */
function originOf(text: string): string | null {
  const trimmed = text.trim().replace(/\/$/, "");
  if (trimmed.length > ORIGIN_CHARS_MAX) return null;
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
