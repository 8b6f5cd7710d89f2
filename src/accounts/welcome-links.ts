import { auditOf } from "../audit/audit.ts";
import { DomainError } from "../api/domain-error.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Passwords, Secrets } from "../crypto/types.ts";
import type { LiveLink, PeopleStore, WelcomeLink, AccountStore } from "../../db/account-store.ts";
import { type RequestSource, type Entered, newSession, type SessionRegistry } from "./sessions.ts";
import { type Credentials, emailTaken } from "./sign-up.ts";
import { PASSWORD_LINK_MS_MAX, WELCOME_LINK_MS_MAX } from "../config/limits.ts";

interface WelcomeDeps {
  readonly people: Pick<PeopleStore, "find" | "link" | "renewPassword" | "welcome">;
  readonly passwords: Pick<Passwords, "hash">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">;
  readonly ids: Pick<Ids, "person">;
  readonly clock: Pick<Clock, "now">;
  readonly sessionRegistry: Pick<SessionRegistry, "look">;
}

type WelcomeSource = Pick<RequestSource, "client" | "sessionSecret">;

/** What a one-time link is for. */
interface Welcome {
  /** The person whose password it resets; null: the visitor becomes the account's first person. */
  readonly email: string | null;
}

/** Reads a link and changes nothing. Throws `not_found` if it was used, has expired or never existed. */
export function createSeeWelcome({ people, secrets, clock }: Pick<WelcomeDeps, "people" | "secrets" | "clock">) {
  return async (token: string): Promise<Welcome> => {
    const link = await people.link(secrets.hash(token), clock.now());
    if (link === null) throw gone();
    return { email: link.email };
  };
}

/**
 * Uses a link, once, and logs its visitor in. A link that resets a password ignores the address of the credentials. Throws
 * `not_found` as above, and `email_taken`.
 */
export function createTakeWelcome({ people, passwords, secrets, ids, clock, sessionRegistry }: WelcomeDeps) {
  const begin = async (
    { personId, accountId, email }: LiveLink,
    credentials: Credentials,
    linkHash: string,
    { client, sessionSecret }: WelcomeSource,
  ) => {
    const passwordHash = await passwords.hash(credentials.password, { lane: accountId, isKnown: true });
    const now = clock.now();
    const person = { id: personId ?? ids.person(), email: email ?? credentials.email, passwordHash, createdAt: now };
    const { row, entered } = newSession(secrets, { person, accountId, sessionSecret }, now);
    const kind = personId === null ? "signed_up" : "password_changed";
    const audited = { kind, subject: person.email, detail: { by: "link" } } as const;
    const audit = auditOf({ ...entered.person.caller, client }, audited, now);
    if (personId !== null) {
      if (!(await people.renewPassword(linkHash, passwordHash, row, audit))) return "gone";
      await sessionRegistry.look(personId);
      return entered;
    }
    const became = await people.welcome(linkHash, person, row, audit);
    return became === "taken" ? entered : became;
  };
  return async (token: string, credentials: Credentials, source: WelcomeSource): Promise<Entered> => {
    const linkHash = secrets.hash(token);
    const link = await people.link(linkHash, clock.now());
    if (link === null) throw gone();
    if (link.personId === null && (await people.find(credentials.email)) !== null) throw emailTaken();
    const entered = await begin(link, credentials, linkHash, source);
    if (entered === "gone") throw gone();
    if (entered === "email_taken") throw emailTaken();
    return entered;
  };
}

/** The same for every invalid link, so that it reveals nothing. */
function gone(): DomainError {
  return new DomainError(
    "not_found",
    "This link was used or has expired. The operator of this server can create another: outgate welcome-link, or outgate reset-password.",
  );
}

interface WelcomeLinkDeps {
  readonly accounts: Pick<AccountStore, "first">;
  readonly people: Pick<PeopleStore, "find" | "offer">;
  readonly secrets: Pick<Secrets, "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Creates the link whose visitor becomes the first person of the first account, and voids the one before it. Returns its
 * token, which is not stored; null: the account has a person already, or there is no account yet.
 */
export function createOfferWelcome({ accounts, people, secrets, clock }: WelcomeLinkDeps) {
  return async (): Promise<string | null> => {
    const account = await accounts.first();
    if (account === null) return null;
    const token = secrets.newToken();
    return (await people.offer(welcomeLink(secrets.hash(token), account.id, clock.now()))) ? token : null;
  };
}

/** The row of a link whose visitor becomes the account's first person. */
export function welcomeLink(hash: string, accountId: string, now: Date): WelcomeLink {
  const [createdAt, expiresAt] = from(now, WELCOME_LINK_MS_MAX);
  return { hash, personId: null, accountId, createdAt, expiresAt };
}

/** Creates a link that resets a person's password and voids the one before it. Null: unknown address. */
export function createOfferPassword({ people, secrets, clock }: Omit<WelcomeLinkDeps, "accounts">) {
  return async (email: string): Promise<string | null> => {
    const member = await people.find(email);
    if (member === null) return null;
    const token = secrets.newToken();
    const [createdAt, expiresAt] = from(clock.now(), PASSWORD_LINK_MS_MAX);
    const { person, accountId } = member;
    const link = { hash: secrets.hash(token), personId: person.id, accountId, createdAt, expiresAt };
    return (await people.offer(link)) ? token : null;
  };
}

function from(now: Date, lastsMs: number): readonly [Date, Date] {
  return [now, new Date(now.getTime() + lastsMs)];
}
