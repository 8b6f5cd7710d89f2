import type { AppPart } from "../runtime/app-context.ts";
import type { StartedSession, RequestSource } from "../core/session.ts";
import { auditOf } from "../core/audit.ts";
import { type PeopleService, NO_PASSWORD } from "../accounts/people.ts";
import { newSession } from "../accounts/sessions.ts";
import type { TeamService } from "../accounts/team.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Member } from "../core/account-store.ts";
import type { Identity } from "../core/team-store.ts";
import type { Claims, OidcProvider } from "./provider.ts";

/** Why somebody whom the provider vouches for is not let in. */
export type NotLetIn = "unverified" | "other_domain" | "no_account" | "other_identity";

interface OidcSignInNeeds {
  readonly peopleService: Pick<PeopleService, "recheckPerson">;
  readonly teamService: Pick<TeamService, "joinByIdentity">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken" | "readDeviceToken">;
  /** Lower case. */
  readonly allowedDomains: readonly string[];
}

/** The person of what a provider says, in a session; or why not. */
export type OidcSignIn = (
  claims: Claims,
  source: RequestSource,
  invitationToken: string | null,
) => Promise<StartedSession | NotLetIn>;

/** Log-in by an identity provider. */
export interface Oidc {
  readonly provider: OidcProvider;
  readonly signIn: OidcSignIn;
  /** Counts what a client begins or ends. Throws `RetryLater`. */
  readonly throttle: (client: string) => void;
  /** The host of the issuer, for the button. */
  readonly name: string;
}

/**
 * Lets in whom the provider vouches for. A subject that was here before is the same person whatever its address is now. A new
 * one is the person of its address, once, or joins by an invitation of that address. Only a verified address of an allowed
 * domain counts.
 */
export function createOidcSignIn(app: AppPart<"clock", "people" | "team">, needs: OidcSignInNeeds): OidcSignIn {
  const { people, team } = app.store;
  const { peopleService, teamService, secrets, allowedDomains } = needs;

  /**
   * Begins a session. Null: the person has left, or the provider knows them as somebody else. At the first sign-in (`isNew`)
   * a password is kept only if they have logged in on this browser before: whoever signed up with somebody else's address
   * must not keep a password to what is now that person's account.
   */
  const begin = async (member: Member, identity: Identity, isNew: boolean, source: RequestSource) => {
    const { person } = member;
    const at = app.clock.now();
    const { row, started } = newSession(secrets, member, source, at);
    const device = source.deviceToken === null ? null : secrets.readDeviceToken(source.deviceToken);
    const isKnown = device?.personId === person.id && device.expiresAt > at;
    const dropsPassword = isNew && !isKnown && person.passwordHash !== NO_PASSWORD;
    const detail = { issuer: identity.issuer, password_removed: dropsPassword };
    const linked = { kind: "identity_linked", subject: person.email, detail } as const;
    const signedIn = { kind: "signed_in", subject: person.email, detail: { by: "oidc" } } as const;
    const audit = [...(isNew ? [linked] : []), signedIn].map((entry) => auditOf(started.person.caller, entry, at));
    if (!(await team.signIn(row, identity, { audit, dropsPassword }))) return null;
    // Sessions may have ended: the oldest, or all of whoever knew the password.
    await peopleService.recheckPerson(person.id);
    return started;
  };

  return async ({ issuer, subject, email, isVerified }, source, invitationToken) => {
    if (email === null || !isVerified) return "unverified";
    const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
    if (!allowedDomains.includes(domain)) return "other_domain";
    const identity = { issuer, subject };
    const known = await team.identified(identity);
    if (known !== null) return (await begin(known, identity, false, source)) ?? "no_account";
    const member = await people.find(email);
    if (member !== null) return (await begin(member, identity, true, source)) ?? "other_identity";
    return (await teamService.joinByIdentity(email, identity, source, invitationToken)) ?? "no_account";
  };
}
