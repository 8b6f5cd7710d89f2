import Type from "typebox";
import { DomainError } from "../domain/errors.ts";
import { isStorableText } from "../domain/json.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../domain/limits.ts";
import { compile, withoutNulls } from "./check.ts";
import { AccountId } from "./account.ts";
import { emailSchema, plainText } from "./kinds.ts";

const password = Type.Refine(
  Type.String({
    minLength: PASSWORD_CHARS_MIN,
    maxLength: PASSWORD_CHARS_MAX,
    description: "Any characters but NUL and lone surrogates. It is kept as its argon2id hash only.",
    examples: ["correct horse battery staple"],
  }),
  isStorableText,
  () => "Must be well-formed Unicode without NUL.",
);

/** With what a person signs up and logs in (decisions 12). */
export const Credentials = Type.Object(
  { email: emailSchema("The person's address; its case makes no difference."), password },
  { title: "Credentials", additionalProperties: false, description: "An address and its password." },
);

const PersonAccount = Type.Object(
  { id: AccountId, email: plainText("Of the person.", "ann@example.com") },
  { description: "The account, and who came in." },
);

/** The answer to a log-in. */
export const LoggedIn = Type.Object(
  { account: PersonAccount },
  { title: "LoggedIn", description: "Who logged in; the session is in the cookie." },
);

/** The answer to a sign-up: the only one that shows the account's first key. */
export const SignedUp = Type.Object(
  {
    account: PersonAccount,
    api_key: plainText(
      "An owner key. It is not stored and never shown again.",
      "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x",
    ),
  },
  { title: "SignedUp", description: "The new account and its key; the session is in the cookie." },
);

const PasswordChange = Type.Object({ current_password: password, password }, { additionalProperties: false });

const CREDENTIALS = compile(Credentials);
const PASSWORD_CHANGE = compile(PasswordChange);

/** Address and password of a body or a form. Throws `validation_error` with every issue. */
export function checkCredentials(value: unknown): { readonly email: string; readonly password: string } {
  const given = withoutNulls(value, Credentials.properties);
  if (CREDENTIALS.accepts(given)) return { email: given.email, password: given.password };
  throw new DomainError("validation_error", "The request has fields that are not valid.", CREDENTIALS.issues(given));
}

/** The current and the next password of a form. Throws `validation_error` with every issue. */
export function checkPasswordChange(value: unknown): { readonly current: string; readonly next: string } {
  if (PASSWORD_CHANGE.accepts(value)) return { current: value.current_password, next: value.password };
  const issues = PASSWORD_CHANGE.issues(value);
  throw new DomainError("validation_error", "The form has fields that are not valid.", issues);
}

interface SignedUpAccount {
  readonly id: string;
  readonly email: string;
}

/** A log-in as JSON text. */
export function loggedInJson({ id, email: address }: SignedUpAccount): string {
  return JSON.stringify({ account: { id, email: address } });
}

/** A sign-up as JSON text, with the key itself. */
export function signedUpJson({ id, email: address }: SignedUpAccount, apiKey: string): string {
  return JSON.stringify({ account: { id, email: address }, api_key: apiKey });
}
