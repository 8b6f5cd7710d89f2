import type { SigningSecretQuery } from "../../client/openapi.ts";
import { visible } from "../../observability/terminal.ts";
import { ago } from "../action-text.ts";
import { type CliCommand, given, several, headersIn } from "../command.ts";
import { EXIT, readValue, UsageError } from "../io.ts";

export function addSigningCommands(program: CliCommand): void {
  const signing = program.service("signing", "show, rotate and check signing secrets (owner key)");
  signing.service("list", "list where calls and callbacks went; shows no secret", { isDefault: true }).lists(
    (client) => client.listSigningOrigins(),
    [
      ["ORIGIN", ({ origin }) => visible(origin), { min: 20 }],
      ["SIGNS", ({ for: use }) => use],
      ["LAST USED", ({ last_used_at: used }, now) => ago(used, now, "not lately")],
      ["ROTATED", ({ rotated_at: rotated }, now) => ago(rotated, now)],
    ],
    { empty: "No calls yet." },
  );
  signing
    .service("secret <origin>", "print the secret of an origin, such as https://api.example.com")
    .option(...CALLBACKS)
    .prints(async ({ client, print, io }, options: UseOptions, origin) => {
      const secret = await client.getSigningSecret(origin, useOf(options));
      const { previous } = secret;
      // The secret alone, to be copied.
      print(secret, () => secret.secret);
      if (previous !== null && io.isTty)
        io.err(`The previous one signs too until ${previous.expires_at}: ${previous.secret}\n`);
    });
  signing
    .service("rotate [origin]", "give an origin a new secret; the previous one signs too for 24 hours")
    .option(...CALLBACKS)
    .option("--all", "the secrets of all origins, for calls and callbacks")
    .prints(async ({ client, print }, { all = false, ...options }: RotateOptions, origin?: string) => {
      if (all === (origin !== undefined)) throw new UsageError("Say which origin, or --all.");
      print(
        await client.rotateSigningSecret({ ...given({ origin }), ...useOf(options) }),
        ({ previous_expires_at: end }) => `Rotated. The previous secret signs too until ${end}.`,
      );
    });
  signing
    .service("verify <origin>", "check why a receiver can't verify what it got")
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
    .prints(async ({ client, io, print }, options: VerifyOptions, origin) => {
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
    });
}

const CALLBACKS = ["--callbacks", "the secret of callbacks, which is another one"] as const;

interface UseOptions {
  readonly callbacks?: boolean;
}

function useOf({ callbacks }: UseOptions): Pick<SigningSecretQuery, "for"> {
  return callbacks === true ? { for: "callbacks" } : {};
}

interface RotateOptions extends UseOptions {
  readonly all?: boolean;
}

interface VerifyOptions extends UseOptions {
  readonly header?: readonly string[];
  readonly data?: string;
  readonly base64?: string;
}
