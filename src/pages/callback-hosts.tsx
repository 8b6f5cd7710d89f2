/** @jsxImportSource hono/jsx */
import type { ListedHost } from "../accounts/callback-hosts.ts";
import { CALLBACK_HOSTS_MAX } from "../config/limits.ts";
import { Button, Field, PostForm } from "./form.tsx";
import { Card, Day, Name } from "./parts.tsx";
import { DataTable } from "./settings-frame.tsx";
import type { PageUser } from "./text.ts";

export const CALLBACK_HOSTS_PATH = "/settings/callback-hosts";

export interface CallbackHostsProps {
  readonly user: PageUser;
  readonly hosts: readonly ListedHost[];
  /** The refused input, and what is wrong with it. */
  readonly typed?: string;
  readonly problem?: string | null;
}

/** The hosts that callbacks may go to before an approval, with a form to add one. */
export function CallbackHosts({ user, hosts, typed = "", problem = null }: CallbackHostsProps) {
  return (
    <Card id="callback-hosts" title="Hosts for callbacks">
      <p class="quiet">
        Actions of a key with a hold wait for approval, but their callbacks are sent before that. They can go only to
        these hosts. Keys without a hold can use any host.
      </p>
      {hosts.length === 0 ? (
        <p>No hosts yet: callbacks of keys with a hold are refused.</p>
      ) : (
        <DataTable
          caption="Hosts for callbacks"
          columns={[{ name: "Host", as: "wide" }, { name: "Added" }, { name: "", as: "buttons" }]}
          rows={hosts.map(({ host, createdAt }) => [
            <Name text={host} />,
            <Day at={createdAt} />,
            <PostForm user={user} action={`${CALLBACK_HOSTS_PATH}/remove`} fields={[["host", host]]}>
              <Button look="bad">
                Remove<span class="visually-hidden"> {host}</span>
              </Button>
            </PostForm>,
          ])}
        />
      )}
      {hosts.length >= CALLBACK_HOSTS_MAX && problem === null ? null : (
        <PostForm user={user} action={CALLBACK_HOSTS_PATH} class="ask">
          <Field
            name="host"
            label="Callback host"
            value={typed}
            hint="For example hooks.example.com or 10.0.0.7:8080. The default port is 443 for https and 80 for http."
            required
            autocomplete="off"
            problem={problem}
            idSuffix="-callbacks"
          />
          <Button look="plain">Add host</Button>
        </PostForm>
      )}
    </Card>
  );
}
