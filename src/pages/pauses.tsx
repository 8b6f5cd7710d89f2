/** @jsxImportSource hono/jsx */
import type { KeyView } from "../accounts/schemas.ts";
import type { Pause } from "../pauses/pause.ts";
import { Button, Field, PostForm, ReasonField, Select } from "./form.tsx";
import { keyLabel, KeyName } from "./keys.tsx";
import { Layout, render, SETTINGS_LINK } from "./layout.tsx";
import { Card, Facts, Notice, PageHead, Problem, FieldRow, Time, UntrustedText } from "./parts.tsx";
import type { PageUser } from "./text.ts";
import { ActorName } from "./timeline.tsx";

export const PAUSES_PATH = "/settings/pauses";

export interface PausesPageProps {
  readonly user: PageUser;
  readonly pauses: readonly Pause[];
  /** All keys of the account. */
  readonly keys: readonly KeyView[];
  /** The key that is chosen; empty: none. */
  readonly chosen: string;
  /** The host that is typed. */
  readonly host?: string | undefined;
  readonly problem?: string | undefined;
  readonly reason?: string | undefined;
}

/** Lists the pauses, with a form to add one. */
export function pausesPage({ user, pauses, keys, chosen, host, problem, reason }: PausesPageProps): string {
  return render(
    <Layout title="Pauses" nav="Settings" user={user}>
      <PageHead title="Pauses" back={SETTINGS_LINK}>
        <p>
          Paused actions are not sent. They stay pending until the pause ends; new actions are accepted and wait too.
          Calls that are already in progress finish as usual. Callbacks and approval emails are still sent.
        </p>
      </PageHead>
      {pauses.length === 0 ? (
        <p class="quiet">Nothing is paused.</p>
      ) : (
        <ul class="card rows">
          {pauses.map((pause) => (
            <PauseRow {...pause} user={user} keys={keys} />
          ))}
        </ul>
      )}
      <Card id="pause" title="Pause now">
        <Problem text={problem} />
        <PostForm user={user} action={PAUSES_PATH}>
          <Select
            name="key_id"
            label="What to pause"
            none="The whole account"
            options={keys.map((key) => [key.id, `Key ${keyLabel(key)}`])}
            chosen={chosen}
          />
          <Field
            name="host"
            label="Or only calls to one host"
            value={host ?? ""}
            hint="Optional, instead of a key. For example api.example.com or 10.0.0.7:8080."
            autocomplete="off"
          />
          <ReasonField value={reason} hint="Shown with every paused action." />
          <div class="buttons">
            <Button look="bad">Pause</Button>
          </div>
        </PostForm>
      </Card>
    </Layout>,
  );
}

function PauseRow({ user, keys, ...pause }: Pick<PausesPageProps, "user" | "keys"> & Pause) {
  const { id, kind, subject, createdAt, createdBy, reason, cancels } = pause;
  const key = keys.find((one) => one.id === subject);
  const resume =
    kind === "sign_up" ? null : (
      <PostForm user={user} action={`${PAUSES_PATH}/${id}/resume`}>
        <Button>Resume</Button>
      </PostForm>
    );
  return (
    <FieldRow aside={resume}>
      <p>
        <Paused kind={kind} subject={subject} of={key} />
      </p>
      <Facts
        rows={[
          ["Since", <Time at={createdAt} />],
          ["By", <ActorName actor={createdBy} />],
          ["Reason", reason === null ? null : <UntrustedText text={reason} />],
          ["Unfinished actions", cancels ? "Being cancelled. The pause ends when all are cancelled." : null],
        ]}
      />
    </FieldRow>
  );
}

/** What a pause stops. */
function Paused({ kind, subject, of: key }: Pick<Pause, "kind" | "subject"> & { readonly of: KeyView | undefined }) {
  if (kind === "key") return <>Key {key === undefined ? <code>{subject}</code> : <KeyName of={key} />}</>;
  if (kind !== "host") return <b>The whole account</b>;
  return (
    <>
      Calls to{" "}
      <b class="untrusted">
        <UntrustedText text={subject} />
      </b>
    </>
  );
}

const SENDS_NOTHING = {
  account: "the whole account sends nothing",
  sign_up: "the whole account sends nothing",
  key: "the key that created it sends nothing",
  host: "nothing is sent to this host",
} as const satisfies Record<Pause["kind"], string>;

/** On the page of a paused action. */
export function PausedNotice({ pause }: { readonly pause: Pause }) {
  return (
    <Notice tone="wait">
      Paused since <Time at={pause.createdAt} />: {SENDS_NOTHING[pause.kind]} until the pause ends.
      {pause.reason === null ? null : " Reason: "}
      {pause.reason === null ? null : <UntrustedText text={pause.reason} />} <a href={PAUSES_PATH}>Pauses</a>
    </Notice>
  );
}
