import { expect, test } from "bun:test";
import {
  ACTION_STATUSES,
  type ActionStatus,
  isTerminal,
  nextStatus,
  type Operation,
  operationsIn,
  sources,
  type Trigger,
} from "../../src/core/action.ts";

const NOWHERE = {
  approve: null,
  cancel: null,
  dispatch: null,
  unclaim: null,
  withhold: null,
  refuse: null,
  succeed: null,
  reschedule: null,
  exhaust: null,
  retry: null,
  hold: null,
} as const;

/** The whole machine once more, as the specification and the decisions draw it. */
const MACHINE: Readonly<Record<ActionStatus, Readonly<Record<Trigger, ActionStatus | null>>>> = {
  pending: { ...NOWHERE, dispatch: "active", cancel: "cancelled" },
  active: {
    ...NOWHERE,
    unclaim: "pending",
    withhold: "awaiting_approval",
    refuse: "cancelled",
    succeed: "completed",
    reschedule: "pending",
    exhaust: "failed",
  },
  awaiting_approval: { ...NOWHERE, approve: "pending", cancel: "cancelled" },
  completed: NOWHERE,
  failed: { ...NOWHERE, retry: "pending", hold: "awaiting_approval" },
  cancelled: { ...NOWHERE, retry: "pending", hold: "awaiting_approval" },
};

// Safe: the keys of a literal whose type has exactly these.

// Safe: the keys of a literal whose type has exactly these.
const TRIGGERS = Object.keys(NOWHERE) as Trigger[];

const OPERATIONS_IN: Readonly<Record<ActionStatus, readonly Operation[]>> = {
  pending: ["cancel"],
  active: [],
  awaiting_approval: ["approve", "cancel"],
  completed: [],
  failed: ["retry"],
  cancelled: ["retry"],
};

test.each(ACTION_STATUSES)("from %s every trigger leads where the table says, and nowhere else", (status) => {
  expect(Object.fromEntries(TRIGGERS.map((trigger) => [trigger, nextStatus(status, trigger)]))).toEqual(
    MACHINE[status],
  );
});

test.each(ACTION_STATUSES)("the operations of %s are those of the table", (status) => {
  expect(operationsIn(status)).toEqual(OPERATIONS_IN[status]);
});

test("the statuses from which a trigger is allowed are those of the table", () => {
  for (const trigger of TRIGGERS) {
    const from = ACTION_STATUSES.filter((status) => MACHINE[status][trigger] !== null);
    expect({ trigger, from: sources(trigger) }).toEqual({ trigger, from });
  }
});

test("only completed, failed and cancelled are final, and only a retry leads out of them", () => {
  expect(ACTION_STATUSES.filter(isTerminal)).toEqual(["completed", "failed", "cancelled"]);
  for (const status of ACTION_STATUSES.filter(isTerminal)) {
    const ways = TRIGGERS.filter((trigger) => nextStatus(status, trigger) !== null);
    expect(ways.filter((trigger) => trigger !== "retry" && trigger !== "hold")).toEqual([]);
  }
});
