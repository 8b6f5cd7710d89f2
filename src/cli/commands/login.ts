import type { Account } from "../../client/api.ts";
import { createClient } from "../../client/client.ts";
import { apiKeyIn } from "../../client/api-key-file.ts";
import { isLoopbackUrl } from "../../config/values.ts";
import { visible } from "../../observability/terminal.ts";
import { type CliCommand, JSON_OPTION } from "../command.ts";
import { EXIT, type Io, readValue, UsageError } from "../io.ts";
import { removeLogin, writeLogin } from "../login-file.ts";
import { explain } from "../failures.ts";
import { parseUrl, readApiKey, readUrl, type SessionOptions } from "../session.ts";
import { textTable } from "../table.ts";

export function addLoginCommands(program: CliCommand, io: Io): void {
  program
    .serviceCommand("login", "keep the address and the API key of a service, for all commands")
    .argument("[url]", "the address of the service; default: OUTGATE_URL, or PORT (3000) of 127.0.0.1")
    .addHelpText(
      "after",
      `
Asks for the key without showing it, or reads it from standard input where that is no terminal. The key is checked, and
kept in $XDG_CONFIG_HOME/outgate/login.json or ~/.config/outgate/login.json, which only you can read. It is sent to this
address alone, and only where no other key is set.`,
    )
    .examples([
      ["outgate login", "asks for the key of the service on this machine"],
      ["outgate login https://outgate.example.com < key-file", "takes it from a file"],
    ])
    .action((url: string | undefined, options: SessionOptions) => logIn(io, options, url));
  program
    .command("logout")
    .description("forget the address and the key of `outgate login`")
    .takes("no arguments.")
    .action(async () => {
      const wasLoggedIn = await removeLogin(io.env);
      io.err(
        wasLoggedIn
          ? "Logged out. The key itself still works: `outgate keys revoke <id>` ends it.\n"
          : "No one was logged in.\n",
      );
    });
  program
    .serviceCommand("whoami", "show which service and key commands use, and where they come from")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, url, keySource, print, paint }) => {
      const account = await client.getAccount();
      const { id, name, email, key } = account;
      const label = name ?? email;
      print({ url, key_source: keySource, ...account }, () =>
        textTable(
          [
            ["service", url],
            ["account", label === null ? id : `${label}  ${id}`],
            ["key", `${key.name}  ${key.id}`],
            ["role", key.role],
            ["from", KEY_SOURCES[keySource]],
          ],
          paint,
          io.columns,
        ),
      );
    });
}

async function logIn(io: Io, { api_key_file: keyFile }: SessionOptions, given?: string): Promise<number> {
  const url = given === undefined ? readUrl(io) : addressIn(given);
  const key = await keyFor(url, keyFile, io);
  if (key === null) {
    io.err("Nothing was kept.\n");
    return EXIT.failed;
  }
  const account = await createClient({ url, apiKey: key })
    .getAccount()
    .catch((error: unknown) => {
      const { message, code } = explain(error, url);
      io.err(`${message}\nNothing was kept.\n`);
      return code;
    });
  if (typeof account === "number") return account;
  const path = await writeLogin(io.env, { url, key });
  io.err(`Logged in to ${url} with ${keyText(account)}. Kept in ${path}, which only you can read.\n`);
  for (const note of notesOn(url, io)) io.err(`${note}\n`);
  return EXIT.ok;
}

function addressIn(text: string): string {
  // Never quoted: it may be a key.
  if (!/^https?:\/\//i.test(text)) {
    throw new UsageError(
      "login takes the address of a service, with http:// or https://. It asks for the key, which belongs on no command line: others can read it there.",
    );
  }
  return parseUrl(text, "The address");
}

async function keyFor(url: string, apiKeyFile: string | undefined, io: Io): Promise<string | null> {
  if (apiKeyFile !== undefined) return readApiKey(apiKeyFile, io);
  if (io.askHidden === undefined) return apiKeyIn(await readValue("-", io), "Standard input");
  const typed = await io.askHidden(`API key for ${url}: `);
  return typed === null || typed.trim() === "" ? null : apiKeyIn(typed, "The answer");
}

function notesOn(url: string, { env }: Io): readonly string[] {
  const other = ["OUTGATE_API_KEY", "OUTGATE_API_KEY_FILE"].find((name) => (env[name] ?? "") !== "");
  const address = new URL(url);
  return [
    ...(other === undefined ? [] : [`${other} is set, and is used in place of this login until you unset it.`]),
    ...(address.protocol === "https:" || isLoopbackUrl(address)
      ? []
      : ["The address is http://: the key can be read on the way."]),
  ];
}

function keyText({ key, email }: Account): string {
  const owner = email === null ? "" : ` of ${visible(email)}`;
  return `the ${key.role} key ${JSON.stringify(visible(key.name))}${owner}`;
}

const KEY_SOURCES = {
  option: "--api-key-file",
  environment: "OUTGATE_API_KEY or OUTGATE_API_KEY_FILE",
  login: "outgate login",
} as const;
