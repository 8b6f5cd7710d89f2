import type {
  Credential,
  CreateCredential,
  CredentialRequest,
  CredentialTest,
  DeclineCredential,
} from "../../client/openapi.ts";
import { type CliCommand, given, oneOf, several, severalMethods } from "../command.ts";
import { EXIT, type Io, readValue, UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";

const KINDS = ["bearer", "header", "basic", "hmac"] as const;

const SECRET_FILE = "read the secret from this file; default: standard input, where a terminal asks and shows nothing";

export function addCredentialCommands(program: CliCommand): void {
  const credentials = program.service(
    "credentials",
    "show or set the credentials that calls are sent with (changes: owner key)",
  );
  credentials
    .service("list", "show those that your key may know", { isDefault: true })
    .lines((client) => client.listCredentials(), credentialText, "There are no credentials that this key may use.");
  credentials
    .service("add <name>", "store a secret, and where it may go")
    .choice("--kind <kind>", "how it is sent", KINDS, oneOf("kind", KINDS))
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
    .prints(async ({ client, print, io }, options: AddOptions, name) => {
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
    .service("replace <name>", "replace the secret; the old one is gone at once")
    .option("--secret-file <file>", SECRET_FILE)
    .prints(async ({ client, print, io }, { secret_file: file }: SecretOptions, name) => {
      print(await client.changeCredential(name, { secret: await secretIn(file, io) }), credentialText);
    });
  for (const [verb, enabled, what] of [
    ["disable", false, "let calls with it fail"],
    ["enable", true, "let calls be sent with it again"],
  ] as const) {
    credentials.service(`${verb} <name>`, what).prints(async ({ client, print }, _options, name) => {
      print(await client.changeCredential(name, { enabled }), credentialText);
    });
  }
  credentials
    .service("test <name> <url>", "send a GET with it at once, and show the answer without secrets")
    .prints(async ({ client, print }, _options, name, url: string) => {
      const found = await client.testCredential(name, { url });
      print(found, testText);
      return found.error === null ? EXIT.ok : EXIT.failed;
    });
  credentials.service("requests", "show what agents ask for; add --request grants one").lines(
    // Those that wait for an answer, oldest first.
    (client) => client.listCredentialRequests({ status: "pending" }),
    requestText,
    "No agent waits for a credential.",
  );
  credentials
    .service("decline <id>", "decline what an agent asks for")
    .option("--reason <text>", "why; the agent reads it")
    .prints(async ({ client, print }, why: DeclineCredential, id) =>
      print(await client.declineCredentialRequest(id, why), () => `${visible(id)} is declined.`),
    );
  credentials
    .service("remove <name>", "delete a credential; what waits with it fails")
    .calls(({ client, done }, _options, name) => done(client.removeCredential(name), `${name} is deleted.`));
}

function requestText({ id, host, reason, created_by: by, name, paths, methods }: CredentialRequest): string {
  const suggested = [name, paths?.join(", "), methods?.join(", ")].filter((text) => text !== undefined);
  const suggests = suggested.length === 0 ? "" : ` It suggests ${suggested.join("; ")}.`;
  return `${id}  ${visible(`${host} for ${by}: “${reason}”${suggests}`)}`;
}

interface SecretOptions {
  readonly secret_file?: string;
}

type Hmac = NonNullable<CreateCredential["hmac"]>;

interface AddOptions
  extends
    SecretOptions,
    Partial<Omit<CreateCredential, "name" | "secret" | "hmac">>,
    Pick<Hmac, "signs" | "value" | "time_header"> {
  readonly request?: string;
}

/** Never from the command line, which others can read. A line end behind it is dropped. */
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
  const {
    name,
    kind,
    header,
    hosts,
    paths,
    methods,
    enabled,
    last4,
    keys,
    expires_at: end,
    uses_last_week: uses = 0,
  } = credential;
  const bounds = [hosts, paths, methods].flatMap((list) => (list === undefined ? [] : [list.join(", ")]));
  const parts = [
    `${kind}${kind === "header" || kind === "hmac" ? ` ${header ?? ""}` : ""}${typeof last4 === "string" ? ` ••••${last4}` : ""}`,
    `to ${bounds.join("; ")}`,
    ...(keys === undefined ? [] : [keys.length === 0 ? "for owners only" : `for owners and ${keys.join(", ")}`]),
    ...(end === null ? [] : [`until ${end}`]),
    ...(uses > 0 ? [`sent ${uses} times in 7 days`] : []),
    ...(enabled ? [] : ["disabled"]),
    ...(credential.warnings ?? []),
  ];
  return `${visible(name)}  ${visible(parts.join("; "))}`;
}
