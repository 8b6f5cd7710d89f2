import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import { describe, expect, test } from "bun:test";
import { OPERATIONS, type Operation } from "../support/operations.ts";
import { mayDo, type Permission, type Role, ROLES } from "../../src/core/roles.ts";
import { refusalOf } from "../actions/callers.ts";
import { approve } from "../../src/core/changes.ts";
import {
  aBulkJob,
  aCredential,
  aCredentialRequest,
  aChannel,
  aCreation,
  aDecision,
  aGrant,
  anApiKey,
  anAuditEntry,
  anInvitation,
  creationOf,
  joined,
  writeOf,
} from "../support/factory.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

/** Who may do what over REST, written out: every operation that asks for a key stands here. */
const MAY: readonly (readonly [roles: readonly Role[], operations: string])[] = [
  [["owner", "agent"], "createAction retryAction sendActionNow askCredential"],
  [
    ROLES,
    "listActions countActions exportActions listBulk getBulk listBulkResults getOverview getAction " +
      "getTimeline getAttempts getDecisionFacts streamEvents listHosts listCredentials getCredential listRules " +
      "listCredentialRequests getCredentialRequest getFirstSteps getAccount",
  ],
  [["owner", "approver", "agent"], "startBulk stopBulk cancelAction"],
  [["owner", "approver"], "decideRequests approveAction listGrants endGrant dryRunRules"],
  [
    ["owner"],
    "listNotifications listSigningOrigins getSigningSecret rotateSigningSecret verifySignature " +
      "listCallbackHosts addCallbackHost removeCallbackHost testCallback listKeys createKey revokeKey " +
      "createPause listPauses endPause putHost removeHost putDefaults createCredential changeCredential " +
      "removeCredential createRule replaceRules reorderRules changeRule removeRule listChannels createChannel " +
      "changeChannel removeChannel testChannel testCredential listOAuthClients createOAuthClient " +
      "replaceOAuthClientSecret removeOAuthClient grantCredentialRequest declineCredentialRequest listAudit " +
      "listAccounts allowAccount listPeople changePerson changeAccount removePerson listInvitations " +
      "createInvitation withdrawInvitation changeFirstSteps getServer sendTestMail",
  ],
];

const guarded = OPERATIONS.filter(({ permission }) => permission !== null);

const cases = guarded.map((operation) => [`${operation.method} ${operation.path}`, operation] as const);

const rolesOf = ({ id }: Operation): readonly Role[] =>
  MAY.find(([, operations]) => operations.split(" ").includes(id))?.[0] ?? [];

const NO_IDS = ["act_nobody", "%00", "x".repeat(500)];

/** Refused at their type, at their JSON, and by every schema. */
const BAD_BODIES = [
  ["text/plain", ""],
  ["application/json", "{"],
  ["application/json", `{"unknown":1}`],
] as const;

const TOO_LARGE = "x".repeat(1_048_577);

// Nothing is dispatched: what is looked at stays as it was made.
const app = await shared(openRealServer({ starts: false }));

const { engine } = app;
const { accountId } = engine.owner;

const as = (role: Role) => ({ authorization: `Bearer ${KEYS[role]}` });

const theirs = { authorization: `Bearer ${STRANGER}` };

const bytesOf = (text: string) => text.replace(/"req_[^"]+"/, '"req"');

/** By where a path begins: makes the thing of the owner's that it names, ready for the operation, and returns its name. */
const THINGS: Readonly<Record<string, (operation: Operation, role: Role) => Promise<string>>> = {
  "/v1/credentials/": async () => {
    const { keyId } = await app.authenticate(as("agent").authorization);
    const name = `c-${crypto.randomUUID()}`;
    const credential = aCredential({ accountId, name, hosts: ["127.0.0.1:9"], keys: [keyId ?? ""] });
    await engine.store.credentials.add(credential, anAuditEntry());
    return name;
  },
  "/v1/credential-requests/": async (_operation, role) => {
    const { keyId } = await app.authenticate(as(role).authorization);
    const now = engine.clock.now();
    const request = aCredentialRequest({
      accountId,
      // One key may have only so many.
      keyId: role === "agent" ? (keyId ?? "") : `key_${crypto.randomUUID()}`,
      createdAt: now,
      expiresAt: new Date(now.getTime() + 60_000),
    });
    await engine.store.credentialRequests.ask(request, now, [], anAuditEntry());
    return request.id;
  },
  "/v1/oauth-clients/": async () => {
    const request = { name: "Workflows", redirect_uris: ["https://a.example/cb"], type: "confidential" as const };
    return (await engine.services.oauthClients.add(engine.owner, request)).id;
  },
  "/v1/keys/": async () => {
    const key = anApiKey({ accountId });
    await engine.store.accounts.addKey(key);
    return key.id;
  },
  "/v1/accounts/": () => Promise.resolve(app.strangerId),
  "/v1/hosts/": async () => {
    await engine.hostService.put(engine.owner, "old.example.com", NO_HOST_SETTINGS);
    return "old.example.com";
  },
  "/v1/bulk/": async ({ id }) => {
    const job = aBulkJob({ accountId, operation: "cancel" });
    await engine.store.bulk.add(job, [], anAuditEntry({ kind: "bulk_started" }));
    // Only so many may run.
    if (id !== "stopBulk") await engine.store.bulk.end(job.id, { status: "finished", at: job.createdAt, by: null });
    return job.id;
  },
  "/v1/people/": async () => (await joined(engine.store, { accountId })).person.id,
  "/v1/invitations/": async () => {
    const invitation = anInvitation({ accountId });
    await engine.store.team.invite(invitation, null, anAuditEntry());
    return invitation.id;
  },
  "/v1/channels/": async () => {
    const channel = aChannel({ accountId, url: "http://127.0.0.1:9/" });
    await engine.store.channels.put(channel, anAuditEntry());
    return channel.id;
  },
  "/v1/rules/": async () => {
    const asked = { name: "None", effect: "hold" as const, keys: ["key_nobody"] };
    return (await engine.ruleService.add(engine.owner, asked, null)).row.id;
  },
  "/v1/grants/": async () => {
    const { action } = aCreation({ accountId, approve: true });
    const rulesVersion = await engine.store.rules.findVersion(accountId);
    await engine.store.actions.create({ ...creationOf(action), rulesVersion });
    const [now, createdById] = [engine.clock.now(), engine.owner.keyId ?? ""];
    const grant = aGrant({ accountId, createdById, expiresAt: new Date(now.getTime() + 60_000) });
    await engine.store.actions.apply({ ...writeOf(approve(action, aDecision(now))), grant });
    return grant.id;
  },
  "/v1/pauses/": async () => (await engine.pauseService.pause(engine.owner, { keyId: null, reason: null })).pause.id,
  "/v1/actions/": async ({ id }, role) => {
    if (id === "sendActionNow") {
      return (await engine.create({ extras: { runAt: engine.clock.now().getTime() + 3_600_000 } })).id;
    }
    const action = await engine.create({ approve: true, body: `{"role":"${role}"}` });
    if (id === "retryAction") await engine.actionService.cancel(engine.owner, action.id, null);
    return action.id;
  },
};

const QUERIES: Readonly<Record<string, string>> = {
  getSigningSecret: "?origin=https://a.example",
  verifySignature: "?origin=https://a.example",
  removeCallbackHost: "?host=old.example.com",
};

/** Bodies that are the same each time; those that name what there is are made in `bodyFor`. */
const bodiesAs = (role: Role): Readonly<Record<string, string>> => ({
  createAction: `{"url":"https://a.example/","approve":true}`,
  addCallbackHost: `{"host":"hooks.example.com"}`,
  createKey: `{"name":"ci","role":"reader"}`,
  createPause: `{}`,
  startBulk: `{"operation":"cancel","filter":{"host":"nobody.example"}}`,
  decideRequests: `{"decision":"approve","requests":[{"id":"act_nobody","run":1,"digest":"x"}]}`,
  putHost: `{"timeout_ms":5000}`,
  putDefaults: `{"timeout_ms":5000}`,
  createChannel: `{"name":"ops","kind":"slack","url":"https://hooks.example.com/"}`,
  changeChannel: `{"enabled":false}`,
  createCredential: `{"name":"c-${role}","kind":"bearer","secret":"0123456789","hosts":["a.example"]}`,
  changeCredential: `{"enabled":false}`,
  testCredential: `{"url":"http://127.0.0.1:9/x"}`,
  createOAuthClient: `{"name":"Workflows","redirect_uris":["https://a.example/cb"],"type":"public"}`,
  askCredential: `{"host":"${role}.example","reason":"To call it."}`,
  grantCredentialRequest: `{"name":"g-${role}","kind":"bearer","secret":"0123456789","hosts":["a.example"]}`,
  declineCredentialRequest: `{"reason":"No."}`,
  createRule: `{"name":"None","effect":"hold","keys":["key_nobody"]}`,
  replaceRules: `{"rules":[{"name":"None","effect":"hold","keys":["key_nobody"]}]}`,
  dryRunRules: `{"last":10}`,
  changeRule: `{"effect":"refuse"}`,
  createInvitation: `{"email":"bob@example.com","role":"reader"}`,
  verifySignature: `{"headers":{}}`,
  testCallback: `{"url":"http://127.0.0.1:9/hook"}`,
  changeFirstSteps: `{"hidden":true}`,
  changePerson: `{"role":"approver"}`,
  changeAccount: `{"name":"Acme"}`,
  retryAction: `{"reason":"It was rejected before."}`,
});

async function bodyFor({ id }: Operation, role: Role): Promise<string | undefined> {
  if (id === "sendTestMail") return JSON.stringify({ to: (await joined(engine.store, { accountId })).person.email });
  if (id === "reorderRules") {
    return JSON.stringify({ ids: (await engine.ruleService.list(engine.owner)).map((rule) => rule.id).toReversed() });
  }
  return bodiesAs(role)[id];
}

/** A request that the owner would have answered well, on a thing of its own. */
async function goodRequest(operation: Operation, role: Role) {
  for (const host of ["old.example.com", "127.0.0.1:9"]) {
    await engine.store.callbackHosts.put({ accountId, host, createdAt: engine.clock.now() }, anAuditEntry());
  }
  const { id, method } = operation;
  const place = /\{\w+\}/.exec(operation.path)?.[0];
  const make =
    place === undefined ? undefined : Object.entries(THINGS).find(([path]) => operation.path.startsWith(path))?.[1];
  const thing = (await make?.(operation, role)) ?? null;
  const path = place === undefined ? operation.path + (QUERIES[id] ?? "") : operation.path.replace(place, thing ?? "");
  return { method, path, body: await bodyFor(operation, role), thing };
}

/** Everything of the account that a request could have changed. */
async function stateOf(thing: string | null) {
  const { actionService, owner, store } = engine;
  const action = thing?.startsWith("act_") ? thing : null;
  const keys = await store.accounts.keys(accountId, 1_000);
  const secret = await app.call("GET", "/v1/signing-secret?origin=https://a.example");
  const lists = ["actions", "bulk", "grants", "oauth-clients", "pauses"];
  return {
    secret: secret.text,
    action: action === null ? null : await actionService.get(owner, action),
    told: action === null ? [] : await actionService.timeline(owner, action),
    callbackHosts: await store.callbackHosts.list(accountId),
    hosts: await store.hostSettings.list(accountId),
    channels: await store.channels.list(accountId),
    rules: await store.rules.list(accountId),
    credentials: await store.credentials.list(accountId),
    requests: await store.credentialRequests.list(accountId, {
      keyId: null,
      status: null,
      now: engine.clock.now(),
      before: null,
      limit: 500,
    }),
    people: await store.team.members(accountId, 500),
    invitations: await store.team.invitations(accountId, engine.clock.now(), 500),
    keys: keys.map((key) => ({ ...key, lastUsedAt: null })),
    lists: await Promise.all(lists.map(async (name) => (await app.call("GET", `/v1/${name}?limit=100`)).json.data)),
  };
}

test("every operation that asks for a key is in the table", () => {
  expect(guarded.map(({ id }) => id).toSorted()).toEqual(MAY.flatMap(([, ids]) => ids.split(" ")).toSorted());
});

describe("by role, route and method", () => {
  test.each(cases)("%s is done for the roles that may", async (_name, operation) => {
    for (const role of rolesOf(operation)) {
      const { method, path, body } = await goodRequest(operation, role);
      const { status } = await app.call(method, path, body, as(role));
      expect(operation.success.includes(status), role).toBe(true);
    }
  });

  const refusing = cases.filter(([, operation]) => rolesOf(operation).length < ROLES.length);

  test.each(refusing)("%s changes nothing for the others, who learn nothing by it", async (_name, operation) => {
    const refused = ROLES.filter((role) => !rolesOf(operation).includes(role));
    const { method, path, body, thing } = await goodRequest(operation, "reader");
    const before = await stateOf(thing);
    // Before id, query and body are looked at.
    const addresses = [
      ...(operation.path.includes("{id}") ? NO_IDS.map((id) => operation.path.replace("{id}", id)) : []),
      `${path}${path.includes("?") ? "&" : "?"}unknown=1&wait=0`,
    ];
    for (const role of refused) {
      const bytes = async (address: string, sent?: string, type?: string) => {
        const headers = { ...as(role), ...(type === undefined ? {} : { "content-type": type }) };
        const response = await app.ask(address, { method, headers, ...(sent === undefined ? {} : { body: sent }) });
        return `${response.status} ${bytesOf(await response.text())}`;
      };
      const { status, json } = await app.call(method, path, body, as(role));
      expect({ status, code: json.error.code }, role).toEqual({ status: 403, code: "forbidden" });
      const expected = await bytes(path);
      for (const address of addresses) expect(await bytes(address)).toBe(expected);
      if (method === "GET") continue;
      for (const [type, bad] of BAD_BODIES) expect(await bytes(path, bad, type)).toBe(expected);
      if (role === refused[0]) expect(await bytes(path, TOO_LARGE, "application/json")).toBe(expected);
    }
    expect(await stateOf(thing)).toEqual(before);
  });
});

describe("what is another account's does not exist", () => {
  const withId = cases.filter(([, { path }]) => /\{(id|name)\}/.test(path));

  test.each(withId)(
    "%s: 404 in the same bytes as for an id that nobody has, and nothing happens",
    async (_name, operation) => {
      const { method, path, body, thing } = await goodRequest(operation, "owner");
      const id = thing ?? "";
      const before = await stateOf(id);
      const ask = async (one: string) => {
        const headers = { ...theirs, ...(body === undefined ? {} : { "content-type": "application/json" }) };
        const asked = path.replace(id, encodeURIComponent(one));
        const response = await app.ask(asked, { method, headers, ...(body !== undefined && { body }) });
        return `${response.status} ${String(response.headers.get("content-length"))} ${bytesOf(await response.text())}`;
      };
      const expected = await ask(id.replace(/[^_-]+$/, "nobody"));
      // Accounts are looked at by the first one alone: to others none of them exists.
      expect(expected).toStartWith(operation.id === "allowAccount" ? "403 " : "404 ");
      expect(await ask(id)).toBe(expected);
      // Nor is one that can't be an id told from it.
      for (const odd of ["nonsense", `${id}\u0000`, `${id}/x`, id.toUpperCase(), "act_", "key_", "x".repeat(300)]) {
        expect(await ask(odd)).toBe(expected);
      }
      expect(await stateOf(id)).toEqual(before);
    },
  );

  test("in no list, under no key of deduplication and by no cursor", async () => {
    const body = `{"url":"http://127.0.0.1:9/","approve":true,"dedupe":"same"}`;
    const mine = (await app.call("POST", "/v1/actions", body, { "idempotency-key": "same" })).json;
    const other = await app.call("POST", "/v1/actions", body, { ...theirs, "idempotency-key": "same" });
    expect(other.status).toBe(201);
    expect(other.json.id).not.toBe(mine.id);
    const { next_cursor: cursor } = (await app.call("GET", "/v1/actions?limit=1")).json;
    for (const query of ["", "?dedupe=same", "?limit=100", "?status=awaiting_approval"]) {
      const { json } = await app.call("GET", `/v1/actions${query}`, undefined, STRANGER);
      expect(json.data.map(({ id }) => id)).toEqual([other.json.id]);
    }
    if (cursor !== null) {
      const { json } = await app.call("GET", `/v1/actions?cursor=${cursor}`, undefined, STRANGER);
      expect(json.data.map(({ id }) => id)).not.toContain(mine.id);
    }
    const keys = (await app.call("GET", "/v1/keys", undefined, STRANGER)).json.data;
    const ours = new Set((await app.call("GET", "/v1/keys")).json.data.map(({ id }) => id));
    expect(keys).toHaveLength(1);
    expect(keys.filter(({ id }) => ours.has(id))).toEqual([]);
  });
});

/** What services themselves ask the role for, before anything else: pages and tools call them without the routes' checks. */
const ASKED: readonly (readonly [Permission, keyof typeof engine.services, methods: string])[] = [
  ["create", "actionService", "create sendNow"],
  ["create", "credentialRequests", "ask"],
  ["approve", "actionService", "approve decideMany"],
  ["approve", "grantService", "list listNamed end make"],
  ["approve", "ruleService", "dryRun hits"],
  ["manage", "accountService", "rename"],
  ["manage", "auditService", "list"],
  ["manage", "callbackHosts", "list add remove test"],
  ["manage", "channelService", "list add change remove test"],
  ["manage", "credentialRequests", "grant decline"],
  ["manage", "credentialService", "add change remove test"],
  ["manage", "firstSteps", "hide show"],
  ["manage", "invitationService", "invite list withdraw"],
  ["manage", "hostService", "put putDefaults remove"],
  ["manage", "keyService", "list listWithUse create revoke unfinished ofFormer"],
  ["manage", "oauthClients", "list add replaceSecret remove"],
  ["manage", "ownMails", "testTo"],
  ["manage", "pauseService", "pause list resume"],
  ["manage", "ruleService", "tryRule add change replace remove brakeLoops lastChange undo reorder replaceAll"],
  ["manage", "signingService", "read origins overlapEnd rotate"],
  ["manage", "signUpGate", "requireOperator list allow"],
  ["manage", "teamService", "list changeRole remove"],
  ["manage", "verifyService", "check"],
];

test("services ask for the role too, whoever calls them", async () => {
  for (const [permission, name, methods] of ASKED) {
    for (const role of ROLES.filter((one) => !mayDo(one, permission))) {
      for (const method of methods.split(" ")) {
        const call = Promise.try(Reflect.get(Object(engine.services[name]), method), { ...engine.owner, role }, {}, {});
        const code = (await refusalOf(call))?.code;
        expect(code, `${role}: ${name}.${method}`).toBe("forbidden");
      }
    }
  }
});
