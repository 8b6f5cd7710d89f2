/** A request as agents make them: nothing in it is a credential. Of each value the path by which it stands there. */
export interface OrdinaryRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const ALNUM = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const HEX = "0123456789abcdef";
const CAPITALS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const WORDS =
  "refund order invoice shipped the customer for a new plan with two seats and please confirm by Friday".split(" ");

/** So many requests of fifteen APIs, the same for a seed: what their documents show, with ids drawn anew. */
export function ordinaryRequests(count: number, seed = 1): readonly OrdinaryRequest[] {
  const draw = new Draw(seed);
  return Array.from({ length: count }, (_, at) => (KINDS[at % KINDS.length] ?? stripePayment)(draw));
}

class Draw {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  number(below: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * below);
  }

  text(chars: string, length: number): string {
    return Array.from({ length }, () => chars[this.number(chars.length)] ?? "").join("");
  }

  id = (prefix: string, length = 24) => prefix + this.text(ALNUM, length);
  hex = (length: number) => this.text(HEX, length);
  digits = (length: number) => this.text("123456789", length);
  words = (count: number) => Array.from({ length: count }, () => WORDS[this.number(WORDS.length)]).join(" ");
  date = () => new Date(1_700_000_000_000 + this.number(1e9) * 60).toISOString();
  uuid = () => [8, 4, 4, 4, 12].map((length) => this.hex(length)).join("-");
  email = () => `${WORDS[this.number(WORDS.length)]}.${this.digits(3)}@example.com`;
}

type Kind = (draw: Draw) => OrdinaryRequest;

const stripePayment: Kind = (d) => ({
  url: `https://api.stripe.com/v1/payment_intents/${d.id("pi_")}/capture?expand[]=latest_charge`,
  headers: { "Stripe-Version": "2025-03-31.basil", "Idempotency-Key": d.uuid(), "Stripe-Account": d.id("acct_", 16) },
  body: {
    amount: d.number(100_000),
    customer: d.id("cus_", 14),
    payment_method: d.id("pm_"),
    metadata: { order_id: d.digits(8), cart: d.uuid(), note: d.words(5) },
    charge: d.id("ch_"),
    receipt_email: d.email(),
  },
});
const stripeRefund: Kind = (d) => ({
  url: "https://api.stripe.com/v1/refunds",
  headers: { "Content-Type": "application/json" },
  body: { charge: d.id("ch_"), reason: "requested_by_customer", payment_intent: d.id("pi_"), balance: d.id("txn_") },
});
const stripeCheckout: Kind = (d) => ({
  url: "https://api.stripe.com/v1/checkout/sessions",
  headers: { Accept: "application/json" },
  body: {
    price: d.id("price_"),
    subscription: d.id("sub_"),
    invoice: d.id("in_"),
    product: d.id("prod_", 14),
    success_url: `https://shop.example.com/done?session={CHECKOUT_SESSION_ID}&order=${d.digits(6)}`,
    event: d.id("evt_"),
  },
});
const githubIssue: Kind = (d) => ({
  url: `https://api.github.com/repos/octo-org/hello-world/issues/${d.number(9_999)}/comments`,
  headers: { Accept: "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28" },
  body: { body: `Fixed in ${d.hex(40)}, see #${d.number(999)}: ${d.words(8)}`, node_id: `MDEyOklzc3VlQ29tbWVudDE=` },
});
const githubRelease: Kind = (d) => ({
  url: `https://api.github.com/repos/octo-org/hello-world/git/refs/heads/release-${d.number(99)}`,
  headers: { "User-Agent": "release-bot/1.4" },
  body: { sha: d.hex(40), force: false, tree: d.hex(40), parents: [d.hex(40)], message: d.words(7) },
});
const slackMessage: Kind = (d) => ({
  url: "https://slack.com/api/chat.postMessage",
  headers: { "Content-Type": "application/json; charset=utf-8" },
  body: {
    channel: `C0${d.text(CAPITALS, 9)}`,
    thread_ts: `17${d.digits(8)}.${d.digits(6)}`,
    user: `U0${d.text(CAPITALS, 9)}`,
    team: `T0${d.text(CAPITALS, 9)}`,
    text: `<@U0${d.text(CAPITALS, 9)}> ${d.words(9)}`,
    blocks: [{ type: "section", text: { type: "mrkdwn", text: `*${d.words(3)}*: https://x.example/o/${d.uuid()}` } }],
    client_msg_id: d.uuid(),
  },
});
const page: Kind = (d) => ({
  url: `https://api.example.com/v2/orders?limit=50&page_token=${d.digits(6)}&max_tokens=256&sort_key=created`,
  headers: { "X-Request-Id": d.uuid(), Accept: "application/json" },
  body: { cursor: d.id("", 32), since: d.date(), until: d.date(), fields: ["id", "author", "keyboard", "zip_code"] },
});
const model: Kind = (d) => ({
  url: "https://api.openai.com/v1/chat/completions",
  headers: { "OpenAI-Organization": d.words(1) },
  body: {
    model: "gpt-5-mini-2026-01-14",
    max_tokens: 4_096,
    messages: [{ role: "user", content: `${d.words(20)}? ${d.words(9)}.` }],
    tool_call_id: d.id("call_"),
    response_id: `resp_${d.hex(48)}`,
    total_tokens: d.number(9_999),
  },
});
const image: Kind = (d) => ({
  url: "https://api.example.com/images",
  headers: { "Content-Type": "application/json" },
  body: {
    name: `photo-${d.digits(4)}.png`,
    data: `data:image/png;base64,${Buffer.from(d.text(ALNUM, 900)).toString("base64")}`,
    sha256: d.hex(64),
    md5: d.hex(32),
    etag: `"${d.hex(32)}"`,
    size: d.number(90_000),
  },
});
const calendar: Kind = (d) => ({
  url: `https://www.googleapis.com/calendar/v3/calendars/${encodeURIComponent(d.email())}/events/${d.text("0123456789abcdefghijklmnopqrstuv", 26)}`,
  headers: { "If-Match": `"${d.digits(16)}"` },
  body: {
    summary: d.words(4),
    start: { dateTime: d.date() },
    end: { dateTime: d.date() },
    attendees: [{ email: d.email() }],
  },
});
const aws: Kind = (d) => ({
  url: "https://dynamodb.eu-west-1.amazonaws.com/",
  headers: { "X-Amz-Target": "DynamoDB_20120810.UpdateItem", "X-Amz-Date": "20261122T070000Z" },
  body: {
    TableName: `orders-${d.words(1)}-prod`,
    Key: { pk: { S: `ORDER#${d.digits(10)}` }, sk: { S: d.date() } },
    arn: `arn:aws:iam::${d.digits(12)}:role/order-writer`,
    instance: `i-0${d.hex(16)}`,
  },
});
const twilio: Kind = (d) => ({
  url: `https://api.twilio.com/2010-04-01/Accounts/AC${d.hex(32)}/Messages.json`,
  headers: { Accept: "*/*" },
  body: { To: `+1555${d.digits(7)}`, From: "+15550001111", Body: d.words(12), MessagingServiceSid: `MG${d.hex(32)}` },
});
const notion: Kind = (d) => ({
  url: `https://api.notion.com/v1/pages/${d.hex(32)}`,
  headers: { "Notion-Version": "2022-06-28" },
  body: { parent: { database_id: d.uuid() }, properties: { Name: { title: [{ text: { content: d.words(4) } }] } } },
});
const ticket: Kind = (d) => ({
  url: `https://example.atlassian.net/rest/api/3/issue/OPS-${d.number(9_999)}/transitions`,
  headers: { "X-Correlation-Id": `order-${d.digits(6)}` },
  body: {
    transition: { id: d.digits(2) },
    accountId: `${d.digits(6)}:${d.uuid()}`,
    comment: d.words(14),
    ulid: `01${d.text(CAPITALS, 24)}`,
  },
});
const bank: Kind = (d) => ({
  url: `https://api.bank.example/transfers/${d.uuid()}`,
  headers: { "X-Trace": d.words(2) },
  body: {
    iban: `DE${d.digits(20)}`,
    amount: "5000.00",
    pin: "1234",
    session: { op: "transfer", to: d.words(2) },
    signature: "Ann Smith",
  },
});

const KINDS: readonly Kind[] = [
  stripePayment,
  stripeRefund,
  stripeCheckout,
  githubIssue,
  githubRelease,
  slackMessage,
  page,
  model,
  image,
  calendar,
  aws,
  twilio,
  notion,
  ticket,
  bank,
];

/** How many values a request has: of its URL the segments and parameters, of headers each, of the body each that is no list. */
export function valuesOf({ url, headers, body }: OrdinaryRequest): number {
  const { pathname, searchParams } = new URL(url);
  return pathname.split("/").length - 1 + searchParams.size + Object.keys(headers).length + scalarsIn(body);
}

function scalarsIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum: number, member: unknown) => sum + scalarsIn(member), 0);
}
