import { hiddenIn } from "../support/forms.ts";
import { expect, test } from "bun:test";
import { answering } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { openRealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { Random } from "../simulation/random.ts";
import { IS_LONG, SEED } from "../support/long.ts";

const RACES = IS_LONG ? 10 : 2;

/** A hundred, of each as many. */
function hundredOf<T>(ways: readonly T[]): readonly T[] {
  return Array.from({ length: 100 }, (_, n) => ways.slice(n % ways.length, (n % ways.length) + 1)).flat();
}

/** In an order of its own each time: the ways in differ in how long they take. */
function shuffled<T>(all: readonly T[], random: Random): readonly T[] {
  return all
    .map((one) => [random.next(), one] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, one]) => one);
}

test("of a hundred approvals and a hundred rejections over link, REST and inbox one wins", async () => {
  const random = new Random(SEED);
  const sender = answering(answered(200));
  await using app = await openRealServer({ sender });
  const ann = await signedIn(app);
  const wins: Record<string, number> = {};
  let yes = 0;

  for (let race = 0; race < RACES; race += 1) {
    const { id } = (
      await app.call("POST", "/v1/actions", {
        url: "http://127.0.0.1:9/",
        approve: true,
        notify: { email: "ann@example.com" },
      })
    ).json;
    const links = await app.linksOf(id);
    const hidden = await ann.hiddenOf(`/approvals/${id}`);
    const shown = hiddenIn(await (await fetch(app.url + links.approve)).text());
    const press = (decision: "approve" | "reject") =>
      fetch(app.url + links[decision], {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ ...shown, decision }),
      });
    const inInbox = (decision: "approve" | "reject") => ann.send(`/approvals/${id}`, { ...hidden, decision });
    const overRest = () => app.ask(`/v1/actions/${id}/approve`, { method: "POST" });
    const rest: number[] = [];
    const count = async (answer: Promise<Response>) => void rest.push((await answer).status);
    const yesses = [() => press("approve"), () => inInbox("approve"), () => count(overRest())];
    // Over REST a cancel may also end what was approved and is not sent yet (B117), so a no comes by link and inbox.
    const noes = [() => press("reject"), () => inInbox("reject")];
    const all = [...hundredOf(yesses), ...hundredOf(noes)];
    await Promise.all(shuffled(all, random).map((decide) => decide()));

    const decided = (await app.engine.events(id)).filter(({ type }) => type === "approved" || type === "rejected");
    expect(decided).toHaveLength(1);
    const [winner] = decided;
    const actor = winner !== undefined && "actor" in winner ? winner.actor : "";
    const key = `${winner?.type} by ${actor.split(":")[0]}`;
    wins[key] = (wins[key] ?? 0) + 1;
    // Of all that were told yes over REST, as many as have won there.
    expect(rest.filter((status) => status === 200)).toHaveLength(key === "approved by key" ? 1 : 0);
    expect(new Set(rest.filter((status) => status !== 200))).toEqual(new Set([409]));
    if (winner?.type === "approved") {
      yes += 1;
      await app.engine.saw(id, { status: "completed" });
    } else expect((await app.engine.get(id)).status).toBe("cancelled");
  }
  expect(sender.sent).toHaveLength(yes);
  console.log(`race over link, REST and inbox: seed ${SEED}, ${JSON.stringify(wins)}`);
}, 60_000);
