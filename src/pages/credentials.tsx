/** @jsxImportSource hono/jsx */
import type { KeyView } from "../accounts/schemas.ts";
import { HTTP_METHODS } from "../core/action.ts";
import { type Credential, CREDENTIAL_KINDS, type CredentialKind, KIND_WORDS } from "../core/credential.ts";
import type { ErrorCode } from "../core/domain-error.ts";
import { CREDENTIALS_MAX } from "../core/limits.ts";
import { CredentialParams } from "../credentials/routes.ts";
import { boundsFrom, ChangeCredential, CreateCredential, warningsOf } from "../credentials/schemas.ts";
import { headersOf } from "../credentials/kinds.ts";
import { expiresSoon } from "../credentials/known.ts";
import { type CredentialUses, daysOf, sumOf } from "../credentials/uses.ts";
import { page, seeOther } from "../http/response.ts";
import { createPersonRoutes, type Person } from "../http/session.ts";
import type { Form } from "../http/request.ts";
import { EmptyState } from "../ui/controls.tsx";
import { Button, PostForm } from "../ui/form.tsx";
import {
  Ago,
  Dot,
  Facts,
  LinkButton,
  Name,
  Notice,
  Problem,
  sentence,
  UntilTime,
  UntrustedText,
} from "../ui/parts.tsx";
import { type Choice, number, type PageUser } from "../ui/text.ts";
import { DayBars } from "./chart.tsx";
import { type CredentialTry, TRY_FORM, TryCredential } from "./credential-try.tsx";
import {
  answerForm,
  EMPTY_FORM,
  filled,
  type FormState,
  problemBeside,
  schemaForm,
  StatedChoices,
  unlessGone,
} from "./forms.tsx";
import type { PageDeps } from "./needs.ts";
import { Checks, chosenIn, keyChoices } from "./rule-form.tsx";
import { AddForm, List, RowAction, RowLink, RowMenu, SETTINGS_PATHS, settingsFrame } from "./settings-frame.tsx";
import { ActorName } from "./timeline.tsx";

const CREDENTIALS_PATH = SETTINGS_PATHS.credentials;

const INTRO =
  "Secrets that calls are sent with. Agents know a name, Outgate adds the secret when a call is sent, and nobody reads it back.";

const ADD_FORM = schemaForm(CreateCredential);

const CHANGE_FORM = schemaForm(ChangeCredential);

type CredentialPageDeps = Pick<
  PageDeps,
  "personOf" | "formOf" | "credentialService" | "credentialTests" | "keyService" | "clock"
>;

interface ByName {
  readonly name: string;
}

export const credentialPath = (name: string) => `${CREDENTIALS_PATH}/${name}`;

/** Agents' keys, which are the only ones that a credential lists. */
export async function agentKeys(
  { keyService }: Pick<CredentialPageDeps, "keyService">,
  user: Person,
): Promise<readonly KeyView[]> {
  return (await keyService.list(user.caller)).filter(({ role }) => role === "agent");
}

interface ListPageProps {
  readonly typed: FormState;
  /** Whether the form stands open. */
  readonly isAdding: boolean;
}

async function credentialsPage(deps: CredentialPageDeps, user: Person, props: ListPageProps): Promise<string> {
  const { typed, isAdding } = props;
  const { credentialService, clock } = deps;
  const { caller } = user;
  const [credentials, keys, uses] = await Promise.all([
    credentialService.list(caller),
    agentKeys(deps, user),
    credentialService.uses(caller),
  ]);
  const now = clock.now();
  return settingsFrame({
    user,
    section: "Credentials",
    title: "Credentials",
    intro: INTRO,
    now,
    children: (
      <>
        <List
          title="Credentials"
          rows={credentials}
          columns={[
            ["Credential", (one) => <NameOf credential={one} now={now} />, "main"],
            ["May go to", (one) => <Bounds of={one} />, "wide"],
            ["Used by", (one) => <UsedBy of={one} keys={keys} uses={uses} now={now} />],
            ["State", (one) => <State of={one} now={now} />],
          ]}
          actions={(one) => <CredentialActions credential={one} user={user} />}
          empty={
            <EmptyState icon="keys" title="No credentials yet">
              <p>An agent that holds no key can’t go round a hold. Store the key here, and let the agent name it.</p>
            </EmptyState>
          }
        />
        {credentials.length >= CREDENTIALS_MAX && typed.problem === null ? null : (
          <AddForm id="add" title="Add a credential" isOpen={credentials.length === 0 || isAdding}>
            <Problem text={problemBeside(typed, ADD_FIELDS)} />
            <AddCredential user={user} typed={typed} keys={keys} />
          </AddForm>
        )}
      </>
    ),
  });
}

function NameOf({ credential, now }: { readonly credential: Credential; readonly now: Date }) {
  const { name, settings, hint, createdAt, createdBy } = credential;
  const header = settings.kind === "header" || settings.kind === "hmac" ? ` ${headersOf(settings)[0] ?? ""}` : "";
  return (
    <>
      <a href={credentialPath(name)}>
        <Name text={name} />
      </a>
      <span class="says">
        {KIND_WORDS[settings.kind]}
        <UntrustedText text={header} />
        {hint === null ? "" : <UntrustedText text={` ••••${hint}`} />}
        {" · added "}
        <Ago at={createdAt} now={now} /> by <ActorName actor={createdBy} />
      </span>
    </>
  );
}

function Bounds({ of }: { readonly of: Credential }) {
  const { hosts, paths, methods, echoes } = of;
  return (
    <>
      <UntrustedText text={hosts.join(", ")} />
      <span class="says">
        <UntrustedText text={paths === null ? "Any path" : paths.join(", ")} />
        {methods === null ? "" : ` · ${methods.join(", ")}`}
      </span>
      {warningsOf(of).map((text) => (
        <span class="says says-bad">{text}</span>
      ))}
      {echoes.length === 0 ? null : (
        <span class="says says-bad">
          Sent back by <UntrustedText text={echoes.join(", ")} />: it was masked in the answers.
        </span>
      )}
    </>
  );
}

interface UsedProps {
  readonly of: Credential;
  readonly keys: readonly KeyView[];
  readonly uses: CredentialUses | null;
  readonly now: Date;
}

/** Who may use it, and how often it was used: "Owners, billing-agent", "12 in 7 days", "Last used 5 h ago". */
function UsedBy({ of: { id, keys: listed, lastUsedAt }, keys, uses, now }: UsedProps) {
  const live = keys.filter((key) => key.revokedAt === null && listed.includes(key.id));
  const days = uses === null ? [] : daysOf(uses, id);
  const sum = sumOf(days);
  return (
    <>
      {live.length === 0
        ? "Owners only"
        : sentence`Owners, ${<UntrustedText text={live.map(({ name }) => name).join(", ")} />}`}
      {sum === 0 ? null : (
        <span class="says used-days">
          <DayBars days={days} label={`Uses a day, the last day at the end: ${days.join(", ")}`} />
          {`${number(sum)} ${uses?.isWhole === true ? "in 7 days" : "lately"}`}
        </span>
      )}
      <span class="says">
        {lastUsedAt === null ? "Never used" : sentence`Last used ${<Ago at={lastUsedAt} now={now} />}`}
      </span>
    </>
  );
}

function State({ of: { enabled, expiresAt }, now }: { readonly of: Credential; readonly now: Date }) {
  if (!enabled) return <Dot tone="still">Disabled</Dot>;
  if (expiresAt === null) return <Dot tone="good">On</Dot>;
  if (expiresAt <= now) return <Dot tone="bad">Expired</Dot>;
  const until = <UntilTime at={expiresAt} now={now} />;
  if (expiresSoon(expiresAt, now))
    return (
      <Dot tone="wait">
        <span>{sentence`Expires ${until}`}</span>
      </Dot>
    );
  return (
    <>
      <Dot tone="good">On</Dot>
      <span class="says">{sentence`expires ${until}`}</span>
    </>
  );
}

function CredentialActions({ credential, user }: { readonly credential: Credential; readonly user: PageUser }) {
  const { name, enabled } = credential;
  const row = { user, look: "plain", of: name } as const;
  return (
    <div>
      <RowLink href={credentialPath(name)} name="Change" of={name} />
      <RowMenu
        of={name}
        items={[
          <RowLink href={`${credentialPath(name)}#try`} name="Try it" of={name} />,
          <RowAction
            {...row}
            path={`${credentialPath(name)}/switch`}
            fields={[["enabled", String(!enabled)]]}
            name={enabled ? "Disable" : "Enable"}
          />,
        ]}
        ends={<RowAction {...row} path={`${credentialPath(name)}/remove`} name="Delete" />}
      />
    </div>
  );
}

const KIND_HINTS: Readonly<Record<CredentialKind, string>> = {
  bearer: "Authorization: Bearer and the token.",
  header: "A header of your choice, such as X-Api-Key.",
  basic: "A user name and a password.",
  hmac: "A signature of each request.",
};

const KIND_CHOICES: readonly Choice[] = CREDENTIAL_KINDS.map((value) => ({
  value,
  label: KIND_WORDS[value],
  hint: KIND_HINTS[value],
}));

/** Fields that show their problem themselves. */
export const ADD_FIELDS =
  "name kind secret hosts paths header scheme username signs value time_header expires_at".split(" ");

interface FieldsProps {
  readonly typed: FormState;
  readonly keys: readonly KeyView[];
  /** What is said of the keys, where one of them is left out. */
  readonly keysLegend?: string | undefined;
}

interface AddProps extends FieldsProps {
  readonly user: PageUser;
  readonly action?: string;
  /** What its button says. */
  readonly submit?: string;
}

/** What was chosen says which fields of a kind are seen (settings.css). */
export function AddCredential({ user, action = CREDENTIALS_PATH, submit = "Add credential", ...fields }: AddProps) {
  const { Field } = ADD_FORM;
  const { typed } = fields;
  return (
    <PostForm user={user} action={action} class="credential-form">
      <Field
        state={typed}
        name="name"
        label="Name"
        hint="Agents use it in their calls. For example stripe-live."
        wrong="Enter 1 to 63 lower-case letters, digits and _ . or -."
      />
      <StatedChoices
        state={typed}
        name="kind"
        legend="How it is sent"
        choices={KIND_CHOICES}
        wrong="Choose how it is sent."
      />
      <div class="for-header">
        <Field state={typed} name="header" label="Header" hint="The header that it sets." />
      </div>
      <div class="for-scheme">
        <Field state={typed} name="scheme" label="Scheme" hint="A word in front of the secret. Often empty." />
      </div>
      <div class="for-basic">
        <Field state={typed} name="username" label="User name" hint="For Basic." />
      </div>
      <div class="for-hmac">
        <Field
          state={typed}
          name="signs"
          label="What is signed"
          type="text"
          hint="{timestamp}.{body} where it is empty. Places: {timestamp} {method} {url} {host} {path} {query} {body}."
        />
        <Field
          state={typed}
          name="value"
          label="Value of the header"
          type="text"
          hint="{signature} where it is empty, in hex, by SHA-256. {timestamp} can be part of it."
        />
        <Field
          state={typed}
          name="time_header"
          label="Header with the time"
          type="text"
          hint="Where the service wants one."
        />
      </div>
      <Field
        state={typed}
        name="secret"
        label="Secret"
        type="password"
        autocomplete="new-password"
        hint="Stored encrypted. Nobody reads it back."
      />
      <BoundFields of={ADD_FORM} {...fields} />
      <div class="buttons">
        <Button>{submit}</Button>
      </div>
    </PostForm>
  );
}

function BoundFields({
  of: { Field },
  typed,
  keys,
  keysLegend = "Agents that may use it",
}: FieldsProps & { readonly of: Pick<typeof ADD_FORM, "Field"> }) {
  return (
    <>
      <Field
        state={typed}
        name="hosts"
        label="Hosts"
        hint="One a line, like api.stripe.com, or *.example.com for every name below."
      />
      <Field
        state={typed}
        name="paths"
        label="Paths"
        hint="One a line, like /v1/charges: where paths begin, in whole segments. Empty: any path, also those that give out new secrets."
      />
      <Checks
        legend="Methods"
        note="None chosen: any method."
        typed={typed}
        choices={HTTP_METHODS.map((name) => [`method_${name}`, name])}
        isCode
      />
      {keys.length === 0 ? null : (
        <Checks
          legend={keysLegend}
          note="Owners may use every credential."
          typed={typed}
          choices={keyChoices(keys, typed)}
        />
      )}
      <Field
        state={typed}
        name="expires_at"
        label="Expires at"
        hint="Empty: never. For example 2027-03-04T12:00:00Z."
        wrong="Enter a time in the future, like 2027-03-04T12:00:00Z."
      />
    </>
  );
}

interface OnePageProps {
  readonly name: string;
  /** What was typed where a change was refused. */
  readonly typed?: FormState;
  readonly tried?: CredentialTry;
}

/** One credential: a try, a new secret, and where it may go. */
async function credentialPage(
  deps: CredentialPageDeps,
  user: Person,
  { name, typed, tried }: OnePageProps,
): Promise<string> {
  const { credentialService, clock } = deps;
  const [credential, keys, uses] = await Promise.all([
    credentialService.find(user.caller, name),
    agentKeys(deps, user),
    credentialService.uses(user.caller),
  ]);
  const state = typed ?? fieldsOf(credential);
  const now = clock.now();
  return settingsFrame({
    user,
    section: "Credentials",
    title: name,
    windowTitle: name,
    back: { href: CREDENTIALS_PATH, name: "Credentials" },
    intro: `${KIND_WORDS[credential.settings.kind]}. Calls that wait are sent with what is set here when they are sent.`,
    now,
    children: (
      <>
        {warningsOf(credential).map((text) => (
          <Notice tone="wait">{text}</Notice>
        ))}
        <Problem text={problemBeside(state, ["secret", "hosts", "paths", "expires_at"])} />
        <Facts
          rows={[
            ["State", <State of={credential} now={now} />],
            ["Used by", <UsedBy of={credential} keys={keys} uses={uses} now={now} />],
          ]}
        />
        <TryCredential
          user={user}
          credential={credential}
          path={`${credentialPath(name)}/test`}
          tried={tried ?? null}
        />
        <section class="card" aria-labelledby="replace">
          <h2 id="replace">Replace the secret</h2>
          <p class="quiet">
            Set <Ago at={credential.replacedAt} now={now} />. The old one is gone at once; what was approved stays
            approved.
          </p>
          <PostForm user={user} action={`${credentialPath(name)}/secret`}>
            {/* Browsers that keep passwords want to know whose it is. */}
            <input type="text" autocomplete="username" value={name} hidden />
            <CHANGE_FORM.Field
              state={state}
              name="secret"
              label="New secret"
              type="password"
              autocomplete="new-password"
              hint="Stored encrypted. Nobody reads it back."
            />
            <div class="buttons">
              <Button>Replace</Button>
            </div>
          </PostForm>
        </section>
        <section class="card" aria-labelledby="bounds">
          <h2 id="bounds">Where it may go</h2>
          <PostForm user={user} action={credentialPath(name)} class="credential-form">
            <BoundFields of={CHANGE_FORM} typed={state} keys={keys} />
            <div class="buttons">
              <Button>Save</Button>
              <LinkButton href={CREDENTIALS_PATH}>Cancel</LinkButton>
            </div>
          </PostForm>
        </section>
      </>
    ),
  });
}

function fieldsOf({ hosts, paths, methods, keys, expiresAt }: Credential): FormState {
  const yes = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, "yes"]));
  return filled({
    hosts: hosts.join("\n"),
    paths: paths?.join("\n") ?? "",
    expires_at: expiresAt?.toISOString() ?? "",
    ...yes((methods ?? []).map((method) => `method_${method}`)),
    ...yes(keys.map((id) => `key_${id}`)),
  });
}

/** Boxes that are checked. */
function chosen(form: Form) {
  const methods = chosenIn(form, "method_");
  return { ...(methods.length > 0 && { methods }), keys: chosenIn(form, "key_") };
}

export function addedIn(form: Form): CreateCredential {
  const kind = form.get("kind");
  const texts = Object.fromEntries(
    ["signs", "value", "time_header"].flatMap((name) => {
      const text = form.get(name)?.trim() ?? "";
      return text === "" ? [] : [[name, text]];
    }),
  );
  // Fields of other kinds are hidden, and may still hold something.
  const own = new Map(
    [...form].filter(([name]) => !(name in KINDS_OF_FIELD) || KINDS_OF_FIELD[name]?.some((it) => it === kind)),
  );
  // Not trimmed as the other fields: a password may end in a space.
  const secret = form.get("secret") ?? "";
  return ADD_FORM.check(own, {
    ...chosen(form),
    secret,
    ...(kind === "hmac" && Object.keys(texts).length > 0 && { hmac: texts }),
  });
}

const KINDS_OF_FIELD: Readonly<Record<string, readonly CredentialKind[]>> = {
  header: ["header", "hmac"],
  scheme: ["header"],
  username: ["basic"],
};

/** What a form of bounds says: what is empty there is no bound any more. */
function changedIn(form: Form): ChangeCredential {
  const more = chosen(form);
  const isEmpty = (name: string) => (form.get(name) ?? "").trim() === "";
  const unset = [
    ...(isEmpty("paths") ? ["paths"] : []),
    ...("methods" in more ? [] : ["methods"]),
    ...(isEmpty("expires_at") ? ["expires_at"] : []),
  ];
  // An empty list of hosts is refused by the schema, and says so.
  const hosts = isEmpty("hosts") ? { hosts: [] } : {};
  const own = new Map([...form].filter(([name]) => name !== "secret"));
  return CHANGE_FORM.check(own, { ...more, ...hosts, ...(unset.length > 0 && { unset }) });
}

/** The host that a link names for a new credential, in its normal form; null: it names none. */
function hostIn(search: string): string | null {
  const { bounds, issues } = boundsFrom({ hosts: new URLSearchParams(search).getAll("host").slice(0, 1) });
  return issues.length > 0 ? null : (bounds.hosts?.[0] ?? null);
}

/** The link to a form for a new credential of a host. */
export function newCredentialPath(host: string): string {
  return `${CREDENTIALS_PATH}?${new URLSearchParams({ host }).toString()}#add`;
}

/** The pages of credentials, with the same service as /v1/credentials. They work without script. */
export function credentialPages(deps: CredentialPageDeps) {
  const { credentialService, credentialTests, personOf, formOf } = deps;
  const add = answerForm(
    formOf,
    async ({ person, form }) => {
      await credentialService.add(person.caller, addedIn(form));
      return CREDENTIALS_PATH;
    },
    ({ person }, typed) => credentialsPage(deps, person, { typed, isAdding: true }),
  );
  const again = async ({ person, params: { name }, form }: Again, refused: FormState) => {
    // Of the other form there is nothing in this one.
    const kept = form.has("hosts") ? form : fieldsOf(await credentialService.find(person.caller, name)).values;
    return credentialPage(deps, person, { name, typed: { ...refused, values: kept } });
  };
  const change = answerForm<ByName>(
    formOf,
    async ({ person, params: { name }, form }) => {
      await credentialService.change(person.caller, name, changedIn(form));
      return CREDENTIALS_PATH;
    },
    again,
  );
  const replace = answerForm<ByName>(
    formOf,
    async ({ person, params: { name }, form }) => {
      const secret = form.get("secret") ?? "";
      await credentialService.change(person.caller, name, CHANGE_FORM.check(new Map(), { secret }));
      return CREDENTIALS_PATH;
    },
    again,
  );
  const test = answerForm<ByName>(
    formOf,
    async ({ person, params: { name }, form }) => {
      const answer = await credentialTests.test(person.caller, name, TRY_FORM.check(form).url);
      const tried = { typed: { ...EMPTY_FORM, values: form }, answer };
      return page("own", await credentialPage(deps, person, { name, tried }));
    },
    ({ person, params: { name } }, typed) => credentialPage(deps, person, { name, tried: { typed, answer: null } }),
    TRY_REFUSED,
  );
  const switchIt = answerForm<ByName>(formOf, async ({ person, params: { name }, form }) => {
    await credentialService.change(person.caller, name, { enabled: form.get("enabled") === "true" });
    return CREDENTIALS_PATH;
  });
  const remove = answerForm<ByName>(formOf, async ({ person, params: { name } }) => {
    await unlessGone(credentialService.remove(person.caller, name));
    return CREDENTIALS_PATH;
  });
  return (
    createPersonRoutes(personOf)
      .get(CREDENTIALS_PATH, async ({ context, person }) => {
        const host = hostIn(context.search);
        const typed = host === null ? EMPTY_FORM : filled({ hosts: host });
        return page("own", await credentialsPage(deps, person, { typed, isAdding: host !== null }));
      })
      .post(CREDENTIALS_PATH, add)
      .get(
        `${CREDENTIALS_PATH}/:name`,
        async ({ person, params: { name } }) => page("own", await credentialPage(deps, person, { name })),
        { params: CredentialParams },
      )
      .post(`${CREDENTIALS_PATH}/:name/test`, test, { params: CredentialParams })
      // Where the address of an answer is loaded again.
      .get(`${CREDENTIALS_PATH}/:name/test`, ({ params: { name } }) => seeOther("own", `${credentialPath(name)}#try`), {
        params: CredentialParams,
      })
      .post(`${CREDENTIALS_PATH}/:name`, change, { params: CredentialParams })
      .post(`${CREDENTIALS_PATH}/:name/secret`, replace, { params: CredentialParams })
      .post(`${CREDENTIALS_PATH}/:name/switch`, switchIt, { params: CredentialParams })
      .post(`${CREDENTIALS_PATH}/:name/remove`, remove, { params: CredentialParams })
  );
}

/** What the page says beside the URL: it lies out of bounds, or comes too early. */
const TRY_REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "forbidden", "rate_limited"]);

interface Again {
  readonly person: Person;
  readonly params: ByName;
  readonly form: Form;
}
