/**
 * A target for trying out Outgate: it fails twice, then succeeds, and verifies the signature of every call with the public
 * `standardwebhooks` package, as a real target would.
 *
 * With the owner key in OUTGATE_API_KEY:
 *
 *   npm run flaky-target
 */
import { Webhook } from "standardwebhooks";

const FAILURES = 2;
const outgateUrl = process.env["OUTGATE_URL"] ?? "http://127.0.0.1:3000";
const apiKey = process.env["OUTGATE_API_KEY"];
const port = Number(process.env["TARGET_PORT"] ?? 4000);
const origin = `http://127.0.0.1:${port}`;

if (apiKey === undefined) {
  console.error("Set OUTGATE_API_KEY to the owner key that Outgate printed at its first start.");
  process.exit(2);
}

const answer = await fetch(`${outgateUrl}/v1/signing-secret?origin=${encodeURIComponent(origin)}`, {
  headers: { Authorization: `Bearer ${apiKey}` },
}).catch(() => null);
if (answer === null) {
  console.error(`Outgate does not answer at ${outgateUrl}: start it first, or set OUTGATE_URL.`);
  process.exit(1);
}
if (!answer.ok) {
  console.error(`Outgate did not give the signing secret of ${origin} (${answer.status}): is this the owner key?`);
  process.exit(1);
}
const { secret } = (await answer.json()) as { secret: string };
const webhook = new Webhook(secret);
const callsByAction = new Map<string, number>();

Bun.serve({
  port,
  hostname: "127.0.0.1",
  async fetch(request) {
    const body = await request.text();
    const id = request.headers.get("webhook-id") ?? "";
    if (!isSigned(body, request.headers)) {
      console.log(`${id || "a call"}: no valid signature, refused`);
      return Response.json({ error: "not signed by Outgate" }, { status: 401 });
    }
    const calls = (callsByAction.get(id) ?? 0) + 1;
    callsByAction.set(id, calls);
    const fails = calls <= FAILURES;
    console.log(`${id}: attempt ${calls}, signature verified, answering ${fails ? 503 : 200}`);
    return fails
      ? Response.json({ error: "try again" }, { status: 503 })
      : Response.json({ delivered: true, attempts: calls });
  },
});

console.log(`Listening on ${origin}. Send it an action, with an agent key in OUTGATE_API_KEY (bash or zsh):

  curl -s ${outgateUrl}/v1/actions -H @<(echo "Authorization: Bearer $OUTGATE_API_KEY") \\
    -H 'Content-Type: application/json' \\
    -d '{"url":"${origin}/hello","body":{"hello":"world"},"sync":true}'
`);

/** The package throws on a signature that is missing, wrong or too old. */
function isSigned(body: string, headers: Headers): boolean {
  try {
    webhook.verify(body, Object.fromEntries(headers));
    return true;
  } catch {
    return false;
  }
}
