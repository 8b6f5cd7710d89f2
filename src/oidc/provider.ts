import type * as openid from "openid-client";
import type { Configuration, CustomFetch } from "openid-client";
import { OIDC_CALL_MS_MAX, OIDC_FRESH_MS, OIDC_PAUSE_MS } from "../core/limits.ts";
import type { Sender } from "../outbound/deadline.ts";
import type { Clock } from "../core/clock.ts";

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** What binds an answer of the provider to the browser and the request that began it. */
export interface Challenge {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636): 43 to 128 unreserved characters. */
  readonly verifier: string;
}

/** Whom the provider vouches for. */
export interface Claims {
  readonly issuer: string;
  readonly subject: string;
  /** Null: it tells none. */
  readonly email: string | null;
  /** The provider says that the address is theirs. */
  readonly isVerified: boolean;
}

/** The provider can't be reached, or its answers are not those of one. Nothing is known of the person. */
export class ProviderAway extends Error {
  override readonly name = "ProviderAway";
}

/** The provider, or a check of its answer, says no. */
export class SignInRefused extends Error {
  override readonly name = "SignInRefused";
}

export type OidcProvider = ReturnType<typeof createOidcProvider>;

/**
 * An OpenID provider, by the authorization code flow with PKCE. What it says of itself is read at the first sign-in and kept
 * for `OIDC_FRESH_MS`; if it is away, the next `OIDC_PAUSE_MS` don't ask again. All calls go through our sender: to
 * checked addresses, without redirects, with a bounded answer.
 */
export function createOidcProvider(
  settings: OidcSettings,
  {
    sender,
    clock,
    redirectUri,
  }: { readonly sender: Sender; readonly clock: Pick<Clock, "monotonicMs">; readonly redirectUri: string },
) {
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

  return {
    /** The address to which the browser goes. Throws `ProviderAway`. */
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

    /** Reads the answer in the query. Throws `SignInRefused` unless it answers this challenge, and `ProviderAway`. */
    async finish(search: string, { state, nonce, verifier }: Challenge): Promise<Claims> {
      const { client, config } = await discovered();
      const checks = {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      };
      try {
        const tokens = await client.authorizationCodeGrant(config, new URL(`${redirectUri}?${search}`), checks);
        const claims = tokens.claims();
        if (claims === undefined) throw new SignInRefused("The provider has sent no ID token.");
        const { iss: issuer, sub: subject } = claims;
        // Many providers tell the address only at their userinfo endpoint.
        const told =
          typeof claims["email"] === "string" || config.serverMetadata().userinfo_endpoint === undefined
            ? claims
            : await client.fetchUserInfo(config, tokens.access_token, subject);
        const { email, email_verified: verified } = told;
        return { issuer, subject, email: typeof email === "string" ? email : null, isVerified: verified === true };
      } catch (error) {
        throw asOurs(error);
      }
    },
  };
}

interface Found {
  readonly client: typeof openid;
  readonly config: Configuration;
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings, customFetch: CustomFetch): Promise<Found> {
  // Imported only where it is used.
  const client = await import("openid-client");
  const server = new URL(issuer);
  const config = await client.discovery(server, clientId, clientSecret, undefined, {
    [client.customFetch]: customFetch,
    timeout: OIDC_CALL_MS_MAX / 1_000,
    // The settings allow http only on this machine.
    // oxlint-disable-next-line typescript/no-deprecated -- marked to stand out, not because it goes away
    execute: server.protocol === "http:" ? [client.allowInsecureRequests] : [],
  });
  // The signature of the ID token too, though it comes from the provider itself.
  client.enableNonRepudiationChecks(config);
  return { client, config };
}

/** The library throws errors of its own for what the provider answers, and others for what does not look like an answer. */
function asOurs(error: unknown): Error {
  if (error instanceof SignInRefused) return error;
  const cause = error instanceof Error ? error : new Error("unknown");
  if (causesOf(cause).some((one) => one instanceof ProviderAway)) {
    return new ProviderAway("The provider can't be reached.", { cause });
  }
  return new SignInRefused("The provider's answer was refused.", { cause });
}

/** Errors wrap each other only a few levels deep. */
const CAUSES_MAX = 5;

function causesOf(error: Error): readonly Error[] {
  const all: Error[] = [error];
  while (all.length < CAUSES_MAX) {
    const next = all.at(-1)?.cause;
    if (!(next instanceof Error)) break;
    all.push(next);
  }
  return all;
}

/** The library's `fetch`, by our sender. */
function fetchBy(sender: Sender): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const outcome = await sender.send(
      {
        url,
        method: method === "POST" ? "POST" : "GET",
        headers: Object.entries(headers),
        body: textOf(body),
      },
      { timeoutMs: OIDC_CALL_MS_MAX, ...(signal === undefined ? {} : { stop: signal }) },
    );
    if (outcome.kind !== "answered" || outcome.brokenBy !== null || outcome.code >= FAULT) {
      throw new ProviderAway(outcome.kind === "answered" ? `It answered ${outcome.code}.` : "It did not answer.");
    }
    // The sender has bounded the body; that it is JSON shows when it is parsed.
    return new Response(outcome.body, { status: outcome.code, headers: { "content-type": "application/json" } });
  };
}

/** From this status on the provider has failed, and says nothing of the person. */
const FAULT = 500;

function textOf(body: unknown): string | null {
  if (body === undefined || body === null) return null;
  if (body instanceof URLSearchParams) return body.toString();
  if (typeof body === "string") return body;
  throw new TypeError("The library sends forms and texts only.");
}
