/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../domain/limits.ts";
import { Field } from "./form.tsx";
import { Notice } from "./parts.tsx";

/** A form of address and password as it is shown: for the first time, or again with what is wrong. No password is ever shown. */
export interface Typed {
  readonly email: string;
  readonly problems: Readonly<Partial<Record<"email" | "password" | "current_password", string>>>;
  /** What is wrong with neither of them, or with both. */
  readonly message: string | null;
}

export const UNTYPED: Typed = { email: "", problems: {}, message: null };

export interface CredentialFieldsProps {
  readonly typed: Typed;
  /** A password manager offers the one that it knows, or makes a new one. */
  readonly password: "known" | "new";
  /** Whose password it is, where that is settled. */
  readonly emailOf?: string | null;
  /** What is asked for between the two. */
  readonly children?: Child;
}

/** Address and password, for every form that lets a person in. */
export function CredentialFields({ typed, password, emailOf = null, children }: CredentialFieldsProps) {
  const { email, problems, message } = typed;
  return (
    <>
      {message === null ? null : <Notice tone="bad">{message}</Notice>}
      <Field
        name="email"
        label="E-mail"
        type="email"
        value={emailOf ?? email}
        isRequired
        isFixed={emailOf !== null}
        problem={problems.email ?? null}
        autocomplete="username"
      />
      {children}
      {password === "known" ? (
        <Field
          name="password"
          label="Password"
          type="password"
          isRequired
          charsMax={PASSWORD_CHARS_MAX}
          problem={problems.password ?? null}
          autocomplete="current-password"
        />
      ) : (
        <Field
          name="password"
          label={emailOf === null ? "Password" : "New password"}
          hint={`At least ${PASSWORD_CHARS_MIN} characters; a few words make a good one.`}
          type="password"
          isRequired
          charsMin={PASSWORD_CHARS_MIN}
          charsMax={PASSWORD_CHARS_MAX}
          problem={problems.password ?? null}
          autocomplete="new-password"
        />
      )}
    </>
  );
}

/** Keeps where a person wanted to go. */
export function NextField({ next }: { readonly next: string | null }) {
  return next === null ? null : <input type="hidden" name="next" value={next} />;
}

/** The same for a link to a page that has such a form. */
export function withNext(path: string, next: string | null): string {
  return next === null ? path : `${path}?${new URLSearchParams({ next }).toString()}`;
}
