import type { ActionQuery } from "../../../src/core/search.ts";
import type { LiveLink, Member } from "../../../src/core/account-store.ts";
import { NO_FILTER, type Store } from "../../../src/core/store.ts";
import { type Action, type Creator, type LimitedCreator, NO_EXTRAS } from "../../../src/core/action.ts";
import { LIST_SCAN_ROWS_MAX } from "../../../src/core/limits.ts";
import { ACCOUNT, anAuditQuery, aQuery, KEY, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";

const DIGEST = "digest of a request";
const ORIGIN = "https://hooks.example.com";

const QUERIES: readonly Partial<ActionQuery>[] = [
  { accountId: OTHER_ACCOUNT },
  { statuses: ["pending", "awaiting_approval", "failed"] },
  { host: "api.example.com" },
  { dedupe: "order 7" },
  { createdBy: KEY, statuses: ["completed"] },
];

/** Everything that a store says about the database of `dump.sql`, as JSON, with its times. */
export async function contentsOf(store: Store): Promise<unknown> {
  const { actions, outbox, accounts, people, signing, pauses, rejections, audit, sealed, facts, links } = store;
  const listed = (await actions.list(aQuery({ limit: 99 }))).actions;
  const eachAction = await Promise.all(
    listed.map(async ({ id }) => ({
      id,
      timeline: await actions.timeline(ACCOUNT, id),
      pauses: await pauses.ofAction(ACCOUNT, id),
      links: await Promise.all(
        (["approve", "reject"] as const).map((decision) => links.find({ actionId: id, run: 1, decision })),
      ),
      earlier: await rejections.earlier({ id, run: 9, accountId: ACCOUNT, keyId: KEY }, DIGEST, later(9)),
    })),
  );
  const entries = await outbox.list(ACCOUNT, null, 99);
  const contents = {
    actions: listed.map(asOfVersion01),
    lists: await Promise.all(QUERIES.map(async (query) => idsOf(await actions.list(aQuery({ limit: 99, ...query }))))),
    counts: await Promise.all(QUERIES.map((query) => countOf(actions, aQuery({ limit: 99, ...query })))),
    eachAction,
    holders: [
      (await actions.keyHolder(ACCOUNT, "dedupe", "order 7", NOON))?.id,
      (await actions.keyHolder(ACCOUNT, "idempotency", "key 7", NOON))?.id,
    ],
    held: [
      idsOf(await actions.held(ACCOUNT, null, 99)),
      idsOf(await actions.held(ACCOUNT, null, 99, { keyId: KEY, host: null, before: null })),
    ],
    requesters: await actions.requesters(ACCOUNT),
    heldCount: await actions.heldTotal(ACCOUNT, { ...NO_FILTER, keyId: KEY }, 9),
    changes: (await actions.changes(ACCOUNT, 0)).changes.map(({ seq, at, action }) => [
      seq,
      at,
      action.id,
      action.status,
    ]),
    position: await actions.position(),
    scheduledRetries: { ...(await actions.scheduledRetries(ACCOUNT, NOON)), dueSince: undefined },
    firstDueAt: await actions.firstDueAt(),
    waiting: [await actions.waiting(), { ...(await outbox.waiting()), message: undefined }],
    approvedHosts: [...(await actions.approvedHosts(ACCOUNT, [{ keyId: KEY, hostname: "api.example.com" }]))],
    outbox: await Promise.all(
      entries.map(async (entry) => ({
        entry,
        payload: await outbox.payload(entry.id),
        creator: withoutLimits(await outbox.findCreator(entry.id)),
      })),
    ),
    heldForUpkeep: await store.upkeep.held(later(99), "", 99),
    accounts: [await accounts.first(), await accounts.list(99), await accounts.hasHold()],
    keys: [await accounts.keys(ACCOUNT, 99), await accounts.keyByHash("hash of key_two")],
    replacedBy: await accounts.replacedBy("key_two"),
    people: [ofOwner(await people.find("ANN@example.com")), (await people.findLabel(ACCOUNT)).email],
    session: ofOwner(await people.session("hash of a session", NOON)),
    link: ofOwner(await people.link("hash of a link", NOON)),
    seeds: [await signing.seeds(ACCOUNT, ORIGIN, "calls"), await signing.seeds(ACCOUNT, ORIGIN, "callbacks")],
    callbackOverlap: await signing.callbackOverlap(ACCOUNT, ORIGIN),
    callbackHosts: (await store.callbackHosts.list(ACCOUNT)).map(({ host, createdAt }) => ({ createdAt, host })),
    pauses: await pauses.inForce(null),
    rejections: Object.values(await rejections.count({ accountId: ACCOUNT, keyId: KEY, digest: DIGEST }, later(9))),
    audit: await audit.page(anAuditQuery()),
    sealed: await sealed.find("another key", null, 99),
    fact: await facts.read("a fact"),
  };
  return JSON.parse(JSON.stringify(contents, (name, value: unknown) => (isLater(name, value) ? undefined : value)));
}

/** What later versions add, where it is nothing. */
const LATER: Readonly<Record<string, unknown>> = {
  hosts: null,
  methods: null,
  dailyActions: null,
  expiresAt: null,
  lastSeenAt: null,
  hasOthers: false,
};

function isLater(name: string, value: unknown): boolean {
  return name in LATER && LATER[name] === value;
}

/** People had no role: all of them were owners. */
function ofOwner(member: Pick<Member, "role"> | LiveLink | null): object | null {
  if (member?.role !== "owner") return null;
  const { role: _, ...rest } = member;
  return rest;
}

/** Without what version 0.1 does not have. */
function asOfVersion01({ title, extras, expiresAt, ...action }: Action) {
  if (title !== null || extras !== NO_EXTRAS || expiresAt !== null) throw new Error("Version 0.1 has none of them.");
  return action;
}

function idsOf({ actions }: { readonly actions: readonly { readonly id: string }[] }): readonly string[] {
  return actions.map(({ id }) => id);
}

async function countOf(actions: Store["actions"], query: ActionQuery) {
  const { count, isMore } = await actions.count(query, LIST_SCAN_ROWS_MAX);
  return { count, isMore };
}

/** Version 0.1 did not ask for the limits of the key. */
function withoutLimits(creator: LimitedCreator | null): Creator | null {
  return creator === null ? null : { role: creator.role, hold: creator.hold };
}
