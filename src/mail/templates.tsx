/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { DecisionFactsJson, Fact } from "../approvals/facts.ts";
import { BROKEN_LINKS, type GroupedFacts, linesOfWords, NO_BODY, WORDS_HEADING } from "./chat-messages.ts";
import { normalTarget } from "../core/target.ts";
import { visibleText, withoutLinks } from "../receipts/visible-text.ts";
import { untrusted } from "../ui/parts.tsx";
import { render } from "../ui/layout.tsx";
import { MAIL_PART_BYTES_MAX } from "../core/limits.ts";
import { cutAt } from "../ui/text.ts";
import { bodyLines, shownBody } from "../ui/body-view.tsx";
import type { MaskedAction } from "../receipts/seen-action.ts";
import { bodyKindText } from "../receipts/mask-body.ts";

/** A mail in both of its forms, HTML and text. */
export interface EmailContent {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** A part of a mail, as HTML and as text. */
interface Part {
  readonly text: string;
  readonly html: Child;
}

/** Builds a mail of these parts, one below the other. */
export function email(subject: string, parts: readonly Part[]): EmailContent {
  const html = render(<MailFrame subject={subject}>{parts.map((part) => part.html)}</MailFrame>);
  return { subject, text: parts.map(({ text }) => text).join("\n\n"), html };
}

/** The heading of a mail and a sentence below it. The text part has only `text`. */
export function opening(title: string, sentence: string, text = sentence): Part {
  return {
    text,
    html: (
      <>
        <h1 style={TITLE}>{untrusted(title)}</h1>
        {paragraph(sentence).html}
      </>
    ),
  };
}

export function paragraph(text: string): Part {
  return {
    text,
    html: <p style={TEXT}>{untrusted(text)}</p>,
  };
}

/** Says how long links work, and for whom. */
export function terms(text: string): Part {
  return { text, html: <p style={SMALL}>{text}</p> };
}

/** Says why the mail came or who may read it, set apart from texts of others. */
export function footnote(why: string): Part {
  return {
    text: `Lines that start with | are quoted from the request. Secrets are masked as ••••. ${BROKEN_LINKS}\n\n${why}`,
    html: (
      <p class="quiet" style={`${QUIET};margin-top:16px`}>
        {untrusted(why)} Secrets are masked as ••••; the request is sent with the real values. {BROKEN_LINKS}
      </p>
    ),
  };
}

interface ButtonProps {
  readonly href: string;
  readonly label: string;
  readonly look: keyof typeof LOOKS;
  /** The line above the link in the text part; by default the label. */
  readonly above?: string;
}

/** Links that look like buttons, in a row. */
export function buttons(...links: readonly ButtonProps[]): Part {
  const isQuiet = links.every(({ look }) => look === "quiet");
  return {
    text: links.map(({ label, above = label, href }) => `${above}:\n${href}`).join("\n\n"),
    html: (
      <table
        role="presentation"
        width={isQuiet ? undefined : "100%"}
        cellpadding="0"
        cellspacing="0"
        style={isQuiet ? "margin:16px 0" : "margin:24px 0 16px"}
      >
        <tr>
          {links.map(({ href, label, look }, at) => (
            <>
              {at === 0 ? null : <td width="4%"></td>}
              <td
                width={isQuiet ? undefined : "48%"}
                align="center"
                style={look === "filled" ? FILLED_CELL : undefined}
              >
                <a class={`${look}-button`} href={href} style={LOOKS[look]}>
                  {label}
                </a>
              </td>
            </>
          ))}
        </tr>
      </table>
    ),
  };
}

/** Colours the cell, because some clients draw no background behind links: white on white would be no button. */
const FILLED_CELL = "background:#3b5bdb;border-radius:6px";

const BUTTON = "display:block;border-radius:6px;line-height:1.25;font-weight:600;text-decoration:none";

/** All looks have a border, so that all buttons have one size. */
const LOOKS = {
  filled: `${BUTTON};padding:13px 8px;font-size:16px;color:#ffffff;background:#3b5bdb;border:2px solid #3b5bdb`,
  outline: `${BUTTON};padding:13px 8px;font-size:16px;color:#c92a2a;border:2px solid #c92a2a`,
  quiet: `${BUTTON};padding:12px 16px;font-size:15px;color:#16181d;border:1px solid #c9ccd1`,
} as const;

export function receiptLink(href: string): Part {
  return {
    text: `Receipt:\n${href}`,
    html: (
      <p style={`${SMALL};margin-top:16px`}>
        <a class="link" href={href} style={LINK}>
          Receipt
        </a>
      </p>
    ),
  };
}

export type FactRow = readonly [name: string, value: string];

/** A table with a line for each name and value. */
export function factTable(rows: readonly FactRow[]): Part {
  return {
    text: rows.map(([name, value]) => `${name}: ${value}`).join("\n"),
    html: tableRows(
      rows.map(([name, value]) => [name, untrusted(value)]),
      16,
    ),
  };
}

/** The facts below the decision. */
export function details(facts: readonly Fact[]): Part {
  const rows = facts.map(({ name, label, value }) => {
    const isUrl = name === "callback" && normalTarget(value) !== null;
    return [label, isUrl ? <Address url={value} /> : untrusted(value)] as const;
  });
  const lines = facts.map(({ label, value }) => `${label}: ${visibleText(value)}`);
  return headed("Details", lines, tableRows(rows, 4), `${HEAD};margin-bottom:0`);
}

/** A table of these rows. `above`: its margin in pixels. */
function tableRows(rows: readonly (readonly [name: string, value: Child])[], above: number) {
  return (
    <table
      role="presentation"
      cellpadding="0"
      cellspacing="0"
      style={`margin:${above}px 0 0;width:100%;table-layout:fixed`}
    >
      {rows.map(([name, value]) => (
        <tr>
          <td class="quiet" valign="top" style={`${FACT};width:108px;color:#5b606b`}>
            {name}
          </td>
          <td valign="top" style={FACT}>
            {value}
          </td>
        </tr>
      ))}
    </table>
  );
}

const FACT = "padding:2px 8px 2px 0;font-size:14px;line-height:1.5;overflow-wrap:anywhere";

/** What a mail says about a request besides showing it. */
export interface Asked extends Omit<GroupedFacts, "hidden"> {
  readonly risks: DecisionFactsJson["risks"];
  /** A sentence on how many values are hidden and where to see them; null if none are. */
  readonly hidden: string | null;
}

/** The parts before the decision, in the order of every place where people decide. `waiting`: a sentence on its state. */
export function question(sent: MaskedAction, waiting: string, { risks, hidden, words }: Asked): readonly Part[] {
  const headers = Object.entries(sent.headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return [
    {
      text: `Send this request? ${waiting}`,
      html: (
        <>
          <h1 style={TITLE}>Send this request?</h1>
          <p class="quiet" style={QUIET}>
            {waiting}
          </p>
        </>
      ),
    },
    call(sent),
    ...(risks.length === 0 ? [] : [warnings(risks)]),
    bodyPart(sent),
    ...(headers.length === 0 ? [] : [quoted("Headers", quoteBeginning(headers.join("\n")))]),
    ...(hidden === null ? [] : [{ text: hidden, html: note(hidden, "margin-top:8px") }]),
    ...(words.length === 0 ? [] : [requesterSays(quoteBeginning(words.flatMap(linesOfWords).join("\n")))]),
  ];
}

/** Shows method and host large, then the whole URL. */
export function call({ method, host, url }: Pick<MaskedAction, "method" | "host" | "url">): Part {
  return {
    text: `${method} ${visibleText(url)}`,
    html: (
      <div class="card" style={BOX}>
        <p style="margin:0 0 6px;font-size:16px">
          <b>{method}</b> <b style={MONO}>{untrusted(host)}</b>
        </p>
        <Address url={url} />
      </div>
    ),
  };
}

/** An untrusted URL with its host in bold, never as a link. */
function Address({ url }: { readonly url: string }) {
  const host = normalTarget(url)?.host ?? "";
  const start = url.indexOf("//") + "//".length;
  // Keeps the host on one line if possible.
  return (
    <span dir="ltr" style={`${MONO};font-size:13px;word-break:break-all`}>
      {untrusted(url.slice(0, start))}
      <b style="display:inline-block;max-width:100%">{untrusted(url.slice(start, start + host.length))}</b>
      {untrusted(url.slice(start + host.length))}
    </span>
  );
}

/** Shows warnings in a box, and notes quietly below it. */
function warnings(risks: DecisionFactsJson["risks"]): Part {
  const [notes, others] = [risks.filter(isNote), risks.filter((risk) => !isNote(risk))];
  return {
    text: risks.map((risk) => `${isNote(risk) ? "" : "! "}${visibleText(risk.text)}`).join("\n"),
    html: (
      <>
        {others.length === 0 ? null : (
          <div class="risk" style={RISK}>
            {others.map(({ level, text }) => (
              <p class={level === "danger" ? "danger" : undefined} style={level === "danger" ? DANGER : "margin:4px 0"}>
                {untrusted(text)}
              </p>
            ))}
          </div>
        )}
        {notes.map(({ text }) => note(untrusted(text), "margin:8px 0 0"))}
      </>
    ),
  };
}

const isNote = ({ level }: DecisionFactsJson["risks"][number]) => level === "note";

function bodyPart(sent: MaskedAction): Part {
  const body = shownBody(sent);
  if (body === null) return { text: NO_BODY, html: <p style={`${SMALL};margin-top:16px`}>{NO_BODY}</p> };
  const { lines, missing } = quoteBeginning(bodyLines(body));
  const rest = body.rest === null ? null : `Not shown: ${body.rest}.`;
  return quoted(`Body (${bodyKindText(sent)})`, { lines, missing: missing ?? rest });
}

/** Lines of a request, and a sentence on what is missing; null if nothing is. */
interface Quoted {
  readonly lines: readonly string[];
  readonly missing: string | null;
}

function quoted(title: string, { lines, missing }: Quoted): Part {
  const html = (
    <>
      <div class="card" dir="ltr" style={`${BOX};${MONO};font-size:13px;line-height:1.5;white-space:pre-wrap`}>
        {lines.map((line, at) => (
          <>
            {at === 0 ? null : <br />}
            {untrusted(line)}
          </>
        ))}
      </div>
      {missing === null ? null : note(missing, "margin-top:6px")}
    </>
  );
  return headed(title, markedLines({ lines, missing }), html);
}

function requesterSays({ lines, missing }: Quoted): Part {
  const html = (
    <>
      <div class="words" style={WORDS}>
        {lines.map((line) => (
          <p style="margin:0 0 4px">{untrusted(line)}</p>
        ))}
      </div>
      {missing === null ? null : note(missing, "margin-top:6px")}
    </>
  );
  return headed(WORDS_HEADING, markedLines({ lines, missing }), html);
}

function headed(title: string, lines: readonly string[], html: Child, style = HEAD): Part {
  return {
    text: [`${title}:`, ...lines].join("\n"),
    html: (
      <>
        <p class="quiet" style={style}>
          {title}
        </p>
        {html}
      </>
    ),
  };
}

function note(text: Child, margin: string) {
  return (
    <p class="quiet" style={`${QUIET};${margin}`}>
      {text}
    </p>
  );
}

/** Marks untrusted lines, so that none can look like ours. */
function markedLines({ lines, missing }: Quoted): readonly string[] {
  return [...lines.map((line) => `| ${visibleText(line)}`), ...(missing === null ? [] : [missing])];
}

function quoteBeginning(text: string): Quoted {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAIL_PART_BYTES_MAX) return { lines: withoutLinks(text).split("\n"), missing: null };
  // A streaming decoder drops a character that was cut in the middle.
  const start = new TextDecoder().decode(bytes.subarray(0, MAIL_PART_BYTES_MAX), { stream: true });
  const { beginning, rest } = cutAt(text, start.length);
  return {
    lines: withoutLinks(beginning).split("\n"),
    missing: `Cut after 2 kB. Not shown: ${rest}. Open the request to see all of it.`,
  };
}

/**
 * Dark colors need a style sheet, because inline styles have no media queries; clients without it show the light colors.
 * Highlights the codes of invisible characters.
 */
const SHEET = `:root{color-scheme:light dark}bdi i{font-style:normal;color:#a35507;background:#fdf3e4}@media (prefers-color-scheme:dark){
.page{background:#0c0d0f!important;color:#eceef1!important}.sheet{background:#131417!important;border-color:#24262b!important}
.card{background:#0f1012!important;border-color:#24262b!important}.quiet{color:#a2a7b1!important}
.risk{color:#f0a84b!important;background:#2a2013!important}.danger{color:#ff7b7b!important}.link{color:#7c93ff!important}.words{border-color:#383b42!important}
.outline-button{color:#ff7b7b!important;border-color:#ff7b7b!important}.quiet-button{color:#eceef1!important;border-color:#383b42!important}bdi i{color:#f0a84b;background:#2a2013}}`;

const SANS = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";

const MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace";

const PAGE = `margin:0;padding:0;background:#fafafa;color:#16181d;${SANS}`;

const TITLE = "margin:0 0 8px;font-size:20px;line-height:1.3;letter-spacing:-0.01em;overflow-wrap:anywhere";

const TEXT = "margin:0 0 16px;font-size:15px;line-height:1.5";

const SMALL = "margin:0 0 12px;font-size:14px;line-height:1.5";

const QUIET = `${SMALL};color:#5b606b`;

const HEAD = "margin:16px 0 6px;font-size:13px;line-height:1.4;color:#5b606b";

const BOX =
  "margin:0;padding:12px;background:#f4f5f7;border:1px solid #e6e7ea;border-radius:6px;overflow-wrap:anywhere";

const LINK = "color:#3b5bdb";

const WORDS = "padding:0 0 0 12px;border-left:3px solid #c9ccd1;font-size:14px;line-height:1.5;overflow-wrap:anywhere";

const DANGER = "margin:4px 0;font-weight:600;color:#c92a2a";

const RISK = `${SMALL};margin:8px 0 0;padding:8px 12px;color:#a35507;background:#fdf3e4;border-radius:6px;overflow-wrap:anywhere`;

/** The frame of a mail: one column, which fits phones. */
function MailFrame({ subject, children }: { readonly subject: string; readonly children?: Child }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="supported-color-schemes" content="light dark" />
        <title>{subject}</title>
        <style>{raw(SHEET)}</style>
      </head>
      <body class="page" style={PAGE}>
        <div role="main">
          <table role="presentation" width="100%" cellpadding="0" cellspacing="0">
            <tr>
              <td align="center" style="padding:24px 8px">
                <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style={FRAME}>
                  <tr>
                    <td align="left" style={BRAND}>
                      Outgate
                    </td>
                  </tr>
                  <tr>
                    <td class="sheet" align="left" style={PAPER}>
                      {children}
                    </td>
                  </tr>
                </table>
              </td>
            </tr>
          </table>
        </div>
      </body>
    </html>
  );
}

const BRAND = "padding:0 0 12px;font-size:15px;line-height:1.4;font-weight:600";

const PAPER = "padding:20px 16px;background:#ffffff;border:1px solid #e6e7ea;border-radius:8px";

/** Has a fixed layout, so that a long line doesn't widen the column. */
const FRAME = "max-width:600px;table-layout:fixed";
