import Type, { type Static } from "typebox";
import { WAIT_SECONDS_DEFAULT, WAIT_SECONDS_MAX } from "../domain/limits.ts";

/** How long a request may wait for the end of an action (decisions 1). */
export const WaitQuery = Type.Object(
  {
    wait: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: WAIT_SECONDS_MAX,
        default: WAIT_SECONDS_DEFAULT,
        description: "Seconds to wait for the end of the action.",
        examples: [60],
      }),
    ),
  },
  { additionalProperties: false },
);
export type WaitQuery = Static<typeof WaitQuery>;

/** Where no parameter is known. */
export const NoQuery = Type.Object({}, { additionalProperties: false });
