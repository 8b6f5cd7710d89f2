import Type, { type Static } from "typebox";
import { plainText } from "./kinds.ts";

/** What health and readiness say (decisions 12). */
export const Health = Type.Object(
  {
    status: Type.Enum(["ok", "unavailable"], { type: "string", description: "How it is.", examples: ["ok"] }),
    version: plainText("Version of the service.", "0.1.0"),
  },
  { title: "Health", description: "How the service is." },
);
export type Health = Static<typeof Health>;
