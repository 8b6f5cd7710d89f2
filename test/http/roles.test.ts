import { NO_HOST_SETTINGS } from "../../src/core/host-settings.ts";
import { describe, expect, test } from "bun:test";
import { OPERATIONS, type Operation } from "../support/operations.ts";
import { type Role, ROLES } from "../../src/core/roles.ts";
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
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

/** Who may do what over REST (decisions 7), written out: every operation that asks for a key stands here. */
const MAY: Readonly<Record<string, readonly Role[]>> = {
  createAction: ["owner", "agent"],
  listActions: ["owner", "approver", "agent", "reader"],
  countActions: ["owner", "approver", "agent", "reader"],
  exportActions: ["owner", "approver", "agent", "reader"],
  startBulk: ["owner", "approver", "agent"],
  listBulk: ["owner", "approver", "agent", "reader"],
  getBulk: ["owner", "approver", "agent", "reader"],
  listBulkResults: ["owner", "approver", "agent", "reader"],
  stopBulk: ["owner", "approver", "agent"],
  decideRequests: ["owner", "approver"],
  getOverview: ["owner", "approver", "agent", "reader"],
  listNotifications: ["owner"],
  getAction: ["owner", "approver", "agent", "reader"],
  getTimeline: ["owner", "approver", "agent", "reader"],
  getAttempts: ["owner", "approver", "agent", "reader"],
  getDecisionFacts: ["owner", "approver", "agent", "reader"],
  streamEvents: ["owner", "approver", "agent", "reader"],
  approveAction: ["owner", "approver"],
  cancelAction: ["owner", "approver", "agent"],
  retryAction: ["owner", "agent"],
  sendActionNow: ["owner", "agent"],
  listSigningOrigins: ["owner"],
  getSigningSecret: ["owner"],
  rotateSigningSecret: ["owner"],
  verifySignature: ["owner"],
  listCallbackHosts: ["owner"],
  addCallbackHost: ["owner"],
  removeCallbackHost: ["owner"],
  testCallback: ["owner"],
  listKeys: ["owner"],
  createKey: ["owner"],
  revokeKey: ["owner"],
  createPause: ["owner"],
  listPauses: ["owner"],
  endPause: ["owner"],
  listHosts: ["owner", "approver", "agent", "reader"],
  putHost: ["owner"],
  removeHost: ["owner"],
  putDefaults: ["owner"],
  listGrants: ["owner", "approver"],
  endGrant: ["owner", "approver"],
  listCredentials: ["owner", "approver", "agent", "reader"],
  createCredential: ["owner"],
  getCredential: ["owner", "approver", "agent", "reader"],
  changeCredential: ["owner"],
  removeCredential: ["owner"],
  listRules: ["owner", "approver", "agent", "reader"],
  createRule: ["owner"],
  replaceRules: ["owner"],
  reorderRules: ["owner"],
  dryRunRules: ["owner", "approver"],
  changeRule: ["owner"],
  removeRule: ["owner"],
  listChannels: ["owner"],
  createChannel: ["owner"],
  changeChannel: ["owner"],
  removeChannel: ["owner"],
  testChannel: ["owner"],
  testCredential: ["owner"],
  listOAuthClients: ["owner"],
  createOAuthClient: ["owner"],
  replaceOAuthClientSecret: ["owner"],
  removeOAuthClient: ["owner"],
  askCredential: ["owner", "agent"],
  listCredentialRequests: ["owner", "approver", "agent", "reader"],
  getCredentialRequest: ["owner", "approver", "agent", "reader"],
  grantCredentialRequest: ["owner"],
  declineCredentialRequest: ["owner"],
  listAudit: ["owner"],
  listAccounts: ["owner"],
  allowAccount: ["owner"],
  listPeople: ["owner"],
  changePerson: ["owner"],
  changeAccount: ["owner"],
  removePerson: ["owner"],
  listInvitations: ["owner"],
  createInvitation: ["owner"],
  withdrawInvitation: ["owner"],
  getFirstSteps: ["owner", "approver", "agent", "reader"],
  changeFirstSteps: ["owner"],
  getServer: ["owner"],
  sendTestMail: ["owner"],
  getAccount: ["owner", "approver", "agent", "reader"],
};

const guarded = OPERATIONS.filter(({ permission }) => permission !== null);

const cases = guarded.map((operation) => [`${operation.method} ${operation.path}`, operation] as const);

const rolesOf = ({ id }: Operation): readonly Role[] => MAY[id] ?? [];

const NO_IDS = ["act_nobody", "key_nobody", "nonsense", "%00", "act_a%2Fb", "x".repeat(500)];

const BAD_BODIES = ["", "{", `{"unknown":1}`, `{"url":7}`];

const TOO_LARGE = "x".repeat(1_048_577);

// Nothing is dispatched: what is looked at stays as it was made.
const app = await shared(openRealServer({ starts: false }));

const as = (role: Role) => ({ authorization: `Bearer ${KEYS[role]}` });

const bytesOf = (text: string) => text.replace(/"req_[^"]+"/, '"req"');

/** A request that the owner would have answered well, on a thing of its own. */
async function goodRequest({ id, method, path }: Operation, role: Role) {
  const { engine } = app;
  const body: Readonly<Record<string, string>> = {
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
  };
  const queries: Readonly<Record<string, string>> = {
    getSigningSecret: "?origin=https://a.example",
    verifySignature: "?origin=https://a.example",
    removeCallbackHost: "?host=old.example.com",
  };
  for (const host of ["old.example.com", "127.0.0.1:9"]) {
    const row = { accountId: engine.owner.accountId, host, createdAt: engine.clock.now() };
    await engine.store.callbackHosts.put(row, anAuditEntry());
  }
  const query = queries[id] ?? "";
  if (id === "sendTestMail") {
    const { person } = await joined(engine.store, { accountId: engine.owner.accountId });
    return { method, path, body: JSON.stringify({ to: person.email }), thing: null };
  }
  if (id === "reorderRules") {
    const ids = (await engine.ruleService.list(engine.owner)).map((rule) => rule.id);
    return { method, path, body: JSON.stringify({ ids: ids.toReversed() }), thing: null };
  }
  if (path.startsWith("/v1/credentials/")) {
    const { accountId } = engine.owner;
    const { keyId } = await app.authenticate(as("agent").authorization);
    const credential = aCredential({
      accountId,
      name: `c-${crypto.randomUUID()}`,
      hosts: ["127.0.0.1:9"],
      keys: [keyId ?? ""],
    });
    await engine.store.credentials.add(credential, anAuditEntry());
    return { method, path: path.replace("{name}", credential.name), body: body[id], thing: null };
  }
  if (path.startsWith("/v1/credential-requests/")) {
    const { accountId } = engine.owner;
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
    return { method, path: path.replace("{id}", request.id), body: body[id], thing: null };
  }
  if (!path.includes("{id}")) return { method, path: path + query, body: body[id], thing: null };
  if (path.startsWith("/v1/oauth-clients/")) {
    const request = { name: "Workflows", redirect_uris: ["https://a.example/cb"], type: "confidential" as const };
    const { client } = await engine.services.oauthClients.add(engine.owner, request);
    return { method, path: path.replace("{id}", client.id), body: undefined, thing: null };
  }
  if (path.startsWith("/v1/keys/")) {
    const key = anApiKey({ accountId: engine.owner.accountId });
    await engine.store.accounts.addKey(key);
    return { method, path: path.replace("{id}", key.id), body: undefined, thing: null };
  }
  if (path.startsWith("/v1/accounts/")) {
    return { method, path: path.replace("{id}", app.strangerId), body: undefined, thing: null };
  }
  if (path.includes("{host}")) {
    await engine.hostService.put(engine.owner, "old.example.com", NO_HOST_SETTINGS);
    return { method, path: path.replace("{host}", "old.example.com"), body: body[id], thing: null };
  }
  if (path.startsWith("/v1/bulk/")) {
    const job = aBulkJob({ accountId: engine.owner.accountId, operation: "cancel" });
    await engine.store.bulk.add(job, [], anAuditEntry({ kind: "bulk_started" }));
    // Only so many may run.
    if (id !== "stopBulk") await engine.store.bulk.end(job.id, { status: "finished", at: job.createdAt, by: null });
    return { method, path: path.replace("{id}", job.id), body: undefined, thing: null };
  }
  if (path.startsWith("/v1/people/")) {
    const { person } = await joined(engine.store, { accountId: engine.owner.accountId });
    return { method, path: path.replace("{id}", person.id), body: body[id], thing: null };
  }
  if (path.startsWith("/v1/invitations/")) {
    const invitation = anInvitation({ accountId: engine.owner.accountId });
    await engine.store.team.invite(invitation, null, anAuditEntry());
    return { method, path: path.replace("{id}", invitation.id), body: undefined, thing: null };
  }
  if (path.startsWith("/v1/channels/")) {
    const channel = aChannel({ accountId: engine.owner.accountId, url: "http://127.0.0.1:9/" });
    await engine.store.channels.put(channel, anAuditEntry());
    return { method, path: path.replace("{id}", channel.id), body: body[id], thing: null };
  }
  if (path.startsWith("/v1/rules/")) {
    const { row } = await engine.ruleService.add(
      engine.owner,
      { name: "None", effect: "hold", keys: ["key_nobody"] },
      null,
    );
    return { method, path: path.replace("{id}", row.id), body: body[id], thing: null };
  }
  if (path.startsWith("/v1/grants/")) {
    const { accountId } = engine.owner;
    const { action } = aCreation({ accountId, approve: true });
    await engine.store.actions.create({
      ...creationOf(action),
      rulesVersion: await engine.store.rules.versionOf(accountId),
    });
    const [now, owner] = [engine.clock.now(), engine.owner.keyId ?? ""];
    const grant = aGrant({ accountId, createdById: owner, expiresAt: new Date(now.getTime() + 60_000) });
    await engine.store.actions.apply({ ...writeOf(approve(action, aDecision(now))), grant });
    return { method, path: path.replace("{id}", grant.id), body: undefined, thing: null };
  }
  if (path.startsWith("/v1/pauses/")) {
    const { pause } = await engine.pauseService.pause(engine.owner, { keyId: null, reason: null });
    return { method, path: path.replace("{id}", pause.id), body: undefined, thing: null };
  }
  if (id === "sendActionNow") {
    const runAt = engine.clock.now().getTime() + 3_600_000;
    const action = await engine.create({ extras: { runAt } });
    return { method, path: path.replace("{id}", action.id), body: undefined, thing: action.id };
  }
  const action = await engine.create({ approve: true, body: `{"role":"${role}"}` });
  if (id === "retryAction") await engine.actionService.cancel(engine.owner, action.id, null);
  return { method, path: path.replace("{id}", action.id), body: body[id], thing: action.id };
}

/** Everything of the account that a request could have changed. */
async function stateOf(thing: string | null) {
  const { actionService, owner, store } = app.engine;
  const keys = await store.accounts.keys(owner.accountId, 1_000);
  const secret = await app.call("GET", "/v1/signing-secret?origin=https://a.example");
  return {
    secret: secret.text,
    action: thing === null ? null : await actionService.get(owner, thing),
    told: thing === null ? [] : await actionService.timeline(owner, thing),
    callbackHosts: await store.callbackHosts.list(owner.accountId),
    hosts: await store.hostSettings.list(owner.accountId),
    channels: await store.channels.list(owner.accountId),
    rules: await store.rules.list(owner.accountId),
    credentials: await store.credentials.list(owner.accountId),
    requests: await store.credentialRequests.list(owner.accountId, {
      keyId: null,
      status: null,
      now: app.engine.clock.now(),
      before: null,
      limit: 500,
    }),
    people: await store.team.members(owner.accountId, 500),
    invitations: await store.team.invitations(owner.accountId, app.engine.clock.now(), 500),
    keys: keys.map((key) => ({ ...key, lastUsedAt: null })),
    newest: (await app.call("GET", "/v1/actions?limit=100")).json.data,
  };
}

test("every operation that asks for a key is in the table", () => {
  expect(guarded.map(({ id }) => id).toSorted()).toEqual(Object.keys(MAY).toSorted());
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
      for (const bad of BAD_BODIES) {
        for (const type of ["application/json", "text/plain"]) expect(await bytes(path, bad, type)).toBe(expected);
      }
      if (role === refused[0]) expect(await bytes(path, TOO_LARGE, "application/json")).toBe(expected);
    }
    expect(await stateOf(thing)).toEqual(before);
  });
});
