/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { describeActor, mayDo, roleViewer } from "../core/roles.ts";
import { urlPath } from "../core/search.ts";
import { ListedStatus } from "./frame/action-row.tsx";
import { newBulkPath } from "./actions/bulk.tsx";
import { CREDENTIAL_REQUESTS_PATH, pendingRequests } from "./settings/credential-request.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import {
  actionPath,
  BULK_PATH,
  Layout,
  MORE_PATH,
  NAVIGATION,
  PALETTE_PATH,
  PAUSE_EVERYTHING,
  PAUSES_PATH,
  render,
  renderPart,
} from "../ui/layout.tsx";
import { Button, PostForm } from "../ui/form.tsx";
import { ago, LinkButton, PageHead, sentence, untrusted } from "../ui/parts.tsx";
import { SETTINGS_PATHS, SETTINGS_SECTIONS } from "./frame/settings-frame.tsx";
import type { PageUser } from "../ui/text.ts";
import { asSent } from "../receipts/masked-action.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { checkFilters } from "../api/list-schemas.ts";
import { PALETTE_ACTIONS_MAX, PALETTE_TEXT_CHARS_MAX } from "../core/limits.ts";
import type { Person } from "../http/session.ts";
import { normalHost } from "../core/target.ts";
import { seeAll } from "../receipts/see.ts";
import { ACTION_ID } from "../core/ids.ts";
import { personPages, type PageDeps } from "./frame/page-deps.ts";

/** Pages that the palette finds besides those of the navigation. */
const PLACES = [
  ...SETTINGS_SECTIONS,
  { name: "Bulk jobs", path: BULK_PATH, needs: "read", icon: "retry" },
  { ...PAUSE_EVERYTHING, needs: "manage", icon: "pause" },
  { name: "Create a key", path: "/keys/new", needs: "manage", icon: "keys" },
  { name: "Create a rule", path: `${SETTINGS_PATHS.rules}/new`, needs: "manage", icon: "rules" },
  { name: "API reference", path: "/docs/api", needs: "read", icon: "docs" },
] as const;

/** What a text finds: actions, requests for credentials, pages and commands. */
async function paletteList(deps: PageDeps, user: Person, text: string): Promise<string> {
  const [actions, requests] = await Promise.all([foundActions(deps, user, text), foundRequests(deps, user, text)]);
  const now = deps.clock.now();
  const wanted = text.toLowerCase();
  // The host in the text, for people who may pause it: "api.example.com", "pause api.example.com".
  const named = mayDo(user.role, "manage") ? normalHost(wanted.replace(/^pause /, "")) : null;
  const host = named?.includes(".") === true ? named : null;
  const places = [...NAVIGATION, ...PLACES].filter(
    ({ name, needs }) => mayDo(user.role, needs) && name.toLowerCase().includes(wanted),
  );
  const shown = text === "" ? places.slice(0, NAVIGATION.length) : places;
  const failed = text === "" || !mayDo(user.role, "retry") ? [] : actions.filter(({ status }) => status === "failed");
  const groups: readonly (readonly [name: string, entries: readonly Child[]])[] = [
    [
      text === "" ? "Awaiting approval" : "Actions",
      actions.map((action) => <ActionEntry action={asSent(action)} now={now} />),
    ],
    [
      "Credentials that agents ask for",
      requests.map(({ id, host: of, agent, createdAt }) => (
        <Entry
          id={id}
          href={`${CREDENTIAL_REQUESTS_PATH}/${id}`}
          icon="keys"
          facts={sentence`${untrusted(agent)} · ${ago(createdAt, now)}`}
        >
          Credential for {untrusted(of)}
        </Entry>
      )),
    ],
    [
      "Go to",
      shown.map(({ name, path, icon }) => (
        <Entry id={`go-${path}`} href={path} icon={icon}>
          {name}
        </Entry>
      )),
    ],
    [
      "Do",
      [
        ...(host === null
          ? []
          : [
              <Entry id="pause" href={`${PAUSES_PATH}?host=${encodeURIComponent(host)}`} icon="pause">
                Pause {untrusted(host)}
              </Entry>,
            ]),
        ...failed.map((action) => (
          <Entry id={`retry-${action.id}`} href={newBulkPath("retry", { id: [action.id] })} icon="retry">
            Retry <ActionName action={asSent(action)} />
          </Entry>
        )),
      ],
    ],
  ];
  const found = groups.filter(([, entries]) => entries.length > 0);
  return renderPart(
    <div id="found" role={found.length === 0 ? "status" : "listbox"} aria-label="Results">
      {found.map(([name, entries]) => (
        <div role="group" aria-label={name}>
          <h2 aria-hidden="true">{name}</h2>
          {entries}
        </div>
      ))}
      {found.length === 0 ? (
        <p>No page or action matches. Enter a part of a host, path or title, or an action ID.</p>
      ) : null}
    </div>,
  );
}

interface EntryProps {
  /** Unique in the list. */
  readonly id: string;
  readonly href: string;
  readonly icon: IconName;
  readonly facts?: Child;
  readonly children?: Child;
}

/** An entry. The Tab key skips it, because the focus stays in the field. */
function Entry({ id, href, icon, facts = null, children }: EntryProps) {
  return (
    <a id={`found-${id}`} role="option" aria-selected="false" tabindex={-1} href={href}>
      <Icon name={icon} />
      <span>{children}</span>
      {facts === null ? null : <span class="found-facts">{facts}</span>}
    </a>
  );
}

function ActionEntry({ action, now }: { readonly action: SeenAction; readonly now: Date }) {
  const { id, status, createdBy, createdAt } = action;
  const isHeld = status === "awaiting_approval";
  return (
    <Entry
      id={id}
      href={isHeld ? `/approvals/${id}` : actionPath(id)}
      icon={isHeld ? "approvals" : "actions"}
      facts={
        <>
          <ListedStatus action={action} isQuiet />
          {" · "}
          {untrusted(describeActor(createdBy).name)}
          {" · "}
          {ago(createdAt, now)}
        </>
      }
    >
      <ActionName action={action} />
    </Entry>
  );
}

/** Quotes the title, which is the requester's text. Method, host and path are ours. */
function ActionName({ action: { method, host, url, title } }: { readonly action: SeenAction }) {
  return title === null ? (
    <>
      <span class="method">{method}</span> {untrusted(`${host}${urlPath(url)}`)}
    </>
  ) : (
    sentence`“${untrusted(title)}”`
  );
}

/** Everything that the tabs on phones leave out. */
function morePage(user: PageUser): string {
  const entries = [...NAVIGATION.filter(({ isRare }) => isRare), ...PLACES].filter(
    ({ name, needs }) => mayDo(user.role, needs) && name !== PAUSE_EVERYTHING.name,
  );
  // Here, so that nobody has to search for it in an emergency.
  const mayPause = mayDo(user.role, "manage") && user.stop === undefined;
  return render(
    <Layout title="More" nav="More" user={user}>
      <PageHead
        title="More"
        intro={user.email}
        actions={
          mayPause ? (
            <LinkButton look="bad" href={PAUSE_EVERYTHING.path}>
              {PAUSE_EVERYTHING.name}
            </LinkButton>
          ) : undefined
        }
      />
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

export function framePages(deps: PageDeps) {
  return personPages(deps)
    .get(PALETTE_PATH, ({ context, person }) => {
      const text = (new URLSearchParams(context.search).get("q") ?? "").trim().slice(0, PALETTE_TEXT_CHARS_MAX);
      return paletteList(deps, person, text);
    })
    .get(MORE_PATH, ({ person }) => morePage(person));
}

/** The action with the id in the text; else the newest that match; without text, the oldest waiting ones. */
async function foundActions({ actionService }: PageDeps, { caller }: Person, text: string) {
  const id = text.split(/[^A-Za-z0-9_-]/).find((word) => ACTION_ID.test(word));
  const filters =
    id === undefined && text !== "" ? checkFilters({ q: text }) : checkFilters({ status: ["awaiting_approval"] });
  const found =
    id === undefined
      ? (await actionService.list(caller, { ...filters, limit: PALETTE_ACTIONS_MAX })).actions
      : await actionService.get(caller, id).then(
          (action) => [action],
          () => [],
        );
  return seeAll(found, roleViewer(caller.role));
}

/** The waiting requests with the text in host, agent or id, or all without text. Oldest first. */
async function foundRequests(deps: PageDeps, person: Person, text: string) {
  const wanted = text.toLowerCase();
  const found = (await pendingRequests(deps, person)).filter(({ id, host, agent }) =>
    [`credential for ${host}`, agent.toLowerCase(), id].some((one) => one.includes(wanted)),
  );
  return found.slice(0, PALETTE_ACTIONS_MAX);
}
