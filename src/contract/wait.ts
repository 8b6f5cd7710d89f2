import Type, { type Static } from "typebox";
import { WAIT_SECONDS_DEFAULT, WAIT_SECONDS_MAX } from "../domain/limits.ts";

const seconds = (extra: { readonly default?: number; readonly description: string }) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: WAIT_SECONDS_MAX, examples: [60], ...extra }));

/** How long a tool waits for the end of an action. */
export const WaitSeconds = seconds({
  default: WAIT_SECONDS_DEFAULT,
  description: "Seconds to wait for the end of the action.",
});

/** How long a create with `sync` waits for the end of its action. */
export const WaitQuery = Type.Object(
  {
    wait: seconds({
      default: WAIT_SECONDS_DEFAULT,
      description: "Seconds to wait for the end of the action, with sync; without it, it is ignored.",
    }),
  },
  { additionalProperties: false },
);
export type WaitQuery = Static<typeof WaitQuery>;

/** Whether a read waits, and how long. No default: generated clients send theirs, and every read of theirs would wait. */
export const ReadQuery = Type.Object(
  {
    wait: seconds({
      description: "Seconds to wait for the end of the action. Left out: the answer comes at once.",
    }),
  },
  { additionalProperties: false },
);

/** Where no parameter is known. */
export const NoQuery = Type.Object({}, { additionalProperties: false });
