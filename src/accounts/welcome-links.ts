import type { AccountStore, LiveLink, PeopleStore, WelcomeLink } from "../core/account-store.ts";
import { auditEntry } from "../core/audit.ts";
import type { Clock } from "../core/clock.ts";
import { type DomainError, LinkGone } from "../core/domain-error.ts";
import { PASSWORD_LINK_MS_MAX, WELCOME_LINK_MS_MAX } from "../core/limits.ts";
import type { SessionSource, StartedSession } from "../core/session.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppPart } from "../runtime/app-context.ts";
import { type CredentialsBody, emailTaken, type PeopleService } from "./people.ts";
import { newSession, type SessionService } from "./sessions.ts";

/** A new one-time link, with its token. `personId` null: for an account's first person; else this person sets a new password. */
export function newWelcomeLink(
  secrets: Pick<Secrets, "hash" | "newToken">,
  { accountId, personId }: Pick<WelcomeLink, "accountId" | "personId">,
  now: Date,
): { readonly token: string; readonly link: WelcomeLink } {
  const token = secrets.newToken();
  const lastsMs = personId === null ? WELCOME_LINK_MS_MAX : PASSWORD_LINK_MS_MAX;
  const expiresAt = new Date(now.getTime() + lastsMs);
  return { token, link: { hash: secrets.hash(token), personId, accountId, createdAt: now, expiresAt } };
}

export function welcomeUrl({ baseUrl }: { readonly baseUrl: string }, token: string): string {
  return `${baseUrl}/welcome/${token}`;
}

interface LinkParts {
  readonly accounts: Pick<AccountStore, "first">;
  readonly people: Pick<PeopleStore, "find" | "offer">;
  readonly secrets: Pick<Secrets, "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
}

/** Makes a link for the first account's first person, and voids the previous one. Null: there is a person, or no account. */
export async function createWelcomeLink(parts: LinkParts): Promise<string | null> {
  const account = await parts.accounts.first();
  return account === null ? null : offerLink(parts, account.id, null);
}

/** Makes a link that resets a person's password, and voids the one before it. Null: unknown address. */
export async function createResetLink(parts: Omit<LinkParts, "accounts">, email: string): Promise<string | null> {
  const member = await parts.people.find(email);
  return member === null ? null : offerLink(parts, member.accountId, member.person.id);
}

/** The token of a new link; null: the store refused it. */
async function offerLink(
  { people, secrets, clock }: Omit<LinkParts, "accounts">,
  accountId: string,
  personId: string | null,
): Promise<string | null> {
  const { token, link } = newWelcomeLink(secrets, { accountId, personId }, clock.now());
  return (await people.offer(link)) ? token : null;
}

/** What the visitor of a one-time link does. */
export function createWelcomeLinkService(
  { store: { people }, clock, ids }: AppPart<"clock" | "ids", "people">,
  peopleService: Pick<PeopleService, "hashPassword">,
  sessionService: Pick<SessionService, "recheckPerson">,
  secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">,
) {
  const findLink = async (token: string): Promise<LiveLink> => {
    const link = await people.link(secrets.hash(token), clock.now());
    if (link === null) throw linkGone();
    return link;
  };
  return {
    /** `email`: the address whose password the link resets; null: it is for a new person. Throws `not_found`. */
    async find(token: string): Promise<{ readonly email: string | null }> {
      const { email } = await findLink(token);
      return { email };
    },

    /** Uses a link once; one that resets a password keeps the address. Throws `not_found` and `email_taken`. */
    async redeem(token: string, credentials: CredentialsBody, source: SessionSource): Promise<StartedSession> {
      const link = await findLink(token);
      const linkHash = secrets.hash(token);
      const { personId, accountId } = link;
      if (personId === null && (await people.find(credentials.email)) !== null) throw emailTaken();
      const passwordHash = await peopleService.hashPassword(credentials.password, accountId);
      const now = clock.now();
      const email = link.email ?? credentials.email;
      const person = { id: personId ?? ids.person(now), email, passwordHash, createdAt: now };
      const { row, started } = newSession(secrets, { person, accountId, role: link.role ?? "owner" }, source, now);
      const kind = personId === null ? "signed_up" : "password_changed";
      const audit = auditEntry(started.person.caller, { kind, subject: email, detail: { by: "link" } }, now);
      if (personId === null) {
        const result = await people.welcome(linkHash, person, row, audit);
        if (result === "email_taken") throw emailTaken();
        if (result === "gone") throw linkGone();
        return started;
      }
      if (!(await people.renewPassword(linkHash, passwordHash, row, audit))) throw linkGone();
      await sessionService.recheckPerson(personId);
      return started;
    },
  };
}

/** The same error for every invalid link, so that it reveals nothing. */
function linkGone(): DomainError {
  return new LinkGone(
    "This link was used or has expired. The operator of this server can create another: outgate welcome-link, or outgate reset-password.",
  );
}
