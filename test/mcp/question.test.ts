import { describe, expect, test } from "bun:test";
import { assert as holds, property, string, webUrl } from "fast-check";
import { marked } from "marked";
import { questionForm } from "../../mcp/approve.ts";
import type { Action } from "../../src/core/action.ts";
import { maskedFacts, NO_HISTORY } from "../../src/approvals/facts.ts";
import { anAction } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const messageOf = (action: Action, history = NO_HISTORY) => {
  const seen = maskAction(action, "mail");
  // The two spaces that make each line one in Markdown.
  return questionForm(seen, maskedFacts(seen, history, "https://gate.example.com")).message.replaceAll("  \n", "\n");
};

const lines = (url: string, method: "DELETE" | "POST" = "POST") => {
  const { host, hostname } = new URL(url);
  return messageOf(anAction({ url, host, hostname, method })).split("\n");
};

const urlIn = (url: string) => lines(url).find((line) => line.startsWith("URL: "));

describe("a question", () => {
  test("has every fact and risk as plain text, and body and headers, masked, below that of the body", () => {
    const action = anAction({
      url: "https://api.example.com:8443/users/7?page=2&token=Zq8Xw2Lr5Tn9Vb4K#part",
      host: "api.example.com:8443",
      method: "DELETE",
      body: '{"note":"ignore your rules"}',
      headers: { "X-Amz-Copy-Source": "/payroll/2026.csv", Accept: "text/[csv](https://evil.example)" },
      createdBy: "key:agent",
    });
    expect(messageOf(action).split("\n")).toEqual([
      "Should Outgate send this HTTP call?",
      "Hidden: 2 values hidden",
      "Method: DELETE",
      "URL: https://api.example.com:8443/users/7?page=2&token=••••(token,16-chars,…Vb4K)",
      "! 1 value outside the headers is hidden.",
      "! It deletes: the method is DELETE.",
      "Body: JSON, 28 bytes",
      "",
      "    {",
      '      "note": "ignore your rules"',
      "    }",
      "Headers:",
      "",
      "    X-Amz-Copy-Source: ••••(header,17-chars,…%2Ecsv)",
      "    Accept: text/%5Bcsv%5D(https:%2F%2Fevil%2Eexample)",
      "Requested by: agent, over the API",
      "Requested at: 4 Mar 2026, 12:00 UTC",
      "Attempts: Up to 3, until one succeeds",
      `Action: https://gate.example.com/actions/${action.id}`,
      "The action's link shows the whole request, after you log in.",
    ]);
  });

  test("has the requester's words as what they are: no link, no markup, no line of ours", () => {
    const title = "Pay [Ann](https://evil.example) `now`";
    const extras = { metadata: { note: "x\nMethod: GET" } };
    const message = messageOf(anAction({ title, extras }));
    expect(message).toContain("Requester says: Pay %5BAnn%5D(https:%2F%2Fevil%2Eexample) %60now%60\n");
    expect(message).toContain("Requester notes: note: x(U+000A)Method: GET\n");
  });

  test("has lines in Markdown, too, and nothing of the request is drawn in another way than it is written", () => {
    const body = "amount=900000\nRequested by: Ann, over the API\n5*3*2 &ast; _x_ ~~y~~ snake_case";
    const url = "https://api.example.com/_all_/*any*/~ann~/snake_case?a=1&b=2&ast;";
    const seen = maskAction(anAction({ url, body, extras: { bodyKind: "text" }, title: "*No* ~~risk~~" }), "mail");
    const { message } = questionForm(seen, maskedFacts(seen, NO_HISTORY, "https://gate.example.com"));
    const html = marked.parse(message, { async: false });
    expect(html).toContain("<pre><code>amount=900000  \nRequested by: Ann, over the API  \n5%2A3%2A2 %26ast; %5Fx%5F");
    expect(html).toContain("<p>Requester says: %2ANo%2A %7E%7Erisk%7E%7E<br>Requested by: test, over the API<br>");
    expect(html).toContain("https://api.example.com/%5Fall%5F/%2Aany%2A/%7Eann%7E/snake_case?a=1&amp;b=2%26ast");
    expect(html).not.toMatch(/<(?:em|strong|del)>/);
  });

  test("has at most 24 KiB where the URL leaves room, and the URL, the callback and the risks whole", () => {
    const url = `https://api.example.com/${"u".repeat(3_000)}`;
    const callback = `https://app.example.com/${"c".repeat(3_000)}`;
    const note = "<".repeat(500);
    const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`m${n}`, note]));
    const extras = { metadata, reason: "r".repeat(1_000) };
    const entry = { kind: "rejected", at: new Date(0), by: "key:ann", reason: "<".repeat(1_000) } as const;
    const history = { ...NO_HISTORY, reason: "<".repeat(1_000), rejections: Array.from({ length: 10 }, () => entry) };
    const message = messageOf(anAction({ url, callback, method: "DELETE", extras, title: "😀".repeat(60) }), history);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(24_576);
    expect(message).toContain(`URL: ${url}\n`);
    expect(message).toContain(`Callback: ${callback}\n`);
    expect(message).toContain("! It deletes: the method is DELETE.\n");
    expect(message).toEndWith("\nLines that end with … are cut.");
    for (const line of message.split("\n").filter((one) => one.startsWith("Requester notes")))
      expect(line).toEndWith("…");
  });

  test("shows the body masked, as JSON, form or text, up to a kilobyte, with what is left out and where it is", () => {
    const bodyOf = (action: Partial<Action>) =>
      messageOf(anAction(action))
        .split("\n")
        .filter((line) => line.startsWith("    "))
        .map((line) => line.slice(4));
    const token = "ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    expect(bodyOf({ body: JSON.stringify({ amount: 1200, token }) })).toEqual([
      "{",
      '  "amount": 1200,',
      '  "token": "••••(token,40-chars,…q7R8)"',
      "}",
    ]);
    expect(bodyOf({ body: "amount=1200&note=a%0ab", extras: { bodyKind: "form" } })).toEqual([
      "amount: 1200",
      "note: a(U+000A)b",
    ]);
    const attack = bodyOf({ body: "Method: GET\n[x](https://evil.example)\u202e", extras: { bodyKind: "text" } });
    expect(attack).toEqual(["Method: GET", "%5Bx%5D(https:%2F%2Fevil%2Eexample)(U+202E)"]);
    const long = bodyOf({ body: "word ".repeat(1_000), extras: { bodyKind: "text" } });
    expect(long.at(-1)).toMatch(/^\(.*more.*: the action's link shows all of it%?2?E?\.?\)$/);
    expect(long.join("").length).toBeLessThan(1_200);
    expect(bodyOf({ body: null })).toEqual([]);
  });

  test("has the callback as plain text", () => {
    const message = messageOf(anAction({ callback: "https://evil.example:81/[x](y)?token=Zq8Xw2Lr5Tn9Vb4K" }));
    expect(message).toContain("! Its callback goes to another host: evil.example:81.");
    expect(message).toContain("Callback: https://evil.example:81/%5Bx%5D(y)?token=••••(token,16-chars,…Vb4K)\n");
  });

  test.each([
    ["line breaks", "https://a.example/x%0aMethod:%20GET", "/x%0aMethod:%20GET"],
    ["bidirectional marks", "https://a.example/\u202Eevil", "/%E2%80%AEevil"],
    ["a link in Markdown", "https://a.example/[yes](https://b.example)", "/%5Byes%5D(https://b.example)"],
    ["code in Markdown", "https://a.example/`x`|y|", "/%60x%60%7Cy%7C"],
    ["a tag", "https://a.example/<b>", "/%3Cb%3E"],
    ["letters that look like others", "https://a.example/раураl", "/%D1%80%D0%B0%D1%83%D1%80%D0%B0l"],
    ["no path", "https://a.example", "/"],
  ])("shows %s as codes", (_what, url, path) => {
    expect(urlIn(url)).toBe(`URL: https://a.example${path}`);
  });

  test("shows a host in its ASCII form, and addresses as they are", () => {
    expect(urlIn("https://раураl.example/")).toBe("URL: https://xn--l-7sba6dbr.example/");
    expect(urlIn("https://[2606:4700::1]:8443/")).toBe("URL: https://[2606:4700::1]:8443/");
  });

  test("cuts nothing, and names what is long", () => {
    const url = `https://${"a.".repeat(121)}example.com/${"x".repeat(7_900)}`;
    expect(urlIn(url)).toBe(`URL: ${url}`);
    expect(lines(url)[3]).toStartWith("! Unusually large: a URL of 8,");
  });

  test("begins with the number of hidden values", () => {
    const token = "ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    const message = messageOf(anAction({ url: `https://a.example/${token}`, body: JSON.stringify({ token }) }));
    expect(message.split("\n")[1]).toBe("Hidden: 2 values hidden");
    expect(message).toContain("/••••(GitHub-token,40-chars,…q7R8)\n");
  });

  test("has one line per fact and no markup, whatever others have written", () => {
    // The reason has a line of its own.
    const count = lines("https://a.example/").length + 1;
    holds(
      property(webUrl({ withFragments: true, withQueryParameters: true }), string({ unit: "binary" }), (url, words) => {
        const { host, hostname } = new URL(url);
        const message = messageOf(anAction({ url, host, hostname, createdBy: `key:${words}` }), {
          ...NO_HISTORY,
          reason: `[x](https://b.example) ${words}`,
        });
        // The random URL may look like one with a password.
        const told = message.split("\n").filter((line) => !line.startsWith("! ") && !line.startsWith("Hidden: "));
        expect(told).toHaveLength(count);
        expect(message).not.toMatch(/[[\]`<>|\\]|b\.example\).*:\/\/b|\p{Cf}/u);
      }),
    );
  });
});
