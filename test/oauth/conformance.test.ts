import { expect, test } from "bun:test";
import { freePort } from "../support/free-port.ts";
import { openRig, register } from "./rig.ts";

/** Three seconds alone; on a busy machine a few times that. */
const PATIENCE_MS = 60_000;

const SUITE = new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url).pathname;

test(
  "the official conformance suite passes on our authorization server, with a person who consents",
  async () => {
    await using rig = await openRig({ env: { OAUTH_REGISTRATION: "on" } });
    const port = await freePort();
    const redirect = `http://127.0.0.1:${port}/callback`;
    const answer = await register(rig, { redirect_uris: [redirect], token_endpoint_auth_method: "none" });
    // Safe: it was registered.
    const { client_id } = (await answer.json()) as { readonly client_id: string };
    const of = ["--url", rig.url, "--client-id", client_id, "--resource", rig.mcpUrl, "--port", String(port)];
    const suite = Bun.spawn([process.execPath, SUITE, "authorization", ...of], { stdout: "pipe", stderr: "ignore" });
    let output = "";
    let isAsked = false;
    for await (const chunk of suite.stdout) {
      output += new TextDecoder().decode(chunk);
      // It waits at its callback once it has said so.
      const [asked] = output.includes("Callback server started")
        ? (/http\S+\/oauth\/authorize\?\S+/.exec(output) ?? [])
        : [];
      if (asked === undefined || isAsked) continue;
      isAsked = true;
      const browser = rig.browser();
      const back = await browser.follow(await browser.press(await browser.open(asked)));
      await fetch(back);
    }
    expect({ exitCode: await suite.exited, output }).toMatchObject({ exitCode: 0 });
    expect(output).toContain("✓ authorization-code-grant: 1 passed, 0 failed");
    expect(output).toMatch(/Total: \d+ passed, 0 failed/);
  },
  PATIENCE_MS,
);
