/** @jsxImportSource hono/jsx */
import type { Static } from "typebox";
import { ALL_HOSTS, type HostSettings, type HostSettingsRow } from "../../core/host-settings.ts";
import type { Pause } from "../../core/pause.ts";
import {
  hostSettingsFrom,
  hostSettingsJson,
  NO_HOST_SETTINGS,
  PutDefaultsBody,
  PutHostSettingsBody,
} from "../../api/host-settings.ts";
import { Button, Field } from "../../ui/form.tsx";
import { answers, EMPTY_FORM, type FormState, unlessGone, VERSION_FIELD, versionField } from "../frame/forms.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { Card, Dot, LinkButton, Name, sentence, untrusted, ago } from "../../ui/parts.tsx";
import { ATTEMPT_TIMEOUT_SET_MS_MAX, ATTEMPT_TIMEOUT_SET_MS_MIN } from "../../core/limits.ts";
import { everyField, type FieldSpecs, schemaForm } from "../frame/schema-form.tsx";
import { AddedBy, List, None, OfRow, pauseOrResume, RowAction, RowMenu } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";
import type { EffectiveSettings } from "../../config/config.ts";
import { duration, exactDuration } from "../../ui/text.ts";
import { render } from "../../ui/layout.tsx";
import { checkHost } from "../../core/target.ts";
import { page } from "../../http/response.ts";
import type { Person } from "../../http/session.ts";
import { authorize } from "../../core/roles.ts";
import { calledHosts } from "./pauses.tsx";
import type { Backoff, StatusPattern } from "../../core/retry.ts";
import { visibleText } from "../../receipts/visible-text.ts";

const HOSTS_PATH = SETTINGS_PATHS.hosts;

const RETRY_FIELDS = {
  timeout_ms: {
    label: "Timeout",
    type: "duration",
    hint: `For a whole attempt, ${exactDuration(ATTEMPT_TIMEOUT_SET_MS_MIN)} to ${exactDuration(ATTEMPT_TIMEOUT_SET_MS_MAX)}. For example 30 s or 90 s.`,
  },
  "backoff.base_ms": {
    label: "First delay",
    type: "duration",
    hint: "After the first failed attempt, doubled after each further one.",
  },
  "backoff.cap_ms": {
    label: "Longest delay",
    type: "duration",
    hint: "Between two attempts. Set both delays, or neither.",
  },
  give_up_on: { type: "text", hint: "Statuses after which no attempt follows: 401, 422, 5xx." },
} as const satisfies FieldSpecs<Static<typeof PutDefaultsBody>>;

/** The form of a host's settings. A new setting gets its field and its place in the list from the schema. */
const HOST_FORM = schemaForm(PutHostSettingsBody, {
  ...everyField(PutHostSettingsBody),
  ...RETRY_FIELDS,
  max_per_second: { label: "Calls a second" },
  max_concurrent: { label: "Calls at a time" },
});

const DEFAULTS_FORM = schemaForm(PutDefaultsBody, { ...everyField(PutDefaultsBody), ...RETRY_FIELDS });

/** These settings, filled up with the server's. */
function inheritedSettings(settings: HostSettings, server: EffectiveSettings): HostSettings {
  return {
    ...settings,
    timeoutMs: settings.timeoutMs ?? server.attemptTimeoutMs,
    backoff: settings.backoff ?? { baseMs: server.retryBaseMs, capMs: server.retryCapMs },
  };
}

async function hostsPage(deps: PageDeps, user: Person, typed = EMPTY_FORM): Promise<string> {
  const { caller } = user;
  const now = deps.clock.now();
  const { hosts, defaults } = await listForOwner(deps, user);
  const [pauses, called, server] = await Promise.all([
    deps.pauseService.list(caller),
    calledHosts(deps.signingService, caller),
    deps.settingsFor(caller),
  ]);
  const known = called.filter((host) => !hosts.some((row) => row.host === host));
  const paused = new Map(pauses.flatMap((pause) => (pause.kind === "host" ? [[pause.subject, pause]] : [])));
  const unset = [...paused.keys()].filter((host) => !hosts.some((row) => row.host === host));
  const rows: readonly HostRow[] = [
    { host: ALL_HOSTS, settings: inheritedSettings(defaults, server), setting: null },
    ...hosts.map((row) => ({ host: row.host, settings: row.settings, setting: row })),
    ...unset.map((host) => ({ host, settings: NO_HOST_SETTINGS, setting: null })),
  ];
  return render(
    <SettingsPage
      user={user}
      section="Hosts"
      intro="How calls to a host are made and retried. An action’s own settings come first, then those of its host, of all hosts and of the server."
      now={now}
    >
      <List
        title="Hosts"
        rows={rows}
        columns={[
          ["Host", (row) => hostCell(row, now), "main"],
          ["State", ({ host }) => (host === ALL_HOSTS ? <None /> : stateCell(paused.get(host), now)), "main"],
          ["Settings", ({ settings }) => settingsCell(settings), "wide"],
        ]}
        actions={(row) => hostActions(user, row, paused.get(row.host))}
      />
      <Card id="add" title="Set up a host">
        <form method="get" action={`${HOSTS_PATH}/edit`} class="ask">
          <Field
            name="host"
            label="Host"
            value={typed.values.get("host")}
            hint="For example api.example.com or 10.0.0.7:8080."
            required
            autocomplete="off"
            known={known}
            problem={typed.problem}
          />
          <Button look="plain">Continue</Button>
        </form>
      </Card>
      <p class="quiet" id="callback-hosts">
        Where callbacks can go is set on the page <a href={SETTINGS_PATHS.callbackHosts}>Callback hosts</a>.
      </p>
    </SettingsPage>,
  );
}

interface HostRow {
  /** A host, or all hosts. */
  readonly host: string;
  readonly settings: HostSettings;
  /** Null if nothing is set for it. */
  readonly setting: HostSettingsRow | null;
}

function hostCell({ host, setting }: HostRow, now: Date) {
  if (host === ALL_HOSTS) {
    return (
      <>
        <b>All hosts</b>
        <span class="says">For hosts without settings of their own</span>
      </>
    );
  }
  return (
    <>
      <Name text={host} />
      {setting === null ? null : <AddedBy what="Set" at={setting.updatedAt} by={setting.updatedBy} now={now} />}
    </>
  );
}

function stateCell(pause: Pause | undefined, now: Date) {
  if (pause === undefined) return <Dot tone="good">Sending</Dot>;
  return (
    <>
      <Dot tone="wait">Paused</Dot>
      <span class="says">
        {ago(pause.createdAt, now)}
        {pause.reason === null ? null : sentence`: ${untrusted(pause.reason)}`}
      </span>
    </>
  );
}

function hostActions(user: Person, { host, setting }: HostRow, pause: Pause | undefined) {
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

function settingsCell(settings: HostSettings) {
  const said = HOST_FORM.said(hostSettingsJson(settings));
  if (said.length === 0) return <None />;
  return said.map(([label, text], at) => (
    <>
      {at === 0 ? "" : "\u00a0· "}
      <span class="quiet">{label}</span> {text}
    </>
  ));
}

/** A backoff in words; null if it is not set. */
export function backoffText(backoff: Backoff | null | undefined): string | null {
  if (backoff === null || backoff === undefined) return null;
  return `${duration(backoff.baseMs)}, doubled up to ${duration(backoff.capMs)}`;
}

export function patternsText(patterns: readonly StatusPattern[]): string {
  return patterns.length === 0 ? "nothing" : patterns.join(", ");
}

/** The form of a host, or of all hosts. `typed`: a refused form; left out: with what is set. */
async function hostFormPage(deps: PageDeps, user: Person, host: string, typed?: FormState): Promise<string> {
  const [{ hosts, defaults, settingsVersion }, server] = await Promise.all([
    listForOwner(deps, user),
    deps.settingsFor(user.caller),
  ]);
  const isDefaults = host === ALL_HOSTS;
  const own = isDefaults ? defaults : (hosts.find((row) => row.host === host)?.settings ?? NO_HOST_SETTINGS);
  const state = typed ?? (isDefaults ? DEFAULTS_FORM : HOST_FORM).filledWith(hostSettingsJson(own));
  // The settings that apply if a field is empty.
  const inherited = inheritedSettings(isDefaults ? NO_HOST_SETTINGS : defaults, server);
  const { values } = HOST_FORM.filledWith(hostSettingsJson(inherited));
  const specs = Object.fromEntries(HOST_FORM.names.map((name) => [name, { placeholder: values.get(name) }]));
  const form = {
    user,
    action: HOSTS_PATH,
    fields: [["host", host], versionField(state, settingsVersion(host))],
    state,
    specs,
    submit: "Save",
    cancel: HOSTS_PATH,
  } as const;
  return render(
    <SettingsPage
      user={user}
      section="Hosts"
      title={isDefaults ? "All hosts" : untrusted(host)}
      windowTitle={isDefaults ? "All hosts" : visibleText(host)}
      back={{ href: HOSTS_PATH, name: "Hosts" }}
      intro="Where a field is empty, the value in grey applies."
    >
      <section class="card" aria-label="Settings of the host">
        {isDefaults ? <DEFAULTS_FORM.Form {...form} /> : <HOST_FORM.Form {...form} />}
      </section>
    </SettingsPage>,
  );
}

export function hostPages(deps: PageDeps) {
  const { hostService, answer } = deps;
  const put = answer(
    async ({ person, form }) => {
      const host = form.get("host") ?? "";
      const shown = form.get(VERSION_FIELD) ?? "";
      if (host === ALL_HOSTS)
        await hostService.putDefaults(person.caller, hostSettingsFrom(DEFAULTS_FORM.check(form)), shown);
      else {
        const settings = hostSettingsFrom(HOST_FORM.check(form));
        await hostService.put(person.caller, checkHost(host, "validation_error"), settings, shown);
      }
      return HOSTS_PATH;
    },
    ({ person, form }, typed) => hostFormPage(deps, person, form.get("host") ?? "", typed),
  );
  // Changes nothing: reads its form from the query.
  const edit = answers<Person>(({ search }) =>
    Promise.resolve(new Map([["host", new URLSearchParams(search).get("host") ?? ""]])),
  )(
    async ({ person, form }) => {
      const host = checkHost(form.get("host") ?? "", "validation_error");
      return page("own", await hostFormPage(deps, person, host));
    },
    ({ person }, { values, problem }) => hostsPage(deps, person, { ...EMPTY_FORM, values, problem }),
  );
  const remove = answer(async ({ person, form }) => {
    await unlessGone(hostService.remove(person.caller, form.get("host") ?? ""));
    return HOSTS_PATH;
  });
  return personPages(deps)
    .get(HOSTS_PATH, ({ person }) => hostsPage(deps, person))
    .get(`${HOSTS_PATH}/defaults`, ({ person }) => hostFormPage(deps, person, ALL_HOSTS))
    .get(`${HOSTS_PATH}/edit`, edit)
    .post(HOSTS_PATH, put)
    .post(`${HOSTS_PATH}/remove`, remove);
}

/** The list for owners. Readers get it only over the API. */
function listForOwner({ hostService }: PageDeps, { caller }: Person) {
  authorize(caller, "manage");
  return hostService.list(caller);
}
