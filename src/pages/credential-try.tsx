/** @jsxImportSource hono/jsx */
import type { Credential } from "../core/credential.ts";
import { CREDENTIAL_TEST_BODY_CHARS_MAX } from "../core/limits.ts";
import { type CredentialTest, TestCredential } from "../credentials/schemas.ts";
import { Button, PostForm } from "../ui/form.tsx";
import { Card, Dot, Facts, Problem, sentence, SubSection, UntrustedBlock, UntrustedText } from "../ui/parts.tsx";
import { number, type PageUser } from "../ui/text.ts";
import { filled, type FormState, problemBeside, schemaForm } from "./forms.tsx";

export const TRY_FORM = schemaForm(TestCredential);

/** What was typed to try a credential with, and what was answered; null: nothing was sent. */
export interface CredentialTry {
  readonly typed: FormState;
  readonly answer: CredentialTest | null;
}

interface TryCredentialProps {
  readonly user: PageUser;
  readonly credential: Pick<Credential, "hosts" | "paths" | "methods">;
  /** Where the form goes. */
  readonly path: string;
  /** Null: it was not tried. */
  readonly tried: CredentialTry | null;
}

/** Sends a GET with a credential, and shows what was answered. */
export function TryCredential({ user, credential, path, tried }: TryCredentialProps) {
  const { methods } = credential;
  const typed = tried?.typed ?? filled({ url: exampleUrl(credential) });
  return (
    <Card id="try" title="Try it">
      {methods !== null && !methods.includes("GET") ? (
        <p class="quiet">Its methods leave out GET, with which credentials are tried.</p>
      ) : (
        <>
          <Problem text={problemBeside(typed, ["url"])} />
          <PostForm user={user} action={path}>
            <TRY_FORM.Field
              state={typed}
              name="url"
              label="URL"
              type="text"
              hint="A GET is sent there at once, within the bounds below. Its answer is shown masked."
            />
            <div class="buttons">
              <Button look="plain">Send GET</Button>
            </div>
          </PostForm>
        </>
      )}
      {tried === null || tried.answer === null ? null : <Answer {...tried.answer} />}
    </Card>
  );
}

/** An address within the bounds; empty where they name none. */
function exampleUrl({ hosts, paths }: TryCredentialProps["credential"]): string {
  const host = hosts.find((one) => !one.startsWith("*."));
  const path = paths === null ? "/" : paths.find((one) => !one.includes("*"));
  return host === undefined || path === undefined ? "" : `https://${host}${path}`;
}

function Answer({ status, error, headers, body, truncated }: CredentialTest) {
  const shown = Object.entries(headers);
  const cut = truncated ? `the first ${number(CREDENTIAL_TEST_BODY_CHARS_MAX)} characters` : "";
  return (
    <>
      <p role="status">
        <Dot tone={error === null ? "good" : "bad"}>{status === null ? "No answer" : `Status ${status}`}</Dot>
        {error === null ? null : sentence`: ${<UntrustedText text={error} />}`}
        {status === null || body !== null ? null : ", without a body"}
      </p>
      {body === null ? null : (
        <SubSection title={sentence`Body ${<span class="aside">{cut}</span>}`}>
          <UntrustedBlock label="Body of the answer" text={body} />
        </SubSection>
      )}
      {shown.length === 0 ? null : (
        <SubSection title="Headers">
          <Facts rows={shown.map(([name, value]) => [name, <UntrustedText text={value} />])} />
        </SubSection>
      )}
    </>
  );
}
