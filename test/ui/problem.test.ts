import { describe, expect, test } from "bun:test";
import { ERROR_CODES, type ErrorCode } from "../../src/core/domain-error.ts";
import { HTTP_STATUS } from "../../src/api/errors.ts";
import { problemPage } from "../../src/ui/problem.tsx";

const USER = { email: "ann@example.com", role: "owner", hasOthers: false, formToken: "t" } as const;

const ABOUT = { message: "What happened.", requestId: "req_1" } as const;

const shown = (props: Partial<Parameters<typeof problemPage>[0]> & { readonly code: ErrorCode }) => {
  const html = problemPage({ status: HTTP_STATUS[props.code], ...ABOUT, ...props });
  const main = html.slice(html.indexOf("<main"));
  const links = [...main.matchAll(/<a [^>]*href="([^"]*)"[^>]*>([^<]*)</g)].map(([, href, word]) => `${word}: ${href}`);
  return { html, links, text: main.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ") };
};

describe("the page of an error", () => {
  test.each([...ERROR_CODES])("%s says what happened, then what to do, and by what it is found", (code) => {
    const { text } = shown({ code, user: { ...USER, hasOthers: true } });
    expect(text).not.toContain("Request failed");
    expect(text).toMatch(/^ ?Error \d{3} [A-Z][^.]+ What happened\. [A-Z][^.]{8,}\./);
    expect(text).toContain("req_1");
  });

  test("of one that may pass offers to try again, where only reading is repeated", () => {
    expect(shown({ code: "unavailable", canRetry: true }).links[0]).toBe("Try again: ");
    expect(shown({ code: "internal_error", canRetry: true }).links[0]).toBe("Try again: ");
    expect(shown({ code: "unavailable" }).links.join()).not.toContain("Try again");
    expect(shown({ code: "not_found", canRetry: true }).links.join()).not.toContain("Try again");
  });

  test("of a filter that is not valid offers the page without filters", () => {
    expect(shown({ code: "invalid_query", canRetry: true, user: USER }).links[0]).toBe("Clear filters: ?");
    expect(shown({ code: "invalid_query", user: USER }).links.join()).not.toContain("Clear filters");
  });

  test("keeps the navigation of whoever is logged in, and leads others to the login", () => {
    const ann = shown({ code: "not_found", user: USER });
    expect(ann.html).toContain('<nav id="navigation"');
    expect(ann.links).toEqual(["Open Approvals: /approvals", "All actions: /actions", "Docs: /docs"]);
    expect(shown({ code: "not_found" }).links).toEqual(["Log in: /approvals", "Docs: /docs"]);
  });

  test("at another Host leads nowhere, and one that stands alone only to the login of its link", () => {
    expect(shown({ code: "invalid_request", status: 421, isStandalone: true }).links).toEqual([]);
    expect(shown({ code: "unavailable", isStandalone: true, canRetry: true }).links).toEqual(["Try again: "]);
    expect(shown({ code: "not_found", isStandalone: true, isLink: true }).links).toEqual(["Log in: /approvals"]);
  });
});
