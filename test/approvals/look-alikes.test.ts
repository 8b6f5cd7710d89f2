import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import type { Action } from "../../src/core/action.ts";
import { encodeForm } from "../../src/core/body.ts";
import {
  commonTitle,
  groupAlike,
  inReadingOrder,
  outliersIn,
  numberRange,
  type SeenRequest,
} from "../../src/approvals/look-alikes.ts";
import { LOOK_ALIKE_COLUMNS_MAX } from "../../src/core/limits.ts";
import { anAction } from "../support/factory.ts";

const seen = (action: Partial<Action>, more: Partial<SeenRequest> = {}): SeenRequest => ({
  action: seeWhole(anAction({ approve: true, ...action })),
  reason: null,
  risks: [],
  hasHistory: false,
  ...more,
});

const json = (value: unknown) => ({ body: JSON.stringify(value) });

const refund = (amount: number, charge: string): Partial<Action> => ({
  url: `https://api.stripe.com/v1/charges/${charge}/refunds`,
  title: `Refund ${amount}.00 EUR to customer ${amount + 1}`,
  ...json({ amount, currency: "eur", charge }),
});

const REFUNDS = [seen(refund(480, "ch_1")), seen(refund(12, "ch_2")), seen(refund(90, "ch_3"))] as const;

const sizes = (requests: readonly SeenRequest[]) => groupAlike(requests).map((group) => group.requests.length);

describe("requests that look alike", () => {
  test("are put together, with every field in which they differ and its values", () => {
    const [group, ...others] = groupAlike(REFUNDS);
    expect(others).toEqual([]);
    expect(group?.requests).toEqual([...REFUNDS]);
    expect(group?.differing).toEqual([
      { place: "title", name: "", values: REFUNDS.map(({ action }) => action.title ?? "") },
      { place: "path", name: "3", values: ["ch_1", "ch_2", "ch_3"] },
      { place: "body", name: "amount", values: ["480", "12", "90"] },
      { place: "body", name: "charge", values: ['"ch_1"', '"ch_2"', '"ch_3"'] },
    ]);
    expect(numberRange(group?.differing ?? [])).toEqual({ name: "amount", least: "12", most: "480" });
    expect(commonTitle(REFUNDS.map(({ action }) => action.title))).toBe("Refund … EUR to customer …");
  });

  test("stay where the oldest of them is, and two of a kind stay alone", () => {
    const other = seen({ method: "DELETE" });
    const groups = groupAlike([other, REFUNDS[0], seen(json({ a: 1 })), REFUNDS[1], REFUNDS[2]]);
    expect(groups.map(({ requests }) => requests.length)).toEqual([1, 3, 1]);
    expect(groups[0]?.requests[0]).toBe(other);
    expect(sizes(REFUNDS.slice(0, 2))).toEqual([1, 1]);
  });

  test.each<readonly [what: string, odd: SeenRequest]>([
    ["another key", seen({ ...refund(1, "ch_4"), keyId: "key_other" })],
    ["another method", seen({ ...refund(1, "ch_4"), method: "PUT" })],
    ["another host", seen({ ...refund(1, "ch_4"), url: "https://evil.example/v1/charges/ch_4/refunds" })],
    ["another path", seen({ ...refund(1, "ch_4"), url: "https://api.stripe.com/v1/charges/ch_4/void" })],
    ["another scheme", seen({ ...refund(1, "ch_4"), url: "http://api.stripe.com/v1/charges/ch_4/refunds" })],
    [
      "one more query parameter",
      seen({ ...refund(1, "ch_4"), url: "https://api.stripe.com/v1/charges/ch_4/refunds?x" }),
    ],
    ["one more field", seen({ ...refund(1, "ch_4"), ...json({ amount: 1, currency: "eur", charge: "c", to: "me" }) })],
    ["one more header", seen({ ...refund(1, "ch_4"), headers: { "X-Mode": "live" } })],
    ["no title", seen({ ...refund(1, "ch_4"), title: null })],
    ["a callback", seen({ ...refund(1, "ch_4"), callback: "https://hooks.example.com/" })],
    ["an expiry", seen({ ...refund(1, "ch_4"), expiresAt: new Date("2026-02-01T00:00:00Z") })],
    ["another end of an unknown outcome", seen({ ...refund(1, "ch_4"), onUnknown: "stop" })],
    ["another run", seen({ ...refund(1, "ch_4"), run: 2 })],
    ["metadata", seen({ ...refund(1, "ch_4"), extras: { metadata: { order: "1" } } })],
    ["a risk", seen(refund(1, "ch_4"), { risks: ["It deletes."] })],
    ["an earlier rejection", seen(refund(1, "ch_4"), { hasHistory: true })],
    ["a long value", seen({ ...refund(1, "ch_4"), ...json({ amount: 1, currency: "eur", charge: "x".repeat(500) }) })],
  ])("keep apart the one with %s", (_what, odd) => {
    expect(sizes([...REFUNDS, odd])).toEqual([3, 1]);
  });

  test("tell when they expire", () => {
    const days = [1, 2, 3].map((day) => seen({ expiresAt: new Date(Date.UTC(2026, 1, day)) }));
    const values = ["1 Feb 2026, 00:00 UTC", "2 Feb 2026, 00:00 UTC", "3 Feb 2026, 00:00 UTC"];
    expect(groupAlike(days)[0]?.differing).toEqual([{ place: "expires", name: "", values }]);
  });

  test.each<readonly [what: string, usual: string, odd: string]>([
    ["a name with a dot for a member of a member", '{"filter":{"id":1}}', '{"filter.id":1}'],
    ["a name with brackets for an element", '{"ids":[1]}', '{"ids[0]":1}'],
    ["a name of two quotes for an empty one", '{"":1}', '{"\\"\\"":1}'],
    ["an empty name for none", '{"id":1}', '{"":{"id":1}}'],
    ["a member for a value", "1", '{"":1}'],
  ])("keep apart the one with %s", (_what, usual, odd) => {
    expect(sizes([usual, usual, usual, odd].map((body) => seen({ body })))).toEqual([3, 1]);
  });

  test.each<readonly [what: string, usual: string, odd: string]>([
    ["a parameter without a value for an empty one", "/orders?force=", "/orders?force"],
    ["an empty query for none", "/orders", "/orders?"],
  ])("keep apart the one with %s", (_what, usual, odd) => {
    const urls = [usual, usual, usual, odd].map((rest) => seen({ url: `https://api.example.com${rest}` }));
    expect(sizes(urls)).toEqual([3, 1]);
  });

  test.each<readonly [what: string, one: string, other: string]>([
    ["white space", "rm -rf a b", "rm -rf a  b"],
    ["the rest of a long run of invisible characters", `a${"\u200b".repeat(9)}`, `a${"\u200b".repeat(8)}\u2060`],
    ["how a letter is composed", "caf\u00e9", "cafe\u0301"],
  ])("are no group where a table can't show the difference: %s", (_what, one, other) => {
    const texts = [one, other, "c"].map((body) => seen({ body, extras: { bodyKind: "text" } }));
    expect(sizes(texts)).toEqual([1, 1, 1]);
  });

  test("are no group where they differ in more than a table shows", () => {
    const many = (n: number) =>
      json(Object.fromEntries(Array.from({ length: LOOK_ALIKE_COLUMNS_MAX + 1 }, (_, at) => [`f${at}`, n])));
    expect(sizes([1, 2, 3].map((n) => seen(many(n))))).toEqual([1, 1, 1]);
  });

  test("are compared as they are written: forms, texts, numbers and queries", () => {
    const forms = ["12", "480", "7"].map((amount) =>
      seen({ body: encodeForm([["amount", amount]]), extras: { bodyKind: "form" } }),
    );
    expect(numberRange(groupAlike(forms)[0]?.differing ?? [])).toEqual({ name: "amount", least: "7", most: "480" });
    const texts = ["a", "b", "c"].map((body) => seen({ body, extras: { bodyKind: "text" } }));
    expect(groupAlike(texts)[0]?.differing).toEqual([{ place: "body", name: "", values: ["a", "b", "c"] }]);
    const numbers = ["1", "1.0", "1e0"].map((n) => seen({ body: `{"n":${n}}` }));
    expect(groupAlike(numbers)[0]?.differing).toEqual([{ place: "body", name: "n", values: ["1", "1.0", "1e0"] }]);
    const queries = ["+", "%20", "%2B"].map((q) => seen({ url: `https://api.example.com/?q=${q}` }));
    expect(groupAlike(queries)[0]?.differing[0]?.values).toEqual(["+", "%20", "%2B"]);
    const bytes = [1, 2, 3].map(() => seen({ body: "AAAA", extras: { bodyKind: "base64" } }));
    expect(sizes(bytes)).toEqual([1, 1, 1]);
  });
});

test("the range of a group is of its amount, and never of an id", () => {
  const body = (name: string, ...values: string[]) => ({ place: "body", name, values }) as const;
  expect(numberRange([body("customer_id", "1", "2"), body("count", "3", "1"), body("amount", "10", "9")])).toEqual({
    name: "amount",
    least: "9",
    most: "10",
  });
  expect(numberRange([body("customer_id", "1", "2")])).toBeNull();
  expect(numberRange([{ place: "path", name: "2", values: ["1", "2"] }, body("size", "1", "big")])).toBeNull();
});

test("titles without a common word have none", () => {
  expect(commonTitle(["a", "b", "c"])).toBeNull();
  expect(commonTitle([null, null, null])).toBeNull();
  expect(commonTitle(["Pay Ann", "Pay Bob now"])).toBeNull();
});

describe("what requests differ in", () => {
  const field = (place: "title" | "path" | "body", name: string, ...values: readonly string[]) => ({
    place,
    name,
    values,
  });
  const told = (...fields: readonly ReturnType<typeof field>[]) =>
    outliersIn(fields).map(({ field: { name, values }, at, why }) => `${name} ${values[at]}: ${why}`);

  test("is read with what tells them apart first, then an amount, and the requester's words last", () => {
    const fields = [
      field("title", "", "a", "b"),
      field("body", "note", "x", "y"),
      field("body", "amount", "1", "2"),
      field("body", "order_id", "7", "8"),
    ];
    expect(inReadingOrder(fields).map(({ name }) => name)).toEqual(["order_id", "amount", "note", ""]);
    expect(inReadingOrder(fields.slice(0, 3)).map(({ name }) => name)).toEqual(["note", "amount", ""]);
  });

  test("names a number far from the median, and one value where all others have another, in raw values", () => {
    expect(told(field("body", "amount", "1900", "2100", "9900000"))).toEqual([
      "amount 9900000: highest, 4,714 times the median",
    ]);
    expect(told(field("body", "amount", '"19.50"', '"20"', '"200"'))).toEqual([
      'amount "200": highest, 10 times the median',
    ]);
    expect(told(field("body", "amount", "5", "100", "120"))).toEqual([
      "amount 5: lowest, the median is 20 times as much",
    ]);
    expect(told(field("body", "amount", "-5", "10", "12"))).toEqual(["amount -5: lowest, below zero"]);
    expect(told(field("body", "role", '"member"', '"admin"', '"member"'))).toEqual([
      'role "admin": only here; the others have "member"',
    ]);
    expect(told(field("body", "amount", "0", "0", "9900000"))).toEqual([
      "amount 9900000: only here; the others have 0",
    ]);
  });

  test("names an amount whatever its field is called and however the requester writes it", () => {
    expect(told(field("body", "amount_paid", "12", "14", "9900"), field("body", "maxBid", "1", "2", "70"))).toEqual([
      "amount_paid 9900: highest, 707 times the median",
      "maxBid 70: highest, 35 times the median",
    ]);
    expect(told(field("body", "bid", "1", "2", "70"))).toEqual(["bid 70: highest, 35 times the median"]);
    for (const written of ["99e5", "9900000.0000000000", "99000E+2"]) {
      expect(told(field("body", "amount", "1900", "2100", written))).toEqual([
        `amount ${written}: highest, 4,714 times the median`,
      ]);
    }
    const vast = "9".repeat(40);
    expect(told(field("body", "amount", "1900", vast, "2100"))[0]).toStartWith(`amount ${vast}: highest, `);
    expect(told(field("body", "amount", "1900", "1e999", "2100"))).toEqual([
      "amount 1e999: highest, ∞ times the median",
    ]);
    expect(told(field("body", "amount", "1900", "9_900_000", "2100"))).toEqual([
      "amount 9_900_000: not a plain number",
    ]);
  });

  test("names nothing of numbers near each other, of ids, of three different words, and of what the requester says", () => {
    expect(told(field("body", "amount", "1900", "2100", "2400"), field("body", "n", "0", "1", "2"))).toEqual([]);
    expect(told(field("body", "order_id", "1", "2", "9000"), field("path", "2", "1", "2", "9000"))).toEqual([]);
    expect(told(field("body", "word", "a", "b", "c"), field("title", "", "x", "x", "y"))).toEqual([]);
  });
});
