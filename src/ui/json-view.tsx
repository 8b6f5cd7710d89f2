/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { prettyPrint } from "../core/json.ts";
import type { JsonNode, JsonRest } from "../core/json-tree.ts";
import { UntrustedBlock, untrusted } from "./parts.tsx";
import { counted } from "./text.ts";

/** Items of a JSON list that are unfolded at first. */
const JSON_ITEMS_OPEN_MAX = 20;

/** The page of a whole body. */
export interface WholePage {
  readonly path: string;
}

/**
 * How to show the ends of long lists and large objects. `open`: nothing is folded. `closed`: they are on the page, but folded
 * at first. Else they load with the whole body when opened.
 */
export type Folding = "open" | "closed" | WholePage;

interface JsonViewProps {
  /** The label for screen readers. */
  readonly label: string;
  readonly tree: JsonNode;
  readonly folding?: Folding;
}

/**
 * JSON in colours, with objects and lists that can be folded. Only the ends of long lists and the parts beyond the tree's nodes
 * are folded at first: `foldedIn` counts them for every place of decision. Shows tokens as written, so that a text can't look
 * like another member. A text of several lines, such as a query, gets a box with its real line breaks.
 */
export function JsonView({ label, tree, folding = "closed" }: JsonViewProps) {
  return (
    <div class="json" dir="ltr" role="group" aria-label={label}>
      <Line node={tree} folding={folding} isRoot />
    </div>
  );
}

/** A list of plain values up to this length stays on one line. */
const SHORT_LIST_CHARS_MAX = 72;

/** From this many values on, people compare a list's items, so small objects stay on one line each. */
const ROWS_MIN = 4;

const ROW_CHARS_MAX = 160;

/** From this many values on, their number is shown. */
const COUNTED_MIN = 10;

/** Longer texts get a box of their own. */
const TEXT_IN_LINE_CHARS_MAX = 140;

interface LineProps {
  readonly node: JsonNode;
  readonly folding: Folding;
  /** The member's name as JSON text. */
  readonly name?: string;
  readonly isRoot?: boolean;
  /** Whether nothing follows in its object or list. */
  readonly isLast?: boolean;
  /** Whether it is one of many in a list. */
  readonly isRow?: boolean;
}

function Line({ node, folding, name, isRoot = false, isLast = true, isRow = false }: LineProps) {
  const comma = isRoot || isLast ? "" : ",";
  const begin = name === undefined ? null : <MemberName text={name} />;
  if (node.kind === "string" && isLong(node.value)) {
    const lines = node.value.split("\n").length;
    return (
      <>
        <div class="json-line">
          {begin}
          <span class="json-note">{lines === 1 ? "text" : `text, ${counted(lines, "line")}`}</span>
        </div>
        <div class="json-text">
          <UntrustedBlock label="Text" text={node.value} isOpen />
        </div>
      </>
    );
  }
  if (isRow && isShortObject(node))
    return (
      <div class="json-line json-row">
        {untrusted(rowText(node))}
        {comma}
      </div>
    );
  const lines = nodeContent(node, folding);
  if (lines === null) {
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
        <div class="json-line">
          {open}
          <Count of={node} />
        </div>
        <div class="json-in">{lines}</div>
        {end}
      </>
    );
  }
  return (
    <details open>
      <summary class="json-line">
        {begin}
        {open}
        <span class="json-note">{` ${countText(node)} ${close}${comma}`}</span>
        <Count of={node} />
      </summary>
      <div class="json-in">{lines}</div>
      {end}
    </details>
  );
}

/** The lines of an object or list; null if it fits on one line. */
function nodeContent(node: JsonNode, folding: Folding): Child {
  if (node.kind === "object" && node.members.length + (node.rest?.count ?? 0) > 0) {
    const last = node.rest === null ? node.members.length - 1 : -1;
    return (
      <>
        {node.members.map(([name, value], at) => (
          <Line name={JSON.stringify(name)} node={value} folding={folding} isLast={at === last} />
        ))}
        <Fold folding={folding} count={node.rest?.count ?? 0} word="field" rest={node.rest} />
      </>
    );
  }
  if (node.kind !== "list" || (isShortList(node) && folding !== "open")) return null;
  const last = node.rest === null ? node.elements.length - 1 : -1;
  const isRow = hasRows(node);
  const itemLine = (value: JsonNode, at: number) => (
    <Line node={value} folding={folding} isLast={at === last} isRow={isRow} />
  );
  const open = node.elements.slice(0, folding === "open" ? node.elements.length : JSON_ITEMS_OPEN_MAX);
  const isOnPage = folding === "closed";
  return (
    <>
      {open.map(itemLine)}
      <Fold
        folding={folding}
        count={node.elements.length - open.length + (node.rest?.count ?? 0)}
        word="item"
        rest={node.rest}
      >
        {isOnPage ? node.elements.slice(open.length).map((value, at) => itemLine(value, open.length + at)) : null}
      </Fold>
    </>
  );
}

interface FoldProps {
  readonly folding: Folding;
  readonly count: number;
  readonly word: string;
  readonly rest: JsonRest | null;
  readonly children?: Child;
}

/** A part that is folded at first. */
function Fold({ folding, count, word, rest, children = null }: FoldProps) {
  if (count === 0) return null;
  const end = rest === null ? null : <UntrustedBlock label={`More ${word}s`} text={prettyPrint(rest.text)} isOpen />;
  if (folding === "open") return end;
  if (folding !== "closed") {
    return (
      <div class="json-more json-line" data-folded={count}>
        <a href={folding.path} {...loadsWhole(folding)}>
          {counted(count, `more ${word}`)}
        </a>
      </div>
    );
  }
  return (
    <details class="json-fold" data-folded={count}>
      <summary class="json-line">
        <span class="json-note">{counted(count, `more ${word}`)}</span>
      </summary>
      {children}
      {end}
    </details>
  );
}

/** Loads the whole body. With script it replaces its beginning; without, it is a page. */
export function loadsWhole({ path }: WholePage) {
  return {
    "hx-get": path,
    "hx-target": "closest .body-view",
    "hx-select": ".body-whole",
    "hx-swap": "outerHTML",
  } as const;
}

/** How many items and fields are folded at first, without counting inside of folded ones. */
export function foldedIn(node: JsonNode): number {
  if (node.kind === "object") {
    return node.members.reduce((sum, [, value]) => sum + foldedIn(value), node.rest?.count ?? 0);
  }
  if (node.kind !== "list" || isShortList(node)) return 0;
  const open = node.elements.slice(0, JSON_ITEMS_OPEN_MAX);
  const closed = Math.max(node.elements.length - JSON_ITEMS_OPEN_MAX, 0) + (node.rest?.count ?? 0);
  return open.reduce((sum, value) => sum + foldedIn(value), closed);
}

/** The characters of a line besides name and value: quotation marks, colon, comma, break, indent. */
const AROUND_CHARS = 8;

/** About how many characters are in view at first. */
export function openCharsIn(node: JsonNode): number {
  if (node.kind === "object") {
    return node.members.reduce((sum, [name, value]) => sum + name.length + AROUND_CHARS + openCharsIn(value), 0);
  }
  if (node.kind !== "list") return node.text.length;
  return node.elements.slice(0, JSON_ITEMS_OPEN_MAX).reduce((sum, value) => sum + openCharsIn(value), 0);
}

function hasRows({ elements, rest }: Extract<JsonNode, { kind: "list" }>): boolean {
  return elements.length + (rest?.count ?? 0) >= ROWS_MIN;
}

/** A small object on one line, with the tokens as they are written. */
function rowText(node: JsonNode): string {
  if (node.kind === "object") {
    return `{${node.members.map(([name, value]) => `${JSON.stringify(name)}: ${rowText(value)}`).join(", ")}}`;
  }
  return node.kind === "list" ? `[${node.elements.map(rowText).join(", ")}]` : node.text;
}

/** How many lines `JsonView` shows, without closing brackets. */
export function countLines(node: JsonNode): number {
  if (node.kind === "list") {
    if (isShortList(node)) return 1;
    const areRows = hasRows(node);
    return node.elements.reduce((sum, one) => sum + (areRows && isShortObject(one) ? 1 : countLines(one)), 1);
  }
  return node.kind === "object" ? node.members.reduce((sum, [, value]) => sum + countLines(value), 1) : 1;
}

/** Says how many values follow, if there are many. */
function Count({ of: node }: { readonly of: JsonNode }) {
  if (node.kind !== "list" || node.elements.length + (node.rest?.count ?? 0) < COUNTED_MIN) return null;
  return <span class="json-count">{` ${countText(node)}`}</span>;
}

function isShortObject(node: JsonNode): boolean {
  if (node.kind !== "object" || node.rest !== null || node.text.length > ROW_CHARS_MAX) return false;
  return node.members.every(([, value]) => (value.kind === "list" ? isShortList(value) : isShortValue(value)));
}

/** Whether a value is neither a long text nor an object with members. */
function isShortValue(node: JsonNode): boolean {
  if (node.kind === "string") return !isLong(node.value);
  return node.kind === "object" ? node.text === "{}" : node.kind !== "list";
}

function isShortList({ text, elements, rest }: Extract<JsonNode, { kind: "list" }>): boolean {
  if (rest !== null) return false;
  if (text.length > SHORT_LIST_CHARS_MAX) return false;
  return elements.every((node) =>
    node.kind === "string" ? !isLong(node.value) : !("members" in node || "elements" in node),
  );
}

function isLong(value: string): boolean {
  return value.length > TEXT_IN_LINE_CHARS_MAX || value.includes("\n");
}

function countText(node: JsonNode): string {
  return node.kind === "list"
    ? counted(node.elements.length + (node.rest?.count ?? 0), "item")
    : counted(node.kind === "object" ? node.members.length + (node.rest?.count ?? 0) : 0, "field");
}

function MemberName({ text }: { readonly text: string }) {
  return (
    <>
      <span class="json-name">{untrusted(text)}</span>
      {": "}
    </>
  );
}

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
  return <span class={`json-${node.kind}`}>{untrusted(node.text)}</span>;
}
