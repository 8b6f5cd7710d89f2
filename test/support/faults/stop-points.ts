import { rmSync } from "node:fs";
import { join } from "node:path";
import { openEngine } from "../engine.ts";
import { eventually } from "../eventually.ts";
import { newFolder } from "../service.ts";
import { Target } from "../target.ts";
import { storedIn } from "./database.ts";
import { broken, type FaultReport } from "./report.ts";

/** Where a process dies: around commit, claim, send and record, of an action and of a callback. */
export const STOP_POINTS = [
  "before the create",
  "after the create",
  "before the claim",
  "after the claim",
  "before the send",
  "while it is sent",
  "after the send",
  "before the record",
  "after the record",
  "before a callback's claim",
  "after a callback's claim",
  "before a callback is sent",
  "while a callback is sent",
  "after a callback is sent",
  "before a callback's record",
  "after a callback's record",
] as const;
export type StopPoint = (typeof STOP_POINTS)[number];

/** What the dying process is told. */
export interface Dying {
  readonly folder: string;
  readonly point: StopPoint;
  readonly target: string;
  readonly callback: string;
  readonly retries: number;
}

const PROGRAM = join(import.meta.dir, "dying.ts");
/** From the claim on nobody can know whether the target has it; until the record nobody does. */
const UNKNOWN = new Set<StopPoint>(STOP_POINTS.slice(3, 8));
const SENT_TWICE = new Set<StopPoint>(["while it is sent", "after the send", "before the record"]);
const CALLED_TWICE = new Set<StopPoint>([
  "while a callback is sent",
  "after a callback is sent",
  "before a callback's record",
]);

/** One kill at one stop point, the next start on the same files, and what the target, the receiver and the rows say (F2). */
export async function killAt(point: StopPoint, retries: number): Promise<FaultReport> {
  const folder = newFolder();
  const answer = async () => {
    await Bun.sleep(100);
    return new Response("ok");
  };
  await using target = new Target(point === "while it is sent" ? answer : 200, 200);
  await using receiver = new Target(point === "while a callback is sent" ? answer : 200, 200);
  const dying: Dying = { folder, point, target: target.url, callback: receiver.url, retries };
  const child = Bun.spawn([process.execPath, PROGRAM, JSON.stringify(dying)], { stdout: "pipe", stderr: "inherit" });
  const acknowledged = (await child.stdout.text()).trim();
  await child.exited;

  const engine = await openEngine({ folder });
  const [[id, row] = ["", null]] = [...storedIn(folder).actions].slice(0, 1);
  if (row !== null) {
    engine.clock.advance(10_000);
    await eventually(
      async () => (["completed", "failed"].includes(await statusOf(id)) ? true : null),
      `${point}: an end`,
    );
    const isTold = async () => (await engine.events(id)).some((told) => told.type === "callback" && told.delivered);
    await eventually(async () => (await isTold()) || null, `${point}: a callback`);
  }
  const status = row === null ? "none" : await statusOf(id);
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
  const [sends, calls] = [target.received.length, receiver.received.length];
  const mayFail = retries === 1 && UNKNOWN.has(point);
  return {
    figures: { point, retries, status, sends, calls, signal: child.signalCode ?? "none" },
    problems: broken({
      [`${point}: it was killed there`]: child.signalCode === "SIGKILL",
      [`${point}: nothing acknowledged is lost`]: acknowledged === "" || acknowledged === id,
      [`${point}: it ends completed, or failed where that was all that was allowed`]:
        status === (mayFail ? "failed" : "completed") || (status === "none" && point === "before the create"),
      [`${point}: no more sends than allowed`]: sends <= retries,
      [`${point}: sent twice only after a send`]: sends <= (SENT_TWICE.has(point) ? 2 : 1),
      [`${point}: called twice only after a call`]: calls <= (CALLED_TWICE.has(point) ? 2 : 1),
      [`${point}: its end is called`]: status === "none" || calls >= 1,
    }),
  };

  async function statusOf(actionId: string): Promise<string> {
    return (await engine.get(actionId)).status;
  }
}
