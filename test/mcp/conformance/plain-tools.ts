import { setTimeout as pause } from "node:timers/promises";
import type { CallToolResult, ContentBlock, InputRequiredResult, ServerContext } from "@modelcontextprotocol/server";

/** A red pixel, and a sound of no length. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

export const textOf = (text: string): ContentBlock => ({ type: "text", text });
export const image: ContentBlock = { type: "image", data: PIXEL, mimeType: "image/png" };
const audio: ContentBlock = { type: "audio", data: SILENCE, mimeType: "audio/wav" };
export const resource = (uri: string, mimeType: string, text: string): ContentBlock => ({
  type: "resource",
  resource: { uri, mimeType, text },
});

const told = (...content: ContentBlock[]): CallToolResult => ({ content });
export const said = (text: string): CallToolResult => told(textOf(text));

/** A tool of the suite: what it takes, and what it does. */
export interface SuiteTool {
  readonly properties?: Readonly<Record<string, object>>;
  readonly run: (args: Readonly<Record<string, unknown>>, ctx: ServerContext) => Result | Promise<Result>;
}
type Result = CallToolResult | InputRequiredResult;

const log = (ctx: ServerContext, data: string) =>
  ctx.mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });

/** The tools that the suite calls without asking for anything (its reference server says what each has to answer). */
export const PLAIN_TOOLS: Readonly<Record<string, SuiteTool>> = {
  test_simple_text: { run: () => said("This is a simple text response for testing.") },
  test_image_content: { run: () => told(image) },
  test_audio_content: { run: () => told(audio) },
  test_embedded_resource: {
    run: () => told(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  },
  test_multiple_content_types: {
    run: () =>
      told(
        textOf("Multiple content types test:"),
        image,
        resource("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`),
      ),
  },
  test_tool_with_logging: {
    async run(_args, ctx) {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await log(ctx, data);
        await pause(50);
      }
      return said("Tool with logging executed successfully");
    },
  },
  test_tool_with_progress: {
    async run(_args, ctx) {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      if (progressToken === undefined) return said("no-progress-token");
      for (const progress of [0, 50, 100]) {
        const message = `Completed step ${progress} of 100`;
        await ctx.mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress, total: 100, message },
        });
        await pause(50);
      }
      return said(String(progressToken));
    },
  },
  test_error_handling: {
    run: () => ({ ...said("This tool intentionally returns an error for testing"), isError: true }),
  },
  test_streaming_elicitation: { run: () => said("result frames only, no top-level requests") },
  test_logging_tool: { run: () => said("nothing was logged: the request set no level") },
  test_x_mcp_header: {
    properties: {
      region: { type: "string", description: "mirrored into Mcp-Param-Region", "x-mcp-header": "Region" },
      level: { type: "integer", description: "not mirrored" },
    },
    run: ({ region }) => said(`region=${typeof region === "string" ? region : "<none>"}`),
  },
};
