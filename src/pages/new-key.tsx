/** @jsxImportSource hono/jsx */
import { firstAction } from "../accounts/first-action.ts";
import { authorize } from "../core/roles.ts";
import { createCheckCreate } from "../actions/create-schema.ts";
import { actionPath, Layout, render } from "../ui/layout.tsx";
import { KeyParams } from "../accounts/routes.ts";
import { CreateKey, type KeyView } from "../accounts/schemas.ts";
import { DomainError } from "../core/domain-error.ts";
import { HTTP_METHODS } from "../core/action.ts";
import { CREATED_KEYS_REMEMBERED_MAX, FLASH_MS_MAX } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { StoreUnavailable } from "../core/store.ts";
import { KeyNameText, KEYS_LINK, LimitsText, noSuchKey } from "./keys.tsx";
import {
  answerForm,
  type ById,
  filled,
  type FormState,
  INVALID,
  problemBeside,
  problemOf,
  schemaForm,
  StatedChoices,
} from "./forms.tsx";
import { type AnswerById, createPersonRoutes, type Person } from "../http/session.ts";
import type { Form } from "../http/request.ts";
import { page } from "../http/response.ts";
import { signUpsClosedMessage } from "../accounts/sign-up-gate.ts";
import { Button, PostForm } from "../ui/form.tsx";
import { KeyInstructions } from "./key-use.tsx";
import { LinkButton, Notice, PageHead, Problem } from "../ui/parts.tsx";
import { Checks, chosenIn, templatePath } from "./rule-form.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { ACCOUNTS_PAGE_PATH } from "./settings.tsx";
import { HOLD_CHOICES, holdLabel, type PageUser, ROLE_CHOICES, roleLabel, SCOPE_CHOICES } from "../ui/text.ts";
import type { PageDeps } from "./needs.ts";

/** No role is preselected, so that nobody creates an owner key by accident. */
const NEW_KEY = { hold: "none", scope: "own" } as const;

/** Of a key that replaces none: rules about a replaced key are about the new one too. */
const BRAKED = { loop_brake: "yes" } as const;

export const KEY_FORM = schemaForm(CreateKey);

interface NewKeyPageProps {
  readonly user: PageUser;
  readonly typed: FormState;
  /** The key that it replaces; undefined: none. */
  readonly replaced: KeyView | undefined;
  /** How many rules the account has. */
  readonly ruleCount: number;
  /** Names of its credentials. */
  readonly credentials: readonly string[];
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

function newKeyPage({ user, typed, replaced, ruleCount, credentials, formId }: NewKeyPageProps): string {
  const title = replaced === undefined ? "Create a key" : "Rotate a key";
  return render(
    <Layout title={title} nav="Keys" user={user}>
      <PageHead
        title={title}
        back={KEYS_LINK}
        intro={
          replaced === undefined ? (
            SHOWN_ONCE
          ) : (
            <>
              The new key replaces <KeyNameText of={replaced} /> (…{replaced.last4}): it can also manage the actions
              that it created. The old key works until you revoke it. The next page shows the new one once.
            </>
          )
        }
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
            <>
              <StatedChoices state={typed} {...question} />
              {question.name === "hold" ? <RulesNote count={ruleCount} /> : null}
            </>
          ))}
          {replaced === undefined ? <LoopBrake typed={typed} /> : <WeakerHold of={replaced} />}
          <CredentialChecks typed={typed} names={credentials} />
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

/** Rules decide, too: a key without a hold is ruled by them alone. */
function RulesNote({ count }: { readonly count: number }) {
  const { rules } = SETTINGS_PATHS;
  return (
    <p class="quiet small">
      {count === 0 ? (
        <>
          The account has no rules yet. Start with <a href={templatePath("writes")}>Hold all writes</a>, so that “No
          hold” lets no write pass unseen.
        </>
      ) : (
        <>
          With “No hold”, its calls are decided by <a href={rules}>{count === 1 ? "the rule" : `the ${count} rules`}</a>{" "}
          of the account. With the others, rules can hold or refuse more.
        </>
      )}
    </p>
  );
}

const SHOWN_ONCE = "The next page shows the key once. Have a safe place ready to store it.";

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

export function LoopBrake({ typed }: Pick<NewKeyPageProps, "typed">) {
  return (
    <label class="option">
      <input type="checkbox" name="loop_brake" value="yes" checked={typed.values.get("loop_brake") === "yes"} />
      <span>
        <b>For an agent key: hold loops</b>{" "}
        <span class="quiet small">
          A write that is the same but for ids, and comes more than 20 times in 5 minutes, waits for a person. You are
          asked once for each loop. It is a rule, which you can change.
        </span>
      </span>
    </label>
  );
}

/** Which of the account's credentials an agent key may use. */
export function CredentialChecks({
  typed,
  names,
}: Pick<NewKeyPageProps, "typed"> & { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <Checks
      legend="For an agent key: which credentials can it use?"
      note="It names them in its calls, and never sees their secrets."
      typed={typed}
      choices={names.map((name) => [CREDENTIAL_FIELD + name, name])}
      isCode
    />
  );
}

/** What the key may do at most; all of it optional. */
export function LimitFields({ typed }: Pick<NewKeyPageProps, "typed">) {
  const { Field } = KEY_FORM;
  // The field takes no time zone, which our script has sent.
  const end = (typed.values.get("expires_at") ?? "").replace(/Z$/, "");
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
          state={{ ...typed, values: new Map(typed.values).set("expires_at", end) }}
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

export const LIMIT_FIELDS = ["hosts", "methods", "daily_actions", "expires_at"] as const;

export const SHOWN_FIELDS = ["name", "role", "hold", "scope", "hosts", "daily_actions", "expires_at"];

interface MadeKeyPageProps {
  readonly user: PageUser;
  readonly made: KeyView;
  /** In plain text; the server stores only its hash. */
  readonly key: string;
  /** Creating this key closed sign-ups. */
  readonly closesSignUps: boolean;
  readonly isUnbraked?: boolean;
  readonly baseUrl: string;
}

/** Shows a new key once, with what uses it. */
export function madeKeyPage(props: MadeKeyPageProps): string {
  const { user, made, key, closesSignUps, isUnbraked = false, baseUrl } = props;
  const { role, hold, replaces } = made;
  return render(
    <Layout title="Your new key" nav="Keys" user={user}>
      <PageHead title="Your new key">
        <p class="quiet">
          <KeyNameText of={made} /> · {roleLabel(role)}
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
      {isUnbraked ? (
        <Notice tone="bad">
          Its loops are not held: the rule for that could not be added. See <a href={SETTINGS_PATHS.rules}>Rules</a>.
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
      <KeyInstructions user={user} made={made} apiKey={key} baseUrl={baseUrl} />
    </Layout>,
  );
}

type NewKeyDeps = Pick<
  PageDeps,
  | "personOf"
  | "formOf"
  | "keyService"
  | "ruleService"
  | "credentialService"
  | "authenticate"
  | "actionService"
  | "checkTarget"
  | "flash"
  | "baseUrl"
  | "clock"
  | "ids"
>;

interface MadeKey {
  readonly key: string;
  readonly closesSignUps: boolean;
  /** Loops of the key could not be held. */
  readonly isUnbraked: boolean;
}

/** The form for a new key, and the page after it, which shows the key for some minutes. */
export function newKeyPages(deps: NewKeyDeps) {
  const { keyService, ruleService, credentialService, personOf, formOf, flash, clock, ids, baseUrl } = deps;
  // It refuses whoever may not manage keys.
  const keyOf = async ({ caller }: Person, wanted: string | null | undefined) =>
    (await keyService.list(caller)).find(({ id }) => id === wanted);
  const shownTo = async ({ caller }: Person) => {
    const [rules, credentials] = await Promise.all([ruleService.list(caller), credentialService.list(caller)]);
    return { ruleCount: rules.length, credentials: credentials.map(({ name }) => name) };
  };
  const once = createOnce<Awaited<ReturnType<typeof makeKey>>>(clock);
  const makeKey = async ({ caller }: Person, request: CreateKey, form: Form) => {
    const made = await keyService.create(caller, request);
    const isBraked = request.role === "agent" && form.get("loop_brake") === "yes" && made.row.replaces === null;
    // The key is there: it must be shown, whatever comes of the rule.
    const isUnbraked = isBraked && !(await ruleService.brakeLoops(caller, made.row.id).then(() => true, notBraked));
    return { ...made, isUnbraked };
  };
  const create = answerForm(
    formOf,
    async ({ person, form }) => {
      const formId = (form.get("form_id") ?? "").slice(0, FORM_ID_CHARS_MAX);
      const request = KEY_FORM.check(form, keyMembersIn(form));
      const make = () => makeKey(person, request, form);
      const { row, key, closesSignUps, isUnbraked } =
        formId === "" ? await make() : await once(`${person.sessionHash} ${formId}`, make);
      const flashed: MadeKey = { key, closesSignUps, isUnbraked };
      return flash.showSecretOnce(person, `/keys/${row.id}/made`, flashed, () =>
        page("own", madeKeyPage({ user: person, made: row, baseUrl, ...flashed })),
      );
    },
    async ({ person, form }, typed) => {
      const replaced = await keyOf(person, form.get("replaces"));
      return newKeyPage({
        user: person,
        typed,
        replaced,
        ...(await shownTo(person)),
        formId: ids.request(),
      });
    },
    new Set([...INVALID, "too_many_keys"]),
  );
  const hooks = { params: KeyParams };
  return createPersonRoutes(personOf)
    .post("/keys", create)
    .get("/keys/new", async ({ context, person }) => {
      const replaced = await keyOf(person, new URLSearchParams(context.search).get("replaces"));
      const its = (await credentialService.list(person.caller)).filter(({ keys }) => keys.includes(replaced?.id ?? ""));
      const typed = filled({
        ...NEW_KEY,
        ...(replaced === undefined ? BRAKED : likeKey(replaced)),
        ...Object.fromEntries(its.map(({ name }) => [CREDENTIAL_FIELD + name, "yes"])),
      });
      return page(
        "own",
        newKeyPage({ user: person, typed, replaced, ...(await shownTo(person)), formId: ids.request() }),
      );
    })
    .post("/keys/:id/test", test(deps), hooks)
    .get(
      "/keys/:id/made",
      async ({ context, person, params: { id } }) => {
        // Safe: only `create` writes a flash for this path.
        const flashed = flash.read(context, person) as MadeKey | null;
        const made = await keyOf(person, id);
        if (flashed !== null && made !== undefined)
          return page("own", madeKeyPage({ user: person, made, ...flashed, baseUrl }));
        throw new DomainError(
          "not_found",
          "A new key is shown only once, in the browser that created it. If you did not save it, revoke it and create another.",
        );
      },
      hooks,
    );
}

/** There may be too many rules, they change too fast, or the store is away. */
function notBraked(error: unknown): false {
  if (error instanceof DomainError || error instanceof StoreUnavailable) return false;
  throw error;
}

/** The beginning of the names of boxes. */
const CREDENTIAL_FIELD = "credential_";

/** The defaults of a key that replaces this one. */
function likeKey({ name, role, hold, scope, hosts, methods, dailyActions, expiresAt }: KeyView) {
  return {
    name,
    role,
    hold,
    scope,
    // As the field has it: minutes, UTC.
    expires_at: expiresAt?.toISOString().slice(0, 16) ?? "",
    hosts: (hosts ?? []).join("\n"),
    daily_actions: dailyActions?.toString() ?? "",
    ...Object.fromEntries((methods ?? []).map((method) => [`method_${method}`, "yes"])),
  };
}

/**
 * Sends the test call with a key that was just made and is still shown, so that it shows what the key may do. The page has
 * the key, and sends it along: nobody else can act as it by the rights of a person.
 */
function test({ authenticate, actionService, checkTarget, formOf, clock, baseUrl }: NewKeyDeps): AnswerById {
  const checkCreate = createCheckCreate({ checkTarget });
  return answerForm<ById>(formOf, async ({ person, params: { id }, form }) => {
    authorize(person.caller, "manage");
    const caller = await authenticate(`Bearer ${form.get("key") ?? ""}`).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === "unauthorized") throw noSuchKey();
      throw error;
    });
    if (caller.keyId !== id || caller.accountId !== person.caller.accountId) throw noSuchKey();
    const { request, reason } = checkCreate({
      value: { ...firstAction(baseUrl), title: "Test of a new key" },
      textOf: () => "",
      idempotencyKey: null,
      role: caller.role,
      now: clock.now(),
    });
    const { action } = await actionService.create(caller, request, { reason });
    return actionPath(action.id);
  });
}

const FORM_ID_CHARS_MAX = 64;

/**
 * Runs `make` once per name. A form that is sent again, by a double click or a reload, gets the first result. After a
 * failure it runs again.
 */
function createOnce<T>(clock: Pick<Clock, "monotonicMs">) {
  const done = new Map<string, { readonly untilMs: number; readonly result: Promise<T> }>();
  return async (name: string, make: () => Promise<T>): Promise<T> => {
    const nowMs = clock.monotonicMs();
    for (const [oldest, { untilMs }] of done) {
      if (untilMs > nowMs && done.size < CREATED_KEYS_REMEMBERED_MAX) break;
      done.delete(oldest);
    }
    const before = done.get(name);
    if (before !== undefined) return before.result;
    const result = make();
    done.set(name, { untilMs: nowMs + FLASH_MS_MAX, result });
    try {
      return await result;
    } catch (error) {
      done.delete(name);
      throw error;
    }
  };
}

/** The members that the form has otherwise than the API. It always has a scope, but only agent keys use it. */
export function keyMembersIn(form: Form) {
  const hosts = linesOf(form.get("hosts") ?? "");
  const methods = HTTP_METHODS.filter((method) => form.get(`method_${method}`) === "yes");
  const end = (form.get("expires_at") ?? "").trim();
  return {
    hold: form.get("hold") ?? null,
    scope: form.get("role") === "agent" ? (form.get("scope") ?? null) : null,
    // Other keys need none: what is chosen for them says nothing.
    credentials: form.get("role") === "agent" ? chosenIn(form, CREDENTIAL_FIELD) : [],
    weaker_hold: form.get("weaker_hold") === "yes",
    inherit_limits: form.get("limits") !== "shown",
    hosts: hosts.length === 0 ? null : hosts,
    methods: methods.length === 0 ? null : methods,
    expires_at: end === "" ? null : zoned(end),
  };
}

/** Browsers send neither seconds, if they are 0, nor a time zone; our script sends both. */
function zoned(end: string): string {
  if (end.endsWith("Z")) return end;
  return /T\d\d:\d\d$/.test(end) ? `${end}:00Z` : `${end}Z`;
}

function linesOf(text: string): readonly string[] {
  return text
    .split(/[\r\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
