import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import type { AppContext, AppPart } from "../runtime/app-context.ts";
import type { Person, StartedSession, RequestSource } from "../core/session.ts";
import { auditEntry } from "../core/audit.ts";
import { DomainError, RetryLater } from "../core/domain-error.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, SIGN_UPS_PER_CLIENT_MAX } from "../core/limits.ts";
import type { KnownDevice } from "../crypto/tokens.ts";
import type { Passwords, HashLane } from "../crypto/passwords.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { type Account, type Member, emailKey } from "../core/account-store.ts";
import { keyCreated, keyRow } from "./keys.ts";
import { SYSTEM } from "../core/roles.ts";
import { newSession, type SessionService } from "./sessions.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { createClientThrottle, createLogInThrottle, createSignInAudit } from "./throttle.ts";

const passwordMember = t.storable(
  Type.String({
    minLength: PASSWORD_CHARS_MIN,
    maxLength: PASSWORD_CHARS_MAX,
    description: "Any characters except NUL and lone surrogates. Only its argon2id hash is stored.",
    examples: ["correct horse battery staple"],
  }),
);

export const CredentialsBody = t.requestObject("Credentials", "An address and its password.", {
  email: t.emailSchema("The person's address; case does not matter."),
  password: passwordMember,
});

const PersonAccount = Type.Object(
  { id: t.idSchema("acc", "Id of the account."), email: t.plainText("The person's address.", "ann@example.com") },
  { description: "The account and its person." },
);

export const LoggedInJson = t.answerObject("LoggedIn", "The person who logged in. The session is in the cookie.", {
  account: PersonAccount,
});

export const SignedUpJson = t.answerObject(
  "SignedUp",
  "The new account and its first key. The session is in the cookie.",
  {
    account: PersonAccount,
    api_key: t.plainText(
      "An owner key. It is not stored and never shown again.",
      "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x",
    ),
  },
);

export type CredentialsBody = Static<typeof CredentialsBody>;

/** A person changes their password on a page only. */
export const PasswordChangeBody = t.closedObject({ current_password: passwordMember, password: passwordMember });

type PasswordChange = Static<typeof PasswordChangeBody>;

interface PeopleNeeds {
  readonly passwords: Passwords;
  readonly secrets: Secrets;
  readonly signUpGate: Pick<SignUpGate, "signUps" | "requireOpen">;
  readonly sessionService: Pick<SessionService, "recheckPerson">;
}

export type PeopleService = ReturnType<typeof createPeopleService>;

export function createPeopleService(app: AppPart<"ids" | "clock", "people" | "audit">, needs: PeopleNeeds) {
  const { ids, clock } = app;
  const { people } = app.store;
  const { passwords, secrets, signUpGate, sessionService } = needs;
  /** Shared by login and the check of the current password, so that a session does not allow guessing it faster. */
  const throttleLogIn = createLogInThrottle(clock);
  const throttleSignUp = createClientThrottle(clock, SIGN_UPS_PER_CLIENT_MAX, "sign-ups");
  const auditRefused = createSignInAudit(app);

  /**
   * The person with this address and password. `personId`: the person is logged in already. Throws `invalid_credentials`,
   * after the same time whether the address is unknown or the password is wrong, and `RetryLater` after too many failures,
   * which are counted and audited.
   */
  const verifyPassword = async (
    { email, password }: CredentialsBody,
    source: RequestSource,
    personId: string | null,
  ): Promise<Member> => {
    const { client } = source;
    const known = await recognize(email, source);
    let uncount = () => {};
    try {
      uncount = throttleLogIn({ email, client, device: known?.device.deviceId ?? null });
      const member = known?.member ?? (await people.find(email));
      const lane = hashLane(source, email, personId ?? known?.device.personId ?? null);
      // A schema bounds the password of a login, but not that of a form that confirms a session.
      const isTooLong = personId !== null && password.length > PASSWORD_CHARS_MAX;
      // Without a hash, every password is wrong, after the same time.
      const hash = member === null || member.person.passwordHash === NO_PASSWORD ? null : member.person.passwordHash;
      if (!isTooLong && (await passwords.verify(password, hash, lane)) && member !== null) {
        uncount();
        return member;
      }
    } catch (error) {
      // The password was not checked, so don't count it as wrong.
      uncount();
      if (error instanceof RetryLater) auditRefused("sign_in_throttled", email, client);
      throw error;
    }
    auditRefused("sign_in_failed", email, client);
    throw personId === null ? invalidCredentials() : wrongPassword();
  };

  /** The device if the person of this address has logged in on it before; null: unknown device. */
  const recognize = async (
    email: string,
    { deviceToken }: RequestSource,
  ): Promise<{ readonly member: Member; readonly device: KnownDevice } | null> => {
    const device = secrets.readDeviceToken(deviceToken, clock.now());
    if (device === null) return null;
    const member = await people.find(email);
    return member?.person.id === device.personId ? { member, device } : null;
  };

  return {
    /** Creates an account with its first person and an owner key. Throws `forbidden`, `email_taken` and `RetryLater`. */
    async signUp(
      { email, password }: CredentialsBody,
      source: RequestSource,
    ): Promise<StartedSession & { readonly apiKey: string }> {
      await signUpGate.requireOpen();
      // Attempts with a taken address also count; otherwise, a list of addresses could be tested at any speed.
      const uncount = throttleSignUp(source.client);
      // Checked before hashing, which costs a hundred times as much. The write below decides races.
      if ((await people.find(email)) !== null) throw emailTaken();
      const passwordHash = await passwords.hash(password, hashLane(source, email, null)).catch((error: unknown) => {
        uncount();
        throw error;
      });
      const now = clock.now();
      const account = newAccount({ secrets, ids }, now);
      const person = { id: ids.person(now), email, passwordHash, createdAt: now };
      const apiKey = secrets.newApiKey();
      const createdBy = { createdBy: `user:${email}`, createdById: person.id } as const;
      const owner = { accountId: account.id, name: "owner", role: "owner", ...createdBy } as const;
      const key = keyRow({ secrets, ids }, apiKey, owner, now);
      const { row, started } = newSession(secrets, { person, accountId: account.id, role: "owner" }, source, now);
      const entries = [{ kind: "signed_up", subject: email } as const, keyCreated(key)];
      const audit = entries.map((entry) => auditEntry(started.person.caller, entry, now));
      const { signUps } = signUpGate;
      // With SIGNUPS=open, the account stays allowed when sign-ups close later.
      const rules = signUps === "open" ? { allowedBy: SYSTEM } : { untilHold: signUps === "until_hold" };
      if (!(await people.signUp({ account, key, person, session: row, audit, ...rules }))) {
        // Sign-ups may have closed while the password was hashed.
        await signUpGate.requireOpen();
        throw emailTaken();
      }
      return { ...started, apiKey };
    },

    /** Starts a session. Throws what `verifyPassword` throws. */
    async logIn(credentials: CredentialsBody, source: RequestSource): Promise<StartedSession> {
      const member = await verifyPassword(credentials, source, null);
      const { row, started } = newSession(secrets, member, source, clock.now());
      const { caller, email } = started.person;
      const audit = auditEntry(caller, { kind: "signed_in", subject: email }, row.createdAt);
      // The password may have been changed while this one was checked.
      if (!(await people.addSession(row, member.person.passwordHash, audit))) throw invalidCredentials();
      // Beyond `SESSIONS_PER_PERSON_MAX`, the new session has ended the oldest.
      await sessionService.recheckPerson(member.person.id);
      return started;
    },

    /**
     * Changes a person's password and ends all their sessions, the present one included, since any cookie may be stolen.
     * Returns a new session. Throws `invalid_credentials` if the current password is wrong, `RetryLater` after too many
     * failures.
     */
    async changePassword(
      who: Person,
      { current_password: current, password: next }: PasswordChange,
      source: RequestSource,
    ): Promise<StartedSession> {
      const { caller, email } = who;
      const personId = caller.personId ?? "";
      const { person } = await verifyPassword({ email, password: current }, source, personId);
      const passwordHash = await passwords.hash(next, hashLane(source, email, personId));
      const owner = { person, accountId: caller.accountId, role: who.role };
      const { row, started } = newSession(secrets, owner, source, clock.now());
      const entry = { kind: "password_changed", subject: email } as const;
      const audit = auditEntry({ ...caller, client: source.client }, entry, row.createdAt);
      // The password may have been changed elsewhere meanwhile.
      if (!(await people.changePassword(row, person.passwordHash, passwordHash, audit))) throw wrongPassword();
      await sessionService.recheckPerson(person.id);
      return started;
    },

    /** The person with this address and password. Throws `invalid_credentials`, or `RetryLater` after too many failures. */
    authenticate: (credentials: CredentialsBody, source: RequestSource): Promise<Member> =>
      verifyPassword(credentials, source, null),

    /** Hashes the password of a person whose link was checked. */
    hashPassword: (password: string, accountId: string): Promise<string> =>
      passwords.hash(password, { lane: accountId, isKnown: true, email: null }),

    /**
     * A second proof, besides the cookie, that a page of our own origin sent a form. Browsers send cookies of a plain http
     * address to every port of its host, so servers on other ports also get them; local storage is separate for each port. The
     * page creates the secret and sends it when the session begins. Only its hash is stored.
     */
    sessionSecret: {
      isRight: ({ secretHash }: Pick<Person, "secretHash">, secret: string | null): boolean =>
        secretHash !== null && secret !== null && secrets.isOfHash(secret, secretHash),
      /** Accepts the password instead, and stores `source`'s secret for the session. Throws what `verifyPassword` throws. */
      async confirm(person: Person, password: string, source: RequestSource): Promise<void> {
        const { email, caller, sessionHash } = person;
        const member = await verifyPassword({ email, password }, source, caller.personId ?? "");
        if (source.sessionSecret === null) return;
        const secretHash = secrets.hash(source.sessionSecret);
        await people.renewSessionSecret(sessionHash, secretHash, member.person.passwordHash);
      },
    },
  };
}

/** The hash of a person who signs in only by OpenID Connect. */
export const NO_PASSWORD = "";

/** The row of a new account with a new root secret. */
export function newAccount(
  { secrets, ids }: Pick<AppContext, "ids"> & Pick<PeopleNeeds, "secrets">,
  now: Date,
): Account {
  const id = ids.account();
  const place = { table: "accounts", row: id, column: "sealed_root_secret" };
  return { id, sealedRootSecret: secrets.seal(secrets.newRootSecret(), place), createdAt: now };
}

/** The queue in which a password waits to be hashed. */
function hashLane({ client }: RequestSource, email: string, personId: string | null): HashLane {
  if (personId !== null) return { lane: personId, isKnown: true, email: null };
  return { lane: client, isKnown: false, email: emailKey(email) };
}

function invalidCredentials(): DomainError {
  return new DomainError("invalid_credentials", "Incorrect email or password.");
}

function wrongPassword(): DomainError {
  return new DomainError("invalid_credentials", "This is not your current password. Nothing was changed.");
}

export function emailTaken(): DomainError {
  return new DomainError(
    "email_taken",
    "An account with this email address already exists. Log in, or use another address.",
  );
}
