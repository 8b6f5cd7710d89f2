import { describe, expect, test } from "bun:test";
import { HELD_PER_KEY_MAX, REJECTION_WINDOW_MS, REPEATS_PER_REJECTION_MAX } from "../../src/core/limits.ts";
import { type Hold, HOLDS, ROLES } from "../../src/core/roles.ts";
import {
  creatorOf,
  creatorOfCopy,
  decide,
  isNamedIn,
  mayApproveIt,
  mayCallBack,
  mayMail,
} from "../../src/core/policy.ts";
import { HTTP_METHODS, type HttpMethod } from "../../src/core/action.ts";
import { NO_EXTRAS } from "../../src/core/extras.ts";
import { anAction, later, NOON } from "../support/factory.ts";

type Facts = Parameters<typeof decide>[0];
type CreateFacts = Extract<Facts, { operation: "create" }>;
type RetryFacts = Extract<Facts, { operation: "retry" }>;

const AGENT = { role: "agent", hold: "none" } as const;
const HOOK = "https://hooks.example.com/x";

const aCreate = (overrides: Partial<CreateFacts> = {}, request: Partial<Facts["request"]> = {}): CreateFacts => ({
  operation: "create",
  caller: AGENT,
  creator: creatorOf(overrides.caller ?? AGENT),
  account: { callbackHosts: [], approvers: [], isMember: false },
  reason: null,
  heldCount: null,
  rejections: null,
  spentAt: null,
  ...overrides,
  request: {
    method: "POST",
    url: "https://api.example.com/x",
    headers: null,
    body: null,
    extras: NO_EXTRAS,
    approve: false,
    callback: null,
    notifyEmail: null,
    ...request,
  },
});

const aRetry = (overrides: Partial<RetryFacts> = {}, request: Partial<Facts["request"]> = {}): RetryFacts => {
  const { creator: _creator, account: _account, ...facts } = aCreate({}, request);
  return { ...facts, operation: "retry", actionId: "act_1", callbackHosts: null, ...overrides };
};

/** "allow", "hold: request" or "refuse: <code> <fields>". */
function decided(facts: Facts): string {
  const decision = decide(facts);
  if (decision.kind === "hold") return `hold: ${decision.because}`;
  if (decision.kind === "allow") return "allow";
  return ["refuse:", decision.error.code, ...decision.error.issues.map(({ field }) => field)].join(" ");
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
const FULL = { rejectedAt: null, repeatedAt: [], fullSince: NOON };

describe("the policy decides", () => {
  test.each<readonly [string, Facts, string]>([
    ["a plain create", aCreate(), "allow"],
    ["a create within the limits of its key", aCreate({ caller: LIMITED }), "allow"],
    ["a create to another host", aCreate({ caller: LIMITED }, { url: "https://evil.example/" }), "refuse: forbidden"],
    ["a create with another method", aCreate({ caller: LIMITED }, { method: "DELETE" }), "refuse: forbidden"],
    ["a create beyond the daily limit of its key", aCreate({ caller: LIMITED, spentAt: NOON }), "refuse: forbidden"],
    ["a retry to another host", aRetry({ caller: LIMITED }, { url: "https://evil.example/" }), "refuse: forbidden"],
    ["a retry with another method", aRetry({ caller: LIMITED }, { method: "PUT" }), "refuse: forbidden"],
    ["a retry beyond the daily limit of its key", aRetry({ caller: LIMITED, spentAt: NOON }), "refuse: forbidden"],
    ["a retry within the limits", aRetry({ caller: LIMITED }), "allow"],
    [
      "a read that names a write, of a key that may only read",
      aCreate({ caller: READS }, DISGUISED),
      "refuse: forbidden",
    ],
    ["a retry of it", aRetry({ caller: READS }, DISGUISED), "refuse: forbidden"],
    [
      "a write that names a read, of a key that may only read",
      aCreate({ caller: READS }, AS_READ),
      "refuse: forbidden",
    ],
    [
      "a write that names a read, of a key that may only write",
      aCreate({ caller: POSTS }, AS_READ),
      "refuse: forbidden",
    ],
    [
      "a read that names a read",
      aCreate({ caller: READS }, { ...DISGUISED, url: "https://api.example.com/x?_method=get" }),
      "allow",
    ],
    ["a read that names a write, of a key that holds writes", aCreate({ caller: WRITES }, DISGUISED), "hold: key"],
    [
      "a read that names a write in a header",
      aCreate({ caller: WRITES }, { method: "GET", headers: { "X-Verb": "PUT" } }),
      "hold: key",
    ],
    ["a retry of it by a key that holds writes", aRetry({ caller: WRITES }, DISGUISED), "refuse: forbidden"],
    ["a create that asks for approval", aCreate({}, APPROVED), "hold: request"],
    ["a write of a key that holds writes", aCreate({ caller: WRITES }), "hold: key"],
    ["a read of a key that holds writes", aCreate({ caller: WRITES }, { method: "GET" }), "allow"],
    ["a read of a key that holds all", aCreate({ caller: ALL }, { method: "GET" }), "hold: key"],
    ["a held create that asks for approval too", aCreate({ caller: ALL }, APPROVED), "hold: request"],

    ["any callback of a key without a hold", aCreate({}, { callback: HOOK }), "allow"],
    [
      "an unlisted callback of a key with a hold",
      aCreate({ caller: WRITES }, { callback: HOOK }),
      "refuse: invalid_url callback",
    ],
    [
      "the same of a read that isn't held",
      aCreate({ caller: WRITES }, { callback: HOOK, method: "GET" }),
      "refuse: invalid_url callback",
    ],
    [
      "an unlisted callback of a key with a limit",
      aCreate({ caller: POSTS }, { callback: HOOK }),
      "refuse: invalid_url callback",
    ],
    ["a listed one", aCreate({ caller: POSTS, account: LISTED }, { callback: HOOK }), "allow"],
    [
      "a retry of another key's unlisted callback, by a key with a limit",
      aRetry({ caller: POSTS, callbackHosts: [] }, { callback: HOOK }),
      "refuse: forbidden",
    ],
    ["a retry of its own, which is asked before it is sent", aRetry({ caller: POSTS }, { callback: HOOK }), "allow"],
    ["a retry by a key without both", aRetry({ callbackHosts: [] }, { callback: HOOK }), "allow"],
    ["a listed callback", aCreate({ caller: WRITES, account: LISTED }, { callback: HOOK }), "hold: key"],
    [
      "a resend by a person, of a key with a hold",
      aCreate({ caller: OWNER, creator: creatorOf(WRITES) }, { callback: HOOK }),
      "refuse: invalid_url callback",
    ],

    [
      "a stranger's address from an agent",
      aCreate({}, { notifyEmail: "a@b.c" }),
      "refuse: validation_error notify.email",
    ],
    ["a member's address", aCreate({ account: MEMBER }, { notifyEmail: "a@b.c" }), "allow"],
    ["an approver's address", aCreate({ account: APPROVERS }, { notifyEmail: "a@ops.example" }), "allow"],
    ["any address from an owner without a hold", aCreate({ caller: OWNER }, { notifyEmail: "a@b.c" }), "allow"],
    [
      "the same where approvers are set",
      aCreate({ caller: OWNER, account: APPROVERS }, { notifyEmail: "a@b.c" }),
      "refuse: validation_error notify.email",
    ],
    [
      "a wrong callback and address",
      aCreate({ caller: ALL }, { callback: HOOK, notifyEmail: "a@b.c" }),
      "refuse: invalid_url callback notify.email",
    ],

    ["the last held action of a key", aCreate({ heldCount: HELD_PER_KEY_MAX - 1 }, APPROVED), "hold: request"],
    ["one held action too many", aCreate({ heldCount: HELD_PER_KEY_MAX }, APPROVED), "refuse: too_many_held"],
    ["an unheld create beside them", aCreate({ heldCount: HELD_PER_KEY_MAX }), "allow"],
    [
      "the retry of one held action too many",
      aRetry({ heldCount: HELD_PER_KEY_MAX }, APPROVED),
      "refuse: not_retryable",
    ],

    ["a rejected create again", aCreate({ rejections: REJECTED }, APPROVED), "refuse: invalid_request reason"],
    [
      "the same with a blank reason",
      aCreate({ rejections: REJECTED, reason: " \u2800" }, APPROVED),
      "refuse: invalid_request reason",
    ],
    ["the same with a reason", aCreate({ rejections: REJECTED, reason: "Due." }, APPROVED), "hold: request"],
    [
      "an unheld create of a key with a hold",
      aCreate({ caller: WRITES, rejections: REJECTED }, { method: "GET" }),
      "refuse: invalid_request reason",
    ],
    ["an unheld create of a key without", aCreate({ rejections: REJECTED }), "allow"],
    ["a rejected create by an owner", aCreate({ caller: OWNER, rejections: REPEATED }, APPROVED), "hold: request"],
    [
      "a create that was repeated too often",
      aCreate({ rejections: REPEATED, reason: "Due." }, APPROVED),
      "refuse: forbidden",
    ],
    [
      "a retry that was repeated too often",
      aRetry({ rejections: REPEATED, reason: "Due." }, APPROVED),
      "refuse: not_retryable",
    ],
    ["a key with too many rejections", aCreate({ rejections: FULL, reason: "Due." }, APPROVED), "refuse: forbidden"],

    ["a retry", aRetry(), "allow"],
    ["a retry of what needed approval", aRetry({}, APPROVED), "hold: request"],
    ["a retry past the hold of the key", aRetry({ caller: WRITES }), "refuse: forbidden"],
    ["a retry of a read by a key that holds writes", aRetry({ caller: WRITES }, { method: "GET" }), "allow"],
    ["a retry of what needed approval, by a key with a hold", aRetry({ caller: ALL }, APPROVED), "hold: request"],
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
        expect(HTTP_METHODS.filter((method) => decided(facts(method, true)) !== "hold: request")).toEqual([]);
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
    expect(messageOf(aCreate({ rejections: REPEATED }, APPROVED))).toContain(from(NOON.getTime()));
    const later9 = { ...REPEATED, rejectedAt: later(99) };
    expect(messageOf(aCreate({ rejections: later9 }, APPROVED))).toContain(from(oldest));
    expect(messageOf(aRetry({ rejections: FULL }, APPROVED))).toContain(from(NOON.getTime()));
  });
});

describe("what is sent later", () => {
  test("calls back to listed hosts only, for every hold and any limit, and so does a copy without the key", () => {
    for (const role of ROLES) {
      for (const hold of HOLDS) {
        for (const isLimited of [false, true]) {
          const creator = { role, hold, isLimited };
          expect(mayCallBack(creator, HOOK, [])).toBe(hold === "none" && !isLimited);
          expect(mayCallBack(creator, HOOK, ["hooks.example.com"])).toBe(true);
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
    const held = anAction({ creator: { role: "agent", hold: "all" }, method: "GET", body: null });
    const asked = anAction({ creator: { role: "agent", hold: "none" } });
    const disguised = anAction({ creator: { role: "agent", hold: "writes" }, body: null, ...DISGUISED });
    expect(ROLES.filter((role) => mayApproveIt(role, disguised))).toEqual(["owner", "approver"]);
    expect(ROLES.filter((role) => mayApproveIt(role, held))).toEqual(["owner", "approver"]);
    expect(ROLES.filter((role) => mayApproveIt(role, asked))).toEqual([...ROLES]);
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
])("approvers name %s: %j", (email, isNamed) => {
  expect(isNamedIn(["Ann@Example.com", "@ops.example"], email)).toBe(isNamed);
});
