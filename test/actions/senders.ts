import type { Outcome } from "../../src/core/outcome.ts";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import { answered } from "../support/factory.ts";

/** A sender that keeps what it was asked to send. */
export interface KeepingSender extends Sender {
  readonly sent: OutboundRequest[];
}

/** Its calls end as listed, the last one for ever. */
export function answering(...outcomes: readonly Outcome[]): KeepingSender {
  const sent: OutboundRequest[] = [];
  return {
    sent,
    send: async (request) => {
      sent.push(request);
      return outcomes[Math.min(sent.length, outcomes.length) - 1] ?? answered(200);
    },
  };
}

/** Its calls end when the test says so, or when they are interrupted. */
export function holding() {
  const sent: OutboundRequest[] = [];
  const gate = Promise.withResolvers<Outcome>();
  const began = Promise.withResolvers<void>();
  const sender: KeepingSender = {
    sent,
    send: (request, { stop }) => {
      sent.push(request);
      began.resolve();
      const interrupted = Promise.withResolvers<Outcome>();
      stop?.addEventListener("abort", () => interrupted.resolve({ kind: "unknown", fault: "interrupted" }));
      return Promise.race([gate.promise, interrupted.promise]);
    },
  };
  return { sender, began: began.promise, end: (outcome: Outcome) => gate.resolve(outcome) };
}

/** The action that a request belongs to, as its target could tell. */
export function actionOf({ headers }: OutboundRequest): string {
  return headers.find(([name]) => name === "webhook-id")?.[1] ?? "";
}
