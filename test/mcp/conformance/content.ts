import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";

/** A red pixel, and a sound of no length. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
export const SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

export const textOf = (text: string): ContentBlock => ({ type: "text", text });
export const image: ContentBlock = { type: "image", data: PIXEL, mimeType: "image/png" };
export const audio: ContentBlock = { type: "audio", data: SILENCE, mimeType: "audio/wav" };
export const resource = (uri: string, mimeType: string, text: string): ContentBlock => ({
  type: "resource",
  resource: { uri, mimeType, text },
});

export const told = (...content: ContentBlock[]): CallToolResult => ({ content });
export const said = (text: string): CallToolResult => told(textOf(text));
