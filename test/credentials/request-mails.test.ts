import { expect, test } from "bun:test";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { Mailbox } from "../support/mailbox.ts";
import { Target } from "../support/target.ts";
import { openCredentials, SECRET } from "./rig.ts";

test("owners are told by mail of what an agent asks for, with a link that decides nothing", async () => {
  await using mailbox = new Mailbox();
  await using rig = await openCredentials(200, { env: mailbox.env });
  await signedIn(rig.app);
  await rig.call("POST", "/v1/invitations", { email: "bob@example.com", role: "approver" });
  await mailbox.took(1);
  const reason = `See https://evil.example/\u202e <b>${SECRET}</b>\nand more.`;
  const ask = () => rig.call("POST", "/v1/credential-requests", { host: "api.stripe.com", reason }, KEYS.agent);
  const { json } = await ask();
  const [, mail] = await mailbox.took(2);
  expect(mail?.fields["to"]).toBe("ann@example.com");
  expect(mail?.fields["subject"]).toBe("Credential for api.stripe.com");
  for (const part of [mail?.fields["text"] ?? "", mail?.fields["html"] ?? ""]) {
    expect(part).toContain(`/approvals/credentials/${json.id}`);
    expect(part).toContain("api.stripe.com");
    for (const unsafe of [SECRET, "https://evil.example", "\u202e", "/a/", "/grant"])
      expect(part).not.toContain(unsafe);
  }
  expect(mail?.fields["html"]).not.toContain("<b>sk");
  // The same request again is no other mail, and nobody is told of one that is over.
  await ask();
  await rig.call("POST", `/v1/credential-requests/${json.id}/decline`);
  const { json: listed } = await rig.call("GET", "/v1/notifications");
  expect(listed["data"]).toMatchObject([
    { event: "credential_requested", target: "ann@example.com" },
    { event: "invited" },
  ]);
});

test("channels of Slack and webhooks are told which host an agent asks for, in none of its words", async () => {
  await using slack = new Target(200);
  await using hook = new Target(200);
  await using rig = await openCredentials();
  await rig.call("POST", "/v1/channels", { name: "ops", kind: "slack", url: `${slack.url}services/T0` });
  await rig.call("POST", "/v1/channels", { name: "hook", kind: "webhook", url: `${hook.url}told` });
  await rig.call("POST", "/v1/channels", { name: "mails", kind: "mail", to: ["boss@example.com"] });
  const asked = { host: "api.stripe.com", reason: "Words of the agent.", name: "words" };
  const { json } = await rig.call("POST", "/v1/credential-requests", asked, KEYS.agent);
  const path = `/approvals/credentials/${json.id}`;
  await Promise.all([slack.saw(1), hook.saw(1)]);
  const [post, told] = [slack.received[0]?.body ?? "", hook.received[0]?.body ?? ""];
  expect(post).toContain("asks for a credential for api");
  expect(post).toContain(`${path}|Open it in Outgate>`);
  expect(JSON.parse(told)).toMatchObject({
    type: "credential.requested",
    data: {
      credential_request: { id: json.id, host: "api.stripe.com", expires_at: json["expires_at"] },
      url: expect.stringContaining(path),
    },
  });
  expect(post + told).not.toMatch(/words/i);
});
