import { beforeEach, expect, test } from "bun:test";
import { utcMinute } from "../../src/approvals/facts.ts";
import { refusalOf } from "../actions/callers.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { WelcomeLink } from "../../src/core/account-store.ts";
import { createOwnMailService } from "../../src/accounts/own-mails.ts";
import { NO_PASSWORD } from "../../src/accounts/people.ts";
import type { DeliveryResult } from "../../src/core/notification.ts";
import type { Mail } from "../../src/mail/messages.ts";
import { ACCOUNT, later, NOON } from "../support/factory.ts";
import { ownerOf } from "../support/owner.ts";

const ANN = {
  email: "ann@example.com",
  role: "owner",
  hasOthers: false,
  formToken: "t",
  sessionHash: "s",
  secretHash: null,
  caller: {
    accountId: ACCOUNT,
    personId: "per_ann",
    keyId: null,
    keyName: "ann@example.com",
    role: "owner",
    hold: "none",
    actor: "user:ann@example.com",
  },
} as const;

const MEMBER = {
  personId: "per_ann",
  email: "Ann@example.com",
  role: "owner",
  joinedAt: NOON,
  lastSeenAt: null,
} as const;

let sent: Mail[] = [];
let links: WelcomeLink[] = [];
let audited: AuditEntry[] = [];
let nowMs = 0;

beforeEach(() => {
  [sent, links, audited, nowMs] = [[], [], [], 0];
});

interface Given {
  readonly passwordHash?: string;
  readonly delivery?: DeliveryResult;
  readonly hasMail?: boolean;
}

const codeOf = async (refused: Promise<unknown>) => (await refusalOf(refused))?.code;

function serviceOf({ passwordHash = NO_PASSWORD, delivery = { kind: "delivered" }, hasMail = true }: Given = {}) {
  const person = { id: "per_ann", email: ANN.email, passwordHash, createdAt: NOON };
  const send = (mail: Mail) => {
    sent.push(mail);
    return Promise.resolve(delivery);
  };
  return createOwnMailService(
    {
      clock: { now: () => NOON, monotonicMs: () => nowMs },
      ids: { row: () => "row" },
      config: { baseUrl: "https://outgate.example" },
      store: {
        people: {
          find: (email) => Promise.resolve(email === ANN.email ? { person, accountId: ACCOUNT, role: "owner" } : null),
          offer: async (link) => links.push(link) > 0,
        },
        team: { members: async (accountId) => (accountId === ACCOUNT ? [MEMBER] : []) },
        audit: { record: async (entry) => void audited.push(entry) },
      },
    },
    hasMail ? { send } : null,
    { newToken: () => "the-token", hash: (text) => `hash of ${text}` },
  );
}

test("a link goes to the person's own address, only its hash is stored, and the log says that it was sent", async () => {
  expect(await serviceOf().sendPasswordLink(ANN)).toEqual({ delivered: true, error: null });
  const link = "https://outgate.example/welcome/the-token";
  expect(sent).toMatchObject([{ event: "password_link", to: ANN.email }]);
  for (const words of [link, utcMinute(later(86_400_000))]) expect(sent[0]?.text).toContain(words);
  expect(links).toMatchObject([{ hash: "hash of the-token", personId: "per_ann", accountId: ACCOUNT }]);
  expect(audited).toMatchObject([{ kind: "password_link_sent", subject: ANN.email }]);
  expect(JSON.stringify(audited)).not.toContain("the-token");
});

test("who has a password gets no link: they change it with the one that they have", async () => {
  const service = serviceOf({ passwordHash: "$argon2id$…" });
  expect(await service.hasPassword(ANN)).toBe(true);
  expect(await serviceOf().hasPassword(ANN)).toBe(false);
  expect(await codeOf(service.sendPasswordLink(ANN))).toBe("validation_error");
  expect([sent, links]).toEqual([[], []]);
});

test("without a mail provider nothing is offered, and both say why", async () => {
  const service = serviceOf({ hasMail: false });
  for (const fared of [await service.sendPasswordLink(ANN), await service.test(ANN)]) {
    expect(fared.delivered).toBe(false);
    expect(fared.error).toContain("MAILGUN_API_KEY");
  }
  expect(links).toEqual([]);
});

test("a test mail says how it fared, and both count against one limit", async () => {
  const refused: DeliveryResult = { kind: "refused", error: "Mailgun refused it." };
  const service = serviceOf({ delivery: refused });
  expect(await service.test(ANN)).toEqual({ delivered: false, error: "Mailgun refused it." });
  expect(sent).toMatchObject([{ event: "tested", to: ANN.email, text: "Outgate can send email to this address." }]);
  expect(await codeOf(service.sendPasswordLink(ANN))).toBe("rate_limited");
  nowMs += 1_001;
  await service.sendPasswordLink(ANN);
  expect(sent).toHaveLength(2);
});

test("a key sends a test to people of its account alone, and has a limit of its own", async () => {
  const service = serviceOf();
  const key = ownerOf(ACCOUNT);
  expect(await service.testTo(key, "ann@EXAMPLE.com")).toEqual({ delivered: true, error: null });
  expect(sent).toMatchObject([
    { event: "tested", to: "Ann@example.com", text: "Outgate can send email to this address." },
  ]);
  expect(await codeOf(service.testTo(key, "ann@example.com"))).toBe("rate_limited");
  await service.test(ANN);
  nowMs += 1_001;
  for (const [caller, to] of [
    [key, "bob@example.com"],
    [ownerOf("acc_other"), "ann@example.com"],
  ] as const) {
    expect(await codeOf(service.testTo(caller, to))).toBe("validation_error");
  }
  expect(sent).toHaveLength(2);
});
