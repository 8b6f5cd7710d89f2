import type { CreateAction, CreateCredential, CreateRule, GrantTerms } from "../client/api.ts";
import { BROKEN_HOST, UNKNOWN_CHARGE } from "./target.ts";

/** The agents of the demo, and which of their calls need approval, whatever the rules say. */
export const DEMO_AGENTS = {
  "billing-agent": "none",
  "crm-sync": "none",
  "support-agent": "none",
  "deploy-bot": "none",
  cleanup: "writes",
} as const;

export type DemoAgent = keyof typeof DEMO_AGENTS;

/** The people of the demo. The first is its owner. */
export const DEMO_PEOPLE = ["dana@acme.example", "marcus@acme.example"] as const;

export type DemoPerson = (typeof DEMO_PEOPLE)[number];

const [DANA, MARCUS] = DEMO_PEOPLE;

/** The secret that the billing agent's calls are sent with, which it never sees. */
export const DEMO_CREDENTIAL: CreateCredential = {
  name: "stripe-live",
  kind: "bearer",
  secret: "sk_demo_51Pq0xAcmeRefunds7vK2",
  hosts: ["api.stripe.com"],
  paths: ["/v1/refunds", "/v1/credit_notes"],
};

export const DEMO_RULES: readonly CreateRule[] = [
  {
    name: "Keep contacts",
    effect: "refuse",
    hosts: ["api.hubapi.com"],
    methods: ["DELETE"],
    message: "Contacts are never deleted. Set lifecyclestage to archived instead.",
  },
  {
    name: "Hold payments above 10 EUR",
    effect: "hold",
    hosts: ["api.stripe.com"],
    methods: ["POST"],
    when: "number(action.body.amount) > 1000",
    message: "A person approves payments above 10 EUR.",
    explain: true,
  },
  {
    name: "Hold deployments to production",
    effect: "hold",
    hosts: ["api.github.com"],
    when: 'action.body.environment == "production"',
  },
];

export const DAY_MINUTES = 24 * 60;

/** What happens at a minute of the day. */
export type Step = { readonly at: number } & (
  | { readonly kind: "create"; readonly name: string; readonly agent: DemoAgent; readonly request: CreateAction }
  | {
      readonly kind: "decide";
      /** The name of the create that it is about. */
      readonly name: string;
      readonly by: DemoPerson;
      readonly verb: "approve" | "cancel";
      readonly reason?: string;
      readonly grant?: GrantTerms;
    }
  /** A create that a rule refuses. */
  | { readonly kind: "refused"; readonly agent: DemoAgent; readonly request: CreateAction }
  | { readonly kind: "outage"; readonly isOn: boolean }
);

/** A day's steps in order, the same each time. */
export function demoDay(): readonly Step[] {
  return [...contacts(), ...tickets(), ...deployments(), ...refunds(), ...upkeep(), ...waiting()].toSorted(
    (one, other) => one.at - other.at,
  );
}

const create = (at: number, agent: DemoAgent, name: string, request: CreateAction): Step => ({
  at,
  kind: "create",
  name,
  agent,
  request,
});

const STRIPE = "https://api.stripe.com";

/** How the billing agent calls. */
const CALL_STRIPE = { credential: DEMO_CREDENTIAL.name, headers: { "Stripe-Version": "2025-03-31.basil" } };

const HUBSPOT_HEADERS = { Authorization: "Bearer pat-demo-7f3a9c" };

const FIRST_NAMES = ["Amara", "Bo", "Chiara", "Dmitri", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas"] as const;

const STAGES = ["lead", "trial", "customer", "renewal"] as const;

/** Two contacts every 25 minutes, with an outage of the target at noon. */
function contacts(): readonly Step[] {
  const times = Array.from({ length: 56 }, (_, n) => 10 + n * 25.31);
  const steps = times.flatMap((at, n) =>
    [0, 1].map((which) => {
      const id = 4_100 + n * 2 + which;
      const properties = {
        firstname: FIRST_NAMES[(n + which) % FIRST_NAMES.length] ?? "",
        lifecyclestage: STAGES[id % STAGES.length] ?? "",
      };
      return create(at, "crm-sync", `contact ${id}`, {
        url: `https://api.hubapi.com/crm/v3/objects/contacts/${id}`,
        method: "PATCH",
        headers: HUBSPOT_HEADERS,
        body: { properties },
        metadata: { contact: String(id) },
      });
    }),
  );
  const gone = {
    url: "https://api.hubapi.com/crm/v3/objects/contacts/4117",
    method: "DELETE",
    headers: HUBSPOT_HEADERS,
  } as const;
  return [
    ...steps,
    { at: 540, kind: "refused", agent: "crm-sync", request: gone },
    { at: 700, kind: "outage", isOn: true },
    { at: 770, kind: "outage", isOn: false },
  ];
}

const SUBJECTS = ["Parcel never arrived", "Invoice has the wrong address", "Cancel my plan", "Charged twice"] as const;

const message = (text: string) => ({
  url: "https://slack.com/api/chat.postMessage",
  headers: { Authorization: "Bearer xoxb-demo-support" },
  body: { channel: "C04SUPPORT", text },
});

/** Answers to tickets and messages to the team. */
function tickets(): readonly Step[] {
  return Array.from({ length: 30 }, (_, n) => {
    const ticket = 8_810 + n;
    const subject = SUBJECTS[n % SUBJECTS.length] ?? "";
    const comment = { body: `About “${subject}”: we are looking into it.` };
    const answer = {
      url: `https://acme.zendesk.com/api/v2/tickets/${ticket}`,
      method: "PUT",
      headers: { Authorization: "Basic ZGVtbzpkZW1v" },
      body: { ticket: { status: "pending", comment } },
      title: `Answer ticket ${ticket}: ${subject}`,
      metadata: { ticket: String(ticket) },
    } as const;
    const told = { ...message(`Ticket ${ticket}: ${subject}`), title: `Tell the team about ticket ${ticket}` };
    return create(25 + n * 46.23, "support-agent", `ticket ${ticket}`, n % 3 === 2 ? told : answer);
  });
}

/** Every second one goes to production. Dana approves the second of these, and allows such calls for a week. */
function deployments(): readonly Step[] {
  const steps = [130.4, 395.7, 640.2, 905.9, 1_180.1, 1_395.6].map((at, n) =>
    create(at, "deploy-bot", `deployment ${n}`, {
      url: "https://api.github.com/repos/acme/shop/deployments",
      headers: { Authorization: "Bearer ghp-demo-deploy", Accept: "application/vnd.github+json" },
      body: { ref: `v2.${14 + n}.0`, environment: n % 2 === 0 ? "staging" : "production", auto_merge: false },
      title: `Deploy v2.${14 + n}.0`,
      dedupe: `deploy-v2.${14 + n}.0`,
      on_unknown: "stop",
    }),
  );
  const approved = { kind: "decide", by: DANA, verb: "approve" } as const;
  return [
    ...steps,
    { at: 399.1, name: "deployment 1", ...approved },
    {
      at: 910.3,
      name: "deployment 3",
      ...approved,
      grant: { minutes: 7 * DAY_MINUTES, calls: 10, vary: ["body.ref"] },
    },
  ];
}

interface Refund {
  readonly at: number;
  readonly order: number;
  readonly cents: number;
  readonly charge?: string;
  readonly reason: string;
  /** Who decided, and how many minutes later; absent if it is still awaiting approval, or no rule held it. */
  readonly by?: DemoPerson;
  readonly after?: number;
  /** Why it was rejected; absent if it was approved. */
  readonly why?: string;
}

const REFUNDS: readonly Refund[] = [
  { at: 95, order: 5_921, cents: 1_200, reason: "The parcel was lost.", by: MARCUS, after: 4 },
  { at: 210, order: 5_930, cents: 4_990, reason: "Returned unused.", by: DANA, after: 11 },
  { at: 330, order: 5_944, cents: 2_500, reason: "Charged twice.", by: MARCUS, after: 2 },
  {
    at: 480,
    order: 5_958,
    cents: 3_150,
    charge: UNKNOWN_CHARGE,
    reason: "Wrong size, returned.",
    by: MARCUS,
    after: 9,
  },
  { at: 610, order: 5_963, cents: 890, reason: "Late delivery." },
  {
    at: 820,
    order: 5_977,
    cents: 184_000,
    reason: "Damaged on arrival, see the photos in the ticket.",
    by: DANA,
    after: 13,
    why: "1,480 EUR, not 1,840: look at the invoice.",
  },
  { at: 980, order: 5_982, cents: 2_200, reason: "Returned unused.", by: MARCUS, after: 5 },
  { at: 1_150, order: 5_990, cents: 6_400, reason: "Charged twice.", by: DANA, after: 8 },
  { at: 1_290, order: 5_996, cents: 1_750, reason: "Late delivery.", by: MARCUS, after: 3 },
  { at: 1_424, order: 5_977, cents: 148_000, reason: "Damaged on arrival; the amount is that of the invoice now." },
  { at: 1_436, order: 5_999, cents: 2_400, reason: "The customer asked twice; ticket 8839." },
];

function refunds(): readonly Step[] {
  return REFUNDS.flatMap(({ at: minute, order, cents, charge, reason, by, after = 0, why }): readonly Step[] => {
    // Not all at the same second.
    const at = minute + (order % 60) / 60;
    const name = `refund ${order} ${cents}`;
    const asked = create(at, "billing-agent", name, {
      url: `${STRIPE}/v1/refunds`,
      ...CALL_STRIPE,
      form: {
        charge: charge ?? `ch_3Pq${order}Kd`,
        amount: String(cents),
        reason: "requested_by_customer",
        "metadata[order]": String(order),
      },
      title: `Refund ${(cents / 100).toFixed(2)} EUR for order ${order}`,
      reason,
      metadata: { order: String(order) },
    });
    if (by === undefined) return [asked];
    const decision = why === undefined ? ({ verb: "approve" } as const) : ({ verb: "cancel", reason: why } as const);
    return [asked, { at: at + after + 0.4, kind: "decide", name, by, ...decision }];
  });
}

/** Deletes old exports after approval. The newest exports can't be stored and are retried. */
function upkeep(): readonly Step[] {
  const old = (at: number, month: string, by?: DemoPerson): readonly Step[] => {
    const name = `export ${month}`;
    const asked = create(at, "cleanup", name, {
      url: `https://${BROKEN_HOST}/archive/customers-${month}.csv`,
      method: "DELETE",
      title: `Delete the customer export of ${month}`,
      reason: "Older than 12 months: the retention policy says to delete it.",
    });
    return by === undefined ? [asked] : [asked, { at: at + 21.6, kind: "decide", name, by, verb: "approve" }];
  };
  return [
    ...old(260, "2025-01", DANA),
    ...old(1_020, "2025-02", MARCUS),
    ...old(1_412, "2025-03"),
    create(1_428, "crm-sync", "export", {
      url: `https://${BROKEN_HOST}/exports/customers.csv`,
      method: "PUT",
      text: "id,stage\n4211,renewal\n",
      title: "Store the customer export of today",
      retries: 8,
      backoff: { base_ms: 60_000, cap_ms: 600_000 },
    }),
    create(1_400, "support-agent", "report", {
      ...message("Tickets of the week: 41 answered, 3 open."),
      title: "Post the summary of the week",
      delay_seconds: 9 * 3_600,
    }),
  ];
}

/** Similar calls, one of which is not what its title says. */
function waiting(): readonly Step[] {
  const notes = [
    [7_001, 19, "1900"],
    [7_002, 21, "2100"],
    [7_003, 24, "9900000"],
  ] as const;
  return notes.map(([invoice, euros, amount], n) =>
    create(1_430 + n * 1.3, "billing-agent", `note ${invoice}`, {
      url: `${STRIPE}/v1/credit_notes`,
      ...CALL_STRIPE,
      form: { invoice: `in_${invoice}`, amount, reason: "duplicate" },
      title: `Credit note, ${euros} EUR`,
      reason: "The customer paid twice.",
    }),
  );
}
