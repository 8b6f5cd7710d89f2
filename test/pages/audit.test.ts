import { expect, test } from "bun:test";
import { AUDIT_KINDS, type AuditKind, type AuditRow } from "../../src/core/audit.ts";
import { actorsLike, auditPage } from "../../src/pages/audit.tsx";
import { anAuditEntry, later } from "../support/factory.ts";

const DANA = "user:dana@northwind.example";

const KEYS = new Map([["key_1", "billing-agent"]]);

const CHANNELS = new Map([["chn_1", "ops"]]);

function pageOf(entries: readonly AuditRow[]): string {
  return auditPage({
    user: { email: "ann@northwind.example", role: "owner", hasOthers: false, formToken: "t" },
    entries,
    kinds: [],
    actor: null,
    actors: [],
    names: { keys: KEYS, channels: CHANNELS },
    pathOf: () => "/audit",
    older: null,
    now: later(0),
  });
}

function row(kind: AuditKind, subject: string, detail: AuditRow["detail"] = {}, actor: AuditRow["actor"] = DANA) {
  return { ...anAuditEntry({ kind, subject, detail: { via: "page", ...detail }, actor }), seq: 7 };
}

/** What the page says of an entry before its fold. */
function sentencesIn(html: string): readonly string[] {
  return [...html.matchAll(/<p>(<a href="\/audit".*?)<\/p>/gs)].map(([, text = ""]) =>
    text.replaceAll(/<[^>]+>/g, "").replaceAll("&quot;", '"'),
  );
}

const CALL = { method: "POST", host: "api.stripe.com", run: 1 };

const SENTENCES: readonly (readonly [AuditRow, string])[] = [
  [row("member_invited", "marcus@northwind.example", { role: "approver" }), "dana invited marcus as approver."],
  [row("invitation_withdrawn", "eve@other.example"), "dana withdrew the invitation of eve@other.example."],
  [
    row(
      "member_joined",
      "marcus@northwind.example",
      { role: "approver", invited_by: DANA },
      "user:marcus@northwind.example",
    ),
    "marcus joined as approver, invited by dana.",
  ],
  [
    row("member_joined", "x", { role: "reader", invited_by: "key:boss" }),
    "dana joined as reader, invited by the key boss.",
  ],
  [
    row("member_role_changed", "marcus@northwind.example", { from: "reader", to: "owner" }),
    "dana changed the role of marcus from reader to owner.",
  ],
  [row("member_removed", "marcus@northwind.example"), "dana removed marcus."],
  [row("member_left", "dana@northwind.example"), "dana left the account."],
  [row("account_renamed", "", { name: "Northwind" }), "dana named the account Northwind."],
  [row("account_renamed", "", { name: null }), "dana took the account’s name away."],
  [row("signed_up", "x", { by: "link" }), "dana signed up with a link."],
  [row("signed_in", "x"), "dana logged in."],
  [row("signed_in", "x", { by: "oidc" }), "dana logged in with the identity provider."],
  [row("signed_out", "x"), "dana logged out."],
  [row("sign_in_failed", "dana@northwind.example", { count: 1 }, "anonymous"), "Somebody failed to log in as dana."],
  [
    row("sign_in_throttled", "dana@northwind.example", { count: 1_034 }, "anonymous"),
    "Somebody failed to log in as dana too often, 1,034 times.",
  ],
  [row("password_changed", "x", { by: "link" }), "dana changed their password with a link."],
  [row("password_link_sent", "x"), "dana asked for a link that sets a password."],
  [row("sessions_ended", "x", { which: "others" }), "dana logged out their other sessions."],
  [row("sessions_ended", "x", { which: "one" }), "dana ended one of their sessions."],
  [
    row("identity_linked", "x", { issuer: "https://id.example", password_removed: true }),
    "dana linked their login to https://id.example, and their password was removed.",
  ],
  [
    row("key_created", "key_2", { name: "mailer", role: "agent", hold: "all", replaces: "key_1" }),
    "dana created the agent key mailer that holds everything in place of billing-agent.",
  ],
  [
    row("key_created", "key_2", { name: "ops", role: "owner", hold: "none" }, "system"),
    "Outgate created the owner key ops.",
  ],
  [
    row("key_revoked", "key_1", { unfinished: "cancel" }),
    "dana revoked the key billing-agent and cancelled its actions.",
  ],
  [row("revealed", "act_1", { what: "request" }), "dana viewed the hidden values of an action."],
  [
    row("revealed", "https://a.example", { what: "signing_secret" }),
    "dana viewed the signing secret of https://a.example.",
  ],
  [row("approved", "act_1", CALL, "mcp:ops"), "Key ops approved POST api.stripe.com."],
  [row("rejected", "act_1", CALL), "dana rejected POST api.stripe.com."],
  [row("cancelled", "act_1", CALL), "dana cancelled POST api.stripe.com."],
  [row("retried", "act_1", CALL), "dana retried POST api.stripe.com."],
  [row("sent_now", "act_1", CALL), "dana sent POST api.stripe.com ahead of its time."],
  [row("bulk_started", "blk_1", { operation: "retry", matching: 19 }), "dana started to retry 19 actions."],
  [row("bulk_stopped", "blk_1", { operation: "cancel" }), "dana stopped a bulk cancel."],
  [row("paused", "pau_1", { of: "account" }), "dana paused everything."],
  [row("paused", "pau_1", { of: "host", host: "api.stripe.com" }), "dana paused calls to api.stripe.com."],
  [row("resumed", "pau_1", { of: "key", key_id: "key_1" }), "dana resumed the key billing-agent."],
  [row("signing_secret_rotated", ""), "dana rotated all signing secrets."],
  [row("signing_secret_rotated", "https://a.example"), "dana rotated the signing secret of https://a.example."],
  [row("callback_hosts_changed", "a.example", { change: "added" }), "dana added a.example to the callback hosts."],
  [
    row("callback_hosts_changed", "a.example", { change: "removed" }),
    "dana removed a.example from the callback hosts.",
  ],
  [
    row("host_settings_changed", "a.example", {
      change: "set",
      timeout_ms: 20_000,
      give_up_on: "4xx",
      max_per_second: 25,
    }),
    "dana set a.example to a timeout of 20 s, giving up on 4xx, 25 calls a second.",
  ],
  [row("host_settings_changed", "", { change: "removed" }), "dana removed the settings of all hosts."],
  [row("channel_added", "chn_2", { name: "ops", kind: "slack" }), "dana added the Slack channel ops."],
  [
    row("channel_changed", "chn_1", { changed: "name, remind_after_minutes" }),
    "dana changed the channel ops: name, remind after minutes.",
  ],
  [
    row("rules_changed", "rul_1", { change: "added", name: "Payments", effect: "hold" }),
    "dana added the rule Payments.",
  ],
  [
    row("rules_changed", "rul_1", { change: "changed", name: "Payments", changed: "body_bytes, when" }),
    "dana changed the rule Payments: body bytes, when.",
  ],
  [row("rules_changed", "rul_1", { change: "removed", name: "Payments" }), "dana removed the rule Payments."],
  [row("rules_changed", "", { change: "reordered" }), "dana changed the order of the rules."],
  [row("rules_changed", "", { change: "replaced", rules: 2 }), "dana replaced all rules."],
  [
    row("refused_by_rule", "rul_1", { method: "DELETE", host: "api.example.com", name: "Production" }),
    "dana was refused DELETE api.example.com by the rule Production.",
  ],
  [
    row("beyond_rule", "rul_1", { method: "POST", host: "api.example.com", name: "Budget" }),
    "dana went beyond the limit of the rule Budget with POST api.example.com.",
  ],
  [
    row("grant_used", "grt_1", { method: "POST", host: "api.example.com", used: 3, calls: 20 }),
    "dana was allowed POST api.example.com by a grant, 3 of 20.",
  ],
  [row("grant_ended", "grt_1"), "dana ended a grant."],
  [row("credential_added", "crd_1", { name: "stripe-live" }), "dana added the credential stripe-live."],
  [
    row("credential_changed", "crd_1", { name: "stripe-live", changed: "secret, hosts" }),
    "dana changed the credential stripe-live: secret, hosts.",
  ],
  [row("oauth_client_added", "ocl_1", { name: "Workflows" }), "dana added the OAuth client Workflows."],
  [
    row("oauth_client_changed", "ocl_1", { name: "Workflows" }),
    "dana replaced the secret of the OAuth client Workflows.",
  ],
  [row("oauth_client_removed", "ocl_1", { name: "Workflows" }), "dana deleted the OAuth client Workflows."],
  [row("credential_removed", "crd_1", { name: "stripe-live" }), "dana deleted the credential stripe-live."],
  [
    row("credential_used", "crd_1", { name: "stripe-live", host: "api.stripe.com", action: "act_1" }),
    "dana sent the credential stripe-live to api.stripe.com.",
  ],
  [
    row("credential_tested", "crd_1", { name: "stripe-live", host: "api.stripe.com" }),
    "dana tried the credential stripe-live with a GET to api.stripe.com.",
  ],
  [
    row("credential_echoed", "crd_1", { name: "stripe-live", host: "api.stripe.com" }),
    "dana masked the credential stripe-live in an answer of api.stripe.com, which had sent it back.",
  ],
  [row("credential_requested", "crq_1", { host: "api.stripe.com" }), "dana asked for a credential for api.stripe.com."],
  [
    row("credential_request_granted", "crq_1", { host: "api.stripe.com", name: "stripe-live" }),
    "dana granted the request for a credential for api.stripe.com with stripe-live.",
  ],
  [
    row("credential_request_declined", "crq_1", { host: "api.stripe.com" }),
    "dana declined the request for a credential for api.stripe.com.",
  ],
  [row("channel_removed", "chn_9"), "dana removed a channel."],
  [row("channel_tested", "chn_1", { delivered: false }), "dana tested the channel ops, which failed."],
  [
    row("callback_tested", "a.example", { delivered: true, verifies: false }),
    "dana tested the receiver of callbacks at a.example, which does not verify signatures.",
  ],
  [row("signups_closed", "key_1", { by: "hold" }), "dana closed sign-ups with the first key that has a hold."],
  [row("account_allowed", "acc_1"), "dana allowed another account of this service."],
];

test("every entry of the audit log is a sentence, and its ids stand behind a fold", () => {
  const html = pageOf(SENTENCES.map(([entry]) => entry));
  expect(sentencesIn(html)).toEqual(SENTENCES.map(([, said]) => said));
  expect([...new Set(SENTENCES.map(([{ kind }]) => kind))].toSorted()).toEqual([...AUDIT_KINDS].toSorted());
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
  const days = [...html.matchAll(/<h2>(.*?)<\/h2><ol>(.*?)<\/ol>/gs)];
  expect(days.map(([, day, list = ""]) => [day, list.split("<li>").length - 1])).toEqual([
    ["Friday, 2 January 2026 (UTC)", 1],
    ["Thursday, 1 January 2026 (UTC)", 2],
  ]);
});

test("a person means their pages and the links of their mails, a key the API and MCP", () => {
  expect(actorsLike("email:a@b.example")).toEqual(["user:a@b.example", "email:a@b.example"]);
  expect(actorsLike("key:a:b")).toEqual(["key:a:b", "mcp:a:b"]);
  for (const one of ["system", "anonymous", "user", ""]) expect(actorsLike(one)).toEqual([one]);
});
