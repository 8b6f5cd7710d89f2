import type { Caller, MemberRole } from "./roles.ts";

/** A person who is logged in. */
export interface Person {
  /** With the role of the person; decisions are recorded under their address. */
  readonly caller: Caller;
  readonly email: string;
  readonly role: MemberRole;
  /** They can switch to another account. */
  readonly hasOthers: boolean;
  /** The CSRF token of every form that changes something. */
  readonly formToken: string;
  readonly sessionHash: string;
  /** Hash of the session secret; null: none. */
  readonly secretHash: string | null;
}

/** A new session of a person. Only the cookies hold the tokens. */
export interface StartedSession {
  readonly person: Person;
  readonly sessionToken: string;
  /** Identifies this device at later logins. */
  readonly deviceToken: string;
  /** They have joined the account by an invitation at the same time. */
  readonly isJoined?: true;
}

/** The origin of a request to sign up or log in. */
export interface RequestSource {
  /** The network address, as `clientNetwork` names it. */
  readonly client: string;
  /** The device token as sent, not yet verified; null: none. */
  readonly deviceToken: string | null;
  /** The session secret of the browser's storage (`PeopleService.sessionSecret`); null: no script ran, or no page sent this. */
  readonly sessionSecret: string | null;
  /** The beginning of its User-Agent, of visible ASCII; null: none. */
  readonly browser: string | null;
}

/** What a session keeps of the request that begins it. */
export type SessionSource = Pick<RequestSource, "client" | "sessionSecret" | "browser">;

/** A watched session, for streams and other long answers. */
export interface SessionWatch {
  /** Its `revoked` is aborted when the session ends. */
  readonly caller: Caller;
  /** Call it when the answer has ended; otherwise, the watch is never freed. */
  readonly release: () => void;
}

/**
 * Identifies the caller of a request. `forget` applies a revocation at once, also to the key's open streams and waits;
 * `recheck` applies revocations by other processes.
 */
export interface Authenticate {
  /** `takesTokens`: also accepts an OAuth access token, which stands for its key. */
  (authorization: string | null, takesTokens?: boolean): Promise<Caller>;
  readonly forget: (keyHash: string) => void;
  readonly recheck: () => Promise<void>;
}

/** Reads sessions by the token of their cookie. Null: the session has ended or never existed. */
export interface Sessions {
  resume(sessionToken: string): Promise<Person | null>;
  /** For an event stream, which must end with the session. */
  watchSession(sessionToken: string): Promise<SessionWatch | null>;
}

/** Checks that a form comes from the browser that began the session, if cookies can't prove it (plain http). */
export interface SessionSecret {
  isRight(person: Pick<Person, "secretHash">, secret: string | null): boolean;
  /** Accepts the password in its place. Throws `invalid_credentials` or `RetryLater`. */
  confirm(person: Person, password: string, source: RequestSource): Promise<void>;
}
