import { describe, expect, test } from "bun:test";
import { invitationMessage } from "../../src/mail/messages.ts";
import { anInvitation } from "../support/factory.ts";

const messageFor = (name: string | null, email: string | null) =>
  invitationMessage({
    to: "bob@example.com",
    invitation: anInvitation(),
    link: "https://outgate.example/join/0123",
    account: { name, email },
  });

describe("the mail of an invitation", () => {
  test("quotes the name of the account beside the address of its first person", () => {
    const { subject, text, html } = messageFor("Acme\u202e <b>Payments</b>", "ann@example.com");
    expect(text).toContain("Account of: ann@example.com");
    expect(text).toMatch(/Account: “Acme.* <b>Payments<\/b>”/);
    for (const one of [subject, text, html]) expect(one).not.toContain("\u202e");
    expect(html).toContain("&lt;b&gt;Payments&lt;/b&gt;");
    expect(subject).not.toContain("Acme");
  });

  test("names no account that has no name", () => {
    expect(messageFor(null, "ann@example.com").text).not.toContain("Account:");
    expect(messageFor(null, null).text).not.toContain("Account of:");
  });
});
