/** @jsxImportSource hono/jsx */
import type { Backoff, StatusPattern } from "../core/retry-settings.ts";
import { ALL_HOSTS, type HostSettings, type HostSettingsRow, NO_HOST_SETTINGS } from "../core/host-settings.ts";
import type { Pause } from "../core/pause.ts";
import { hostSettingsFrom, PutDefaults, PutHostSettings } from "../api/host-settings.ts";
import { Button, Field, PostForm } from "../ui/form.tsx";
import {
  answerForm,
  EMPTY_FORM,
  filled,
  type FormState,
  numberIn,
  problemBeside,
  type SchemaFieldProps,
  schemaForm,
  unlessGone,
} from "./forms.tsx";
import { Ago, Card, Dot, LinkButton, Name, Problem, sentence, UntrustedText } from "../ui/parts.tsx";
import {
  List,
  None,
  OfRow,
  pauseOrResume,
  RowAction,
  RowMenu,
  SETTINGS_PATHS,
  settingsFrame,
} from "./settings-frame.tsx";
import type { EffectiveSettings } from "../config/config.ts";
import { duration, exactDuration, type PageUser, readDuration } from "../ui/text.ts";
import { ActorName } from "./timeline.tsx";
import { checkHost } from "../core/target.ts";
import type { HostService } from "../hosts/service.ts";
import type { Form } from "../http/request.ts";
import { page } from "../http/response.ts";
import { createPersonRoutes, type Person } from "../http/session.ts";
import { authorize } from "../core/roles.ts";
import { calledHosts } from "./pauses.tsx";
import type { PageDeps } from "./needs.ts";

const HOSTS_PATH = "/settings/hosts";

const HOST_FORM = schemaForm(PutHostSettings);

const DEFAULTS_FORM = schemaForm(PutDefaults);

/** What the server does where an account sets nothing. */
type ServerSettings = Pick<EffectiveSettings, "attemptTimeoutMs" | "retryBaseMs" | "retryCapMs">;

/** These settings, with the server's where they set nothing. */
function inheritedSettings(settings: HostSettings, server: ServerSettings): HostSettings {
  return {
    ...settings,
    timeoutMs: settings.timeoutMs ?? server.attemptTimeoutMs,
    backoff: settings.backoff ?? { baseMs: server.retryBaseMs, capMs: server.retryCapMs },
  };
}

/** What the account sets for hosts, and which of them are paused. */
async function hostsPage(deps: HostPageDeps, user: Person, typed = EMPTY_FORM): Promise<string> {
  const { hostService, pauseService, signingService, settingsFor, clock } = deps;
  const { caller } = user;
  const now = clock.now();
  const { hosts, defaults } = await ofOwner(hostService, user);
  const [pauses, called, server] = await Promise.all([
    pauseService.list(caller),
    calledHosts(signingService, caller),
    settingsFor(caller),
  ]);
  const known = called.filter((host) => !hosts.some((row) => row.host === host));
  const paused = new Map(pauses.flatMap((pause) => (pause.kind === "host" ? [[pause.subject, pause]] : [])));
  const unset = [...paused.keys()].filter((host) => !hosts.some((row) => row.host === host));
  const rows: readonly HostRow[] = [
    { host: ALL_HOSTS, settings: inheritedSettings(defaults, server), setting: null },
    ...hosts.map((row) => ({ host: row.host, settings: row.settings, setting: row })),
    ...unset.map((host) => ({ host, settings: NO_HOST_SETTINGS, setting: null })),
  ];
  return settingsFrame({
    user,
    section: "Hosts",
    title: "Hosts",
    intro:
      "How calls to a host are made and retried. An action’s own settings come first, then those of its host, of all hosts and of the server.",
    now,
    children: (
      <>
        <List
          title="Hosts"
          rows={rows}
          columns={[
            ["Host", (row) => <HostName row={row} now={now} />, "main"],
            ["State", ({ host }) => (host === ALL_HOSTS ? <None /> : <HostState pause={paused.get(host)} now={now} />)],
            ["Limits", ({ settings }) => orNone(limitsText(settings))],
            ["Timeout", ({ settings: { timeoutMs } }) => orNone(timeoutMs === null ? null : duration(timeoutMs))],
            ["Retry delay", ({ settings }) => orNone(backoffText(settings.backoff))],
            ["Give up on", ({ settings: { giveUpOn } }) => orNone(giveUpOn === null ? null : patternsText(giveUpOn))],
          ]}
          actions={(row) => <HostActions user={user} row={row} pause={paused.get(row.host)} />}
        />
        <Card id="add" title="Set up a host">
          <form method="get" action={`${HOSTS_PATH}/edit`} class="ask">
            <Field
              name="host"
              label="Host"
              value={typed.values.get("host")}
              hint={HOST_HINT}
              required
              autocomplete="off"
              known={known}
              problem={typed.problem}
            />
            <Button look="plain">Continue</Button>
          </form>
        </Card>
        <p class="quiet" id="callback-hosts">
          Where callbacks of keys with a hold or a limit can go is set on the page{" "}
          <a href={SETTINGS_PATHS.callbackHosts}>Callback hosts</a>.
        </p>
      </>
    ),
  });
}

const HOST_HINT = "For example api.example.com or 10.0.0.7:8080.";

interface HostRow {
  /** Or all of them. */
  readonly host: string;
  readonly settings: HostSettings;
  /** Null: nothing is set for it. */
  readonly setting: HostSettingsRow | null;
}

function HostName({ row: { host, setting }, now }: { readonly row: HostRow; readonly now: Date }) {
  if (host === ALL_HOSTS) {
    return (
      <>
        <b>All hosts</b>
        <span class="says">Used where a host sets nothing</span>
      </>
    );
  }
  return (
    <>
      <Name text={host} />
      {setting === null ? null : (
        <span class="says">
          Set <Ago at={setting.updatedAt} now={now} /> by <ActorName actor={setting.updatedBy} />
        </span>
      )}
    </>
  );
}

function HostState({ pause, now }: { readonly pause: Pause | undefined; readonly now: Date }) {
  if (pause === undefined) return <Dot tone="good">Sending</Dot>;
  return (
    <>
      <Dot tone="wait">Paused</Dot>
      <span class="says">
        <Ago at={pause.createdAt} now={now} />
        {pause.reason === null ? null : sentence`: ${<UntrustedText text={pause.reason} />}`}
      </span>
    </>
  );
}

function HostActions(props: { readonly user: PageUser; readonly row: HostRow; readonly pause: Pause | undefined }) {
  const {
    user,
    row: { host, setting },
    pause,
  } = props;
  const isDefaults = host === ALL_HOSTS;
  const query = `?host=${encodeURIComponent(host)}`;
  return (
    <div>
      <LinkButton href={`${HOSTS_PATH}/${isDefaults ? "defaults" : `edit${query}`}`}>
        Change
        <OfRow of={isDefaults ? "all hosts" : host} />
      </LinkButton>
      {isDefaults ? null : (
        <RowMenu
          of={host}
          items={[pauseOrResume(user, pause, query, host)]}
          ends={
            setting === null ? null : (
              <RowAction
                user={user}
                path={`${HOSTS_PATH}/remove`}
                fields={[["host", host]]}
                look="plain"
                of={host}
                name="Remove settings"
              />
            )
          }
        />
      )}
    </div>
  );
}

function orNone(text: string | null) {
  return text ?? <None />;
}

function limitsText({ maxPerSecond, maxConcurrent, defaultCredential }: HostSettings): string | null {
  const limits = [
    ...(maxPerSecond === null ? [] : [`${maxPerSecond} a second`]),
    ...(maxConcurrent === null ? [] : [`${maxConcurrent} at a time`]),
    ...(defaultCredential === null ? [] : [`with ${defaultCredential}`]),
  ];
  return limits.length === 0 ? null : limits.join(", ");
}

/** Null: it is not set. */
export function backoffText(backoff: Backoff | null | undefined): string | null {
  if (backoff === null || backoff === undefined) return null;
  return `${duration(backoff.baseMs)}, doubled up to ${duration(backoff.capMs)}`;
}

export function patternsText(patterns: readonly StatusPattern[]): string {
  return patterns.length === 0 ? "nothing" : patterns.join(", ");
}

/** The form that sets everything of a host, or of all. */
async function hostFormPage({ hostService, settingsFor }: HostPageDeps, user: Person, host: string, typed: FormState) {
  const [{ defaults }, server] = await Promise.all([ofOwner(hostService, user), settingsFor(user.caller)]);
  // What holds where a field is empty.
  const inherited = hostFields(inheritedSettings(host === ALL_HOSTS ? NO_HOST_SETTINGS : defaults, server));
  const isDefaults = host === ALL_HOSTS;
  const form = isDefaults ? DEFAULTS_FORM : HOST_FORM;
  const field = (name: string, label: string, texts: Pick<SchemaFieldProps, "hint" | "wrong"> = {}) => (
    <form.Field
      state={typed}
      name={name}
      label={label}
      type="text"
      placeholder={inherited.values.get(name)}
      {...texts}
    />
  );
  return settingsFrame({
    user,
    section: "Hosts",
    title: isDefaults ? "All hosts" : <UntrustedText text={host} />,
    windowTitle: isDefaults ? "All hosts" : "Host",
    back: { href: HOSTS_PATH, name: "Hosts" },
    intro: "An empty field sets nothing: the value in grey applies.",
    children: (
      <section class="card" aria-label="Settings of the host">
        <Problem text={problemBeside(typed, FIELDS)} />
        <PostForm user={user} action={HOSTS_PATH} fields={[["host", host]]}>
          {field("timeout_ms", "Timeout", {
            hint: "For a whole attempt, 1 s to 120 s. For example 30 s or 2 min.",
            wrong: "Enter a time from 1 s to 120 s.",
          })}
          {field("base_ms", "First delay", {
            hint: "After the first failed attempt, doubled after each further one.",
            wrong: "Enter a time from 100 ms to 1 h, or leave both delays empty.",
          })}
          {field("cap_ms", "Longest delay", {
            hint: "Between two attempts. Set both delays, or neither.",
            wrong: "Enter a time from 100 ms to 24 h, or leave both delays empty.",
          })}
          {field("give_up_on", "Give up on", { hint: "Statuses after which no attempt follows: 401, 422, 5xx." })}
          {isDefaults ? null : field("max_per_second", "Calls a second")}
          {isDefaults ? null : field("max_concurrent", "Calls at a time")}
          {isDefaults
            ? null
            : field("default_credential", "Default credential", {
                hint: "Name of the credential of calls that name none, for the keys that may use it.",
              })}
          <div class="buttons">
            <Button>Save</Button>
            <LinkButton href={HOSTS_PATH}>Cancel</LinkButton>
          </div>
        </PostForm>
      </section>
    ),
  });
}

const FIELDS = [
  "timeout_ms",
  "base_ms",
  "cap_ms",
  "give_up_on",
  "max_per_second",
  "max_concurrent",
  "default_credential",
];

/** What is set, as the form has it. */
export function hostFields(settings: HostSettings): FormState {
  const { timeoutMs, backoff, giveUpOn, maxPerSecond, maxConcurrent, defaultCredential } = settings;
  const text = (value: number | null) => (value === null ? "" : String(value));
  const time = (ms: number | null | undefined) => (ms === null || ms === undefined ? "" : exactDuration(ms));
  return filled({
    timeout_ms: time(timeoutMs),
    base_ms: time(backoff?.baseMs),
    cap_ms: time(backoff?.capMs),
    give_up_on: giveUpOn?.join(", ") ?? "",
    max_per_second: text(maxPerSecond),
    max_concurrent: text(maxConcurrent),
    default_credential: defaultCredential ?? "",
  });
}

type HostPageDeps = Pick<
  PageDeps,
  "personOf" | "formOf" | "hostService" | "pauseService" | "signingService" | "settingsFor" | "clock"
>;

/** The pages of what an account sets for hosts, with the same service as /v1/hosts. They work without script. */
export function hostPages(deps: HostPageDeps) {
  const { hostService, personOf, formOf } = deps;
  const put = answerForm(
    formOf,
    async ({ person, form }) => {
      await save(hostService, person, form);
      return HOSTS_PATH;
    },
    ({ person, form }, typed) => hostFormPage(deps, person, form.get("host") ?? "", typed),
  );
  // Changes nothing: the form is the query.
  const edit = answerForm(
    ({ search }) => Promise.resolve(new Map([["host", new URLSearchParams(search).get("host") ?? ""]])),
    async ({ person, form }) => {
      const { hosts } = await ofOwner(hostService, person);
      const host = checkHost(form.get("host") ?? "", "validation_error");
      const settings = hosts.find((row) => row.host === host)?.settings ?? NO_HOST_SETTINGS;
      return page("own", await hostFormPage(deps, person, host, hostFields(settings)));
    },
    ({ person }, { values, problem }) => hostsPage(deps, person, { ...EMPTY_FORM, values, problem }),
  );
  const remove = answerForm(formOf, async ({ person, form }) => {
    await unlessGone(hostService.remove(person.caller, form.get("host") ?? ""));
    return HOSTS_PATH;
  });
  return createPersonRoutes(personOf)
    .get(HOSTS_PATH, async ({ person }) => page("own", await hostsPage(deps, person)))
    .get(`${HOSTS_PATH}/defaults`, async ({ person }) => {
      const { defaults } = await ofOwner(hostService, person);
      return page("own", await hostFormPage(deps, person, ALL_HOSTS, hostFields(defaults)));
    })
    .get(`${HOSTS_PATH}/edit`, edit)
    .post(HOSTS_PATH, put)
    .post(`${HOSTS_PATH}/remove`, remove);
}

/** Pages of owners: readers get the list over the API. */
function ofOwner(hostService: HostService, { caller }: Person) {
  authorize(caller, "manage");
  return hostService.list(caller);
}

/** Throws `validation_error`. */
async function save(hostService: HostService, { caller }: Person, form: Form): Promise<void> {
  const host = form.get("host") ?? "";
  if (host === ALL_HOSTS)
    await hostService.putDefaults(caller, hostSettingsFrom(DEFAULTS_FORM.check(form, settingsIn(form))));
  else {
    await hostService.put(
      caller,
      checkHost(host, "validation_error"),
      hostSettingsFrom(HOST_FORM.check(form, settingsIn(form))),
    );
  }
}

/** The members that people write otherwise than the API; what is neither time nor number stays text, which the check refuses. */
function settingsIn(form: Form): object {
  const [timeout = "", base = "", cap = "", giveUpOn = ""] = ["timeout_ms", "base_ms", "cap_ms", "give_up_on"].map(
    (name) => (form.get(name) ?? "").trim(),
  );
  const ms = (text: string) => readDuration(text) ?? text;
  return {
    timeout_ms: timeout === "" ? null : ms(timeout),
    backoff: base === "" && cap === "" ? null : { base_ms: ms(base), cap_ms: ms(cap) },
    give_up_on: giveUpOn === "" ? null : giveUpOn.split(",").map((text) => numberIn(text.trim())),
  };
}
