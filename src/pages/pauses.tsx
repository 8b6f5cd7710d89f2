/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../accounts/schemas.ts";
import { REASON_CHARS_MAX } from "../config/limits.ts";
import type { Pause } from "../pauses/pause.ts";
import { UntrustedText } from "./code.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { Who } from "./timeline.tsx";
import { KeyName } from "./keys.tsx";
import { Layout, render } from "./layout.tsx";
import { Facts, Notice, Time } from "./parts.tsx";
import type { PageUser } from "./words.ts";

export const PAUSES_PATH = "/settings/pauses";

export interface PausesPageProps {
  readonly user: PageUser;
  readonly pauses: readonly Pause[];
  /** All keys of the account. */
  readonly keys: readonly ShownKey[];
  /** The key that is chosen; empty: the whole account. */
  readonly chosen: string;
  readonly problem?: string | undefined;
  readonly reason?: string | undefined;
}

/** Lists the pauses, with a form to add one. */
export function pausesPage({ user, pauses, keys, chosen, problem, reason }: PausesPageProps): string {
  return render(
    <Layout title="Pauses" place="Settings" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href="/settings">Settings</a>
        </p>
        <h1>Pauses</h1>
        <p>
          Paused actions are not sent. They stay pending until the pause ends; new actions are accepted and wait too.
          Calls that are already in progress finish as usual. Callbacks and approval emails are still sent.
        </p>
      </div>
      <InForce user={user} pauses={pauses} keys={keys} />
      <section class="card" aria-labelledby="pause">
        <h2 id="pause">Pause now</h2>
        {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
        <form method="post" action={PAUSES_PATH}>
          <FormToken user={user} />
          <div class="field">
            <label for="key_id">What to pause</label>
            <select id="key_id" name="key_id">
              <option value="">The whole account</option>
              {keys.map(({ id, name, last4, revokedAt }) => (
                <option value={id} selected={id === chosen}>
                  {`Key ${name} (…${last4})${revokedAt === null ? "" : ", revoked"}`}
                </option>
              ))}
            </select>
          </div>
          <Field
            name="reason"
            label="Reason"
            type="lines"
            value={reason ?? ""}
            hint="Optional. Shown with every paused action."
            charsMax={REASON_CHARS_MAX}
          />
          <div class="buttons">
            <Button look="bad">Pause</Button>
          </div>
        </form>
      </section>
    </Layout>,
  );
}

function InForce({ user, pauses, keys }: Pick<PausesPageProps, "user" | "pauses" | "keys">) {
  if (pauses.length === 0) return <p class="quiet">Nothing is paused.</p>;
  return (
    <ul class="card rows">
      {pauses.map((pause) => (
        <li class="row-split">
          <div class="stack">
            <p>
              <Paused pause={pause} keys={keys} />
            </p>
            <Facts
              rows={[
                ["Since", <Time at={pause.createdAt} />],
                ["By", <Who actor={pause.createdBy} />],
                ["Reason", pause.reason === null ? null : <UntrustedText text={pause.reason} />],
                [
                  "Unfinished actions",
                  pause.cancels ? "Being cancelled. The pause ends when all are cancelled." : null,
                ],
              ]}
            />
          </div>
          {pause.kind === "sign_up" ? null : (
            <form method="post" action={`${PAUSES_PATH}/${pause.id}/resume`}>
              <FormToken user={user} />
              <Button>Resume</Button>
            </form>
          )}
        </li>
      ))}
    </ul>
  );
}

function Paused({ pause, keys }: { readonly pause: Pause; readonly keys: readonly ShownKey[] }) {
  if (pause.kind !== "key") return <b>The whole account</b>;
  const key = keys.find(({ id }) => id === pause.subject);
  return <>Key {key === undefined ? <code>{pause.subject}</code> : <KeyName of={key} />}</>;
}

/** On the page of a paused action. */
export function PausedNotice({ pause }: { readonly pause: Pause }) {
  return (
    <Notice tone="wait">
      Paused since <Time at={pause.createdAt} />:{" "}
      {pause.kind === "key" ? "the key that created it" : "the whole account"} sends nothing until the pause ends.
      {pause.reason === null ? null : (
        <>
          {" "}
          Reason: <UntrustedText text={pause.reason} />
        </>
      )}{" "}
      <a href={PAUSES_PATH}>Pauses</a>
    </Notice>
  );
}
