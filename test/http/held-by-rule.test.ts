import { describe, expect, test } from "bun:test";
import { wordsOf } from "../support/forms.ts";
import { fresh } from "../support/shared.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

let app: RealServer;
let ann: Awaited<ReturnType<typeof signedIn>>;

fresh(async () => {
  app = await openRealServer({ starts: false });
  ann = await signedIn(app);
  return app;
});

const PAGE = "/settings/rules";

const rule = async (definition: object): Promise<string> =>
  (await app.call("POST", "/v1/rules", { name: "R", effect: "hold", ...definition })).json.id;

const held = async (request: object = {}) => {
  return (
    await app.call(
      "POST",
      "/v1/actions",
      { url: "https://api.example.com/payments", body: { amount: 4200 }, ...request },
      KEYS.agent,
    )
  ).json.id;
};

describe("the rule that holds an action", () => {
  const LARGE = { name: "Payments above 1000", when: "action.body.amount > 1000" } as const;

  test("is said once where a person decides, with a link for owners, and its words are no markup", async () => {
    const id = await rule({ ...LARGE, message: `<img src="x">` });
    const action = await held();
    for (const path of [`/approvals/${action}`, `/actions/${action}`]) {
      const html = await ann.pageOf(path);
      const words = wordsOf(html);
      expect(words).toContain("Held by the rule “Payments above 1000”: &lt;img src=&quot;x&quot;&gt;");
      expect(words.split("Held by ")).toHaveLength(2);
      expect(html).toContain(`<a href="${PAGE}/${id}">`);
      expect(html).not.toContain("<img");
    }
    await app.call("POST", `/v1/actions/${action}/cancel`);
    expect(wordsOf(await ann.pageOf(`/actions/${action}`))).toContain("Held by the rule“Payments above 1000”: ");
  });

  test("is said of several that look alike, with how many of them it holds", async () => {
    await rule(LARGE);
    const ids = [await held(), await held({ body: { amount: 4300 } })];
    const review = async () => wordsOf(await ann.pageOf(`/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`));
    expect(await review()).toContain("Held by the rule “Payments above 1000”");
    ids.push(await held({ body: { amount: 5 }, approve: true }));
    expect(await review()).toContain("2 held by the rule “Payments above 1000”");
  });
});

test("the form for a key says that rules decide, and offers one where there is none", async () => {
  expect(await ann.pageOf("/keys/new")).toContain(`<a href="${PAGE}/new?template=writes">Hold all writes</a>`);
  await rule({});
  const html = await ann.pageOf("/keys/new");
  expect(html).toContain(`its calls are decided by <a href="${PAGE}">the rule</a>`);
  expect(html).not.toContain("template=writes");
});
