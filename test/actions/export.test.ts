import { expect, test } from "bun:test";
import { createExportActions } from "../../src/actions/export.ts";
import { aRequestContext } from "../http/stub-server.ts";
import { anAction, aQuery } from "../support/factory.ts";
import { ownerOf } from "../support/owner.ts";

const PAGES = 3;

const OWNER = ownerOf("acc_a");

test("exports that run at the same time hold the event loop for one page, not for one each", async () => {
  let [inTurn, mostInTurn] = [0, 0];
  const exportActions = createExportActions(
    {
      async list(_caller, { before }) {
        inTurn += 1;
        mostInTurn = Math.max(mostInTurn, inTurn);
        setImmediate(() => (inTurn = 0));
        const page = Number(before) + 1;
        return { actions: [anAction()], before: page === PAGES ? null : String(page), searchedUntil: null };
      },
    },
    () => "{}",
    new AbortController().signal,
  );
  const texts: string[] = [];
  const one = async () => {
    const response = await exportActions(aRequestContext(), OWNER, { format: "ndjson", filter: aQuery() });
    texts.push(await response.text());
  };
  await Promise.all(Array.from({ length: 8 }, one));
  expect(texts).toEqual(Array.from({ length: 8 }, () => "{}\n".repeat(PAGES)));
  expect(mostInTurn).toBe(1);
});

test("an export that fails ends no other", async () => {
  let isFirst = true;
  const exportActions = createExportActions(
    {
      async list() {
        if (!isFirst) return { actions: [anAction()], before: null, searchedUntil: null };
        isFirst = false;
        throw new Error("the database is away");
      },
    },
    () => "{}",
    new AbortController().signal,
  );
  const one = () => exportActions(aRequestContext(), OWNER, { format: "ndjson", filter: aQuery() });
  const [first, second] = await Promise.allSettled([one(), one()]);
  expect(first.status).toBe("rejected");
  expect(second.status === "fulfilled" && (await second.value.text())).toBe("{}\n");
});
