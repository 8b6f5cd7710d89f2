/** A mail as Mailgun was given it. */
export interface KeptMail {
  readonly domain: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** What the provider does with a mail: takes it, or answers otherwise. */
export type MailScript = "take" | number | ((mail: KeptMail) => Response | Promise<Response>);

export const MAILGUN_KEY = "key-0123456789abcdef";

/** A small Mailgun on loopback: checks key and fields as the real one does, and keeps what it takes. */
export class Mailbox implements AsyncDisposable {
  /** Everything that was posted, whatever was answered. */
  readonly posted: KeptMail[] = [];
  /** What was taken. */
  readonly mails: KeptMail[] = [];
  script: MailScript = "take";
  readonly #server: ReturnType<typeof Bun.serve>;
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  constructor() {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 60,
      fetch: (request) => this.#answer(request),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** For the environment of a service. */
  get env(): Readonly<Record<string, string>> {
    return { MAILGUN_API_KEY: MAILGUN_KEY, MAILGUN_DOMAIN: "mg.example.com", MAILGUN_URL: this.url };
  }

  /** Resolves when so many mails were taken. */
  async took(count: number): Promise<readonly KeptMail[]> {
    if (this.mails.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
    }
    return this.mails;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const [, domain] = /^\/v3\/([^/]+)\/messages$/.exec(new URL(request.url).pathname) ?? [];
    if (domain === undefined || request.method !== "POST") return new Response("Mailgun Magnificent API");
    const isKnown = request.headers.get("authorization") === `Basic ${btoa(`api:${MAILGUN_KEY}`)}`;
    if (!isKnown) return new Response("Forbidden", { status: 401 });
    const mail = { domain, fields: fieldsOf(await request.text(), request.headers.get("content-type") ?? "") };
    const missing = ["from", "to", "subject", "text"].find((name) => !mail.fields[name]);
    if (missing !== undefined) return Response.json({ message: `'${missing}' parameter is missing` }, { status: 400 });
    this.posted.push(mail);
    const { script } = this;
    if (typeof script === "number") return Response.json({ message: "no" }, { status: script });
    if (typeof script === "function") return script(mail);
    return this.#take(mail);
  }

  #take(mail: KeptMail): Response {
    const count = this.mails.push(mail);
    this.#waiting = this.#waiting.filter((waiter) => {
      if (waiter.count <= count) waiter.resolve();
      return waiter.count > count;
    });
    return Response.json({ id: mail.fields["h:Message-ID"] ?? "", message: "Queued. Thank you." });
  }
}

/** The fields of a form of texts (RFC 7578). */
function fieldsOf(body: string, type: string): Readonly<Record<string, string>> {
  const boundary = /^multipart\/form-data; ?boundary="?([^";]+)/.exec(type)?.[1] ?? "";
  const parts = body.split(`--${boundary}\r\n`).slice(1);
  return Object.fromEntries(
    parts.map((part) => {
      const [head = "", ...rest] = part.split("\r\n\r\n");
      const value = rest.join("\r\n\r\n").split(`\r\n--${boundary}--`)[0] ?? "";
      return [/name="([^"]*)"/.exec(head)?.[1] ?? "", value.replace(/\r\n$/, "").replaceAll("\r\n", "\n")];
    }),
  );
}
