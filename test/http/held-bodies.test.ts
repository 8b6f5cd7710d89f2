import { expect, setDefaultTimeout, test } from "bun:test";
import { quickestOf } from "../support/core.ts";
import { ProbedService } from "../support/probed.ts";
import { shared } from "../support/shared.ts";

/** No page of a dozen held bodies may hold the event loop longer, on a core that does nothing else. */
const GAP_MS_MAX = 30;
const HELD = 12;
const PAGE_CHARS_MAX = 120_000;

/** A service of its own, on a machine that has much other work. */
const TEST_MS_MAX = 120_000;
setDefaultTimeout(TEST_MS_MAX);

const CONTACTS = Array.from({ length: 1_900 }, (_, id) => ({
  id,
  email: `contact${id}@example.com`,
  plan: "pro".repeat(14),
}));
/** Each about 200 KB, in each of the ways in which a body is shown. */
const BODIES: readonly object[] = [
  { body: { list: "winter", contacts: CONTACTS, dry: false } },
  { body: { digits: Array.from({ length: 9_000 }, (_, at) => "12345678901234567".concat(String(at))) } },
  { body: { note: "all is well ".repeat(17_000) } },
  { text: Array.from({ length: 8_000 }, (_, at) => `line ${at} of a long text`).join("\n") },
  { form: Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`field${at}`, "x".repeat(200)])) },
  { base64: Buffer.from("bytes and bytes ".repeat(9_400)).toString("base64") },
];

const service = await shared(new ProbedService());
const base = await service.ready();
const { key, cookie } = await service.signedUp();
const hold = async (request: object): Promise<string> => {
  const body = JSON.stringify({ approve: true, ...request });
  const answer = await service.request("/v1/actions", { method: "POST", body, key });
  const { id, error } = (await answer.json()) as { id: string; error?: object };
  expect(error).toBeUndefined();
  return id;
};
const ids: string[] = [];
for (let at = 0; at < HELD; at += 1) {
  const request = { url: `https://api.example.com/bulk/${at}`, ...BODIES[at % BODIES.length] };
  ids.push(await hold({ ...request, title: `Import ${at}` }));
}
/** Of a body that is nearly the longest which is shown as a tree. */
const treeId = await hold({ url: "https://api.example.com/tree", body: { contacts: CONTACTS.slice(0, 1_200) } });

async function read(path: string): Promise<string> {
  const response = await fetch(base + path, { headers: { cookie, accept: "text/html" } });
  expect(response.status, path).toBe(200);
  return response.text();
}

const leastGap = (readIt: () => Promise<unknown>) => quickestOf(GAP_MS_MAX, () => service.gapOf(readIt));

const PAGES: Readonly<Record<string, (id: string) => string>> = {
  "the request": (id) => `/approvals/${id}`,
  "the action": (id) => `/actions/${id}`,
  "the review of one": (id) => `/approvals/review?id=${id}`,
  "the whole body": (id) => `/actions/${id}/body`,
};

test("the list of a dozen held bodies of 200 KB does not hold the event loop, and is a small page", async () => {
  for (const path of ["/approvals", `/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`]) {
    let html = "";
    const gapMs = await leastGap(async () => (html = await read(path)));
    expect({ path: path.slice(0, 20), isShort: gapMs < GAP_MS_MAX, gapMs }).toMatchObject({ isShort: true });
    expect({ path: path.slice(0, 20), isSmall: html.length < PAGE_CHARS_MAX }).toMatchObject({ isSmall: true });
  }
});

test("a whole body that is shown as a tree does not hold the event loop", async () => {
  let html = "";
  const gapMs = await leastGap(async () => (html = await read(`/actions/${treeId}/body`)));
  expect(html).toContain("contact20@");
  expect({ isShort: gapMs < GAP_MS_MAX, gapMs }).toMatchObject({ isShort: true });
});

test.each(Object.entries(PAGES))("%s with a held body of 200 KB does not hold the event loop", async (name, pathOf) => {
  for (const [at, id] of ids.slice(0, BODIES.length).entries()) {
    let html = "";
    const gapMs = await leastGap(async () => (html = await read(pathOf(id))));
    expect({ at, isShort: gapMs < GAP_MS_MAX, gapMs }).toMatchObject({ isShort: true });
    const isSmall = name === "the whole body" || html.length < PAGE_CHARS_MAX;
    expect({ at, isSmall, length: html.length }).toMatchObject({ isSmall: true });
  }
});
