import type { SigningSecretQuery } from "../../client/openapi.ts";
import { visible } from "../../observability/terminal.ts";
import { age } from "../action-text.ts";
import { type CliCommand, EXIT, given, readValue, several, UsageError, headersIn } from "../command.ts";
import { addServiceCommand, JSON_OPTION, printList, type Session, withSession } from "../session.ts";

/** The commands about signing secrets. */
export function addSigningCommands(program: CliCommand): void {
  const signing = addServiceCommand(program, "signing", "show, rotate and check signing secrets (owner key)").usage(
    "[list] | signing secret <origin> | signing rotate <origin> | signing verify <origin> [options]",
  );
  addServiceCommand(signing, "list", "list where calls and callbacks went; shows no secret", { isDefault: true })
    .option(...JSON_OPTION)
    .runs(withSession(listOrigins));
  addServiceCommand(signing, "secret <origin>", "print the secret of an origin, such as https://api.example.com")
    .option(...CALLBACKS)
    .option(...JSON_OPTION)
    .runs(withSession(showSecret));
  addServiceCommand(signing, "rotate [origin]", "give an origin a new secret; the previous one signs too for 24 hours")
    .option(...CALLBACKS)
    .option("--all", "the secrets of all origins, for calls and callbacks")
    .option(...JSON_OPTION)
    .runs(withSession(rotate));
  addServiceCommand(signing, "verify <origin>", "check why a receiver can't verify what it got")
    .option(...CALLBACKS)
    .option(
      "-H, --header <header>",
      "'Name: value', as it arrived; several: repeat it, or @file with one a line",
      several,
    )
    .option("-d, --data <text>", "the raw body; @file reads a file, - reads standard input")
    .option("--base64 <bytes>", "the raw body in base64, also @file or -")
    .option(...JSON_OPTION)
    .examples([
      ["outgate signing verify https://api.example.com -H @headers.txt -d @body.json", "exit code 1: no match"],
    ])
    .runs(withSession(verify));
}

const CALLBACKS = ["--callbacks", "the secret of callbacks, which is another one"] as const;

interface UseOptions {
  readonly callbacks?: boolean;
}

function useOf({ callbacks }: UseOptions): Pick<SigningSecretQuery, "for"> {
  return callbacks === true ? { for: "callbacks" } : {};
}

async function listOrigins(session: Session): Promise<void> {
  const now = new Date();
  const agoOf = (at: string | null, none: string) => (at === null ? none : `${age(at, now)} ago`);
  return printList(session, await session.client.listSigningOrigins(), {
    headings: [{ heading: "ORIGIN", min: 20 }, "SIGNS", "LAST USED", "ROTATED"],
    rowOf: ({ origin, for: use, last_used_at: used, rotated_at: rotated }) => [
      visible(origin),
      use,
      agoOf(used, "not lately"),
      agoOf(rotated, "never"),
    ],
    empty: "No calls yet.",
  });
}

async function showSecret({ client, print, io }: Session, options: UseOptions, origin: string): Promise<void> {
  const secret = await client.getSigningSecret(origin, useOf(options));
  const { previous } = secret;
  // The secret alone, to be copied.
  print(secret, () => secret.secret);
  if (previous !== null && io.isTty)
    io.err(`The previous one signs too until ${previous.expires_at}: ${previous.secret}\n`);
}

interface RotateOptions extends UseOptions {
  readonly all?: boolean;
}

async function rotate({ client, print }: Session, options: RotateOptions, origin?: string): Promise<void> {
  const isAll = options.all === true;
  if (isAll === (origin !== undefined)) throw new UsageError("Say which origin, or --all.");
  const rotation = await client.rotateSigningSecret({ ...given({ origin }), ...useOf(options) });
  print(rotation, () => `Rotated. The previous secret signs too until ${rotation.previous_expires_at}.`);
}

interface VerifyOptions extends UseOptions {
  readonly header?: readonly string[];
  readonly data?: string;
  readonly base64?: string;
}

async function verify({ client, io, print }: Session, options: VerifyOptions, origin: string): Promise<number> {
  const { header = [], data, base64 } = options;
  const message = {
    headers: await headersIn(header, io),
    ...(data === undefined ? {} : { text: await readValue(data, io) }),
    ...(base64 === undefined ? {} : { base64: (await readValue(base64, io)).replaceAll(/\s/g, "") }),
  };
  const found = await client.verifySignature(origin, message, useOf(options));
  print(found, () => {
    const matches = found.secret === null ? [] : [`It matches the ${found.secret} secret.`];
    return [...matches, ...[...found.problems, ...found.warnings].map((one) => visible(one.message))].join("\n");
  });
  return found.valid ? EXIT.ok : EXIT.failed;
}
