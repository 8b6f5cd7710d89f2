import { PASSWORD_LINK_MS_MAX, WELCOME_LINK_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { WelcomeLink } from "../ports/welcome-link.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";

export interface WelcomeLinkDeps {
  readonly accounts: Pick<AccountStore, "first">;
  readonly people: Pick<PeopleStore, "find" | "offer">;
  readonly secrets: Pick<Secrets, "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Hands out the link whose visitor becomes the first person of the first account (decisions 12), and voids the one before
 * it. Returns its token, which is shown this once; null when the account has a person, or there is no account yet.
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

/** The same for somebody who has lost their password: the link's visitor chooses a new one. Null: nobody has the address. */
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
