import { beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { approvalMessage, channelMessage, decisionMessage } from "../../src/mail/messages.ts";
import { aDecidedMail, anApprovalMail, maskedMail } from "../mail/message.ts";
import { barriersOf, HAS_BROWSER, openPage, overflowOf } from "../support/browser.ts";
import { useBrowser } from "./desk.ts";

const HOST = `${"sub.".repeat(61)}a.example`;

const LONG = {
  url: `https://${HOST}/${"a-segment-without-a-break".repeat(300)}?q=שלום`,
  callback: `https://${"c".repeat(63)}.${HOST.slice(64)}/${"d".repeat(500)}`,
  host: HOST,
  hostname: HOST,
  headers: { [`X-${"n".repeat(100)}`]: "v", Accept: "x".repeat(3_000) },
  body: JSON.stringify({ note: `<b>${"ü".repeat(1_500)}</b>`, [`k${"y".repeat(400)}`]: 1 }),
};

const RISKY = { ...NO_HISTORY, isNewHost: true, keyEnd: { kind: "expired", by: null, agoMs: 1 } } as const;

const LETTERS = {
  question: approvalMessage(maskedMail(anApprovalMail({ headers: { Authorization: "Bearer abc" } })), "confirm").html,
  "long question": approvalMessage(maskedMail(anApprovalMail(LONG)), "one_click").html,
  "question with risks": approvalMessage(
    maskedMail({ ...anApprovalMail({ method: "DELETE" }), history: RISKY }),
    "confirm",
  ).html,
  "question of a channel": channelMessage(maskedMail({ ...anApprovalMail(), event: "reminded", channel: "ops" })).html,
  answer: decisionMessage(maskedMail(aDecidedMail({ reason: "Agreed with Ann.", actor: `key:${"k".repeat(100)}` })))
    .html,
};

const VIEWS = [
  { width: 800, isDark: true },
  { width: 375, isDark: false },
] as const;

const CASES = Object.entries(LETTERS).flatMap(([name, html]) => VIEWS.map((view) => ({ name, html, ...view })));

describe.skipIf(!HAS_BROWSER)("a mail in a browser", () => {
  const browser = useBrowser();
  /** One for each view: its letters are opened one after another. */
  let pages: readonly Page[];
  beforeAll(async () => {
    pages = await Promise.all(VIEWS.map((view) => openPage(browser.chromium, { ...view, scripts: true })));
  });

  async function openLetter({ width }: { readonly width: number }, html: string): Promise<Page> {
    const page = pages[VIEWS.findIndex((view) => view.width === width)];
    if (page === undefined) throw new Error(`There is no view of ${width} pixels.`);
    await page.setContent(html);
    return page;
  }

  test.each(CASES)("$name, $width pixels wide, dark: $isDark: fits, and nobody is kept from it", async (view) => {
    const page = await openLetter(view, view.html);
    expect(await overflowOf(page)).toBe(0);
    expect(await barriersOf(page)).toEqual([]);
  });

  test.each(VIEWS)(
    "an address fills its lines, and what can't be seen is told from what was written, at %j",
    async (view) => {
      const url = `https://xn--pple-43d.example.com/${"a-b-".repeat(40)}`;
      const { html } = approvalMessage(
        maskedMail(anApprovalMail({ url, body: JSON.stringify("a\u202eb") })),
        "confirm",
      );
      const page = await openLetter(view, html);
      const style = (element: string, name: string) => page.evaluate(`getComputedStyle(${element}).${name}`);
      const address = 'document.querySelector("span[dir=ltr]")';
      expect(await style(address, "wordBreak")).toBe("break-all");
      const mark = 'document.querySelector("bdi i")';
      expect(await page.evaluate(`${mark}.textContent`)).toBe("U+202E");
      expect(await style(mark, "fontStyle")).toBe("normal");
      expect(await style(mark, "backgroundColor")).not.toBe("rgba(0, 0, 0, 0)");
    },
  );

  test.each(VIEWS)("the two buttons are of one size at %j, and large enough for a thumb", async (view) => {
    const page = await openLetter(view, LETTERS.question);
    const sizeOf = async (word: string) => {
      const box = await page.getByRole("link", { name: word, exact: true }).boundingBox();
      return { width: Math.round(box?.width ?? 0), height: Math.round(box?.height ?? 0) };
    };
    const [yes, no] = [await sizeOf("Approve"), await sizeOf("Reject")];
    expect(no).toEqual(yes);
    expect(yes.height).toBeGreaterThanOrEqual(48);
    expect(yes.width).toBeGreaterThan(150);
  });

  test.each(VIEWS)("Reject is an outline beside the filled Approve at %j", async (view) => {
    const page = await openLetter(view, LETTERS.question);
    const lookOf = (word: string): Promise<readonly string[]> =>
      page.evaluate(`(({ backgroundColor, borderTopColor, color }) => [backgroundColor, borderTopColor, color])(
        getComputedStyle([...document.querySelectorAll("a")].find((link) => link.textContent === "${word}")))`);
    const CLEAR = "rgba(0, 0, 0, 0)";
    const [background, border, color] = await lookOf("Reject");
    expect([background, border]).toEqual([CLEAR, color ?? ""]);
    expect((await lookOf("Approve"))[0]).not.toBe(CLEAR);
  });

  test("on a phone the body begins on the first screen", async () => {
    const page = await openLetter({ width: 375 }, LETTERS.question);
    expect((await page.getByText("Body (").boundingBox())?.y).toBeLessThan(500);
  });
});
