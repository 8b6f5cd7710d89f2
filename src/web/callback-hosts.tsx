/** @jsxImportSource hono/jsx */
import type { ListedHost } from "../domain/callback-host.ts";
import { CALLBACK_HOSTS_MAX } from "../domain/limits.ts";
import { Button, Field, FormToken } from "./form.tsx";
import { UntrustedText } from "./foreign.tsx";
import { Layout } from "./layout.tsx";
import { Day } from "./parts.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

export interface CallbackHostsProps {
  readonly user: PageUser;
  readonly hosts: readonly ListedHost[];
  /** What was typed, where it could not be listed, and why. */
  readonly typed?: string;
  readonly problem?: string | null;
}

/** Where callbacks of keys with a hold may go, with a form for each change. */
export function CallbackHosts({ user, hosts, typed = "", problem = null }: CallbackHostsProps) {
  return (
    <>
      <p class="quiet">
        What a key with a hold creates waits for a person, but its callbacks leave before that. They go only to these
        hosts. Keys without a hold may name any.
      </p>
      {hosts.length === 0 ? (
        <p>No host is listed: no callback of a key with a hold is sent.</p>
      ) : (
        <ul class="rows" aria-label="Listed hosts">
          {hosts.map(({ host, createdAt }) => (
            <li class="row-split">
              <p>
                <b class="theirs">
                  <UntrustedText text={host} />
                </b>{" "}
                <span class="quiet small">
                  since <Day at={createdAt} />
                </span>
              </p>
              <form method="post" action="/settings/callback-hosts/remove">
                <FormToken user={user} />
                <input type="hidden" name="host" value={host} />
                <Button look="bad">
                  Remove<span class="visually-hidden"> {host}</span>
                </Button>
              </form>
            </li>
          ))}
        </ul>
      )}
      {hosts.length >= CALLBACK_HOSTS_MAX && problem === null ? null : (
        <form method="post" action="/settings/callback-hosts" class="ask">
          <FormToken user={user} />
          <Field
            name="host"
            label="Host"
            value={typed}
            hint="Like hooks.example.com or 10.0.0.7:8080. Without a port: 443 for https, 80 for http."
            isRequired
            autocomplete="off"
            problem={problem}
          />
          <Button>List it</Button>
        </form>
      )}
    </>
  );
}

/** The same on a page of its own, where what was typed could not be listed. */
export function callbackHostsPage(props: CallbackHostsProps): string {
  return render(
    <Layout title="Callback hosts" place="Settings" user={props.user}>
      <div class="head">
        <p class="small">
          <a href="/settings">Settings</a>
        </p>
        <h1>Callback hosts</h1>
      </div>
      <section class="card" aria-label="Hosts">
        <CallbackHosts {...props} />
      </section>
    </Layout>,
  );
}
