/**
 * A reviewer that approves small amounts of one kind of call and leaves the rest to a person. It follows the event stream, so
 * that it sees an action as soon as it awaits approval, and reconnects by itself when the service restarts.
 *
 * With an approver key in OUTGATE_API_KEY:
 *
 *   bun examples/reviewer.ts https://api.example.com/refunds 100
 */
import { createClient } from "../src/client/client.ts";
import type { Action } from "../src/client/api.ts";
import { OutgateError } from "../src/client/transport.ts";

const [allowedUrl, limit = "100"] = process.argv.slice(2);

const outgate = createClient({
  url: process.env["OUTGATE_URL"] ?? "http://127.0.0.1:3000",
  apiKey: process.env["OUTGATE_API_KEY"],
});

const events = outgate.streamEvents({ onOpen: () => console.log("Listening.") });

// Open the stream before listing what is awaiting approval already, so that nothing is missed in between.
const first = events.next();

for await (const action of outgate.actions({ status: ["awaiting_approval"] })) await review(action);

for (let next = await first; next.done !== true; next = await events.next()) await review(next.value.data);

async function review({ id, run, status, body, method, url }: Action): Promise<void> {
  if (status !== "awaiting_approval") return;
  const amount = body?.["amount"];
  // The requester writes all of it, so an amount alone says nothing: it could be in a call that does something else.
  const isKnown = method === "POST" && url === allowedUrl;
  // A limit that is no number allows nothing.
  const isSmall = typeof amount === "number" && amount > 0 && amount <= Number(limit);
  if (!isKnown || !isSmall) {
    console.log(`${id} is left to a person: ${method} ${url}`);
    return;
  }
  try {
    // Not a later run: somebody may have rejected this one.
    await outgate.approveAction(id, { run, reason: `amount ${amount} is within ${limit}` });
    console.log(`${id} is approved.`);
  } catch (error) {
    // Somebody else was faster: only the first decision counts.
    if (!(error instanceof OutgateError) || error.code !== "not_approvable") throw error;
    console.log(`${id} has been decided on already.`);
  }
}
