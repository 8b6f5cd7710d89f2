import { said, type SuiteTool } from "./plain-tools.ts";

const string = (description: string, more: object = {}) => ({ type: "string", description, ...more });
const options = ["option1", "option2", "option3"];
const titled = (name: string) => [1, 2, 3].map((count) => ({ const: `value${count}`, title: `${name} ${count}` }));

const DEFAULTS = {
  name: string("User name", { default: "John Doe" }),
  age: { type: "integer", description: "User age", default: 30 },
  score: { type: "number", description: "User score", default: 95.5 },
  status: string("User status", { enum: ["active", "inactive", "pending"], default: "active" }),
  verified: { type: "boolean", description: "Verification status", default: true },
};
const ENUMS = {
  untitledSingle: string("Select one option", { enum: options }),
  titledSingle: string("Select one option with titles", { oneOf: titled("Option") }),
  legacyEnum: string("Select one option (legacy)", { enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] }),
  untitledMulti: {
    type: "array",
    description: "Select multiple",
    minItems: 1,
    maxItems: 3,
    items: { type: "string", enum: options },
  },
  titledMulti: {
    type: "array",
    description: "Select multiple with titles",
    minItems: 1,
    maxItems: 3,
    items: { anyOf: titled("Choice") },
  },
};

const elicits = (message: string | null, properties: object, required: readonly string[]): SuiteTool => ({
  ...(message === null ? { properties: { message: { type: "string" } } } : {}),
  async run(args, ctx) {
    const requestedSchema = { type: "object", properties, required };
    const params = { message: message ?? String(args["message"]), requestedSchema };
    const { action, content } = await ctx.mcpReq.send({ method: "elicitation/create", params });
    return said(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
  },
});

/** The tools that ask the client for something while the call waits (revisions of 2025). */
export const PUSHING_TOOLS: Readonly<Record<string, SuiteTool>> = {
  test_sampling: {
    properties: { prompt: { type: "string" } },
    async run({ prompt }, ctx) {
      const messages = [{ role: "user", content: { type: "text", text: prompt } }];
      const { content } = await ctx.mcpReq.send({
        method: "sampling/createMessage",
        params: { messages, maxTokens: 100 },
      });
      return said(`LLM response: ${"text" in content ? content.text : ""}`);
    },
  },
  test_elicitation: elicits(null, { response: string("User's response") }, ["response"]),
  test_elicitation_sep1034_defaults: elicits("Please review the form", DEFAULTS, []),
  test_elicitation_sep1330_enums: elicits("Please select options", ENUMS, []),
};
