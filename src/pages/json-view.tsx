/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { JsonNode } from "../json/tree.ts";
import { UntrustedBlock, UntrustedText } from "./parts.tsx";
import { counted } from "./text.ts";

interface JsonViewProps {
  /** Read by screen readers. */
  readonly label: string;
  readonly tree: JsonNode;
}

/**
 * JSON in colours, with objects and lists that can be closed. All of it is open: what a person approves is never hidden by
 * us. Tokens are shown as they are written, so a text can't look like another member. A text of several lines, such as a
 * query, has a box of its own with its real line breaks.
 */
export function JsonView({ label, tree }: JsonViewProps) {
  return (
    <div class="json" dir="ltr" role="group" aria-label={label}>
      <Line node={tree} isRoot />
    </div>
  );
}

/** A list of plain values up to this length stays on one line. */
const SHORT_LIST_CHARS_MAX = 72;

/** A longer text has a box of its own. */
const TEXT_IN_LINE_CHARS_MAX = 140;

interface LineProps {
  readonly node: JsonNode;
  /** JSON text of the member's name. */
  readonly name?: string;
  readonly isRoot?: boolean;
  /** Nothing follows in its object or list. */
  readonly isLast?: boolean;
}

function Line({ node, name, isRoot = false, isLast = true }: LineProps) {
  const comma = isRoot || isLast ? "" : ",";
  const begin = name === undefined ? null : <Name text={name} />;
  if (node.kind === "string" && isLong(node.value)) {
    return (
      <>
        <div class="json-line">
          {begin}
          <span class="json-note">{textNote(node.value)}</span>
        </div>
        <div class="json-text">
          <UntrustedBlock label="Text" text={node.value} isOpen />
        </div>
      </>
    );
  }
  const inside = insideOf(node);
  if (inside === null) {
    return (
      <div class="json-line">
        {begin}
        <Scalar node={node} />
        {comma}
      </div>
    );
  }
  const [open, close] = node.kind === "object" ? "{}" : "[]";
  const end = <div class="json-line">{`${close}${comma}`}</div>;
  if (isRoot) {
    return (
      <>
        <div class="json-line">{open}</div>
        <div class="json-in">{inside}</div>
        {end}
      </>
    );
  }
  return (
    <>
      <details open>
        <summary class="json-line">
          {begin}
          {open}
          <span class="json-note">{` ${countOf(node)} ${close}${comma}`}</span>
        </summary>
        <div class="json-in">{inside}</div>
        {end}
      </details>
    </>
  );
}

/** The lines of an object or list; null: it is one line. */
function insideOf(node: JsonNode): Child {
  if (node.kind === "object" && node.members.length > 0) {
    const last = node.members.length - 1;
    return node.members.map(([name, value], at) => (
      <Line name={JSON.stringify(name)} node={value} isLast={at === last} />
    ));
  }
  if (node.kind === "list" && !isShortList(node)) {
    const last = node.elements.length - 1;
    return node.elements.map((value, at) => <Line node={value} isLast={at === last} />);
  }
  return null;
}

function isShortList({ text, elements }: Extract<JsonNode, { kind: "list" }>): boolean {
  if (text.length > SHORT_LIST_CHARS_MAX) return false;
  return elements.every((node) =>
    node.kind === "string" ? !isLong(node.value) : !("members" in node || "elements" in node),
  );
}

function isLong(value: string): boolean {
  return value.length > TEXT_IN_LINE_CHARS_MAX || value.includes("\n");
}

function textNote(value: string): string {
  const lines = value.split("\n").length;
  return lines === 1 ? "text" : `text, ${counted(lines, "line")}`;
}

function countOf(node: JsonNode): string {
  return node.kind === "list"
    ? counted(node.elements.length, "item")
    : counted("members" in node ? node.members.length : 0, "field");
}

function Name({ text }: { readonly text: string }) {
  return (
    <>
      <span class="json-name">
        <UntrustedText text={text} />
      </span>
      {": "}
    </>
  );
}

/** A value on one line. */
function Scalar({ node }: { readonly node: JsonNode }) {
  if (node.kind === "list") {
    return (
      <>
        [
        {node.elements.map((value, at) => (
          <>
            {at === 0 ? "" : ", "}
            <Scalar node={value} />
          </>
        ))}
        ]
      </>
    );
  }
  if (node.kind === "object") return <>{"{}"}</>;
  return (
    <span class={`json-${node.kind}`}>
      <UntrustedText text={node.text} />
    </span>
  );
}
