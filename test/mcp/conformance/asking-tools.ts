import {
  acceptedContent,
  createRequestStateCodec,
  inputRequired,
  type InputRequests,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { said, type SuiteTool } from "./plain-tools.ts";

const codec = createRequestStateCodec<Record<string, unknown>>({ key: crypto.getRandomValues(new Uint8Array(32)) });

/** The state of the suite's own tools, as the SDK makes and checks it; the product's is its own. */
const mint = (payload: Record<string, unknown>): Promise<string> => codec.mint(payload);
export const verify = codec.verify.bind(codec);

type Properties = Record<string, { type: "string" } | { type: "boolean" }>;
const form = (message: string, properties: Properties) =>
  inputRequired.elicit({ message, requestedSchema: { type: "object", properties, required: Object.keys(properties) } });
const nameForm = (message = "What is your name?") => form(message, { name: { type: "string" } });
const confirmForm = () => form("Please confirm", { ok: { type: "boolean" } });
const sampling = (text: string): InputRequests[string] => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 50 },
});
const roots: InputRequests[string] = { method: "roots/list" };

const answer = (ctx: ServerContext, name: string): unknown => ctx.mcpReq.inputResponses?.[name];
const accepted = (ctx: ServerContext, name: string) => acceptedContent(ctx.mcpReq.inputResponses, name);
const stateOf = (ctx: ServerContext) => ctx.mcpReq.requestState<Record<string, unknown>>();

/** The tools that ask the client for something by ending with the question (revision 2026-07-28). */
export const ASKING_TOOLS: Readonly<Record<string, SuiteTool>> = {
  test_missing_capability: {
    run: (_args, ctx) =>
      answer(ctx, "llm") === undefined ? inputRequired({ inputRequests: { llm: sampling("Say pong") } }) : said("pong"),
  },
  test_input_required_result_elicitation: {
    run(_args, ctx) {
      const name = accepted(ctx, "user_name")?.["name"];
      if (typeof name === "string") return said(`Hello, ${name}!`);
      return inputRequired({ inputRequests: { user_name: nameForm() } });
    },
  },
  test_input_required_result_sampling: {
    run(_args, ctx) {
      const given = answer(ctx, "capital_question") as { content?: { text?: string } } | undefined;
      if (given !== undefined) return said(`Sampling response: ${given.content?.text ?? ""}`);
      return inputRequired({ inputRequests: { capital_question: sampling("What is the capital of France?") } });
    },
  },
  test_input_required_result_list_roots: {
    run(_args, ctx) {
      const given = answer(ctx, "client_roots") as { roots?: { uri?: string }[] } | undefined;
      if (Array.isArray(given?.roots)) return said(`Client exposed: ${given.roots.map(({ uri }) => uri).join(", ")}`);
      return inputRequired({ inputRequests: { client_roots: roots } });
    },
  },
  test_input_required_result_request_state: {
    async run(_args, ctx) {
      if (accepted(ctx, "confirm") === undefined) {
        return inputRequired({
          inputRequests: { confirm: confirmForm() },
          requestState: await mint({ tool: "request_state" }),
        });
      }
      if (stateOf(ctx) !== undefined) return said("state-ok: requestState verified and confirmation received");
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "The state is missing.");
    },
  },
  test_input_required_result_multiple_inputs: {
    async run(_args, ctx) {
      const name = accepted(ctx, "user_name")?.["name"];
      const greeting = (answer(ctx, "greeting") as { content?: { text?: string } } | undefined)?.content?.text;
      const given = (answer(ctx, "client_roots") as { roots?: unknown[] } | undefined)?.roots;
      if (typeof name === "string" && greeting !== undefined && given !== undefined) {
        return said(`${greeting} ${name}: ${given.length} root(s) visible`);
      }
      const inputRequests = { user_name: nameForm(), greeting: sampling("Generate a greeting"), client_roots: roots };
      return inputRequired({ inputRequests, requestState: await mint({ tool: "multiple_inputs" }) });
    },
  },
  test_input_required_result_multi_round: {
    async run(_args, ctx) {
      const { round = 0, name } = stateOf(ctx) ?? {};
      if (round === 0) {
        const requestState = await mint({ round: 1, nonce: crypto.randomUUID() });
        return inputRequired({ inputRequests: { step1: nameForm("Step 1: What is your name?") }, requestState });
      }
      if (round === 1) {
        const requestState = await mint({ round: 2, name: accepted(ctx, "step1")?.["name"] });
        const step2 = form("Step 2: What is your favorite color?", { color: { type: "string" } });
        return inputRequired({ inputRequests: { step2 }, requestState });
      }
      return said(`Multi-round complete: ${String(name)} likes ${String(accepted(ctx, "step2")?.["color"])}`);
    },
  },
  test_input_required_result_tampered_state: {
    async run(_args, ctx) {
      if (stateOf(ctx) !== undefined && accepted(ctx, "confirm") !== undefined) {
        return said("integrity-ok: requestState verified");
      }
      return inputRequired({
        inputRequests: { confirm: confirmForm() },
        requestState: await mint({ tool: "tampered_state" }),
      });
    },
  },
  test_input_required_result_capabilities: {
    run(_args, ctx) {
      if (ctx.mcpReq.inputResponses !== undefined) return said("Capability-aware input requests fulfilled");
      const envelope: Readonly<Record<string, unknown>> = { ...ctx.mcpReq.envelope };
      const declared = { ...(envelope["io.modelcontextprotocol/clientCapabilities"] as object) };
      const inputRequests: InputRequests = {
        ...("elicitation" in declared ? { user_name: nameForm() } : {}),
        ...("sampling" in declared ? { greeting: sampling("Generate a short greeting") } : {}),
        ...("roots" in declared ? { client_roots: roots } : {}),
      };
      return Object.keys(inputRequests).length === 0 ? said("Nothing can be asked") : inputRequired({ inputRequests });
    },
  },
};
