import { expect, test } from "bun:test";
import { Mailbox } from "../support/mailbox.ts";
import { openRealServer } from "./real-server.ts";

const HELD = '{"url":"http://127.0.0.1:9/","approve":true,"notify":{"email":"boss@example.com"}}';

test("the links of a mail are our own address's, whatever a request says of hosts", async () => {
  for (const BASE_URL of [undefined, "https://gate.example.com"]) {
    await using mailbox = new Mailbox();
    await using app = await openRealServer({
      env: { ...mailbox.env, ...(BASE_URL === undefined ? {} : { BASE_URL }) },
    });
    const { status } = await app.call("POST", "/v1/actions", HELD, {
      Host: "evil.example",
      Forwarded: "host=evil.example;proto=https",
      "X-Forwarded-Host": "evil.example",
      "X-Forwarded-Proto": "https",
    });
    expect(status).toBe(201);
    const [mail] = await mailbox.took(1);
    const written = JSON.stringify(mail?.fields);
    expect(written).not.toContain("evil.example");
    const links = [...written.matchAll(/(https?:\/\/[^/"\\]+)\/[ar]\//g)].map(([, origin]) => origin);
    // Each of the three stands in the text and behind a button.
    expect(links).toEqual(Array.from({ length: 6 }, () => BASE_URL ?? "http://127.0.0.1:3000"));
  }
});
