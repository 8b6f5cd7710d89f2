import { describe, expect, test } from "bun:test";
import type { HistoryRows } from "../faults/history.ts";
import { judgeCluster, judgeStream } from "./judge.ts";
import type { Arrival } from "./witness.ts";

describe("what the faults are judged by", () => {
  const told = (seq: number, revision: number, type: string, status: string) => ({
    seq,
    action_id: "act_1",
    run: 1,
    revision,
    type,
    status,
    detail: '{"attempt":1,"outcome":"answered"}',
  });
  const HELD = [told(1, 1, "created", "awaiting_approval"), told(2, 1, "held", "awaiting_approval")];
  const APPROVED = [...HELD, told(3, 2, "approved", "pending")];
  const COMPLETED = [
    ...APPROVED,
    told(4, 3, "started", "active"),
    told(5, 4, "attempt", "completed"),
    told(6, 4, "completed", "completed"),
  ];
  const ACTION = { id: "act_1", status: "completed", retries: 1, callback: null };
  const SENT: Arrival = { id: "act_1", attempt: 1, atMs: 10, status: 200 };

  interface Case {
    readonly timeline?: HistoryRows["timeline"];
    readonly actions?: HistoryRows["actions"];
    readonly arrivals?: readonly Arrival[];
    readonly askedMs?: number;
    readonly ids?: readonly string[];
    readonly answers?: readonly ("approve" | "cancel")[];
  }

  function judged({
    timeline = COMPLETED,
    actions = [ACTION],
    arrivals = [SENT],
    askedMs = 5,
    ids = ["act_1"],
    answers = ["approve"],
  }: Case): readonly string[] {
    const told200 = answers.map((decision) => ({ decision, status: 200, tries: 1 }));
    const { problems } = judgeCluster({
      rows: { actions, timeline, outbox: [] },
      load: {
        acknowledged: new Map(ids.map((id, at) => [`key-${at}`, id])),
        approvedMs: new Map([["act_1", askedMs]]),
        decisions: [{ id: "act_1", answers: told200 }],
        problems: new Map(),
        impatient: 0,
        statuses: new Map(),
      },
      witness: { arrivals: [...arrivals], callbacks: [] },
    });
    return problems.map((problem) => problem.replace(/:.*/, ""));
  }

  test("a history that keeps every promise has no problem", () => {
    expect(judged({})).toEqual([]);
  });

  const again = { ...SENT, attempt: 2, atMs: 20 };
  const cases: readonly (readonly [string, Case])[] = [
    ["none that was acknowledged is missing", { ids: ["act_1", "act_2"] }],
    ["two keys are two actions", { ids: ["act_1", "act_1"] }],
    ["no more sends than retries", { arrivals: [SENT, again] }],
    ["one send for each attempt", { arrivals: [SENT, SENT] }],
    ["whatever was sent again after a 2xx is marked as unknown", { arrivals: [SENT, again] }],
    ["nothing is sent without approval", { askedMs: 15 }],
    ["nothing is sent without approval", { timeline: COMPLETED.filter(({ type }) => type !== "approved") }],
    ["completed means that the target said so", { arrivals: [{ ...SENT, status: 500 }] }],
    ["completed means that the target said so", { arrivals: [] }],
    ["one winner of two decisions", { timeline: [...COMPLETED, told(7, 5, "rejected", "cancelled")] }],
    ["whoever was told that they decided did", { answers: ["approve", "cancel"] }],
    ["whoever was told that they decided did", { answers: ["approve", "approve"] }],
    ["the events of an action are in their order", { timeline: COMPLETED.map((one) => ({ ...one, seq: -one.seq })) }],
    ["one callback for every end", { actions: [{ ...ACTION, callback: "http://127.0.0.1/" }] }],
    ["legal states only", { timeline: [...HELD, told(3, 2, "started", "active")] }],
  ];

  test.each(cases)("%s", (sentence, broken) => {
    expect(judged(broken)).toContain(sentence);
  });
});

describe("what a reader of the stream is judged by", () => {
  const rows = {
    timeline: ["created", "started", "attempt", "completed"].map((type, at) => ({
      seq: at + 1,
      action_id: "act_1",
      run: 1,
      revision: Math.min(at + 1, 3),
      type,
      status: "pending",
      detail: "{}",
    })),
  };
  const ALL = new Map([
    [1, 1],
    [2, 1],
    [3, 1],
  ]);

  const cases: readonly (readonly [string | null, Partial<Parameters<typeof judgeStream>[1]>])[] = [
    [null, {}],
    ["the stream misses nothing", { seen: new Map([...ALL].slice(1)) }],
    ["the stream tells of nothing that is not stored", { seen: new Map([...ALL, [9, 1]]) }],
    ["the stream repeats nothing", { seen: new Map([...ALL, [3, 2]]) }],
    ["the stream is in order", { disordered: 1 }],
    ["every position that was given out can be resumed from", { refusals: 1 }],
  ];

  test.each(cases)("%s", (sentence, broken) => {
    const { problems } = judgeStream(rows, { seen: ALL, disordered: 0, resumed: 0, refusals: 0, ...broken });
    expect(problems.map((problem) => problem.replace(/:.*/, ""))).toEqual(sentence === null ? [] : [sentence]);
  });
});
