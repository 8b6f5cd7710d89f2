/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { DecisionFacts, Fact } from "../approvals/facts.ts";
import { BROKEN_LINKS } from "../channels/messages.ts";
import { normalTarget } from "../outbound/target.ts";
import { withoutLinks } from "../receipts/visible-text.ts";
import { UntrustedText } from "../pages/parts.tsx";
import { render } from "../pages/layout.tsx";
import { type Action, type HttpMethod } from "../actions/action.ts";
import { MAIL_PART_BYTES_MAX } from "../config/limits.ts";
import { cutAt } from "../pages/text.ts";
import { bodyLines, type ShownBody, shownBody } from "../pages/body-view.tsx";
import { sentBytes } from "../actions/body.ts";
import { bodyKindText } from "../receipts/mask-body.ts";
import { maskForDisplay } from "../pages/request.tsx";

interface ApprovalMailProps {
  readonly subject: string;
  /** The sentence about its state. */
  readonly waiting: string;
  readonly request: MailRequest;
  readonly facts: readonly Fact[];
  readonly risks: DecisionFacts["risks"];
  readonly links: { readonly approve: string; readonly reject: string };
  readonly receiptUrl: string;
  /** What the links do, and until when they work. */
  readonly terms: string;
}

/** The HTML part of an approval mail. */
export function approvalMailHtml(props: ApprovalMailProps): string {
  const { subject, waiting, request, facts, risks, links, receiptUrl, terms } = props;
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>Send this request?</h1>
      <p style={TEXT}>{waiting}</p>
      <Call request={request} />
      <Risks risks={risks} />
      <Facts rows={facts.map((fact) => [fact.label, valueOf(fact)])} />
      {request.headers === null ? null : <Part title="Headers" part={request.headers} />}
      {request.body === null ? null : <Part title={`Body (${request.bodyKind})`} part={request.body} />}
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:24px 0 16px">
        <tr>
          <DecisionButton href={links.approve} label="Approve" colour="#3b5bdb" />
          <td width="4%"></td>
          <DecisionButton href={links.reject} label="Reject" colour="#c92a2a" />
        </tr>
      </table>
      <p style={SMALL}>{terms}</p>
      <ReceiptLink href={receiptUrl} style={SMALL} />
      <p class="quiet" style={QUIET}>
        {`Secrets are masked as ••••. ${BROKEN_LINKS} The request is sent with the real values.`} Anyone who has this
        email can decide. Don’t forward it.
      </p>
    </MailFrame>,
  );
}

interface ChannelMailProps extends Omit<ApprovalMailProps, "links" | "receiptUrl"> {
  /** The page of the action, which asks for a sign-in. */
  readonly url: string;
}

/** The HTML part of a channel's mail. */
export function channelMailHtml({ subject, waiting, request, facts, risks, url, terms }: ChannelMailProps): string {
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>Send this request?</h1>
      <p style={TEXT}>{waiting}</p>
      <Call request={request} />
      <Risks risks={risks} />
      <Facts rows={facts.map((fact) => [fact.label, valueOf(fact)])} />
      {request.headers === null ? null : <Part title="Headers" part={request.headers} />}
      {request.body === null ? null : <Part title={`Body (${request.bodyKind})`} part={request.body} />}
      <p style={`${TEXT};margin-top:24px`}>
        <a class="link" href={url} style={LINK}>
          Open it in Outgate to decide
        </a>
      </p>
      <p class="quiet" style={QUIET}>
        {`Secrets are masked as ••••. ${BROKEN_LINKS} The request is sent with the real values.`}{" "}
        <UntrustedText text={terms} />
      </p>
    </MailFrame>,
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
  /** "Approved by ann over the API." */
  readonly sentence: string;
  readonly request: Pick<MailRequest, "method" | "host" | "url">;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly receiptUrl: string;
}

/** The HTML part of a decision mail. */
export function decisionMailHtml({ subject, sentence, request, facts, receiptUrl }: DecisionMailProps): string {
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>
        <UntrustedText text={sentence} />
      </h1>
      <p style={TEXT}>You do not need to do anything. The links in the earlier email now open the receipt.</p>
      <Call request={request} />
      <Facts rows={facts.map(([name, value]) => [name, <UntrustedText text={value} />])} />
      <Part title="URL" part={{ lines: [request.url], note: null }} isAddress />
      <ReceiptLink href={receiptUrl} style={`${SMALL};margin-top:16px`} />
    </MailFrame>,
  );
}

interface InvitationMailProps {
  readonly subject: string;
  readonly sentence: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly link: string;
  /** Until when the link works, and for whom. */
  readonly terms: string;
}

/** The HTML part of an invitation. */
export function invitationMailHtml({ subject, sentence, facts, link, terms }: InvitationMailProps): string {
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>Join an account of Outgate</h1>
      <p style={TEXT}>{sentence}</p>
      <Facts rows={facts.map(([name, value]) => [name, <UntrustedText text={value} />])} />
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:24px 0 16px">
        <tr>
          <DecisionButton href={link} label="Join" colour="#3b5bdb" />
        </tr>
      </table>
      <p style={SMALL}>{terms}</p>
    </MailFrame>,
  );
}

type PasswordMailProps = Pick<InvitationMailProps, "subject" | "sentence" | "link" | "terms">;

/** The HTML part of a mail with a link that sets a password. */
export function passwordMailHtml({ subject, sentence, link, terms }: PasswordMailProps): string {
  return render(
    <MailFrame subject={subject}>
      <h1 style={TITLE}>Set a password</h1>
      <p style={TEXT}>{sentence}</p>
      <table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="margin:24px 0 16px">
        <tr>
          <DecisionButton href={link} label="Set a password" colour="#11683a" />
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
.risk{color:#f0a84b!important;background:#2a2013!important}.danger{color:#ff7b7b!important}.link{color:#7c93ff!important}bdi i{color:#f0a84b;background:#2a2013}}`;

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

function Risks({ risks }: Pick<ApprovalMailProps, "risks">) {
  if (risks.length === 0) return null;
  return (
    <div class="risk" style={RISK}>
      {risks.map(({ level, text }) => (
        <p class={level === "danger" ? "danger" : undefined} style={level === "danger" ? DANGER : "margin:4px 0"}>
          <UntrustedText text={text} />
        </p>
      ))}
    </div>
  );
}

function Call({ request: { method, host } }: { readonly request: Pick<MailRequest, "method" | "host"> }) {
  return (
    <p class="card" style={`${BOX};font-size:16px`}>
      <b>{method}</b> <b style={MONO}>{<UntrustedText text={host} />}</b>
    </p>
  );
}

function ReceiptLink({ href, style }: { readonly href: string; readonly style: string }) {
  return (
    <p style={style}>
      <a class="link" href={href} style={LINK}>
        Details and result
      </a>
    </p>
  );
}

function Facts({ rows }: { readonly rows: readonly (readonly [name: string, value: Child])[] }) {
  return (
    <table role="presentation" cellpadding="0" cellspacing="0" style="margin:16px 0 0;width:100%;table-layout:fixed">
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

/** A link for our own page, a URL with a bold host, or text. */
function valueOf({ name, value }: Fact): Child {
  if (name === "action") {
    return (
      <a class="link" href={value} style={LINK}>
        {value}
      </a>
    );
  }
  const host = name === "url" || name === "callback" ? (normalTarget(value)?.host ?? null) : null;
  if (host === null) return <UntrustedText text={value} />;
  const start = value.indexOf("//") + "//".length;
  // Keeps the host on one line if possible.
  return (
    <span dir="ltr" style={`${MONO};font-size:13px;word-break:break-all`}>
      <UntrustedText text={value.slice(0, start)} />
      <b style="display:inline-block;max-width:100%">
        <UntrustedText text={value.slice(start, start + host.length)} />
      </b>
      <UntrustedText text={value.slice(start + host.length)} />
    </span>
  );
}

const FACT = "padding:2px 8px 2px 0;font-size:14px;line-height:1.5;overflow-wrap:anywhere";

interface PartProps {
  readonly title: string;
  readonly part: MailPart;
  /** Breaks anywhere, so that the host stays beside its scheme. */
  readonly isAddress?: boolean;
}

function Part({ title, part: { lines, note }, isAddress = false }: PartProps) {
  const wrap = isAddress ? ";word-break:break-all" : "";
  return (
    <>
      <p class="quiet" style={HEAD}>
        {title}
      </p>
      <div class="card" dir="ltr" style={`${BOX};${MONO};font-size:13px;line-height:1.5;white-space:pre-wrap${wrap}`}>
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

function DecisionButton({
  href,
  label,
  colour,
}: {
  readonly href: string;
  readonly label: string;
  readonly colour: string;
}) {
  return (
    <td width="48%" align="center" style={`background:${colour};border-radius:6px`}>
      <a href={href} style={BUTTON}>
        {label}
      </a>
    </td>
  );
}

const BUTTON =
  "display:block;padding:14px 8px;font-size:16px;line-height:1.25;font-weight:600;color:#ffffff;text-decoration:none";

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

export function mailRequest(action: Action): MailRequest {
  const masked = maskForDisplay(action, "mail");
  const { method, host, url, id, title, headers } = masked;
  const body = shownBody(masked);
  const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return {
    method,
    host,
    url,
    id,
    title,
    headers: lines.length === 0 ? null : partOf(lines.join("\n")),
    body: body === null ? null : bodyPart(body),
    bodyKind: bodyKindText(masked, sentBytes(action)),
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
    note: `Truncated after 2 kB. Not shown: ${rest}. The links lead to the full request.`,
  };
}
