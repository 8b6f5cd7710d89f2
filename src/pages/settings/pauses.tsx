/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { checkPausedHost, CreatePauseBody, PauseParams } from "../../pauses/pauses.ts";
import { choice } from "../../api/schema-helpers.ts";
import type { KeyView } from "../../accounts/key-schemas.ts";
import type { SigningService } from "../../accounts/signing-secrets.ts";
import { invalidField } from "../../core/domain-error.ts";
import type { Pause } from "../../core/pause.ts";
import { type Caller, mayDo } from "../../core/roles.ts";
import { safeNext } from "../../http/session.ts";
import { NEXT_FIELD, PAUSES_PATH } from "../../ui/layout.tsx";
import { ago, Name, Notice, sentence, time, untrusted, actorName } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";
import { EMPTY_FORM, filled } from "../frame/forms.ts";
import type { ById, PageDeps } from "../frame/page-deps.ts";
import { keyLabel } from "./keys.tsx";
import { schemaForm } from "../frame/schema-form.tsx";
import { None, RowAction } from "../frame/list.tsx";
import { settingsList } from "../frame/settings-list.tsx";

/** The form of a pause. People choose from a list what programs name. */
const AskPause = Type.Object({
  scope: choice(["host", "key", "account"], "What to pause.", "host"),
  ...CreatePauseBody.properties,
});

const PAUSE_FORM = schemaForm(AskPause, {
  scope: {
    label: "What to pause",
    choices: [
      { value: "host", label: "One host", hint: "All calls to it wait." },
      { value: "key", label: "One key", hint: "All actions that it created wait." },
      { value: "account", label: "The whole account", hint: "All calls wait." },
    ],
    wrong: "Choose what to pause.",
  },
  host: { hint: "For example api.example.com or 10.0.0.7:8080.", onlyFor: ["host"] },
  key_id: { label: "Key", options: [], none: "Choose a key", wrong: "Choose a key.", onlyFor: ["key"] },
  reason: { type: "lines", hint: "Optional. Shown with every paused action." },
});

const SENDS_NOTHING = {
  account: "the whole account sends nothing",
  sign_up: "the whole account sends nothing",
  key: "the key that created it sends nothing",
  host: "nothing is sent to this host",
} as const satisfies Record<Pause["kind"], string>;

export function PausedNotice({ pause, user }: { readonly pause: Pause; readonly user: PageUser }) {
  return (
    <Notice tone="wait">
      Paused since {time(pause.createdAt)}: {SENDS_NOTHING[pause.kind]} until the pause ends.
      {pause.reason === null ? null : sentence` Reason: ${untrusted(pause.reason)}`}
      {mayDo(user.role, "manage") ? sentence` · ${<a href={PAUSES_PATH}>All pauses</a>}` : null}
    </Notice>
  );
}

export function pausePages(deps: PageDeps) {
  const { pauseService, keyService, signingService, answer } = deps;
  const { routes } = settingsList<Pause, typeof AskPause>(deps, {
    section: "Pauses",
    path: PAUSES_PATH,
    intro:
      "Paused actions are not sent. They stay pending until the pause ends; new actions are accepted and wait too. Calls in progress finish as usual. Callbacks and approval emails are still sent.",
    view: async ({ user, now }) => {
      const [rows, keys, hosts] = await Promise.all([
        pauseService.list(user.caller),
        keyService.list(user.caller),
        calledHosts(signingService, user.caller),
      ]);
      return {
        rows,
        columns: [
          [
            "Paused",
            ({ kind, subject, cancels }) => (
              <>
                {pausedText(kind, subject, keys)}
                {cancels ? (
                  <span class="says">Its unfinished actions are being cancelled. The pause ends when all are.</span>
                ) : null}
              </>
            ),
            "main",
          ],
          ["Since", ({ createdAt }) => ago(createdAt, now)],
          ["By", ({ createdBy }) => actorName(createdBy)],
          ["Reason", ({ reason }) => (reason === null ? <None /> : <q class="reason">{untrusted(reason)}</q>), "wide"],
        ],
        actions: ({ id, kind }) =>
          kind === "sign_up" ? null : (
            <RowAction user={user} path={`${PAUSES_PATH}/${id}/resume`} look="plain" name="Resume" />
          ),
        empty: { icon: "pause", title: "No pause is in force", text: "Everything is sent." },
        specs: { host: { known: hosts }, key_id: { options: keys.map((key) => [key.id, keyLabel(key)]) } },
      };
    },
    form: PAUSE_FORM,
    add: ["Pause now", "Pause"],
    start: (search) => {
      const [key, host] = [search.get("key") ?? "", search.get("host") ?? ""];
      const scope = [host && "host", key && "key", search.get("scope") ?? ""].find((one) => one !== "");
      return scope === undefined ? EMPTY_FORM : filled({ key_id: key, host, scope });
    },
    create: ({ caller }, { scope, key_id: keyId = null, host: named = "", reason = null }) => {
      if (scope === "key" && keyId === null) throw invalidField("key_id", "Choose a key.");
      return pauseService.pause(caller, {
        keyId,
        host: scope === "host" ? checkPausedHost(named, null) : null,
        reason,
      });
    },
  });
  const resume = answer<ById>(async ({ person, params, form }) => {
    await pauseService.resume(person.caller, params.id);
    return safeNext(form.get(NEXT_FIELD)) ?? PAUSES_PATH;
  });
  return routes.post(`${PAUSES_PATH}/:id/resume`, resume, { params: PauseParams });
}

/** Says what a pause stops. */
function pausedText(kind: Pause["kind"], subject: string, keys: readonly KeyView[]) {
  const key = keys.find(({ id }) => id === subject);
  if (kind === "key") return <>Key {key === undefined ? <code>{subject}</code> : <Name text={key.name} />}</>;
  if (kind !== "host") return <b>The whole account</b>;
  return sentence`Calls to ${<b class="untrusted">{untrusted(subject)}</b>}`;
}

/** The hosts that the account has called, with ports, last called first. */
export async function calledHosts(signingService: Pick<SigningService, "origins">, caller: Caller) {
  const origins = await signingService.origins(caller);
  return [...new Set(origins.flatMap(({ origin, use }) => (use === "calls" ? [new URL(origin).host] : [])))];
}
