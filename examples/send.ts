/**
 * A program that must do something exactly once: it creates an action with an idempotency key, waits for the end, and
 * handles the three possible outcomes.
 *
 * With an agent key in OUTGATE_API_KEY:
 *
 *   bun examples/send.ts http://127.0.0.1:4000/orders order-4711
 */
import { createClient } from "../src/client/client.ts";
import { OutgateError } from "../src/client/transport.ts";

const [url = "http://127.0.0.1:4000/orders", order = "order-4711"] = process.argv.slice(2);

const outgateUrl = process.env["OUTGATE_URL"] ?? "http://127.0.0.1:3000";

const outgate = createClient({
  url: outgateUrl,
  apiKey: process.env["OUTGATE_API_KEY"],
});

try {
  // A second run with the same order returns the first run's action: nothing is sent twice.
  const action = await outgate.createAction(
    { url, body: { order }, retries: 5, sync: true },
    { idempotencyKey: order, waitSeconds: 60 },
  );
  if (action.deduplicated === true) console.log(`${order} had been sent before, as ${action.id}.`);
  if (action.status === "completed") console.log("Done:", JSON.stringify(action.response_body));
  else if (action.status === "failed" || action.status === "cancelled")
    console.log(
      `It is ${action.status}. ${action.last_error ?? ""} See ${new URL(action.receipt_url ?? "/", outgateUrl).href}`,
    );
  else console.log(`Not ended yet (${action.status}): Outgate continues without this program.`);
} catch (error) {
  if (!(error instanceof OutgateError)) throw error;
  // Refused or unreachable: print each issue, and the id that identifies the request in the service's log.
  console.error(`${error.code}: ${error.message}`, error.details, error.requestId ?? "");
  process.exit(1);
}
