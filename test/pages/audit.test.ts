import { expect, test } from "bun:test";
import { AUDIT_KINDS, type AuditKind, type AuditRow } from "../../src/core/audit.ts";
import { actorsLike, auditPage } from "../../src/pages/settings/audit.tsx";
import { anAuditEntry, later } from "../support/factory.ts";

const DANA = "user:dana@northwind.example";

function pageOf(rows: readonly AuditRow[]): string {
  return auditPage({
    user: { email: "ann@northwind.example", role: "owner", hasOthers: false, formToken: "t" },
    query: {},
    log: { rows, before: null },
    people: [],
    keys: [{ id: "key_1", name: "billing-agent", revokedAt: null }],
    channels: [{ id: "chn_1", name: "ops" }],
    now: later(0),
  });
}

function row(kind: AuditKind, subject: string, detail: AuditRow["detail"] = {}, actor: AuditRow["actor"] = DANA) {
  return { ...anAuditEntry({ kind, subject, detail: { via: "page", ...detail }, actor }), seq: 7 };
}

/** What the page says of an entry before its fold. */
function sentencesIn(html: string): readonly string[] {
  return [...html.matchAll(/<p>(<a href="\/audit\?.*?)<\/p>/gs)].map(([, text = ""]) =>
    text.replaceAll(/<[^>]+>/g, "").replaceAll("&quot;", '"'),
  );
}

const CALL = { method: "POST", host: "api.stripe.com", run: 1 };

const SENTENCES: readonly (readonly [said: string, ...Parameters<typeof row>])[] = [
  ["dana invited marcus as approver.", "member_invited", "marcus@northwind.example", { role: "approver" }],
  ["dana withdrew the invitation of eve@other.example.", "invitation_withdrawn", "eve@other.example"],
  [
    "marcus joined as approver, invited by dana.",
    "member_joined",
    "marcus@northwind.example",
    { role: "approver", invited_by: DANA },
    "user:marcus@northwind.example",
  ],
  ["dana joined as reader, invited by the key boss.", "member_joined", "x", { role: "reader", invited_by: "key:boss" }],
  [
    "dana changed the role of marcus from reader to owner.",
    "member_role_changed",
    "marcus@northwind.example",
    { from: "reader", to: "owner" },
  ],
  ["dana removed marcus.", "member_removed", "marcus@northwind.example"],
  ["dana left the account.", "member_left", "dana@northwind.example"],
  ["dana named the account Northwind.", "account_renamed", "", { name: "Northwind" }],
  ["dana removed the account’s name.", "account_renamed", "", { name: null }],
  ["dana signed up with a link.", "signed_up", "x", { by: "link" }],
  ["dana logged in.", "signed_in", "x"],
  ["dana logged in with the identity provider.", "signed_in", "x", { by: "oidc" }],
  ["dana logged out.", "signed_out", "x"],
  ["Someone failed to log in as dana.", "sign_in_failed", "dana@northwind.example", { count: 1 }, "anonymous"],
  [
    "Someone failed to log in as dana too often, 1,034 times.",
    "sign_in_throttled",
    "dana@northwind.example",
    { count: 1_034 },
    "anonymous",
  ],
  ["dana changed their password with a link.", "password_changed", "x", { by: "link" }],
  ["dana asked for a link that sets a password.", "password_link_sent", "x"],
  ["dana logged out their other sessions.", "sessions_ended", "x", { which: "others" }],
  ["dana ended one of their sessions.", "sessions_ended", "x", { which: "one" }],
  [
    "dana linked their login to https://id.example, and their password was removed.",
    "identity_linked",
    "x",
    { issuer: "https://id.example", password_removed: true },
  ],
  [
    "dana created the agent key mailer that holds everything in place of billing-agent.",
    "key_created",
    "key_2",
    { name: "mailer", role: "agent", hold: "all", replaces: "key_1" },
  ],
  [
    "Outgate created the owner key ops.",
    "key_created",
    "key_2",
    { name: "ops", role: "owner", hold: "none" },
    "system",
  ],
  ["dana revoked the key billing-agent and cancelled its actions.", "key_revoked", "key_1", { unfinished: "cancel" }],
  ["dana viewed the hidden values of an action.", "revealed", "act_1", { what: "request" }],
  ["dana viewed the signing secret of https://a.example.", "revealed", "https://a.example", { what: "signing_secret" }],
  ["Key ops approved POST api.stripe.com.", "approved", "act_1", CALL, "mcp:ops"],
  ["dana rejected POST api.stripe.com.", "rejected", "act_1", CALL],
  ["dana cancelled POST api.stripe.com.", "cancelled", "act_1", CALL],
  ["dana retried POST api.stripe.com.", "retried", "act_1", CALL],
  ["dana sent POST api.stripe.com ahead of its time.", "sent_now", "act_1", CALL],
  ["dana started to retry 19 actions.", "bulk_started", "blk_1", { operation: "retry", matching: 19 }],
  ["dana stopped a bulk cancel.", "bulk_stopped", "blk_1", { operation: "cancel" }],
  ["dana paused everything.", "paused", "pau_1", { of: "account" }],
  ["dana paused calls to api.stripe.com.", "paused", "pau_1", { of: "host", host: "api.stripe.com" }],
  ["dana resumed the key billing-agent.", "resumed", "pau_1", { of: "key", key_id: "key_1" }],
  ["dana rotated all signing secrets.", "signing_secret_rotated", ""],
  ["dana rotated the signing secret of https://a.example.", "signing_secret_rotated", "https://a.example"],
  ["dana added a.example to the callback hosts.", "callback_hosts_changed", "a.example", { change: "added" }],
  ["dana removed a.example from the callback hosts.", "callback_hosts_changed", "a.example", { change: "removed" }],
  [
    "dana set a.example to a timeout of 20 s, giving up on 4xx, 25 calls a second.",
    "host_settings_changed",
    "a.example",
    { change: "set", timeout_ms: 20_000, give_up_on: "4xx", max_per_second: 25 },
  ],
  [
    "dana set a.example to what_a_newer_version_sets: true.",
    "host_settings_changed",
    "a.example",
    { via: "page", change: "set", what_a_newer_version_sets: true },
  ],
  ["dana removed the settings of all hosts.", "host_settings_changed", "", { change: "removed" }],
  ["dana added the Slack channel ops.", "channel_added", "chn_2", { name: "ops", kind: "slack" }],
  [
    "dana changed the channel ops: name, remind after minutes.",
    "channel_changed",
    "chn_1",
    { changed: "name, remind_after_minutes" },
  ],
  ["dana added the rule Payments.", "rules_changed", "rul_1", { change: "added", name: "Payments", effect: "hold" }],
  [
    "dana changed the rule Payments: body bytes, when.",
    "rules_changed",
    "rul_1",
    { change: "changed", name: "Payments", changed: "body_bytes, when" },
  ],
  ["dana removed the rule Payments.", "rules_changed", "rul_1", { change: "removed", name: "Payments" }],
  ["dana changed the order of the rules.", "rules_changed", "", { change: "reordered" }],
  ["dana replaced all rules.", "rules_changed", "", { change: "replaced", rules: 2 }],
  [
    "dana was refused DELETE api.example.com by the rule Production.",
    "refused_by_rule",
    "rul_1",
    { method: "DELETE", host: "api.example.com", name: "Production" },
  ],
  [
    "dana went beyond the limit of the rule Budget with POST api.example.com.",
    "beyond_rule",
    "rul_1",
    { method: "POST", host: "api.example.com", name: "Budget" },
  ],
  [
    "dana was allowed POST api.example.com by a grant, 3 of 20.",
    "grant_used",
    "grt_1",
    { method: "POST", host: "api.example.com", used: 3, calls: 20 },
  ],
  ["dana ended a grant.", "grant_ended", "grt_1"],
  ["dana added the credential stripe-live.", "credential_added", "crd_1", { name: "stripe-live" }],
  [
    "dana changed the credential stripe-live: secret, hosts.",
    "credential_changed",
    "crd_1",
    { name: "stripe-live", changed: "secret, hosts" },
  ],
  ["dana added the OAuth client Workflows.", "oauth_client_added", "ocl_1", { name: "Workflows" }],
  ["dana replaced the secret of the OAuth client Workflows.", "oauth_client_changed", "ocl_1", { name: "Workflows" }],
  ["dana deleted the OAuth client Workflows.", "oauth_client_removed", "ocl_1", { name: "Workflows" }],
  ["dana deleted the credential stripe-live.", "credential_removed", "crd_1", { name: "stripe-live" }],
  [
    "dana sent the credential stripe-live to api.stripe.com.",
    "credential_used",
    "crd_1",
    { name: "stripe-live", host: "api.stripe.com", action: "act_1" },
  ],
  [
    "dana tried the credential stripe-live with a GET to api.stripe.com.",
    "credential_tested",
    "crd_1",
    { name: "stripe-live", host: "api.stripe.com" },
  ],
  [
    "dana masked the credential stripe-live in an answer of api.stripe.com, which had sent it back.",
    "credential_echoed",
    "crd_1",
    { name: "stripe-live", host: "api.stripe.com" },
  ],
  ["dana asked for a credential for api.stripe.com.", "credential_requested", "crq_1", { host: "api.stripe.com" }],
  [
    "dana granted the request for a credential for api.stripe.com with stripe-live.",
    "credential_request_granted",
    "crq_1",
    { host: "api.stripe.com", name: "stripe-live" },
  ],
  [
    "dana declined the request for a credential for api.stripe.com.",
    "credential_request_declined",
    "crq_1",
    { host: "api.stripe.com" },
  ],
  ["dana removed a channel.", "channel_removed", "chn_9"],
  ["dana tested the channel ops, which failed.", "channel_tested", "chn_1", { delivered: false }],
  [
    "dana tested the receiver of callbacks at a.example, which does not verify signatures.",
    "callback_tested",
    "a.example",
    { delivered: true, verifies: false },
  ],
  ["dana closed sign-ups with the first key that has a hold.", "signups_closed", "key_1", { by: "hold" }],
  ["dana allowed another account of this service.", "account_allowed", "acc_1"],
];

test("every entry of the audit log is a sentence, and its ids stand behind a fold", () => {
  const html = pageOf(SENTENCES.map(([, ...given]) => row(...given)));
  expect(sentencesIn(html)).toEqual(SENTENCES.map(([said]) => said));
  expect([...new Set(SENTENCES.map(([, kind]) => kind))].toSorted()).toEqual([...AUDIT_KINDS].toSorted());
  const open = html.replaceAll(/<details>.*?<\/details>/gs, "").replaceAll(/<[^>]+>/g, " ");
  expect(open).not.toMatch(/(act|key|pau|chn|blk|acc)_\d/);
  expect(html).toContain("act_1");
});

test("an entry of an older version without its details is a sentence, too", () => {
  for (const kind of AUDIT_KINDS) {
    const [said = ""] = sentencesIn(pageOf([row(kind, "x")]));
    expect(said).toMatch(/^dana [a-z].*\.$/s);
    expect(said).not.toMatch(/undefined|null|NaN/);
  }
});

test("people are told apart: only the reader's own domain is left out", () => {
  const said = (actor: AuditRow["actor"]) => sentencesIn(pageOf([row("signed_in", "x", {}, actor)]))[0];
  expect(said("user:dana@other.example")).toBe("dana@other.example logged in.");
  expect(said("user:dana@sub.northwind.example")).toBe("dana@sub.northwind.example logged in.");
  expect(said("key:dana")).toBe("Key dana logged in.");
  expect(said("user:<b>@northwind.example")).toBe("&lt;b&gt; logged in.");
});

test("days are named in UTC, each once, the newest first", () => {
  const at = (text: string) => ({ ...row("signed_in", "x"), at: new Date(text) });
  const html = pageOf([at("2026-01-02T00:10:00Z"), at("2026-01-01T23:50:00Z"), at("2026-01-01T01:00:00Z")]);
  const list = html.slice(html.indexOf("data-days"));
  const days = [...list.matchAll(/<li class="day"><time[^>]*>(.*?)<\/time><\/li>|<li>/g)].map(([, day = ""]) => day);
  expect(days).toEqual(["Fri, 2 Jan 2026", "", "Thu, 1 Jan 2026", "", ""]);
});

test("a person means their pages and the links of their mails, a key the API and MCP", () => {
  expect(actorsLike("email:a@b.example")).toEqual(["user:a@b.example", "email:a@b.example"]);
  expect(actorsLike("key:a:b")).toEqual(["key:a:b", "mcp:a:b"]);
  for (const one of ["system", "anonymous", "user", ""]) expect(actorsLike(one)).toEqual([one]);
});
