/** @jsxImportSource hono/jsx */
import { mayDo, viewerOf } from "../accounts/roles.ts";
import type { Action } from "../actions/action.ts";
import { BULK_PATH } from "./bulk.tsx";
import { Icon } from "./icons.tsx";
import { actionPath, Layout, NAVIGATION, render, renderPart } from "./layout.tsx";
import { Button, PostForm } from "./form.tsx";
import { PageHead, statusLabel, UntrustedText } from "./parts.tsx";
import { maskForDisplay } from "./request.tsx";
import { SETTINGS_SECTIONS } from "./settings-frame.tsx";
import type { PageUser } from "./text.ts";

/** Pages that the palette finds beside those of the navigation. */
const PLACES = [
  ...SETTINGS_SECTIONS.filter(({ name }) => name !== "Keys"),
  { name: "Bulk jobs", path: BULK_PATH, needs: "read", icon: "retry" },
  { name: "Create a key", path: "/keys/new", needs: "manage", icon: "keys" },
  { name: "API reference", path: "/docs/api", needs: "read", icon: "docs" },
] as const;

interface PaletteProps {
  readonly user: PageUser;
  readonly text: string;
  readonly actions: readonly Action[];
  /** A host that the text names, for people who may pause it; null: none. */
  readonly host: string | null;
}

/** What the palette found, as a list of links in sections. */
export function paletteList({ user, text, actions, host }: PaletteProps): string {
  const wanted = text.toLowerCase();
  const places = [...NAVIGATION, ...PLACES].filter(
    ({ name, needs }) => mayDo(user.role, needs) && name.toLowerCase().includes(wanted),
  );
  const shown = text === "" ? places.slice(0, NAVIGATION.length) : places;
  const isEmpty = shown.length + actions.length === 0 && host === null;
  return renderPart(
    <ul id="found">
      {actions.length === 0 ? null : (
        <li>
          <h2>{text === "" ? "Waiting for a decision" : "Actions"}</h2>
        </li>
      )}
      {actions.map((action) => (
        <ActionEntry action={maskForDisplay(action, viewerOf(user.role))} />
      ))}
      {shown.length === 0 ? null : (
        <li>
          <h2>Go to</h2>
        </li>
      )}
      {shown.map(({ name, path, icon }) => (
        <li>
          <a href={path}>
            <Icon name={icon} />
            <span>{name}</span>
          </a>
        </li>
      ))}
      {host === null ? null : (
        <li>
          <a href={`/settings/pauses?host=${encodeURIComponent(host)}`}>
            <Icon name="pause" />
            <span>
              Pause <UntrustedText text={host} />
            </span>
          </a>
        </li>
      )}
      {isEmpty ? (
        <li>
          <h2>No page or action matches. Enter a part of a host, path or title, or an action ID.</h2>
        </li>
      ) : null}
    </ul>,
  );
}

function ActionEntry({ action: { id, method, host, title, status } }: { readonly action: Action }) {
  return (
    <li>
      <a href={status === "awaiting_approval" ? `/approvals/${id}` : actionPath(id)}>
        <Icon name={status === "awaiting_approval" ? "approvals" : "actions"} />
        <UntrustedText text={title ?? `${method} ${host}`} />
        <span>{statusLabel(status)}</span>
      </a>
    </li>
  );
}

/** Everything that the tabs of a phone leave out. */
export function morePage(user: PageUser): string {
  const entries = [...NAVIGATION.filter(({ isRare }) => isRare), ...PLACES].filter(({ needs }) =>
    mayDo(user.role, needs),
  );
  return render(
    <Layout title="More" user={user}>
      <PageHead title="More" intro={user.email} />
      <ul class="card more">
        {entries.map(({ name, path, icon }) => (
          <li>
            <a href={path}>
              <Icon name={icon} />
              {name}
            </a>
          </li>
        ))}
      </ul>
      <PostForm user={user} action="/auth/logout">
        <Button look="plain">Log out</Button>
      </PostForm>
    </Layout>,
  );
}
