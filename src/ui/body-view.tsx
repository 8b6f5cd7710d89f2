/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { formatSize } from "../core/action.ts";
import { usedBodyMember, bodyContentType, type FormPair, formPairs, isJsonMember } from "../core/body.ts";
import {
  BODY_BEGINNING_CHARS_MAX,
  BODY_BEGINNING_LINES_MAX,
  BODY_ON_PAGE_CHARS_MAX,
  JSON_BEGINNING_CHARS_MAX,
  JSON_BEGINNING_NODES_MAX,
  JSON_TREE_CHARS_MAX,
  JSON_TREE_LINES_MAX,
  JSON_TREE_NODES_MAX,
} from "../core/limits.ts";
import { compactJson, prettyPrint } from "../core/json.ts";
import { type JsonNode, jsonTree } from "../core/json-tree.ts";
import { MASK } from "../receipts/mask-rules.ts";
import { seenBytes } from "../receipts/masked-action.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { countLines, foldedIn, type Folding, JsonView, loadsWhole, openCharsIn, type WholePage } from "./json-view.tsx";
import { SubSection, Table, UntrustedBlock, untrusted } from "./parts.tsx";
import { counted, cutText } from "./text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";

/** The body of a request as a page or mail shows it. All of it is untrusted, even `kind`, which may contain the `Content-Type`. */
interface ShownBody {
  readonly kind: string;
  /** The fields of a form; null if it is no form. */
  readonly fields: readonly FormPair[] | null;
  /** The text to show if there are no fields; null if there is none. */
  readonly text: string | null;
  /** What is left out, such as "5 more lines (80 characters)"; null if nothing is. */
  readonly rest: string | null;
}

interface Limits {
  readonly lines: number;
  readonly chars: number;
}

/** The body of an action, cut to the limits; null if it has none. */
export function shownBody(action: SeenAction, limits?: Limits): ShownBody | null {
  const { body } = action;
  const member = usedBodyMember(action);
  if (body === null || member === null) return null;
  if (member === "form") return { kind: "Form", text: null, ...cutFields(formPairs(body), limits) };
  if (member === "base64") return shownBytes(action, body, limits);
  if (member === "text") return { kind: `Text, ${bodyContentType(action)}`, fields: null, ...cut(body, limits) };
  return { kind: "JSON", fields: null, ...cut(prettyPrint(body), limits) };
}

/** The body as a page shows it, which may fold parts of JSON at first. */
export interface PageBody extends ShownBody {
  /** All of a body that is JSON and not large; null if the text is shown instead. */
  readonly tree: JsonNode | null;
  /** How many of its items and fields are folded at first. */
  readonly folded: number;
}

/** The limits of a body that is long or that the page's address does not name. */
export const BEGINNING: Limits = { lines: BODY_BEGINNING_LINES_MAX, chars: BODY_BEGINNING_CHARS_MAX };

/** The limits of a body on its own page; undefined to show all of it. */
export function limitsOnPage({ body }: SeenAction): Limits | undefined {
  return (body?.length ?? 0) > BODY_ON_PAGE_CHARS_MAX ? BEGINNING : undefined;
}

/** The body of an action on a page, cut to the limits unless it is a tree; null if it has none. */
export function pageBody(action: SeenAction, limits?: Limits): PageBody | null {
  const shown = shownBody(action, limits);
  if (shown === null || action.body === null) return null;
  const isJson = isJsonMember(usedBodyMember(action) ?? "text");
  const beginning = (json: string) => jsonTree(json, BEGINNING_LIMITS);
  const tree = isJson ? (limits === undefined ? bodyTree : beginning)(action.body) : null;
  const isLong = tree !== null && limits !== undefined && openCharsIn(tree) > limits.chars;
  return tree === null || isLong
    ? { ...shown, tree: null, folded: 0 }
    : { ...shown, rest: null, tree, folded: foldedIn(tree) };
}

/** A body as a tree for `JsonView`; null if it is large or no JSON. */
function bodyTree(json: string): JsonNode | null {
  const tree = jsonTree(json, TREE_LIMITS);
  if (tree === null || countLines(tree) <= JSON_TREE_LINES_MAX) return tree;
  return jsonTree(json, { ...TREE_LIMITS, nodes: JSON_TREE_LINES_MAX });
}

const TREE_LIMITS = { nodes: JSON_TREE_NODES_MAX, chars: JSON_TREE_CHARS_MAX };

const BEGINNING_LIMITS = { nodes: JSON_BEGINNING_NODES_MAX, chars: JSON_BEGINNING_CHARS_MAX };

/** The tree of a JSON text with its white space; null if it is too large or no JSON. */
export function shownTree(json: string): JsonNode | null {
  try {
    return bodyTree(compactJson(json));
  } catch {
    return null;
  }
}

function cut(text: string, limits?: Limits): Pick<ShownBody, "text" | "rest"> {
  if (limits === undefined) return { text, rest: null };
  const { beginning, rest } = cutText(text, limits);
  return { text: beginning, rest };
}

function cutFields(pairs: readonly FormPair[], limits?: Limits): Pick<ShownBody, "fields" | "rest"> {
  if (limits === undefined) return { fields: pairs, rest: null };
  let chars = 0;
  const end = pairs.findIndex(([name, value], at) => {
    chars += name.length + value.length;
    return at >= limits.lines || chars > limits.chars;
  });
  if (end === -1) return { fields: pairs, rest: null };
  return { fields: pairs.slice(0, end), rest: counted(pairs.length - end, "more field") };
}

/** Shows bytes. A masked action contains only their beginning, and one shown with its secrets all of them. */
function shownBytes(action: SeenAction, body: string, limits?: Limits): ShownBody {
  const { size, start, isWhole } = seenBytes(action);
  const kind = `Bytes, ${formatSize(size)}, ${bodyContentType(action)}`;
  if (start === null) {
    const isMasked = body === MASK;
    return { kind, fields: null, text: isMasked ? null : body, rest: isMasked && !isWhole ? formatSize(size) : null };
  }
  const shown = cut(start, limits);
  return { kind, fields: null, ...shown, rest: isWhole ? shown.rest : `The rest of ${formatSize(size)}` };
}

/** The body as lines of text, for mails. Shows a line break in a field as its code. */
export function bodyLines({ fields, text }: ShownBody): string {
  if (fields === null) return text ?? "Bytes that are not text.";
  return fields.map((pair) => pair.map((part) => visibleText(part)).join(": ")).join("\n");
}

interface BodyViewProps {
  readonly body: PageBody;
  /** Whether to show it without a scrolling box. */
  readonly isOpen: boolean;
  /** The text that its button copies; null for no button. */
  readonly copied?: string | null;
  /** Where the rest is loaded from; left out if the folded items are on this page. */
  readonly whole?: (WholePage & { readonly actionId: string }) | undefined;
  /** Without `whole`: a link to the rest. */
  readonly more?: Child;
}

export function BodyView({ body, isOpen, copied = null, whole, more }: BodyViewProps) {
  const { kind, rest, folded } = body;
  // The page contains nothing to copy of parts that load only when opened.
  const isAll = rest === null && (whole === undefined || folded === 0);
  return (
    <div id={whole === undefined ? undefined : `body-${whole.actionId}`} class="body-view">
      <SubSection title={<Title kind={kind} />}>
        {copied === null || !isAll ? null : <CopiedBody text={copied} />}
        <BodyContent body={body} isOpen={isOpen} folding={whole ?? "closed"} />
        {rest === null ? null : (
          <p class={`notice notice-wait${whole === undefined ? "" : " body-more"}`}>
            <b>{rest} not shown.</b>{" "}
            {whole === undefined ? (
              more
            ) : (
              <a href={whole.path} {...loadsWhole(whole)}>
                View the whole body
              </a>
            )}
          </p>
        )}
      </SubSection>
    </div>
  );
}

/** The text for the copy button above a body, which the script adds. */
export function CopiedBody({ text }: { readonly text: string }) {
  return (
    <div class="copied-body" data-copy="" hidden>
      <UntrustedBlock label="Body to copy" text={text} isOpen />
    </div>
  );
}

function Title({ kind }: { readonly kind: string }) {
  return (
    <>
      Body <span class="aside">{untrusted(kind)}</span>
    </>
  );
}

interface BodyContentProps {
  readonly body: PageBody;
  readonly isOpen: boolean;
  readonly folding: Folding;
}

function BodyContent({ body: { fields, text, rest, tree }, isOpen, folding }: BodyContentProps) {
  return (
    <>
      {fields === null ? null : (
        <Table
          caption="Fields of the form"
          heads={["Field", "Value"]}
          rows={fields.map((pair) => pair.map((part) => untrusted(part)))}
        />
      )}
      {fields?.length === 0 && rest === null ? <p class="quiet">The form has no fields.</p> : null}
      {tree === null ? null : <JsonView label="Body of the request" tree={tree} folding={folding} />}
      {text === null || tree !== null ? null : (
        <UntrustedBlock label="Body of the request" text={text} isOpen={isOpen} />
      )}
      {fields === null && text === null ? <p class="quiet">These bytes aren’t text, or are hidden from you.</p> : null}
    </>
  );
}

/** The whole body of a masked action, which replaces its beginning; null if it has none. */
export function WholeBody({ action }: { readonly action: SeenAction }) {
  const body = pageBody(action);
  if (body === null) return <p class="quiet">No body is sent.</p>;
  return (
    <div id={`body-${action.id}`} class="body-view body-whole">
      <SubSection title={<Title kind={body.kind} />}>
        <BodyContent body={body} isOpen folding="open" />
        {body.rest === null ? null : <p class="quiet">{`${body.rest} can’t be shown as text.`}</p>}
      </SubSection>
    </div>
  );
}
