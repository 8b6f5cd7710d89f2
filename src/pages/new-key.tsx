/** @jsxImportSource hono/jsx */
import { CreateKey, type KeyView } from "../accounts/schemas.ts";
import { signUpsClosedMessage } from "../accounts/sign-up-gate.ts";
import { HTTP_METHODS } from "../core/action.ts";
import { Button, PostForm } from "../ui/form.tsx";
import { type FormState, problemBeside, problemOf, schemaForm, StatedChoices } from "./forms.tsx";
import { KeyUse } from "./key-use.tsx";
import { KeyName, KEYS_LINK, LimitsText } from "./keys.tsx";
import { Layout, render } from "../ui/layout.tsx";
import { LinkButton, Notice, PageHead, Problem } from "../ui/parts.tsx";
import { ACCOUNTS_PAGE_PATH } from "./settings.tsx";
import { HOLD_CHOICES, holdLabel, type PageUser, ROLE_CHOICES, roleLabel, SCOPE_CHOICES } from "../ui/text.ts";

/** No role is preselected, so that nobody creates an owner key by accident. */
export const NEW_KEY = { hold: "none", scope: "own" } as const;

export const KEY_FORM = schemaForm(CreateKey);

interface NewKeyPageProps {
  readonly user: PageUser;
  readonly typed: FormState;
  /** The key that it replaces; undefined: none. */
  readonly replaced: KeyView | undefined;
  /** Identifies the form, so that submitting it twice creates one key. */
  readonly formId: string;
}

const QUESTIONS = [
  { name: "role", legend: "What can it do?", choices: ROLE_CHOICES, wrong: "Choose a role." },
  {
    name: "hold",
    legend: "Which calls need approval?",
    choices: HOLD_CHOICES,
    wrong: "Choose which calls need approval. If it is fewer than for the key it replaces, confirm that below.",
  },
  {
    name: "scope",
    legend: "For an agent key: which actions can it manage?",
    choices: SCOPE_CHOICES,
    wrong: "Choose which actions it can manage.",
  },
] as const;

/** The form for a new key. */
export function newKeyPage({ user, typed, replaced, formId }: NewKeyPageProps): string {
  const title = replaced === undefined ? "Create a key" : "Rotate a key";
  return render(
    <Layout title={title} nav="Keys" user={user}>
      <PageHead
        title={title}
        back={KEYS_LINK}
        intro={replaced === undefined ? SHOWN_ONCE : <RotationIntro of={replaced} />}
      />
      <section class="card key-form" aria-label="The key">
        <PostForm
          user={user}
          action="/keys"
          fields={[
            ["form_id", formId],
            // The form shows every limit of the replaced key: what is empty here was taken out.
            ...(replaced === undefined
              ? []
              : ([
                  ["replaces", replaced.id],
                  ["limits", "shown"],
                ] as const)),
          ]}
        >
          <Problem text={problemBeside(typed, SHOWN_FIELDS)} />
          <KEY_FORM.Field
            state={typed}
            name="name"
            label="Name"
            hint="Shown in lists and timelines, like “ci” or “support agent”."
            wrong="Enter a name of 1 to 100 ASCII characters."
          />
          {QUESTIONS.map((question) => (
            <StatedChoices state={typed} {...question} />
          ))}
          {replaced === undefined ? null : <WeakerHold of={replaced} />}
          <LimitFields typed={typed} />
          <div class="buttons">
            <Button>Create key</Button>
            <LinkButton href="/keys">Cancel</LinkButton>
          </div>
        </PostForm>
      </section>
    </Layout>,
  );
}

const SHOWN_ONCE = "The next page shows the key once. Have a safe place ready to store it.";

function RotationIntro({ of: replaced }: { readonly of: KeyView }) {
  return (
    <>
      The new key replaces <KeyName of={replaced} /> (…{replaced.last4}): it can also manage the actions that it
      created. The old key works until you revoke it. The next page shows the new one once.
    </>
  );
}

/** Asked where there is a hold that could become weaker. */
function WeakerHold({ of: { hold } }: { readonly of: KeyView }) {
  if (hold === "none") return null;
  return (
    <label class="option">
      <input type="checkbox" name="weaker_hold" value="yes" />
      <span>
        <b>Allow fewer calls to need approval than for the replaced key</b>{" "}
        <span class="quiet small">Calls that needed approval before are then sent without it.</span>
      </span>
    </label>
  );
}

/** What the key may do at most; all of it optional. */
function LimitFields({ typed }: Pick<NewKeyPageProps, "typed">) {
  const { Field } = KEY_FORM;
  const isOpen = LIMIT_FIELDS.some((name) => (typed.values.get(name) ?? "") !== "" || problemOf(typed, name) !== null);
  return (
    <details class="uses" open={isOpen || HTTP_METHODS.some((method) => isChosen(typed, method))}>
      <summary>Limits</summary>
      <div class="asked">
        <Field
          state={typed}
          name="hosts"
          label="Hosts"
          hint="One a line, like api.stripe.com or *.internal.example. Empty: any host."
          wrong="Enter host names, one a line, like api.example.com or *.example.com."
        />
        <fieldset>
          <legend>Methods</legend>
          <p class="quiet small">None chosen means every method.</p>
          <div class="chips">
            {HTTP_METHODS.map((method) => (
              <label class="check">
                <input type="checkbox" name={`method_${method}`} value="yes" checked={isChosen(typed, method)} />
                <code>{method}</code>
              </label>
            ))}
          </div>
        </fieldset>
        <Field
          state={typed}
          name="daily_actions"
          label="Actions a day"
          hint="Creates and retries a day, UTC. Empty: any number."
          wrong="Enter a whole number from 1 to 1,000,000."
        />
        <Field
          state={typed}
          name="expires_at"
          label="Works until (UTC)"
          type="datetime-local"
          hint="Empty: until it is revoked."
          wrong="Enter a time in the future, at most ten years ahead."
        />
      </div>
    </details>
  );
}

function isChosen({ values }: FormState, method: string): boolean {
  return values.get(`method_${method}`) === "yes";
}

const LIMIT_FIELDS = ["hosts", "methods", "daily_actions", "expires_at"] as const;

const SHOWN_FIELDS = ["name", "role", "hold", "scope", "hosts", "daily_actions", "expires_at"];

interface MadeKeyPageProps {
  readonly user: PageUser;
  readonly made: KeyView;
  /** In plain text; the server stores only its hash. */
  readonly key: string;
  /** Creating this key closed sign-ups. */
  readonly closesSignUps: boolean;
  /** Where programs reach the service. */
  readonly baseUrl: string;
}

/** Shows a new key once, with what uses it. */
export function madeKeyPage({ user, made, key, closesSignUps, baseUrl }: MadeKeyPageProps): string {
  const { role, hold, replaces } = made;
  return render(
    <Layout title="Your new key" nav="Keys" user={user}>
      <PageHead title="Your new key">
        <p class="quiet">
          <KeyName of={made} /> · {roleLabel(role)}
          {holdLabel(hold) === null ? "" : ` · ${holdLabel(hold)?.toLowerCase()}`}
          <LimitsText of={made} />
        </p>
      </PageHead>
      {closesSignUps ? (
        <Notice tone="wait">
          {signUpsClosedMessage("hold")} Accounts that signed up before are stopped:{" "}
          <a href={ACCOUNTS_PAGE_PATH}>Accounts</a>.
        </Notice>
      ) : null}
      <section class="card" aria-label="The key">
        <Notice tone="wait">
          This key is shown only once. Save it now: it disappears when you leave this page, and after five minutes at
          the latest.
        </Notice>
        <div class="stack">
          <code class="code" id="key" data-copy="">
            {key}
          </code>
        </div>
        <div class="buttons">
          <LinkButton href="/keys" look="main">
            I have saved it
          </LinkButton>
          {replaces === null ? null : (
            <LinkButton href={`/keys/${replaces}/revoke`}>Revoke the key it replaces</LinkButton>
          )}
        </div>
      </section>
      <KeyUse user={user} made={made} apiKey={key} baseUrl={baseUrl} />
    </Layout>,
  );
}
