import {
  acceptedContent,
  fromJsonSchema,
  inputRequired,
  type JsonSchemaType,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { ASKING_TOOLS, verify } from "./asking-tools.ts";
import { image, PIXEL, PLAIN_TOOLS, resource, said, textOf } from "./plain-tools.ts";
import { PUSHING_TOOLS } from "./pushing-tools.ts";

/** A server with everything that the official suite asks for, to be mounted where the product mounts its own. */
export function fixtureServer(): McpServer {
  const mcp = new McpServer(
    { name: "conformance", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: { verify },
    },
  );
  for (const [name, { properties = {}, run }] of Object.entries({
    ...PLAIN_TOOLS,
    ...ASKING_TOOLS,
    ...PUSHING_TOOLS,
  })) {
    const schema = { type: "object", properties } as JsonSchemaType;
    const inputSchema = fromJsonSchema<Record<string, unknown>>(schema);
    mcp.registerTool(name, { description: name, inputSchema }, (args, ctx) => run(args, ctx));
  }
  mcp.registerTool(
    "json_schema_2020_12_tool",
    { description: "Shown as written", inputSchema: fromJsonSchema(SCHEMA) },
    () => said("called"),
  );
  addResources(mcp);
  addPrompts(mcp);
  mcp.server.setRequestHandler("resources/subscribe", () => ({}));
  mcp.server.setRequestHandler("resources/unsubscribe", () => ({}));
  mcp.server.setRequestHandler("completion/complete", () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return mcp;
}

/** Words of JSON Schema 2020-12 that a list of tools has to pass on as they are. */
const SCHEMA: JsonSchemaType = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema.
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

function addResources(mcp: McpServer): void {
  const text = (uri: string, content: string) => () => ({ contents: [{ uri, mimeType: "text/plain", text: content }] });
  const plain = { mimeType: "text/plain" };
  mcp.registerResource(
    "static-text",
    "test://static-text",
    plain,
    text("test://static-text", "The static text resource."),
  );
  mcp.registerResource(
    "watched-resource",
    "test://watched-resource",
    plain,
    text("test://watched-resource", "Watched."),
  );
  mcp.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, () => ({
    contents: [{ uri: "test://static-binary", mimeType: "image/png", blob: PIXEL }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  mcp.registerResource("template", template, { mimeType: "application/json" }, (uri, { id }) => {
    const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` });
    return { contents: [{ uri: uri.toString(), mimeType: "application/json", text: data }] };
  });
}

function addPrompts(mcp: McpServer): void {
  const user = "user" as const;
  const takes = (...names: string[]) =>
    fromJsonSchema<Record<string, string>>({
      type: "object",
      properties: Object.fromEntries(names.map((name) => [name, { type: "string", description: name }])),
      required: names,
    });
  mcp.registerPrompt("test_simple_prompt", { description: "Without arguments" }, () => ({
    messages: [{ role: user, content: textOf("This is a simple prompt for testing.") }],
  }));
  mcp.registerPrompt(
    "test_prompt_with_arguments",
    { description: "With arguments", argsSchema: takes("arg1", "arg2") },
    ({ arg1, arg2 }) => ({
      messages: [{ role: user, content: textOf(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) }],
    }),
  );
  mcp.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "With a resource", argsSchema: takes("resourceUri") },
    ({ resourceUri }) => ({
      messages: [
        { role: user, content: resource(resourceUri ?? "", "text/plain", "Embedded resource content for testing.") },
        { role: user, content: textOf("Please process the embedded resource above.") },
      ],
    }),
  );
  mcp.registerPrompt("test_prompt_with_image", { description: "With an image" }, () => ({
    messages: [
      { role: user, content: image },
      { role: user, content: textOf("Please analyze the image above.") },
    ],
  }));
  mcp.registerPrompt(
    "test_input_required_result_prompt",
    { description: "Asks before it answers" },
    (given: unknown) => {
      // Safe: a prompt without arguments is given its context alone.
      const { mcpReq } = given as ServerContext;
      const context = acceptedContent<{ context: string }>(mcpReq.inputResponses, "user_context")?.context;
      if (context !== undefined) return { messages: [{ role: user, content: textOf(`Use this context: ${context}`) }] };
      const requestedSchema = {
        type: "object" as const,
        properties: { context: { type: "string" as const } },
        required: ["context"],
      };
      const question = inputRequired.elicit({ message: "What context should the prompt use?", requestedSchema });
      return inputRequired({ inputRequests: { user_context: question } });
    },
  );
}
