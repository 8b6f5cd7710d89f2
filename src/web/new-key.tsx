/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../contract/key.ts";
import { NAME_CHARS_MAX } from "../domain/limits.ts";
import { Choices } from "./choices.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { HOLD_CHOICES, ROLE_CHOICES, SCOPE_CHOICES } from "./key-words.ts";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

/** The form as it is shown: for the first time, or again with what is wrong. */
export interface TypedKey {
  readonly name: string;
  readonly role: string | null;
  readonly hold: string | null;
  readonly scope: string | null;
  /** Id of the key whose place it takes; empty: none. */
  readonly replaces: string;
  readonly problems: Readonly<Partial<Record<"name" | "role" | "hold" | "scope" | "replaces", string>>>;
  /** What is wrong with none of them. */
  readonly message: string | null;
}

/** No role is chosen beforehand: nobody makes an owner key by leaving something out. */
export const UNTYPED_KEY: TypedKey = {
  name: "",
  role: null,
  hold: "none",
  scope: "own",
  replaces: "",
  problems: {},
  message: null,
};

export interface NewKeyPageProps {
  readonly user: PageUser;
  readonly typed: TypedKey;
  /** Of the account: it may take the place of one of them. */
  readonly keys: readonly ShownKey[];
  /** By which the form is known again if it comes twice. */
  readonly formId: string;
}

/** Asks what a new key is for. */
export function newKeyPage({ user, typed, keys, formId }: NewKeyPageProps): string {
  const { name, role, problems, message } = typed;
  return render(
    <Layout title="Make a key" place="Keys" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href="/keys">All keys</a>
        </p>
        <h1>Make a key</h1>
        <p class="quiet">The next page shows it, once: have a place ready where it is kept.</p>
      </div>
      <form method="post" action="/keys" class="card">
        <FormToken user={user} />
        <input type="hidden" name="form_id" value={formId} />
        {message === null ? null : <Notice tone="bad">{message}</Notice>}
        <Field
          name="name"
          label="Name"
          value={name}
          hint="How people tell it from others, like “ci” or “support agent”."
          isRequired
          charsMax={NAME_CHARS_MAX}
          autocomplete="off"
          problem={problems.name ?? null}
        />
        <Choices
          name="role"
          legend="What may it do?"
          choices={ROLE_CHOICES}
          chosen={role}
          problem={problems.role ?? null}
        />
        <HoldAndScope typed={typed} />
        {keys.length === 0 ? null : <Replaces typed={typed} keys={keys} />}
        <Button>Make the key</Button>
      </form>
    </Layout>,
  );
}

function HoldAndScope({ typed: { hold, scope, problems } }: Pick<NewKeyPageProps, "typed">) {
  return (
    <>
      <Choices
        name="hold"
        legend="Which of its calls wait for a person?"
        choices={HOLD_CHOICES}
        chosen={hold}
        problem={problems.hold ?? null}
      />
      <Choices
        name="scope"
        legend="If it is an agent’s: on what may it act?"
        choices={SCOPE_CHOICES}
        chosen={scope}
        problem={problems.scope ?? null}
      />
    </>
  );
}

/** Who rotates a key hands over what it created. */
function Replaces({ typed, keys }: Pick<NewKeyPageProps, "typed" | "keys">) {
  const problem = typed.problems.replaces ?? null;
  return (
    <>
      <div class="field">
        <label for="replaces">Takes the place of</label>
        <p id="replaces-hint" class="quiet small">
          It acts on what that key created, too. That key stays live until you revoke it.
        </p>
        <select id="replaces" name="replaces" aria-describedby="replaces-hint">
          <option value="">No key</option>
          {keys.map(({ id, name, last4, revokedAt }) => (
            <option value={id} selected={id === typed.replaces}>
              {`${name} (…${last4})${revokedAt === null ? "" : ", revoked"}`}
            </option>
          ))}
        </select>
        {problem === null ? null : <p class="problem small">{problem}</p>}
      </div>
      <label class="option">
        <input type="checkbox" name="weaker_hold" value="yes" />
        <span>
          <b>Fewer of its calls may wait than of that key’s</b>{" "}
          <span class="quiet small">Say so if that is meant: what waited for a person before would be sent.</span>
        </span>
      </label>
    </>
  );
}
