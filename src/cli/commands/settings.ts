import type {
  ChangeChannel,
  Channel,
  CreateChannel,
  CreateCredential,
  CreateOAuthClient,
  Credential,
  CredentialRequest,
  CredentialTest,
  DeclineCredential,
  NewOAuthClient,
  PutDefaults,
  PutHostSettings,
  SigningSecretQuery,
} from "../../client/api.ts";
import { type CliCommand, JSON_OPTION } from "../command.ts";
import { given, headersIn, oneOf, several, severalMethods, wholeNumber } from "../option-values.ts";
import { POSTED_KINDS, type PostedKind } from "../../core/channel.ts";
import { CREDENTIAL_KINDS } from "../../core/credential.ts";
import {
  CALLS_PER_SECOND_MAX,
  CALLS_PER_SECOND_MIN,
  REMIND_MINUTES_MAX,
  REMIND_MINUTES_MIN,
} from "../../core/limits.ts";
import { EXIT, readValue, UsageError, type Io } from "../io.ts";
import { visible } from "../../observability/terminal.ts";
import type { Session } from "../session.ts";
import { agoText, settingsParts } from "../action-text.ts";

export function addHostCommands(program: CliCommand): void {
  const hosts = program.serviceCommand(
    "hosts",
    "show or set the timeout, retries and limits of hosts (set: owner key)",
  );
  hosts
    .serviceCommand("list", "show what is set for hosts, and for the account", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }) =>
      print(await client.listHosts(), ({ data, defaults }) => {
        const lines = data.map((row) => `${visible(row.host)}: ${settingsText(row)}`);
        const none = lines.length === 0 ? ["No host has settings of its own."] : [];
        return [`All hosts: ${settingsText(defaults)}`, ...lines, ...none].join("\n");
      }),
    );
  hosts
    .serviceCommand("set <host>", "set everything of a host: what is not named is removed")
    .retries()
    .option(
      "--max-per-second <n>",
      `most calls a second, ${CALLS_PER_SECOND_MIN} to ${CALLS_PER_SECOND_MAX}`,
      decimal("max-per-second"),
    )
    .option("--max-concurrent <n>", "most calls at a time", wholeNumber("max-concurrent"))
    .member(
      "default_credential",
      "--credential <name>",
      "the credential of calls that name none, for the keys that may use it",
    )
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, host: string, settings: PutHostSettings) =>
      print(await client.putHost(host, settings), (row) => `${visible(row.host)}: ${settingsText(row)}.`),
    );
  hosts
    .serviceCommand("remove <host>", "remove what is set for a host")
    .sessionAction(({ client, done }, host: string) => done(client.removeHost(host), `${host} has no settings.`));
  hosts
    .serviceCommand("defaults", "set what applies to all hosts of the account: what is not named is removed")
    .retries()
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, settings: PutDefaults) =>
      print(await client.putDefaults(settings), (defaults) => `All hosts: ${settingsText(defaults)}.`),
    );
}

function settingsText(settings: PutDefaults | PutHostSettings): string {
  const { max_per_second: perSecond, max_concurrent: atATime, default_credential: name }: PutHostSettings = settings;
  const parts = {
    ...settingsParts(settings),
    max_per_second: perSecond && `${perSecond} calls a second`,
    max_concurrent: atATime && `${atATime} calls at a time`,
    default_credential: name && `by default with the credential ${visible(name)}`,
  } satisfies Record<keyof PutHostSettings, unknown>;
  return Object.values(parts).filter(Boolean).join("; ") || "nothing is set";
}

function decimal(name: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
    throw new UsageError(`--${name} takes a number, not ${JSON.stringify(text)}.`);
  };
}

/** Adds the commands about grants, with which people allow agents something for a while. */
export function addGrantCommands(program: CliCommand): void {
  const grants = program
    .serviceCommand("grants", "show or end what people allow agents for a while (approver or owner key)")
    .usage("[list] | grants end <id>");
  grants
    .serviceCommand("list", "show the grants, those in force first", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listGrants(), "No grant is in force.", [
        ["ID", ({ id }) => id],
        ["KEY", ({ key_id: key }) => key, { leaves: 1 }],
        ["USED", ({ used, calls }) => `${used} of ${calls}${used < calls ? "" : ", used up"}`],
        ["EXPIRES", ({ expires_at: at }) => at],
        ["MADE BY", ({ created_by: by }) => visible(by), { min: 12 }],
      ]),
    );
  grants
    .serviceCommand("end <id>", "hold calls like that again, also those that it let pass and that were not sent yet")
    .sessionAction(({ client, done }, id: string) => done(client.endGrant(id), `${id} has ended.`));
}

const SECRET_FILE = "read the secret from this file; default: standard input, where a terminal asks and shows nothing";

export function addCredentialCommands(program: CliCommand): void {
  const credentials = program.serviceCommand(
    "credentials",
    "show or set the credentials that calls are sent with (changes: owner key)",
  );
  credentials
    .serviceCommand("list", "show those that your key may know", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printLines }) =>
      printLines(await client.listCredentials(), "There are no credentials that this key may use.", credentialText),
    );
  credentials
    .serviceCommand("add <name>", "store a secret, and where it may go")
    .choice("--kind <kind>", "how it is sent", CREDENTIAL_KINDS, oneOf("kind", CREDENTIAL_KINDS))
    .member("hosts", "--host <host>", "a host that it may go to, or *.example.com; several: repeat it", several)
    .member("paths", "--path <path>", "the beginning of a path, in whole segments; several: repeat it", several)
    .member("methods", "--method <method>", "a method; several: repeat it", severalMethods)
    .option("--header <name>", "for header and hmac: the header that it sets")
    .option("--scheme <word>", "for header: a word in front of the secret")
    .option("--username <name>", "for basic: the user name")
    .option("--signs <text>", "for hmac: what is signed, with {timestamp} {method} {path} {query} {host} {url} {body}")
    .option("--value <text>", "for hmac: the value of the header, with {signature} and {timestamp}")
    .option("--time-header <name>", "for hmac: a header that has the time")
    .member("keys", "--key-id <id>", "an agent's key that may use it; several: repeat it", several)
    .option("--expires-at <time>", "until when it is sent, such as 2027-03-04T12:00:00Z")
    .option("--secret-file <file>", SECRET_FILE)
    .option("--request <id>", "what an agent asked for, which this grants: its key may use the credential")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print, io }, name: string, options: AddCredential) => {
      const { kind, hosts, signs, value, time_header, secret_file: file, request, ...more } = options;
      if (kind === undefined || hosts === undefined) throw new UsageError("credentials add takes --kind and --host.");
      const hmac = given({ signs, value, time_header });
      const secret = await secretIn(file, io);
      const credential = { ...more, name, kind, hosts, secret, ...(Object.keys(hmac).length > 0 && { hmac }) };
      if (request === undefined) print(await client.createCredential(credential), credentialText);
      else {
        print(await client.grantCredentialRequest(request, credential), ({ id, created_by: by }) =>
          visible(`${id} is granted: ${by} may use ${name}.`),
        );
      }
    });
  credentials
    .serviceCommand("replace <name>", "replace the secret; the old one is gone at once")
    .option("--secret-file <file>", SECRET_FILE)
    .option(...JSON_OPTION)
    .sessionAction(
      async ({ client, print, io }, name: string, { secret_file: file }: Pick<AddCredential, "secret_file">) => {
        print(await client.changeCredential(name, { secret: await secretIn(file, io) }), credentialText);
      },
    );
  for (const [verb, enabled, what] of [
    ["disable", false, "let calls with it fail"],
    ["enable", true, "let calls be sent with it again"],
  ] as const) {
    credentials
      .serviceCommand(`${verb} <name>`, what)
      .option(...JSON_OPTION)
      .sessionAction(async ({ client, print }, name: string) =>
        print(await client.changeCredential(name, { enabled }), credentialText),
      );
  }
  credentials
    .serviceCommand("test <name> <url>", "send a GET with it at once, and show the answer without secrets")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, name: string, url: string) => {
      const found = await client.testCredential(name, { url });
      print(found, testText);
      return found.error === null ? EXIT.ok : EXIT.failed;
    });
  credentials
    .serviceCommand("requests", "show what agents ask for; add --request grants one")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printLines }) => {
      // The open requests, oldest first.
      const { data } = await client.listCredentialRequests({ status: "pending" });
      printLines({ data }, "No agent waits for a credential.", requestText);
    });
  credentials
    .serviceCommand("decline <id>", "decline what an agent asks for")
    .option("--reason <text>", "why; the agent reads it")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, id: string, why: DeclineCredential) =>
      print(await client.declineCredentialRequest(id, why), (declined) => `${visible(declined.id)} is declined.`),
    );
  credentials
    .serviceCommand("remove <name>", "delete a credential; what waits with it fails")
    .sessionAction(({ client, done }, name: string) => done(client.removeCredential(name), `${name} is deleted.`));
}

function requestText({ id, host, reason, created_by: by, name, paths, methods }: CredentialRequest): string {
  const suggested = [name, paths?.join(", "), methods?.join(", ")].filter((text) => text !== undefined);
  const suggests = suggested.length === 0 ? "" : ` It suggests ${suggested.join("; ")}.`;
  return `${id}  ${visible(`${host} for ${by}: “${reason}”${suggests}`)}`;
}

interface AddCredential
  extends
    Partial<Omit<CreateCredential, "name" | "secret" | "hmac">>,
    Pick<NonNullable<CreateCredential["hmac"]>, "signs" | "value" | "time_header"> {
  readonly secret_file?: string;
  readonly request?: string;
}

/** Reads a secret, but never from the command line, which others can see. Drops a line end after it. */
async function secretIn(file: string | undefined, io: Io): Promise<string> {
  const isTyped = (file === undefined || file === "-") && io.askHidden !== undefined;
  const text = isTyped
    ? ((await io.askHidden?.("Secret: ")) ?? "")
    : await readValue(file === undefined || file === "-" ? "-" : `@${file}`, io);
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "") throw new UsageError("No secret was given: use --secret-file, or standard input.");
  return secret;
}

function testText({ status, error, headers, body, truncated }: CredentialTest): string {
  if (status === null) return visible(error ?? "");
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
  const answer = [
    ...(error === null ? [] : [error]),
    `Status ${status}`,
    ...lines,
    ...(body === null ? [] : ["", body]),
  ];
  return visible(answer.join("\n") + (truncated ? "\n… The body was longer." : ""), true);
}

function credentialText(credential: Credential): string {
  const { name, kind, header = "", hosts, paths, methods, last4, keys, expires_at: end } = credential;
  const { uses_last_week: uses = 0, warnings = [] } = credential;
  const bounds = [hosts, paths, methods].flatMap((list) => (list === undefined ? [] : [list.join(", ")]));
  const parts = [
    `${kind}${kind === "header" || kind === "hmac" ? ` ${header}` : ""}${typeof last4 === "string" ? ` ••••${last4}` : ""}`,
    `to ${bounds.join("; ")}`,
    ...(keys === undefined ? [] : [keys.length === 0 ? "for owners only" : `for owners and ${keys.join(", ")}`]),
    ...(end === null ? [] : [`until ${end}`]),
    ...(uses > 0 ? [`sent ${uses === 1 ? "once" : `${uses} times`} in 7 days`] : []),
    ...(credential.enabled ? [] : ["disabled"]),
    ...warnings,
  ];
  return `${visible(name)}  ${visible(parts.join("; "))}`;
}

export function addOAuthClientCommands(program: CliCommand): void {
  const clients = program.serviceCommand(
    "oauth-clients",
    "list, add and remove clients that people connect by logging in (owner key)",
  );
  clients
    .serviceCommand("list", "list the clients that owners have added", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(
        await client.listOAuthClients(),
        "No clients. Clients with a metadata document, such as claude.ai, need none.",
        [
          ["ID", ({ id }) => id],
          ["TYPE", ({ type }) => type],
          ["CONNECTIONS", ({ connections }) => String(connections), { leaves: 1 }],
          ["NAME", ({ name }) => name],
          ["REDIRECTS", ({ redirect_uris: redirects }) => redirects.join(" "), { min: 24 }],
        ],
      ),
    );
  clients
    .serviceCommand("add <name>", "add a client and print its id and secret, only this once")
    .member("redirect_uris", "--redirect <uri>", "where its answers may go, exactly; several: repeat it", several)
    .option("--public", "it can't keep a secret, as a program on someone's machine: it gets none")
    .option(...JSON_OPTION)
    .sessionAction(async (session, name: string, { redirect_uris, public: isPublic }: AddClient) => {
      if (redirect_uris === undefined) throw new UsageError("oauth-clients add takes --redirect.");
      const type = isPublic ? "public" : "confidential";
      printNew(session, await session.client.createOAuthClient({ name, redirect_uris, type }));
    });
  clients
    .serviceCommand("new-secret <id>", "replace the secret of a client and print it, only this once")
    .option(...JSON_OPTION)
    .sessionAction(async (session, id: string) => printNew(session, await session.client.replaceOAuthClientSecret(id)));
  clients
    .serviceCommand("remove <id>", "delete a client and end its connections")
    .sessionAction(({ client, done }, id: string) =>
      done(client.removeOAuthClient(id), `${id} is deleted, and the keys of its connections are revoked.`),
    );
}

interface AddClient extends Partial<Pick<CreateOAuthClient, "redirect_uris">> {
  readonly public?: true;
}

function printNew({ print, io }: Session, added: NewOAuthClient): void {
  const { id, secret } = added;
  print(added, () => (secret === null ? `client id      ${id}` : `client id      ${id}\nclient secret  ${secret}`));
  if (secret !== null && io.isTty) io.err("The secret is shown only this once.\n");
}

const REMIND = `repeat the question once, ${REMIND_MINUTES_MIN} to ${REMIND_MINUTES_MAX}`;

export function addChannelCommands(program: CliCommand): void {
  const channels = program.serviceCommand("channels", "show or set where people are asked for approval (owner key)");
  channels
    .serviceCommand("list", "show the channels", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printLines }) =>
      printLines(await client.listChannels(), "There are no channels.", channelText),
    );
  channels
    .serviceCommand("add <name>", "add a channel: by --mail, --slack or --webhook")
    .option("--mail <addresses>", "addresses, separated by commas")
    .option("--slack <url>", "the URL of an incoming webhook of Slack")
    .option("--webhook <url>", "a URL that gets a signed POST")
    .member("remind_after_minutes", "--remind-after <minutes>", REMIND, wholeNumber("remind-after"))
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, name: string, { mail, slack, webhook, ...more }: AddChannel) => {
      const urls: Readonly<Record<PostedKind, string | undefined>> = { slack, webhook };
      const targets: readonly Pick<CreateChannel, "kind" | "to" | "url">[] = [
        ...(mail === undefined ? [] : [{ kind: "mail" as const, to: addressesIn(mail) }]),
        ...POSTED_KINDS.flatMap((kind) => (urls[kind] === undefined ? [] : [{ kind, url: urls[kind] }])),
      ];
      const [target] = targets;
      if (target === undefined || targets.length > 1) {
        throw new UsageError("channels add takes one of --mail, --slack and --webhook.");
      }
      print(await client.createChannel({ name, ...target, ...more }), channelText);
    });
  channels
    .serviceCommand("set <id>", "change a channel, or switch it off; what is not named stays")
    .option("--name <name>", "its new name")
    .member("to", "--mail <addresses>", "for mail: new addresses, separated by commas", addressesIn)
    .option("--url <url>", "for slack and webhook: a new URL")
    .member("remind_after_minutes", "--remind-after <minutes>", `${REMIND}; 0: never`, wholeNumber("remind-after", 0))
    .option("--on", "switch it on")
    .option("--off", "switch it off: nothing is sent")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, id: string, { on, off, ...more }: SetChannel) => {
      if (on === true && off === true) throw new UsageError("channels set takes --on or --off.");
      const change = { ...more, ...given({ enabled: off === true ? false : on }) };
      if (Object.keys(change).length === 0) throw new UsageError("Say what to change.");
      print(await client.changeChannel(id, change), channelText);
    });
  channels
    .serviceCommand("remove <id>", "remove a channel")
    .sessionAction(({ client, done }, id: string) => done(client.removeChannel(id), `${id} is removed.`));
  channels
    .serviceCommand("test <id>", "send a test message")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, id: string) => {
      const { delivered, error } = await client.testChannel(id);
      print({ delivered, error }, () => (delivered ? "The test message was delivered." : visible(error ?? "")));
      return delivered ? EXIT.ok : EXIT.failed;
    });
}

interface AddChannel extends Pick<CreateChannel, "remind_after_minutes"> {
  readonly mail?: string;
  readonly slack?: string;
  readonly webhook?: string;
}

interface SetChannel extends Omit<ChangeChannel, "enabled"> {
  readonly on?: boolean;
  readonly off?: boolean;
}

function addressesIn(text: string): string[] {
  return text.split(",").map((address) => address.trim());
}

function channelText({ id, name, kind, to, url, remind_after_minutes: minutes, enabled }: Channel): string {
  const reminder = minutes === null ? "" : `, reminds after ${minutes} min`;
  const target = kind === "mail" ? (to ?? []).join(", ") : (url ?? "its URL can't be read");
  return `${id}  ${visible(name)}: ${kind} to ${visible(target)}${reminder}${enabled ? "" : ", off"}`;
}

export function addSigningCommands(program: CliCommand): void {
  const signing = program.serviceCommand("signing", "show, rotate and check signing secrets (owner key)");
  signing
    .serviceCommand("list", "list where calls and callbacks went; shows no secret", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listSigningOrigins(), "No calls yet.", [
        ["ORIGIN", ({ origin }) => origin, { min: 20 }],
        ["SIGNS", ({ for: use }) => use],
        ["LAST USED", ({ last_used_at: used }, now) => agoText(used, now, "not lately")],
        ["ROTATED", ({ rotated_at: rotated }, now) => agoText(rotated, now)],
      ]),
    );
  signing
    .serviceCommand("secret <origin>", "print the secret of an origin, such as https://api.example.com")
    .option(...CALLBACKS)
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print, io }, origin: string, options: UseOptions) => {
      const secret = await client.getSigningSecret(origin, signingUse(options));
      const { previous } = secret;
      // Only the secret, for copying.
      print(secret, () => secret.secret);
      if (previous !== null && io.isTty)
        io.err(`The previous one signs too until ${previous.expires_at}: ${previous.secret}\n`);
    });
  signing
    .serviceCommand("rotate [origin]", "give an origin a new secret; the previous one signs too for 24 hours")
    .option(...CALLBACKS)
    .option("--all", "the secrets of all origins, for calls and callbacks")
    .option(...JSON_OPTION)
    .sessionAction(
      async (
        { client, print },
        origin: string | undefined,
        { all = false, ...options }: UseOptions & { readonly all?: boolean },
      ) => {
        if (all === (origin !== undefined)) throw new UsageError("Say which origin, or --all.");
        const rotated = await client.rotateSigningSecret({ ...given({ origin }), ...signingUse(options) });
        print(rotated, ({ previous_expires_at: end }) => `Rotated. The previous secret signs too until ${end}.`);
      },
    );
  signing
    .serviceCommand("verify <origin>", "check why a receiver can't verify what it got")
    .option(...CALLBACKS)
    .option(
      "-H, --header <header>",
      "'Name: value', as it arrived; several: repeat it, or @file with one a line",
      several,
    )
    .option("-d, --data <text>", "the raw body; @file reads a file, - reads standard input")
    .option("--base64 <bytes>", "the raw body in base64, also @file or -")
    .examples([
      ["outgate signing verify https://api.example.com -H @headers.txt -d @body.json", "exit code 1: no match"],
    ])
    .option(...JSON_OPTION)
    .sessionAction(
      async (
        { client, io, print },
        origin: string,
        options: UseOptions & { readonly header?: readonly string[]; readonly data?: string; readonly base64?: string },
      ) => {
        const { header = [], data, base64 } = options;
        const message = {
          headers: await headersIn(header, io),
          ...(data === undefined ? {} : { text: await readValue(data, io) }),
          ...(base64 === undefined ? {} : { base64: (await readValue(base64, io)).replaceAll(/\s/g, "") }),
        };
        const found = await client.verifySignature(origin, message, signingUse(options));
        print(found, () => {
          const matches = found.secret === null ? [] : [`It matches the ${found.secret} secret.`];
          return [...matches, ...[...found.problems, ...found.warnings].map((one) => visible(one.message))].join("\n");
        });
        return found.valid ? EXIT.ok : EXIT.failed;
      },
    );
}

const CALLBACKS = ["--callbacks", "the secret of callbacks, which is another one"] as const;

interface UseOptions {
  readonly callbacks?: boolean;
}

function signingUse({ callbacks }: UseOptions): Pick<SigningSecretQuery, "for"> {
  return callbacks === true ? { for: "callbacks" } : {};
}
