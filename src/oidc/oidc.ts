import type * as openid from "openid-client";
import type { Configuration, CustomFetch } from "openid-client";
import { NO_PASSWORD } from "../accounts/people.ts";
import { newSession, type SessionService } from "../accounts/sessions.ts";
import type { InvitationService } from "../accounts/invitations.ts";
import { createClientThrottle } from "../accounts/throttle.ts";
import type { Config } from "../config/config.ts";
import { emailKey, type Member } from "../core/account-store.ts";
import { auditEntry } from "../core/audit.ts";
import { OIDC_CALL_MS_MAX, OIDC_FRESH_MS, OIDC_PAUSE_MS, OIDC_PER_CLIENT_MAX } from "../core/limits.ts";
import type { RequestSource, StartedSession } from "../core/session.ts";
import type { Identity } from "../core/team-store.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Sender } from "../outbound/sender.ts";
import type { AppPart } from "../runtime/app-context.ts";

export const OIDC_PATH = "/auth/oidc";

export const OIDC_CALLBACK_PATH = `${OIDC_PATH}/callback`;

type OidcSettings = NonNullable<Config["oidc"]>;

/** Binds an answer of the provider to the browser and the request that began the sign-in. */
export interface Challenge {
  readonly state: string;
  readonly nonce: string;
  /** The PKCE verifier (RFC 7636): 43 to 128 unreserved characters. */
  readonly verifier: string;
}

/** The provider can't be reached or does not answer as one. This says nothing about the person. */
export class ProviderAway extends Error {
  override readonly name = "ProviderAway";
}

/** The provider refused the person, or its answer failed a check. */
export class SignInRefused extends Error {
  override readonly name = "SignInRefused";
}

/** Why we don't admit somebody that the provider vouches for. */
export type NotLetIn = "unverified" | "other_domain" | "no_account" | "other_identity";

interface OidcNeeds {
  readonly settings: OidcSettings;
  readonly redirectUri: string;
  readonly sender: Sender;
  readonly sessionService: Pick<SessionService, "recheckPerson">;
  readonly invitationService: Pick<InvitationService, "joinByIdentity">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken" | "readDeviceToken">;
}

export type Oidc = ReturnType<typeof createOidc>;

/**
 * Login with an OpenID provider, by the authorization code flow with PKCE. Reads the provider's metadata at the first sign-in
 * and keeps it for `OIDC_FRESH_MS`; after a failure, asks again only after `OIDC_PAUSE_MS`. All calls go through our sender:
 * to checked addresses, without redirects, with a bounded answer.
 */
export function createOidc(app: AppPart<"clock", "people" | "team">, needs: OidcNeeds) {
  const { clock } = app;
  const { people, team } = app.store;
  const { settings, redirectUri, sender, sessionService, invitationService, secrets } = needs;
  const customFetch = fetchBy(sender);
  let found: { readonly config: Promise<Found>; readonly untilMs: number } | null = null;

  const discovered = async (): Promise<Found> => {
    const nowMs = clock.monotonicMs();
    if (found !== null && nowMs < found.untilMs) return found.config;
    const config = discover(settings, customFetch);
    const asked = { config, untilMs: nowMs + OIDC_FRESH_MS };
    found = asked;
    return config.catch((cause: unknown) => {
      if (found === asked) found = { config, untilMs: nowMs + OIDC_PAUSE_MS };
      throw new ProviderAway("The provider can't be discovered.", { cause });
    });
  };

  /** The person that the answer in the query vouches for. Throws `SignInRefused` unless it answers this challenge. */
  const claimsIn = async (search: string, { state, nonce, verifier }: Challenge) => {
    const { client, config } = await discovered();
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
    try {
      const tokens = await client.authorizationCodeGrant(config, new URL(`${redirectUri}?${search}`), checks);
      const claims = tokens.claims();
      if (claims === undefined) throw new SignInRefused("The provider has sent no ID token.");
      const { iss: issuer, sub: subject } = claims;
      // Many providers tell the address only at their userinfo endpoint.
      const { email, email_verified: verified } =
        typeof claims["email"] === "string" || config.serverMetadata().userinfo_endpoint === undefined
          ? claims
          : await client.fetchUserInfo(config, tokens.access_token, subject);
      return { identity: { issuer, subject }, email: typeof email === "string" && verified === true ? email : null };
    } catch (error) {
      throw asOurs(error);
    }
  };

  /**
   * Begins a session. Null: the person has left, or the provider knows them as somebody else. At the first sign-in (`isNew`)
   * a password is kept only if they have logged in on this browser before: whoever signed up with somebody else's address
   * must not keep a password to what is now that person's account.
   */
  const enter = async (member: Member, identity: Identity, isNew: boolean, source: RequestSource) => {
    const { person } = member;
    const at = clock.now();
    const { row, started } = newSession(secrets, member, source, at);
    const isKnown = secrets.readDeviceToken(source.deviceToken, at)?.personId === person.id;
    const dropsPassword = isNew && !isKnown && person.passwordHash !== NO_PASSWORD;
    const detail = { issuer: identity.issuer, password_removed: dropsPassword };
    const linked = { kind: "identity_linked", subject: person.email, detail } as const;
    const signedIn = { kind: "signed_in", subject: person.email, detail: { by: "oidc" } } as const;
    const audit = [...(isNew ? [linked] : []), signedIn].map((entry) => auditEntry(started.person.caller, entry, at));
    if (!(await team.signIn(row, identity, { audit, dropsPassword }))) return null;
    // Sessions may have ended: the oldest one, or all that were begun with the password.
    await sessionService.recheckPerson(person.id);
    return started;
  };

  return {
    /** The issuer's host, for the login button. */
    name: new URL(settings.issuer).host,

    /** Counts the sign-ins that a client begins or ends. Throws `RetryLater`. */
    throttle: createClientThrottle(clock, OIDC_PER_CLIENT_MAX, "sign-ins"),

    /** The URL to send the browser to. Throws `ProviderAway`. */
    async begin({ state, nonce, verifier }: Challenge): Promise<string> {
      const { client, config } = await discovered();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: "openid email",
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
        nonce,
      });
      return url.href;
    },

    /**
     * Logs in the person that the provider vouches for, or says why not. A known subject is the same person, whatever its
     * address is now. A new subject becomes the person with its address, but only once, or joins by an invitation to that
     * address. Only verified addresses in allowed domains count. Throws `SignInRefused` and `ProviderAway`.
     */
    async finish(
      search: string,
      challenge: Challenge,
      source: RequestSource,
      invitationToken: string | null,
    ): Promise<StartedSession | NotLetIn> {
      const { identity, email } = await claimsIn(search, challenge);
      if (email === null) return "unverified";
      const domain = emailKey(email.slice(email.lastIndexOf("@") + 1));
      if (!settings.allowedDomains.includes(domain)) return "other_domain";
      const known = await team.identified(identity);
      if (known !== null) return (await enter(known, identity, false, source)) ?? "no_account";
      const member = await people.find(email);
      if (member !== null) return (await enter(member, identity, true, source)) ?? "other_identity";
      return (await invitationService.joinByIdentity(email, identity, source, invitationToken)) ?? "no_account";
    },
  };
}

interface Found {
  readonly client: typeof openid;
  readonly config: Configuration;
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings, customFetch: CustomFetch): Promise<Found> {
  // Imported when first used.
  const client = await import("openid-client");
  const server = new URL(issuer);
  const config = await client.discovery(server, clientId, clientSecret, undefined, {
    [client.customFetch]: customFetch,
    timeout: OIDC_CALL_MS_MAX / 1_000,
    // The settings allow http only on this machine.
    // oxlint-disable-next-line typescript/no-deprecated -- marked to stand out, not because it goes away
    execute: server.protocol === "http:" ? [client.allowInsecureRequests] : [],
  });
  // Checks the ID token's signature, though it comes straight from the provider.
  client.enableNonRepudiationChecks(config);
  return { client, config };
}

/** Our error for one of the library, which throws its own kind for refusals and others for malformed answers. */
function asOurs(error: unknown): Error {
  if (error instanceof SignInRefused) return error;
  const cause = error instanceof Error ? error : new Error("unknown");
  if (errorCauses(cause).some((one) => one instanceof ProviderAway)) {
    return new ProviderAway("The provider can't be reached.", { cause });
  }
  return new SignInRefused("The provider's answer was refused.", { cause });
}

/** How many wrapped errors to look through. */
const CAUSES_MAX = 5;

function errorCauses(error: Error): readonly Error[] {
  const all: Error[] = [error];
  while (all.length < CAUSES_MAX) {
    const next = all.at(-1)?.cause;
    if (!(next instanceof Error)) break;
    all.push(next);
  }
  return all;
}

/** A `fetch` for the library that uses our sender. */
function fetchBy(sender: Sender): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const outcome = await sender.send(
      {
        url,
        method: method === "POST" ? "POST" : "GET",
        headers: Object.entries(headers),
        body: bodyText(body),
      },
      { timeoutMs: OIDC_CALL_MS_MAX, ...(signal === undefined ? {} : { stop: signal }) },
    );
    if (outcome.kind !== "answered" || outcome.brokenBy !== null || outcome.code >= FAULT) {
      throw new ProviderAway(outcome.kind === "answered" ? `It answered ${outcome.code}.` : "It did not answer.");
    }
    // The sender has bounded the body. The library finds out whether it is JSON.
    return new Response(outcome.body, { status: outcome.code, headers: { "content-type": "application/json" } });
  };
}

/** From this status on the provider has failed, which says nothing about the person. */
const FAULT = 500;

function bodyText(body: unknown): string | null {
  if (body === undefined || body === null) return null;
  if (body instanceof URLSearchParams) return body.toString();
  if (typeof body === "string") return body;
  throw new TypeError("The library sends forms and texts only.");
}
