import type { PeopleStore } from "../core/account-store.ts";
import { auditEntry, type AuditStore } from "../core/audit.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { DomainError, invalidFields } from "../core/domain-error.ts";
import type { Ids } from "../core/ids.ts";
import { MESSAGE_TIMEOUT_MS, PEOPLE_PER_ACCOUNT_MAX } from "../core/limits.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { Person } from "../core/session.ts";
import type { TeamStore } from "../core/team-store.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { type Mailer, messageError, NO_MAILER } from "../mail/mailer.ts";
import { type Mail, passwordMessage, testMessage } from "../mail/messages.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";
import { NO_PASSWORD } from "./people.ts";
import { newWelcomeLink, welcomeUrl } from "./welcome-links.ts";

interface OwnMailApp {
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
  readonly ids: Pick<Ids, "row">;
  readonly config: Pick<Config, "baseUrl">;
  readonly store: {
    readonly people: Pick<PeopleStore, "find" | "offer">;
    readonly team: Pick<TeamStore, "members">;
    readonly audit: Pick<AuditStore, "record">;
  };
}

/** Mails to people of the account that somebody asks for, sent at once and limited: a test, and a link that sets a password. */
export type OwnMailService = ReturnType<typeof createOwnMailService>;

export function createOwnMailService(
  { clock, ids, config, store }: OwnMailApp,
  /** Null: no mail provider is configured. */
  mailer: Pick<Mailer, "send"> | null,
  secrets: Pick<Secrets, "hash" | "newToken">,
) {
  const { people, team, audit } = store;
  const count = createMessageLimit(clock, "You have just sent a mail to yourself.");
  const countOfKeys = createMessageLimit(clock, "This account has just sent a test mail.");
  /** `error`: why it was not delivered; null: it was. */
  const send = async (sender: Pick<Mailer, "send">, mail: Mail) => {
    const error = messageError(await sender.send(mail, { timeoutMs: MESSAGE_TIMEOUT_MS }));
    return { delivered: error === null, error };
  };
  const testFor = (to: string) => testMessage(to, `test_${ids.row(clock.now())}`, null);
  /** The person's password hash. Null: they are no person any more. */
  const addressHash = async ({ email }: Person): Promise<string | null> =>
    (await people.find(email))?.person.passwordHash ?? null;
  return {
    sendsMail: mailer !== null,

    /** False: they log in only by the identity provider. */
    hasPassword: async (person: Person): Promise<boolean> => (await addressHash(person)) !== NO_PASSWORD,

    /** Sends a test mail to the person. Throws `RetryLater` if they do it too often. */
    async test(person: Person) {
      if (mailer === null) return NOT_CONFIGURED;
      count(requirePersonId(person));
      return send(mailer, testFor(person.email));
    },

    /** Sends a test mail for a key, to a person of its account. Throws `validation_error` for other addresses, and `RetryLater`. */
    async testTo(caller: Caller, email: string) {
      authorize(caller, "manage");
      const { accountId } = caller;
      const members = await team.members(accountId, PEOPLE_PER_ACCOUNT_MAX);
      const member = members.find((one) => one.email.toLowerCase() === email.toLowerCase());
      if (member === undefined) {
        throw invalidFields([{ field: "to", message: "Is not the address of a person of this account." }]);
      }
      if (mailer === null) return NOT_CONFIGURED;
      countOfKeys(accountId);
      return send(mailer, testFor(member.email));
    },

    /** Mails a link that sets a first password, and voids earlier links. Throws `validation_error` and `RetryLater`. */
    async sendPasswordLink(person: Person) {
      if (mailer === null) return NOT_CONFIGURED;
      if ((await addressHash(person)) !== NO_PASSWORD) {
        throw new DomainError("validation_error", "You already have a password. Use it to set a new one.");
      }
      const personId = requirePersonId(person);
      count(personId);
      const { accountId } = person.caller;
      const now = clock.now();
      const { token, link } = newWelcomeLink(secrets, { accountId, personId }, now);
      await people.offer(link);
      await audit.record(auditEntry(person.caller, { kind: "password_link_sent", subject: person.email }, now));
      const id = `password_${ids.row(now)}`;
      const { expiresAt } = link;
      return send(mailer, passwordMessage({ to: person.email, id, link: welcomeUrl(config, token), expiresAt }));
    },
  };
}

function requirePersonId({ caller: { personId } }: Person): string {
  if (personId === undefined || personId === null)
    throw new DomainError("forbidden", "Only people have an email address.");
  return personId;
}

const NOT_CONFIGURED = { delivered: false, error: NO_MAILER.error };
