/** @jsxImportSource hono/jsx */
import { NAME_CHARS_MAX } from "../domain/limits.ts";
import { Choices } from "./choices.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { HOLD_CHOICES, ROLE_CHOICES } from "./key-words.ts";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import type { Visitor } from "./visitor.ts";

/** The form as it is shown: for the first time, or again with what is wrong. */
export interface TypedKey {
  readonly name: string;
  readonly role: string | null;
  readonly hold: string | null;
  readonly problems: Readonly<Partial<Record<"name" | "role" | "hold", string>>>;
  /** What is wrong with none of them. */
  readonly message: string | null;
}

/** No role is chosen beforehand: nobody makes an owner key by leaving something out. */
export const UNTYPED_KEY: TypedKey = { name: "", role: null, hold: "none", problems: {}, message: null };

export interface NewKeyPageProps {
  readonly visitor: Visitor;
  readonly typed: TypedKey;
  /** By which the form is known again if it comes twice. */
  readonly formId: string;
}

/** Asks what a new key is for. */
export function newKeyPage({ visitor, typed, formId }: NewKeyPageProps): string {
  const { name, role, hold, problems, message } = typed;
  return render(
    <Layout title="Make a key" place="Keys" visitor={visitor}>
      <div class="head">
        <p class="small on-screen">
          <a href="/keys">All keys</a>
        </p>
        <h1>Make a key</h1>
        <p class="quiet">The next page shows it, once: have a place ready where it is kept.</p>
      </div>
      <form method="post" action="/keys" class="card">
        <FormToken visitor={visitor} />
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
        <Choices
          name="hold"
          legend="Which of its calls wait for a person?"
          choices={HOLD_CHOICES}
          chosen={hold}
          problem={problems.hold ?? null}
        />
        <Button>Make the key</Button>
      </form>
    </Layout>,
  );
}
