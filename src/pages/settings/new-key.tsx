/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { closedObject } from "../../api/schema-helpers.ts";
import { authorize } from "../../core/roles.ts";
import { Secret, ShownOnce } from "../../ui/controls.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import { CreateKeyBody, KeyParams, type KeyView, serializeKey } from "../../accounts/key-schemas.ts";
import { DomainError, notFound } from "../../core/domain-error.ts";
import { NAME_CHARS_MAX } from "../../core/limits.ts";
import { StoreUnavailable } from "../../core/store.ts";
import { testActions, KeyInstructions } from "./key-instructions.tsx";
import { KEYS_LINK, limitTexts } from "./keys.tsx";
import { filled, formIdField, formIdIn, type FormState } from "../frame/forms.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import type { AnswerById, Person } from "../../http/session.ts";
import type { Form } from "../../http/body.ts";
import { signUpsClosedMessage } from "../../accounts/sign-up-gate.ts";
import { LinkButton, Name, Notice, PageHead, sentence } from "../../ui/parts.tsx";
import { chosenIn, schemaForm } from "../frame/schema-form.tsx";
import { SETTINGS_PATHS, templatePath } from "../frame/settings-frame.tsx";
import { HOLD_CHOICES, holdLabel, type PageUser, ROLE_CHOICES, roleLabel, SCOPE_CHOICES } from "../../ui/text.ts";
import { visibleText } from "../../receipts/visible-text.ts";

/** The defaults. They name no role, so that nobody creates an owner key by accident. */
const NEW_KEY = filled({ hold: "none", scope: "own", loop_brake: "yes" });

/** The form can also add the rule that holds loops. */
const AskKey = closedObject({ ...CreateKeyBody.properties, loop_brake: Type.Optional(Type.Boolean()) });

export const KEY_FORM = schemaForm(AskKey, {
  name: {
    hint: "Shown in lists and timelines, like “ci” or “support agent”.",
    wrong: `Enter a name of 1 to ${NAME_CHARS_MAX} ASCII characters.`,
  },
  role: { label: "What can it do?", choices: ROLE_CHOICES, wrong: "Choose a role." },
  hold: {
    label: "Which calls need approval?",
    choices: HOLD_CHOICES,
    wrong: "Choose which calls need approval.",
    refused: "They are fewer than for the key it replaces: confirm that below.",
  },
  scope: {
    label: "For an agent key: which actions can it manage?",
    choices: SCOPE_CHOICES,
    wrong: "Choose which actions it can manage.",
  },
  credentials: {
    label: "For an agent key: which credentials can it use?",
    boxes: [],
    isCode: true,
    hint: "It names them in its calls, and never sees their secrets.",
  },
  hosts: {
    hint: "One a line, like api.stripe.com or *.internal.example. Empty: any host.",
    wrong: "Enter host names, one a line, like api.example.com or *.example.com.",
  },
  methods: { isCode: true, hint: "None chosen means every method." },
  daily_actions: { label: "Actions a day", hint: "Creates and retries a day, UTC. Empty: any number." },
  expires_at: {
    label: "Works until (UTC)",
    type: "datetime-local",
    hint: "Empty: until it is revoked.",
    wrong: "Enter a time in the future, at most ten years ahead.",
  },
  weaker_hold: {
    label: "Allow fewer calls to need approval than for the replaced key",
    hint: "Calls that needed approval before are then sent without it.",
  },
  inherit_limits: {},
  loop_brake: {
    label: "For an agent key: hold loops",
    hint: "A write that is the same but for ids, and comes more than 20 times in 5 minutes, waits for a person. You are asked once for each loop. It is a rule, which you can change.",
  },
});

/** The page of the form. Its id prevents a second key if it is sent twice. */
async function newKeyPage(deps: PageDeps, user: Person, typed: FormState, replaced: KeyView | undefined) {
  const [rules, credentials] = await Promise.all([
    deps.ruleService.list(user.caller),
    deps.credentialService.list(user.caller),
  ]);
  const title = replaced === undefined ? "Create a key" : "Rotate a key";
  return render(
    <Layout title={replaced === undefined ? title : `Rotate ${visibleText(replaced.name)}`} nav="Keys" user={user}>
      <PageHead
        title={title}
        back={KEYS_LINK}
        intro={
          replaced === undefined ? (
            "The next page shows the key once. Have a safe place ready to store it."
          ) : (
            <>
              The new key replaces <Name text={replaced.name} /> (…{replaced.last4}): it can also manage the actions
              that it created. The old key works until you revoke it. The next page shows the new one once.
            </>
          )
        }
      />
      <section class="card key-form" aria-label="The key">
        <KEY_FORM.Form
          user={user}
          action="/keys"
          state={typed}
          submit="Create key"
          cancel="/keys"
          fields={[
            formIdField(deps.ids.request()),
            // The form shows every limit of the replaced key, so an empty field means that the limit was removed.
            ...(replaced === undefined
              ? []
              : ([
                  ["replaces", replaced.id],
                  ["inherit_limits", "no"],
                ] as const)),
          ]}
        >
          <KEY_FORM.Fields of={["name", "role", "hold"]} state={typed} />
          <RulesNote count={rules.length} />
          <KEY_FORM.Field name="scope" state={typed} />
          {replaced === undefined ? <KEY_FORM.Field name="loop_brake" state={typed} /> : null}
          {/* Asked only if there is a hold that could become weaker. */}
          {replaced === undefined || replaced.hold === "none" ? null : (
            <KEY_FORM.Field name="weaker_hold" state={typed} />
          )}
          <KEY_FORM.Field name="credentials" state={typed} boxes={credentials.map(({ name }) => [name, name])} />
          <LimitFields typed={typed} />
        </KEY_FORM.Form>
      </section>
    </Layout>,
  );
}

/** Says that rules apply too. They alone decide on a key without a hold. */
function RulesNote({ count }: { readonly count: number }) {
  return (
    <p class="quiet small">
      {count === 0
        ? sentence`The account has no rules yet. Start with ${(
            <a href={templatePath("writes")}>Hold all writes</a>
          )}, so that “No hold” lets no write pass unseen.`
        : sentence`With “No hold”, its calls are decided by ${(
            <a href={SETTINGS_PATHS.rules}>{count === 1 ? "the rule" : `the ${count} rules`}</a>
          )} of the account. With the others, rules can hold or refuse more.`}
    </p>
  );
}

/** The fields of a key's limits. All are optional. */
export function LimitFields({ typed, note }: { readonly typed: FormState; readonly note?: string }) {
  const names = ["hosts", "methods", "daily_actions", "expires_at"] as const;
  return <KEY_FORM.Fold title="Limits" note={note} state={typed} of={names} />;
}

const MADE_KEY = compile(
  Type.Object({
    /** The key in plain text. The server stores only its hash. */
    key: Type.String(),
    /** Whether creating this key closed sign-ups. */
    closesSignUps: Type.Boolean(),
    /** Whether the rule that stops loops could not be added. */
    isUnbraked: Type.Optional(Type.Boolean()),
  }),
);

export function madeKeyPage(
  { baseUrl }: Pick<PageDeps, "baseUrl">,
  user: PageUser,
  made: KeyView,
  flashed: Checked<typeof MADE_KEY>,
): string {
  const { key, closesSignUps, isUnbraked = false } = flashed;
  const { role, hold, replaces } = made;
  return render(
    <Layout title="Your new key" nav="Keys" user={user}>
      <PageHead title="Your new key">
        <p class="quiet">
          <Name text={made.name} /> · {roleLabel(role)}
          {holdLabel(hold) === null ? "" : ` · ${holdLabel(hold)?.toLowerCase()}`}
          {limitTexts(made, made.createdAt).map((limit) => [" · ", limit])}
        </p>
      </PageHead>
      {closesSignUps ? (
        <Notice tone="wait">
          {signUpsClosedMessage("hold")} Accounts that signed up before are stopped:{" "}
          <a href={SETTINGS_PATHS.accounts}>Accounts</a>.
        </Notice>
      ) : null}
      {isUnbraked ? (
        <Notice tone="bad">
          Its loops are not held: the rule for that could not be added. See <a href={SETTINGS_PATHS.rules}>Rules</a>.
        </Notice>
      ) : null}
      <section class="card" aria-label="The key">
        <ShownOnce what="This key" />
        <Secret id="key" text={key} />
        <div class="buttons">
          <LinkButton href="/keys" look="main">
            I have saved it
          </LinkButton>
          {replaces === null ? null : (
            <LinkButton href={`/keys/${replaces}/revoke`}>Revoke the key it replaces</LinkButton>
          )}
        </div>
      </section>
      <KeyInstructions user={user} made={made} apiKey={key} baseUrl={baseUrl} />
    </Layout>,
  );
}

export function newKeyPages(deps: PageDeps) {
  const { keyService, ruleService, credentialService, answer, flash } = deps;
  // It refuses whoever may not manage keys.
  const findKey = async ({ caller }: Person, wanted: string | null | undefined) =>
    (await keyService.list(caller)).find(({ id }) => id === wanted);
  const create = answer(
    async ({ person, form }) => {
      const { loop_brake: brakesLoops = false, ...request } = KEY_FORM.check(form, keyMembersIn(form));
      const formId = formIdIn(form);
      const name = formId === null ? null : `${person.sessionHash} ${formId}`;
      const { row, key, closesSignUps, isFound } = await keyService.create(person.caller, request, name);
      const isBraked = !isFound && row.role === "agent" && brakesLoops && row.replaces === null;
      // The key is there: it must be shown, whatever comes of the rule.
      const isUnbraked = isBraked && !(await ruleService.brakeLoops(person.caller, row.id).then(() => true, notBraked));
      const flashed = { key, closesSignUps, isUnbraked };
      return deps.showOnce(person, `/keys/${row.id}/made`, MADE_KEY, flashed, (user) =>
        madeKeyPage(deps, user, row, flashed),
      );
    },
    async ({ person, form }, typed) => newKeyPage(deps, person, typed, await findKey(person, form.get("replaces"))),
  );
  const hooks = { params: KeyParams };
  return personPages(deps)
    .post("/keys", create)
    .get("/keys/new", async ({ context, person }) => {
      const replaced = await findKey(person, new URLSearchParams(context.search).get("replaces"));
      const credentials = (await credentialService.list(person.caller))
        .filter(({ keys }) => keys.includes(replaced?.id ?? ""))
        .map(({ name }) => name);
      const typed =
        replaced === undefined
          ? NEW_KEY
          : KEY_FORM.filledWith({ ...serializeKey(replaced), scope: replaced.scope, credentials });
      return newKeyPage(deps, person, typed, replaced);
    })
    .post("/keys/:id/test", test(deps), hooks)
    .get(
      "/keys/:id/made",
      async ({ context, person, params: { id } }) => {
        const flashed = flash.read(context, person, MADE_KEY);
        const made = await findKey(person, id);
        if (flashed !== null && made !== undefined) return madeKeyPage(deps, person, made, flashed);
        throw new DomainError(
          "not_found",
          "A new key is shown only once, in the browser that created it. If you did not save it, revoke it and create another.",
        );
      },
      hooks,
    );
}

/** Accepts that the rule was not added: there are too many, they change too often, or the store is away. */
function notBraked(error: unknown): false {
  if (error instanceof DomainError || error instanceof StoreUnavailable) return false;
  throw error;
}

/**
 * Sends the test call with the new key, to show what the key may do. The page that shows the key sends it along, so that
 * nobody can use a key by a person's rights.
 */
function test(deps: PageDeps): AnswerById {
  const { authenticate, answer } = deps;
  const create = testActions(deps);
  return answer<ById>(async ({ person, params: { id }, form }) => {
    authorize(person.caller, "manage");
    const caller = await authenticate(`Bearer ${form.get("key") ?? ""}`).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === "unauthorized") throw notFound("key");
      throw error;
    });
    if (caller.keyId !== id || caller.accountId !== person.caller.accountId) throw notFound("key");
    return create(caller, "Test of a new key", null);
  });
}

/** The members that no field has, must be chosen, or are only for agents: the form always has a scope. */
export function keyMembersIn(form: Form) {
  const isAgent = form.get("role") === "agent";
  return {
    replaces: form.get("replaces") || null,
    // An empty choice must not become a default.
    hold: form.get("hold") ?? null,
    scope: isAgent ? (form.get("scope") ?? null) : null,
    credentials: isAgent ? chosenIn(form, "credentials") : [],
  };
}
