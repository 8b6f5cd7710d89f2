/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { DecisionFacts, Fact } from "../approvals/facts.ts";
import { BROKEN_LINKS, type GroupedFacts, NO_BODY, WORDS_HEADING, wordsText } from "./chat-messages.ts";
import { normalTarget } from "../core/target.ts";
import { withoutLinks } from "../receipts/visible-text.ts";
import { UntrustedText } from "../ui/parts.tsx";
import { render } from "../ui/layout.tsx";
import type { HttpMethod } from "../core/action.ts";
import { MAIL_PART_BYTES_MAX } from "../core/limits.ts";
import { cutAt } from "../ui/text.ts";
import { bodyLines, type ShownBody, shownBody } from "../ui/body-view.tsx";
import { asSent } from "../receipts/masked-action.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";
import { bodyKindText } from "../receipts/mask-body.ts";

/** What a mail says of a request besides the request itself. */
export interface Asked extends Omit<GroupedFacts, "hidden"> {
  readonly risks: DecisionFacts["risks"];
  /** A sentence on how many values are hidden, and where they can be seen; null: none is. */
  readonly hidden: string | null;
}

interface AskingMailProps extends Asked {
  readonly subject: string;
  /** The sentence about its state. */
  readonly waiting: string;
  readonly request: MailRequest;
  /** The page of the action, which asks for a log-in. */
  readonly url: string;
}

interface ApprovalMailProps extends AskingMailProps {
  readonly links: { readonly approve: string; readonly reject: string };
  readonly receiptUrl: string;
  /** What the links do, and until when they work. */
  readonly terms: string;
}

/** The HTML part of an approval mail. */
export function approvalMailHtml(props: ApprovalMailProps): string {
  const { subject, details, links, url, receiptUrl, terms } = props;
  return render(
    <MailFrame subject={subject}>
      <AskedFor {...props} />
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:24px 0 16px">
        <tr>
          <Button href={links.approve} label="Approve" look="filled" />
          <td width="4%"></td>
          <Button href={links.reject} label="Reject" look="outline" />
        </tr>
      </table>
      <p style={SMALL}>{terms}</p>
      <Details facts={details} />
      <table role="presentation" cellpadding="0" cellspacing="0" style="margin:16px 0">
        <tr>
          <Button href={url} label="Open in Outgate" look="quiet" />
        </tr>
      </table>
      <ReceiptLink href={receiptUrl} style={SMALL} />
      <p class="quiet" style={QUIET}>
        Anyone who has this email can decide. Don’t forward it. {MASKED}
      </p>
    </MailFrame>,
  );
}

const MASKED = `Secrets are masked as ••••; the request is sent with the real values. ${BROKEN_LINKS}`;

interface ChannelMailProps extends AskingMailProps {
  /** Why it came, and how to decide. */
  readonly terms: string;
}

/** The HTML part of a channel's mail. */
export function channelMailHtml(props: ChannelMailProps): string {
  const { subject, details, url, terms } = props;
  return render(
    <MailFrame subject={subject}>
      <AskedFor {...props} />
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:24px 0 16px">
        <tr>
          <Button href={url} label="Open in Outgate to decide" look="filled" />
        </tr>
      </table>
      <Details facts={details} />
      <p class="quiet" style={`${QUIET};margin-top:16px`}>
        <UntrustedText text={terms} /> {MASKED}
      </p>
    </MailFrame>,
  );
}

/** What comes before the decision, in the order of every place of decision. */
function AskedFor({ waiting, request, risks, words, hidden }: AskingMailProps) {
  return (
    <>
      <h1 style={TITLE}>Send this request?</h1>
      <p class="quiet" style={QUIET}>
        {waiting}
      </p>
      <Call request={request} />
      <Risks risks={risks} />
      {request.body === null ? (
        <p style={`${SMALL};margin-top:16px`}>{NO_BODY}</p>
      ) : (
        <Part title={`Body (${request.bodyKind})`} part={request.body} />
      )}
      {request.headers === null ? null : <Part title="Headers" part={request.headers} />}
      {hidden === null ? null : (
        <p class="quiet" style={`${QUIET};margin-top:8px`}>
          {hidden}
        </p>
      )}
      {words.length === 0 ? null : (
        <>
          <p class="quiet" style={HEAD}>
            {WORDS_HEADING}
          </p>
          <div class="words" style={WORDS}>
            {words.map((fact) => (
              <p style="margin:0 0 4px">
                <UntrustedText text={wordsText(fact)} />
              </p>
            ))}
          </div>
        </>
      )}
    </>
  );
}

function Details({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <>
      <p class="quiet" style={`${HEAD};margin-bottom:0`}>
        Details
      </p>
      <Facts rows={facts.map((fact) => [fact.label, valueOf(fact)])} above={4} />
    </>
  );
}

/** The HTML part of a channel's test. */
export function testMailHtml({ subject, sentence }: { readonly subject: string; readonly sentence: string }): string {
  return render(
    <MailFrame subject={subject}>
      <p style={TEXT}>
        <UntrustedText text={sentence} />
      </p>
    </MailFrame>,
  );
}

interface DecisionMailProps {
  readonly subject: string;
  /** "Approved by ann, over the API" */
  readonly sentence: string;
  /** What it means for whoever was asked. */
  readonly terms: string;
  readonly request: Pick<MailRequest, "method" | "host" | "url">;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly receiptUrl: string;
}

/** The HTML part of a decision mail. */
export function decisionMailHtml({ subject, sentence, terms, request, facts, receiptUrl }: DecisionMailProps): string {
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>
        <UntrustedText text={sentence} />
      </h1>
      <p style={TEXT}>{terms}</p>
      <Call request={request} />
      <Facts rows={facts.map(([name, value]) => [name, <UntrustedText text={value} />])} />
      <ReceiptLink href={receiptUrl} style={`${SMALL};margin-top:16px`} />
    </MailFrame>,
  );
}

/** `terms`: until when the link works, and for whom. */
interface LinkMailProps extends Omit<DecisionMailProps, "request" | "receiptUrl"> {
  readonly title: string;
  readonly link: string;
  readonly label: string;
}

/** The HTML part of a mail that leads to a page: of an invitation, a password, a credential or a request for one. */
export function linkMailHtml({ subject, title, sentence, facts, link, label, terms }: LinkMailProps): string {
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>
        <UntrustedText text={title} />
      </h1>
      <p style={TEXT}>
        <UntrustedText text={sentence} />
      </p>
      {facts.length === 0 ? null : (
        <Facts rows={facts.map(([name, value]) => [name, <UntrustedText text={value} />])} />
      )}
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:24px 0 16px">
        <tr>
          <Button href={link} label={label} look="filled" />
        </tr>
      </table>
      <p style={SMALL}>{terms}</p>
    </MailFrame>,
  );
}

/**
 * Dark colors need a style sheet, because inline styles have no media queries. Clients that drop it show the light colors.
 * Codes of invisible characters are highlighted.
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

/** The frame of a mail: one column for phones. */
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

/** Fixed layout, so that a long line doesn't widen the column. */
const FRAME = "max-width:600px;table-layout:fixed";

function Risks({ risks }: Pick<Asked, "risks">) {
  const warnings = risks.filter(({ level }) => level !== "note");
  return (
    <>
      {warnings.length === 0 ? null : (
        <div class="risk" style={RISK}>
          {warnings.map(({ level, text }) => (
            <p class={level === "danger" ? "danger" : undefined} style={level === "danger" ? DANGER : "margin:4px 0"}>
              <UntrustedText text={text} />
            </p>
          ))}
        </div>
      )}
      {risks.map(({ level, text }) =>
        level === "note" ? (
          <p class="quiet" style={`${QUIET};margin:8px 0 0`}>
            <UntrustedText text={text} />
          </p>
        ) : null,
      )}
    </>
  );
}

/** Method and host large, then the whole URL. */
function Call({ request: { method, host, url } }: { readonly request: Pick<MailRequest, "method" | "host" | "url"> }) {
  return (
    <div class="card" style={BOX}>
      <p style="margin:0 0 6px;font-size:16px">
        <b>{method}</b>{" "}
        <b style={MONO}>
          <UntrustedText text={host} />
        </b>
      </p>
      <Address url={url} />
    </div>
  );
}

function ReceiptLink({ href, style }: { readonly href: string; readonly style: string }) {
  return (
    <p style={style}>
      <a class="link" href={href} style={LINK}>
        Receipt
      </a>
    </p>
  );
}

interface FactsProps {
  readonly rows: readonly (readonly [name: string, value: Child])[];
  /** Pixels. */
  readonly above?: number;
}

function Facts({ rows, above = 16 }: FactsProps) {
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

/** A URL with a bold host, or text. */
function valueOf({ name, value }: Fact): Child {
  return name === "callback" && normalTarget(value) !== null ? <Address url={value} /> : <UntrustedText text={value} />;
}

/** An untrusted URL with its host in bold. Never a link of ours. */
function Address({ url }: { readonly url: string }) {
  const host = normalTarget(url)?.host ?? "";
  const start = url.indexOf("//") + "//".length;
  // Keeps the host on one line if possible.
  return (
    <span dir="ltr" style={`${MONO};font-size:13px;word-break:break-all`}>
      <UntrustedText text={url.slice(0, start)} />
      <b style="display:inline-block;max-width:100%">
        <UntrustedText text={url.slice(start, start + host.length)} />
      </b>
      <UntrustedText text={url.slice(start + host.length)} />
    </span>
  );
}

const FACT = "padding:2px 8px 2px 0;font-size:14px;line-height:1.5;overflow-wrap:anywhere";

function Part({ title, part: { lines, note } }: { readonly title: string; readonly part: MailPart }) {
  return (
    <>
      <p class="quiet" style={HEAD}>
        {title}
      </p>
      <div class="card" dir="ltr" style={`${BOX};${MONO};font-size:13px;line-height:1.5;white-space:pre-wrap`}>
        {lines.map((line, at) => (
          <>
            {at === 0 ? null : <br />}
            <UntrustedText text={line} />
          </>
        ))}
      </div>
      {note === null ? null : (
        <p class="quiet" style={`${QUIET};margin-top:6px`}>
          {note}
        </p>
      )}
    </>
  );
}

interface ButtonProps {
  readonly href: string;
  readonly label: string;
  readonly look: keyof typeof LOOKS;
}

/** A cell with a link that looks like a button; two of them share a row. */
function Button({ href, label, look }: ButtonProps) {
  return (
    <td width={look === "quiet" ? undefined : "48%"} align="center" style={look === "filled" ? FILLED_CELL : undefined}>
      <a class={`${look}-button`} href={href} style={LOOKS[look]}>
        {label}
      </a>
    </td>
  );
}

/** Some clients draw no background of a link, and white on white would be no button. */
const FILLED_CELL = "background:#3b5bdb;border-radius:6px";

const BUTTON = "display:block;border-radius:6px;line-height:1.25;font-weight:600;text-decoration:none";

/** Borders in all of them, so that they are of one size. */
const LOOKS = {
  filled: `${BUTTON};padding:13px 8px;font-size:16px;color:#ffffff;background:#3b5bdb;border:2px solid #3b5bdb`,
  outline: `${BUTTON};padding:13px 8px;font-size:16px;color:#c92a2a;border:2px solid #c92a2a`,
  quiet: `${BUTTON};padding:12px 16px;font-size:15px;color:#16181d;border:1px solid #c9ccd1`,
} as const;

/** A part of a request as a mail shows it. */
export interface MailPart {
  readonly lines: readonly string[];
  /** What is missing; null if it is complete. */
  readonly note: string | null;
}

/** The masked request for a mail, each part bounded. All of it except the method is untrusted. */
export interface MailRequest {
  readonly method: HttpMethod;
  /** In its ASCII form. */
  readonly host: string;
  /** As it is sent, whole. */
  readonly url: string;
  readonly id: string;
  readonly title: string | null;
  /** One a line; null: there are none. */
  readonly headers: MailPart | null;
  readonly body: MailPart | null;
  /** Type and size of the body. */
  readonly bodyKind: string;
}

export function mailRequest(masked: MaskedAction): MailRequest {
  const action = asSent(masked);
  const { method, host, url, id, title, headers } = action;
  const body = shownBody(action);
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return {
    method,
    host,
    url,
    id,
    title,
    headers: lines.length === 0 ? null : partOf(lines.join("\n")),
    body: body === null ? null : bodyPart(body),
    bodyKind: bodyKindText(action),
  };
}

function bodyPart(body: ShownBody): MailPart {
  const { lines, note } = partOf(bodyLines(body));
  return { lines, note: note ?? (body.rest === null ? null : `Not shown: ${body.rest}.`) };
}

function partOf(text: string): MailPart {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAIL_PART_BYTES_MAX) return { lines: withoutLinks(text).split("\n"), note: null };
  // The streaming decoder drops a character that is cut.
  const start = new TextDecoder().decode(bytes.subarray(0, MAIL_PART_BYTES_MAX), { stream: true });
  const { beginning, rest } = cutAt(text, start.length);
  return {
    lines: withoutLinks(beginning).split("\n"),
    note: `Cut after 2 kB. Not shown: ${rest}. Open the request to see all of it.`,
  };
}
