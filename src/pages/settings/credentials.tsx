/** @jsxImportSource hono/jsx */
import type { KeyView } from "../../accounts/key-schemas.ts";
import {
  type Credential,
  CREDENTIAL_KINDS,
  type CredentialKind,
  KIND_WORDS,
  expiresSoon,
} from "../../core/credential.ts";
import { CREDENTIAL_TEST_BODY_CHARS_MAX, CREDENTIAL_USE_DAYS, CREDENTIALS_MAX } from "../../core/limits.ts";
import { CredentialParams, serializeCredential } from "../../credentials/routes.ts";
import { boundsFrom, boundWarnings } from "../../credentials/bounds.ts";
import {
  ChangeCredentialBody,
  CreateCredentialBody,
  type CredentialTestJson,
  TestCredentialBody,
} from "../../credentials/schemas.ts";
import { headersOfCredential } from "../../credentials/kinds.ts";
import { type CredentialUses, usesByDay, sumOf, credentialVersion } from "../../credentials/service.ts";
import type { Form } from "../../http/body.ts";
import { seeOther } from "../../http/response.ts";
import type { Person } from "../../http/session.ts";
import { render } from "../../ui/layout.tsx";
import {
  ago,
  Card,
  Dot,
  Facts,
  LinkButton,
  Name,
  Notice,
  sentence,
  SubSection,
  until,
  UntrustedBlock,
  untrusted,
  actorName,
} from "../../ui/parts.tsx";
import { number } from "../../ui/text.ts";
import { DayBars } from "../../ui/chart.tsx";
import { EMPTY_FORM, filled, type FormState, unlessGone, VERSION_FIELD, versionField } from "../frame/forms.ts";
import type { PageDeps } from "../frame/page-deps.ts";
import { keyBoxes } from "./keys.tsx";
import { schemaForm } from "../frame/schema-form.tsx";
import { OfRow, RowAction, RowLink, RowMenu } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";
import { settingsList } from "../frame/settings-list.tsx";

const CREDENTIALS_PATH = SETTINGS_PATHS.credentials;

const KIND_HINTS: Readonly<Record<CredentialKind, string>> = {
  bearer: "Authorization: Bearer and the token.",
  header: "A header of your choice, such as X-Api-Key.",
  basic: "A user name and a password.",
  hmac: "A signature of each request.",
};

const SECRET_FIELD = {
  type: "password",
  autocomplete: "new-password",
  hint: "Stored encrypted. No one can read it back.",
} as const;

const BOUND_FIELDS = {
  hosts: { hint: "One a line, like api.stripe.com, or *.example.com for every name below." },
  paths: {
    type: "lines",
    hint: "One a line, like /v1/charges: where paths begin, in whole segments. Empty: any path, also those that give out new secrets.",
  },
  methods: { isCode: true, hint: "None chosen: any method." },
  keys: { label: "Agents that may use it", boxes: [], hint: "Owners may use every credential." },
  expires_at: {
    label: "Expires at (UTC)",
    type: "datetime-local",
    hint: "Empty: never.",
    wrong: "Enter a time in the future.",
  },
} as const;

/** The form of a new credential, including one that an agent asked for. */
export const CREDENTIAL_FORM = schemaForm(CreateCredentialBody, {
  name: {
    hint: "Agents use it in their calls. For example stripe-live.",
    wrong: "Enter 1 to 63 lower-case letters, digits and _ . or -.",
  },
  kind: {
    label: "How it is sent",
    choices: CREDENTIAL_KINDS.map((value) => ({ value, label: KIND_WORDS[value], hint: KIND_HINTS[value] })),
    wrong: "Choose how it is sent.",
  },
  header: { hint: "The header that it sets.", onlyFor: ["header", "hmac"] },
  scheme: {
    hint: "A word in front of the secret. Often empty.",
    wrong: "Enter one word, like Token.",
    onlyFor: ["header"],
  },
  username: {
    label: "User name",
    hint: "For Basic.",
    wrong: "Enter a user name without colons, of at most 255 characters.",
    onlyFor: ["basic"],
  },
  "hmac.signs": {
    label: "What is signed",
    hint: "{timestamp}.{body} where it is empty. Places: {timestamp} {method} {url} {host} {path} {query} {body}.",
    onlyFor: ["hmac"],
  },
  "hmac.value": {
    label: "Value of the header",
    hint: "{signature} where it is empty, in hex, by SHA-256. {timestamp} can be part of it.",
    onlyFor: ["hmac"],
  },
  "hmac.time_header": { label: "Header with the time", hint: "Where the service wants one.", onlyFor: ["hmac"] },
  secret: SECRET_FIELD,
  ...BOUND_FIELDS,
});

const BOUNDS_FORM = schemaForm(ChangeCredentialBody, BOUND_FIELDS);

const SECRET_FORM = schemaForm(ChangeCredentialBody, { secret: { label: "New secret", ...SECRET_FIELD } });

const TRY_FORM = schemaForm(TestCredentialBody, {
  url: { label: "URL", hint: "A GET is sent there at once, within the bounds below. Its answer is shown masked." },
});

interface ByName {
  readonly name: string;
}

export const credentialPath = (name: string) => `${CREDENTIALS_PATH}/${name}`;

/** The keys of agents. A credential lists no others. */
export async function agentKeys({ keyService }: PageDeps, user: Person): Promise<readonly KeyView[]> {
  return (await keyService.list(user.caller)).filter(({ role }) => role === "agent");
}

function nameCell({ name, settings, hint, createdAt, createdBy }: Credential, now: Date) {
  const header =
    settings.kind === "header" || settings.kind === "hmac" ? ` ${headersOfCredential(settings)[0] ?? ""}` : "";
  return (
    <>
      <a href={credentialPath(name)}>
        <Name text={name} />
      </a>
      <span class="says">
        {KIND_WORDS[settings.kind]}
        {untrusted(header)}
        {hint === null ? "" : untrusted(` ••••${hint}`)}
        {" · added "}
        {ago(createdAt, now)} by {actorName(createdBy)}
      </span>
    </>
  );
}

function boundsCell(credential: Credential) {
  const { hosts, paths, methods, echoes } = credential;
  return (
    <>
      {untrusted(hosts.join(", "))}
      <span class="says">
        {untrusted(paths === null ? "Any path" : paths.join(", "))}
        {methods === null ? "" : ` · ${methods.join(", ")}`}
      </span>
      {boundWarnings(credential).map((text) => (
        <span class="says says-wait">{text}</span>
      ))}
      {echoes.length === 0 ? null : (
        <span class="says says-wait">Sent back by {untrusted(echoes.join(", "))}: it was masked in the answers.</span>
      )}
    </>
  );
}

/** Who may use a credential and how often it was used: "Owners, billing-agent", "12 in 7 days", "Last used 5 h ago". */
function usedCell(credential: Credential, keys: readonly KeyView[], uses: CredentialUses | null, now: Date) {
  const { id, keys: listed, lastUsedAt } = credential;
  const live = keys.filter((key) => key.revokedAt === null && listed.includes(key.id));
  const days = uses === null ? [] : usesByDay(uses, id);
  const sum = sumOf(days);
  return (
    <>
      {live.length === 0 ? "Owners only" : sentence`Owners, ${untrusted(live.map(({ name }) => name).join(", "))}`}
      {sum === 0 ? null : (
        <span class="says used-days">
          <DayBars days={days} label={`Uses a day, the last day at the end: ${days.join(", ")}`} />
          {`${number(sum)} ${uses?.isWhole === true ? `in ${CREDENTIAL_USE_DAYS} days` : "lately"}`}
        </span>
      )}
      <span class="says">{lastUsedAt === null ? "Never used" : sentence`Last used ${ago(lastUsedAt, now)}`}</span>
    </>
  );
}

function stateCell({ enabled, expiresAt }: Credential, now: Date) {
  if (!enabled) return <Dot tone="still">Disabled</Dot>;
  if (expiresAt === null) return <Dot tone="good">On</Dot>;
  if (expiresAt <= now) return <Dot tone="bad">Expired</Dot>;
  const end = until(expiresAt, now);
  if (expiresSoon(expiresAt, now))
    return (
      <Dot tone="wait">
        <span>{sentence`Expires ${end}`}</span>
      </Dot>
    );
  return (
    <>
      <Dot tone="good">On</Dot>
      <span class="says">{sentence`expires ${end}`}</span>
    </>
  );
}

function credentialActions(user: Person, { name, enabled }: Credential) {
  const row = { user, look: "plain", of: name } as const;
  return (
    <div>
      <LinkButton href={credentialPath(name)}>
        Change
        <OfRow of={name} />
      </LinkButton>
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
        ends={
          <RowAction
            {...row}
            path={`${credentialPath(name)}/remove`}
            name="Delete"
            question={`Delete ${name}? Calls that wait with it fail, and no one can get its secret back.`}
          />
        }
      />
    </div>
  );
}

interface OnePageProps {
  readonly name: string;
  /** The form of a refused change. */
  readonly bounds?: FormState;
  readonly secret?: FormState;
  readonly url?: FormState;
  readonly answer?: CredentialTestJson;
}

/** The page of one credential: test it, replace its secret, change where it may go. */
async function credentialPage(deps: PageDeps, user: Person, props: OnePageProps): Promise<string> {
  const { name, secret = EMPTY_FORM, url, answer } = props;
  const { credentialService, clock } = deps;
  const [credential, keys, uses] = await Promise.all([
    credentialService.find(user.caller, name),
    agentKeys(deps, user),
    credentialService.uses(user.caller),
  ]);
  const bounds = props.bounds ?? BOUNDS_FORM.filledWith(serializeCredential(credential, uses));
  const now = clock.now();
  return render(
    <SettingsPage
      user={user}
      section="Credentials"
      title={name}
      back={{ href: CREDENTIALS_PATH, name: "Credentials" }}
      intro={`${KIND_WORDS[credential.settings.kind]}. Calls that wait are sent with what is set here when they are sent.`}
      now={now}
    >
      {boundWarnings(credential).map((text) => (
        <Notice tone="wait">{text}</Notice>
      ))}
      <Facts
        rows={[
          ["State", stateCell(credential, now)],
          ["Used by", usedCell(credential, keys, uses, now)],
        ]}
      />
      <Card id="try" title="Try it">
        {credential.methods?.includes("GET") === false ? (
          <p class="quiet">Its methods leave out GET, with which credentials are tried.</p>
        ) : (
          <TRY_FORM.Form
            user={user}
            action={`${credentialPath(name)}/test`}
            state={url ?? filled({ url: exampleUrl(credential) })}
            submit="Send GET"
            look="plain"
          />
        )}
        {answer === undefined ? null : <Answer {...answer} />}
      </Card>
      <Card id="replace" title="Replace the secret">
        <p class="quiet">
          Set {ago(credential.replacedAt, now)}. The old one is gone at once; what was approved stays approved.
        </p>
        <SECRET_FORM.Form user={user} action={`${credentialPath(name)}/secret`} state={secret} submit="Replace">
          {/* Tells password managers whose password this is. */}
          <input type="text" autocomplete="username" value={name} hidden />
          <SECRET_FORM.Field name="secret" state={secret} />
        </SECRET_FORM.Form>
      </Card>
      <Card id="bounds" title="Where it may go">
        <BOUNDS_FORM.Form
          user={user}
          action={credentialPath(name)}
          fields={[versionField(bounds, credentialVersion(credential))]}
          state={bounds}
          specs={{ keys: { boxes: keyBoxes(keys, bounds) } }}
          submit="Save"
          cancel={CREDENTIALS_PATH}
        />
      </Card>
    </SettingsPage>,
  );
}

/** A URL within the bounds; empty if they name no host. */
function exampleUrl({ hosts, paths }: Credential): string {
  const host = hosts.find((one) => !one.startsWith("*."));
  const path = paths === null ? "/" : paths.find((one) => !one.includes("*"));
  return host === undefined || path === undefined ? "" : `https://${host}${path}`;
}

function Answer({ status, error, headers, body, truncated }: CredentialTestJson) {
  const shown = Object.entries(headers);
  const cut = truncated ? `the first ${number(CREDENTIAL_TEST_BODY_CHARS_MAX)} characters` : "";
  return (
    <>
      <p role="status">
        <Dot tone={error === null ? "good" : "bad"}>{status === null ? "No answer" : `Status ${status}`}</Dot>
        {error === null ? null : sentence`: ${untrusted(error)}`}
        {status === null || body !== null ? null : ", without a body"}
      </p>
      {body === null ? null : (
        <SubSection title={sentence`Body ${<span class="aside">{cut}</span>}`}>
          <UntrustedBlock label="Body of the answer" text={body} />
        </SubSection>
      )}
      {shown.length === 0 ? null : (
        <SubSection title="Headers">
          <Facts rows={shown.map(([name, value]) => [name, untrusted(value)])} />
        </SubSection>
      )}
    </>
  );
}

/** The changed bounds in a form. An empty field removes its bound. */
function changedIn(form: Form): ChangeCredentialBody {
  const given = BOUNDS_FORM.read(form);
  const unset = ["paths", "methods", "expires_at"].filter((name) => !(name in given));
  // The schema refuses an empty list of hosts with a message.
  const lists = { hosts: [], keys: [], ...given };
  return BOUNDS_FORM.check(form, { ...lists, ...(unset.length > 0 && { unset }) });
}

/** The host for a new credential in a link, in its normal form; null if there is none. */
function hostIn(search: URLSearchParams): string | null {
  const { bounds, issues } = boundsFrom({ hosts: search.getAll("host").slice(0, 1) });
  return issues.length > 0 ? null : (bounds.hosts?.[0] ?? null);
}

export function newCredentialPath(host: string): string {
  return `${CREDENTIALS_PATH}?${new URLSearchParams({ host }).toString()}#add`;
}

export function credentialPages(deps: PageDeps) {
  const { credentialService } = deps;
  const { routes, rowForm } = settingsList<Credential, typeof CreateCredentialBody>(deps, {
    section: "Credentials",
    path: CREDENTIALS_PATH,
    intro:
      "Secrets that calls are sent with. Agents use a name; Outgate adds the secret when it sends the call. No one can read it back.",
    view: async ({ user, now, typed }) => {
      const [rows, keys, uses] = await Promise.all([
        credentialService.list(user.caller),
        agentKeys(deps, user),
        credentialService.uses(user.caller),
      ]);
      return {
        rows,
        columns: [
          ["Credential", (one) => nameCell(one, now), "main"],
          ["May go to", boundsCell, "wide"],
          ["Used by", (one) => usedCell(one, keys, uses, now)],
          ["State", (one) => stateCell(one, now)],
        ],
        actions: (one) => credentialActions(user, one),
        empty: {
          icon: "keys",
          title: "No credentials yet",
          text: "An agent that holds no key can’t bypass a hold. Store the key here, and the agent only names it.",
        },
        specs: { keys: { boxes: keyBoxes(keys, typed) } },
      };
    },
    form: CREDENTIAL_FORM,
    add: ["Add a credential", "Add credential"],
    max: CREDENTIALS_MAX,
    start: (search) => {
      const host = hostIn(search);
      return host === null ? EMPTY_FORM : filled({ hosts: host });
    },
    create: ({ caller }, body) => credentialService.add(caller, body),
  });
  const change = rowForm<ByName>(
    ({ person, params: { name }, form }) =>
      credentialService.change(person.caller, name, changedIn(form), form.get(VERSION_FIELD) ?? ""),
    ({ person, params: { name } }, bounds) => credentialPage(deps, person, { name, bounds }),
  );
  const replace = rowForm<ByName>(
    ({ person, params: { name }, form }) => credentialService.change(person.caller, name, SECRET_FORM.check(form)),
    ({ person, params: { name } }, secret) => credentialPage(deps, person, { name, secret }),
  );
  const test = deps.answer<ByName>(
    async ({ person, params: { name }, form }) => {
      const found = await credentialService.test(person.caller, name, TRY_FORM.check(form).url);
      const url = { ...EMPTY_FORM, values: form };
      return deps.pageFor(person, (user) => credentialPage(deps, user, { name, url, answer: found }));
    },
    ({ person, params: { name } }, url) => credentialPage(deps, person, { name, url }),
    // The URL is out of bounds.
    "here",
  );
  const switchIt = rowForm<ByName>(({ person, params: { name }, form }) =>
    credentialService.change(person.caller, name, { enabled: form.get("enabled") === "true" }),
  );
  const remove = rowForm<ByName>(({ person, params: { name } }) =>
    unlessGone(credentialService.remove(person.caller, name)),
  );
  const path = `${CREDENTIALS_PATH}/:name`;
  const hooks = { params: CredentialParams };
  return (
    routes
      .get(path, ({ person, params: { name } }) => credentialPage(deps, person, { name }), hooks)
      .post(`${path}/test`, test, hooks)
      // People may reload the address of a response.
      .get(`${path}/test`, ({ params: { name } }) => seeOther("own", `${credentialPath(name)}#try`), hooks)
      .post(path, change, hooks)
      .post(`${path}/secret`, replace, hooks)
      .post(`${path}/switch`, switchIt, hooks)
      .post(`${path}/remove`, remove, hooks)
  );
}
