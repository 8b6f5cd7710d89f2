import { describe, expect, test } from "bun:test";
import { HELD_PER_KEY_MAX, REJECTION_WINDOW_MS, REPEATS_PER_REJECTION_MAX } from "../../src/core/limits.ts";
import type { Action } from "../../src/core/action.ts";
import { type Caller, type Hold, HOLDS, NO_KEY_LIMITS, ROLES } from "../../src/core/roles.ts";
import {
  limitedCreator,
  creatorOfCopy,
  decide,
  isNamedIn,
  mayApproveIt,
  mayCallBack,
  mayMail,
  NO_COUNTS,
  createRefusal,
} from "../../src/core/policy.ts";
import { policyOfHold, policyOfRuling, type Ruling } from "../../src/core/action-policy.ts";
import type { DomainError } from "../../src/core/domain-error.ts";
import { policyOfGrant } from "../../src/core/grant.ts";
import type { RejectionCount } from "../../src/core/rejections.ts";
import type { CreateRefusal } from "../../src/core/store.ts";
import { aGrant, anAction, aRequest, aRuleCount, later, NOON } from "../support/factory.ts";
import { HTTP_METHODS, type HttpMethod } from "../../src/core/target.ts";

type Facts = Parameters<typeof decide>[0];
type CreateFacts = Extract<Facts, { operation: "create" }>;
type RetryFacts = Exclude<Facts, CreateFacts>;

const AGENT = { role: "agent", hold: "none" } as const;
const HOOK = "https://hooks.example.com/x";
const CALLBACK = { callback: HOOK };
const MAIL = { notifyEmail: "a@b.c" };

const aCreate = (overrides: Partial<CreateFacts> = {}, request: Partial<CreateFacts["request"]> = {}): CreateFacts => ({
  operation: "create",
  caller: AGENT,
  creator: limitedCreator(overrides.caller ?? AGENT),
  recipients: { callbackHosts: [], approvers: [], isMember: false },
  sync: false,
  ruling: null,
  grant: null,
  ...overrides,
  request: { ...REQUEST, ...request },
});

const REQUEST = aRequest({ url: "https://api.example.com/x", body: null });

const aRetry = (overrides: Partial<RetryFacts> = {}, request: Partial<RetryFacts["request"]> = {}): RetryFacts => ({
  operation: "retry",
  caller: AGENT,
  callbackHosts: null,
  retryAfter: null,
  endedAt: NOON,
  counts: NO_COUNTS,
  reason: null,
  ruling: null,
  added: [],
  now: NOON,
  ...overrides,
  request: anAction({ ...REQUEST, ...request }),
});

const heldSoFar = (heldCount: number) => ({ counts: { ...NO_COUNTS, heldCount } });
const rejected = (rejections: RejectionCount) => ({ counts: { ...NO_COUNTS, rejections } });

/** "allow", "hold: caller" or "refuse: <code> <fields>". */
function decided(facts: Facts): string {
  const decision = decide(facts);
  if (decision.kind === "refuse") return refused(decision.error);
  const by = decision.policy?.by;
  return by === undefined ? decision.kind : `${decision.kind}: ${by}`;
}

function refused(error: DomainError | null): string {
  return error === null ? "" : ["refuse:", error.code, ...error.issues.map(({ field }) => field)].join(" ");
}

const WRITES = { ...AGENT, hold: "writes" } as const;
const ALL = { ...AGENT, hold: "all" } as const;
const OWNER = { role: "owner", hold: "none" } as const;
const LIMITED = {
  ...AGENT,
  limits: { hosts: ["api.example.com"], methods: ["GET", "POST"], dailyActions: 5, expiresAt: null },
} as const;
const limitedTo = (methods: readonly HttpMethod[]) => ({
  ...AGENT,
  limits: { hosts: null, methods, dailyActions: null, expiresAt: null },
});
const [READS, POSTS] = [limitedTo(["GET"]), limitedTo(["POST"])];
const DISGUISED = { method: "GET", url: "https://api.example.com/x?_method=delete" } as const;
const NAMES_READ = { method: "GET", url: "https://api.example.com/x?_method=get" } as const;
const IN_HEADER = { method: "GET", headers: { "X-Verb": "PUT" } } as const;
const AS_READ = { body: '{"_method":"GET"}' };
const APPROVED = { approve: true } as const;
const LISTED = { callbackHosts: ["hooks.example.com"], approvers: [], isMember: false };
const MEMBER = { callbackHosts: [], approvers: [], isMember: true };
const APPROVERS = { callbackHosts: [], approvers: ["@ops.example"], isMember: false };
const REJECTED = { rejectedAt: NOON, repeatedAt: [], fullSince: null };
const REPEATED = {
  ...REJECTED,
  repeatedAt: Array.from({ length: REPEATS_PER_REJECTION_MAX }, (_, at) => later(9 - at)),
};
const ASKED_TO_WAIT = { retryAfter: "7" } as const;
const SEND_NOW = { operation: "sendNow" } as const;
const WAITING = { status: "pending", dueAt: later(9_000), attempts: 1 } as const;
const APPROVED_FOR_LATER = { ...APPROVED, ...WAITING, attempts: 0 } as const;
const ruled = (effect: Ruling["effect"]) => {
  const rule = { id: "rul_a", name: "Payments", version: 1 };
  return { ruling: { effect, rule, reason: null, isUndecidable: false } };
};
const [HOLDS_IT, REFUSES_IT] = [ruled("hold"), ruled("refuse")];
const GRANTED = { grant: aGrant() };
const BY_GRANT = policyOfGrant(aGrant());
const WAITING_TO_COUNT = { ...WAITING, counted: [["rul_a", "s", NOON.getTime() + 1, "1"]] } as const;
const adding = (count: Parameters<typeof aRuleCount>[0]) => ({ ...SEND_NOW, added: [aRuleCount(count)] });
const SPENT = { counts: { ...NO_COUNTS, isBudgetSpent: true } };
const FULL = { rejectedAt: null, repeatedAt: [], fullSince: NOON };

const FORBIDDEN = "refuse: forbidden";
const NOT_RETRYABLE = "refuse: not_retryable";
const NEEDS_REASON = "refuse: invalid_request reason";
const UNLISTED = "refuse: invalid_url callback";

describe("the policy decides", () => {
  test.each<readonly [string, Facts, string]>([
    ["a plain create", aCreate(), "allow"],
    ["a write in sync that its key has held", aCreate({ caller: WRITES, sync: true }), "refuse: invalid_sync sync"],
    ["a read in sync of that key", aCreate({ caller: WRITES, sync: true }, { method: "GET" }), "allow"],
    ["a create within the limits of its key", aCreate({ caller: LIMITED }), "allow"],
    ["a create to another host", aCreate({ caller: LIMITED }, { url: "https://evil.example/" }), FORBIDDEN],
    ["a create with another method", aCreate({ caller: LIMITED }, { method: "DELETE" }), FORBIDDEN],
    ["a retry to another host", aRetry({ caller: LIMITED }, { url: "https://evil.example/" }), FORBIDDEN],
    ["a retry beyond the daily limit of its key", aRetry({ caller: LIMITED, ...SPENT }), FORBIDDEN],
    ["a retry within the limits", aRetry({ caller: LIMITED }), "allow"],
    ["a read that names a write, of a key that may only read", aCreate({ caller: READS }, DISGUISED), FORBIDDEN],
    ["a write that names a read, of a key that may only read", aCreate({ caller: READS }, AS_READ), FORBIDDEN],
    ["a write that names a read, of a key that may only write", aCreate({ caller: POSTS }, AS_READ), FORBIDDEN],
    ["a read that names a read", aCreate({ caller: READS }, NAMES_READ), "allow"],
    ["a read that names a write, of a key that holds writes", aCreate({ caller: WRITES }, DISGUISED), "hold: key"],
    ["a read that names a write in a header", aCreate({ caller: WRITES }, IN_HEADER), "hold: key"],
    ["a retry of it by a key that holds writes", aRetry({ caller: WRITES }, DISGUISED), FORBIDDEN],

    ["an unlisted callback of a key with a hold", aCreate({ caller: WRITES }, CALLBACK), UNLISTED],
    ["an unlisted callback of a key with a limit", aCreate({ caller: POSTS }, CALLBACK), UNLISTED],
    ["a listed one", aCreate({ caller: POSTS, recipients: LISTED }, CALLBACK), "allow"],
    [
      "a retry of another's unlisted callback, by a key with a limit",
      aRetry({ caller: POSTS, callbackHosts: [] }, CALLBACK),
      FORBIDDEN,
    ],
    ["a retry of its own, which is asked before it is sent", aRetry({ caller: POSTS }, CALLBACK), "allow"],
    ["a retry of a listed one", aRetry({ caller: POSTS, callbackHosts: LISTED.callbackHosts }, CALLBACK), "allow"],
    ["a retry by a key without both", aRetry({ callbackHosts: null }, CALLBACK), "allow"],
    ["a listed callback", aCreate({ caller: WRITES, recipients: LISTED }, CALLBACK), "hold: key"],
    [
      "a person's resend, for a held key",
      aCreate({ caller: OWNER, creator: limitedCreator(WRITES) }, CALLBACK),
      UNLISTED,
    ],

    ["a stranger's address from an agent", aCreate({}, MAIL), "refuse: validation_error notify.email"],
    ["a member's address", aCreate({ recipients: MEMBER }, MAIL), "allow"],
    ["an approver's address", aCreate({ recipients: APPROVERS }, { notifyEmail: "a@ops.example" }), "allow"],
    [
      "a wrong callback and address",
      aCreate({ caller: ALL }, { callback: HOOK, notifyEmail: "a@b.c" }),
      "refuse: invalid_url callback notify.email",
    ],

    ["the retry of the last held action of a key", aRetry(heldSoFar(HELD_PER_KEY_MAX - 1), APPROVED), "hold: caller"],
    ["the retry of one held action too many", aRetry(heldSoFar(HELD_PER_KEY_MAX), APPROVED), NOT_RETRYABLE],

    ["a retry of what nobody rejected", aRetry(rejected({ ...REJECTED, rejectedAt: null }), APPROVED), "hold: caller"],
    ["the retry of a rejected action", aRetry(rejected(REJECTED), APPROVED), NEEDS_REASON],
    ["the same, with blank reason", aRetry({ ...rejected(REJECTED), reason: " \u2800\ufffc" }, APPROVED), NEEDS_REASON],
    ["the same with a reason", aRetry({ ...rejected(REJECTED), reason: "Due." }, APPROVED), "hold: caller"],
    [
      "an unheld retry of a key with a hold",
      aRetry({ caller: WRITES, ...rejected(REJECTED) }, { method: "GET" }),
      NEEDS_REASON,
    ],
    ["an unheld retry of a key without", aRetry(rejected(REJECTED)), "allow"],
    ["a rejected retry by an owner", aRetry({ caller: OWNER, ...rejected(REPEATED) }, APPROVED), "hold: caller"],
    ["a retry that was repeated too often", aRetry({ ...rejected(REPEATED), reason: "Due." }, APPROVED), NOT_RETRYABLE],
    ["a retry of a key with many rejections", aRetry({ ...rejected(FULL), reason: "Due." }, APPROVED), NOT_RETRYABLE],

    ["a call that a rule holds", aCreate(HOLDS_IT), "hold: rule"],
    ["the same within a grant", aCreate({ ...HOLDS_IT, ...GRANTED }), "allow: grant"],
    ["the same that asks for approval", aCreate({ ...HOLDS_IT, ...GRANTED }, APPROVED), "hold: rule"],
    ["a held call within a grant, in sync", aCreate({ caller: WRITES, sync: true, ...GRANTED }), "allow: grant"],
    ["a call within a grant that nothing holds", aCreate(GRANTED), "allow"],
    ["a retry that a rule refuses", aRetry(REFUSES_IT), FORBIDDEN],
    ["a retry that a rule holds", aRetry(HOLDS_IT), FORBIDDEN],
    ["the same by an owner", aRetry({ ...HOLDS_IT, caller: OWNER }), "hold: rule"],
    ["the same of what needed approval", aRetry(HOLDS_IT, APPROVED), "hold: rule"],

    ["a retry", aRetry(), "allow"],
    ["a retry of what needed approval", aRetry({}, APPROVED), "hold: caller"],
    [
      "a retry by an agent of what a grant let pass a hold",
      aRetry({}, { policy: BY_GRANT, creator: WRITES }),
      FORBIDDEN,
    ],
    ["the same by an owner", aRetry({ caller: OWNER }, { policy: BY_GRANT, creator: WRITES }), "allow"],
    ["the same sent now", aRetry(SEND_NOW, { ...WAITING, policy: BY_GRANT, creator: WRITES }), "allow"],
    ["a retry past the hold of the key", aRetry({ caller: WRITES }), FORBIDDEN],
    ["a retry of a read by a key that holds writes", aRetry({ caller: WRITES }, { method: "GET" }), "allow"],
    ["a retry of what needed approval, by a key with a hold", aRetry({ caller: ALL }, APPROVED), "hold: caller"],

    ["a retry before the time that the target asked for", aRetry(ASKED_TO_WAIT), NOT_RETRYABLE],
    ["the same at that time", aRetry({ ...ASKED_TO_WAIT, now: later(7_000) }), "allow"],
    ["the same by an owner", aRetry({ ...ASKED_TO_WAIT, caller: OWNER }), "allow"],
    ["the same of what a person decides on", aRetry(ASKED_TO_WAIT, APPROVED), "hold: caller"],
    ["sending now what waits for its next attempt", aRetry(SEND_NOW, WAITING), "allow"],
    ["sending now what the target asked not to", aRetry({ ...SEND_NOW, ...ASKED_TO_WAIT }, WAITING), NOT_RETRYABLE],
    ["the same at that time", aRetry({ ...SEND_NOW, ...ASKED_TO_WAIT, now: later(9_000) }, WAITING), "allow"],
    ["sending now what was approved and failed", aRetry(SEND_NOW, { ...APPROVED, ...WAITING }), "hold: caller"],
    ["sending now what a rule counts later", aRetry(adding({}), WAITING_TO_COUNT), NOT_RETRYABLE],
    ["the same in another count of the rule", aRetry(adding({ subject: "t" }), WAITING_TO_COUNT), "allow"],
    ["sending now what a person approved for a time", aRetry(SEND_NOW, APPROVED_FOR_LATER), NOT_RETRYABLE],
    ["the same by an owner", aRetry({ ...SEND_NOW, caller: OWNER }, APPROVED_FOR_LATER), "hold: caller"],
  ])("%s", (_name, facts, expected) => {
    expect(decided(facts)).toBe(expected);
  });

  test('by every method, hold and wish what is held: a key\'s hold wins over "approve": false', () => {
    const HELD: Readonly<Record<Hold, readonly HttpMethod[]>> = {
      none: [],
      writes: ["POST", "PUT", "PATCH", "DELETE"],
      all: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    };
    for (const role of ["owner", "agent"] as const) {
      for (const hold of HOLDS) {
        const facts = (method: HttpMethod, approve: boolean) =>
          aCreate({ caller: { role, hold } }, { method, approve });
        const held = HTTP_METHODS.filter((method) => decided(facts(method, false)) === "hold: key");
        expect(held.toSorted()).toEqual(HELD[hold].toSorted());
        expect(HTTP_METHODS.filter((method) => decided(facts(method, true)) !== "hold: caller")).toEqual([]);
        const allowed = HTTP_METHODS.filter((method) => decided(facts(method, false)) === "allow");
        expect(held.length + allowed.length).toBe(HTTP_METHODS.length);
      }
    }
  });

  test("when a rejected request may be made again", () => {
    const messageOf = (facts: Facts) => {
      const decision = decide(facts);
      return decision.kind === "refuse" ? decision.error.message : "";
    };
    const oldest = REPEATED.repeatedAt.at(-1)?.getTime() ?? 0;
    const from = (ms: number) => `from ${new Date(ms + REJECTION_WINDOW_MS).toISOString()}; an owner key`;
    // The earlier of the two: the rejection or the oldest repetition leaves the window.
    expect(messageOf(aRetry(rejected(REPEATED), APPROVED))).toContain(from(NOON.getTime()));
    const later9 = { ...REPEATED, rejectedAt: later(99) };
    expect(messageOf(aRetry(rejected(later9), APPROVED))).toContain(from(oldest));
    expect(messageOf(aRetry(rejected(FULL), APPROVED))).toContain(from(NOON.getTime()));
  });

  test("the error of a create that the store refused", () => {
    const of = (refusal: CreateRefusal) =>
      refused(createRefusal(refusal, aCreate({ caller: LIMITED, ...REFUSES_IT }), NOON));
    expect(of({ kind: "refused" })).toBe("refuse: forbidden");
    for (const refusal of [
      { kind: "rules_changed" },
      { kind: "grant_over" },
      { kind: "beyond", counts: [] },
    ] as const) {
      expect(of(refusal)).toBe("refuse: unavailable");
    }
    expect(of({ kind: "unreadable", by: "dedupe", id: "act_a" })).toBe("refuse: validation_error dedupe");
    expect(of({ kind: "too_many_held" })).toBe("refuse: too_many_held");
    expect(of({ kind: "budget_spent" })).toBe("refuse: forbidden");
    expect(of({ kind: "rejected_before", rejections: REJECTED })).toBe("refuse: invalid_request reason");
    expect(of({ kind: "rejected_before", rejections: REPEATED })).toBe("refuse: forbidden");
    expect(of({ kind: "rejected_before", rejections: FULL })).toBe("refuse: forbidden");
  });
});

describe("what is sent later", () => {
  test("calls back to listed hosts only, for every hold and any limit, and so does a copy without the key", () => {
    for (const role of ROLES) {
      for (const hold of HOLDS) {
        for (const isLimited of [false, true]) {
          const creator = { role, hold, isLimited };
          expect(mayCallBack(creator, HOOK, [])).toBe(hold === "none" && !isLimited);
          expect(mayCallBack(creator, HOOK, ["hooks.example.com:443"])).toBe(true);
          const stored = { ...creatorOfCopy(creator), isLimited: false };
          expect(mayCallBack(stored, HOOK, [])).toBe(hold === "none" && !isLimited);
        }
      }
    }
  });

  test("mails anybody only for an owner key without a hold, and only while no approvers are set", () => {
    const free = ROLES.flatMap((role) => HOLDS.map((hold) => ({ role, hold }))).filter((creator) =>
      mayMail(creator, "a@b.c", { approvers: [], isMember: false }),
    );
    expect(free).toEqual([OWNER]);
    expect(mayMail(OWNER, "a@b.c", { approvers: ["ann@example.com"], isMember: false })).toBe(false);
  });

  test("is approved by no agent's client if a hold holds it; owners and approvers may", () => {
    const rolesFor = (action: Action, key: Partial<Pick<Caller, "hold" | "limits">> = {}) =>
      ROLES.filter((role) => mayApproveIt({ role, hold: "none", ...key }, action));
    const held = anAction({ creator: { role: "agent", hold: "all" }, method: "GET", body: null });
    const asked = anAction({ creator: { role: "agent", hold: "none" } });
    const disguised = anAction({ creator: { role: "agent", hold: "writes" }, body: null, ...DISGUISED });
    expect(rolesFor(disguised)).toEqual(["owner", "approver"]);
    const ofRule = anAction({ policy: policyOfRuling(HOLDS_IT.ruling) });
    expect(rolesFor(held)).toEqual(["owner", "approver"]);
    expect(rolesFor(ofRule)).toEqual(["owner", "approver"]);
    expect(rolesFor(asked)).toEqual([...ROLES]);
    expect(rolesFor({ ...asked, policy: policyOfHold("caller") })).toEqual([...ROLES]);
    // Nor by the client of a key that may not send the like without approval.
    expect(rolesFor(asked, { hold: "all" })).toEqual(["owner", "approver"]);
    expect(rolesFor(asked, { limits: { ...NO_KEY_LIMITS, hosts: ["other.example.com"] } })).toEqual([
      "owner",
      "approver",
    ]);
    expect(rolesFor(asked, { limits: { ...NO_KEY_LIMITS, dailyActions: 1 } })).toEqual([...ROLES]);
  });
});

test.each([
  ["ann@example.com", true],
  ["ANN@EXAMPLE.com", true],
  ["bob@OPS.example", true],
  ["eve@example.com", false],
  ["jo-ann@example.com", false],
  ["bob@dev-ops.example", false],
  ["bob@sub.ops.example", false],
  ["bob@ops.example@evil.example", false],
  ["bob@ops.example.evil.example", false],
  ["eve%evil.example@ops.example", false],
])("approvers name %s: %j", (email, isNamed) => {
  expect(isNamedIn(["Ann@Example.com", "@ops.example"], email)).toBe(isNamed);
});
