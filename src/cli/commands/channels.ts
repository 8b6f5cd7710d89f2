import type { Channel, CreateChannel } from "../../client/openapi.ts";
import { type CliCommand, given, wholeNumber } from "../command.ts";
import { REMIND_MINUTES_MAX, REMIND_MINUTES_MIN } from "../../core/limits.ts";
import { EXIT, UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";
import type { Session } from "../session.ts";

const REMIND = `repeat the question once, ${REMIND_MINUTES_MIN} to ${REMIND_MINUTES_MAX}`;

/** The commands about where the account asks for approval. */
export function addChannelCommands(program: CliCommand): void {
  const channels = program
    .service("channels", "show or set where people are asked for approval (owner key)")
    .usage(
      "[list] | channels add <name> [options] | channels set <id> [options] | channels remove <id> | channels test <id>",
    );
  channels
    .service("list", "show the channels", { isDefault: true })
    .lines((client) => client.listChannels(), channelText, "There are no channels.");
  channels
    .service("add <name>", "add a channel: by --mail, --slack or --webhook")
    .option("--mail <addresses>", "addresses, separated by commas")
    .option("--slack <url>", "the URL of an incoming webhook of Slack")
    .option("--webhook <url>", "a URL that gets a signed POST")
    .option("--remind-after <minutes>", REMIND, wholeNumber("remind-after"))
    .prints(addChannel);
  channels
    .service("set <id>", "change a channel, or switch it off; what is not named stays")
    .option("--name <name>", "its new name")
    .option("--mail <addresses>", "for mail: new addresses, separated by commas")
    .option("--url <url>", "for slack and webhook: a new URL")
    .option("--remind-after <minutes>", `${REMIND}; 0: never`, wholeNumber("remind-after", 0))
    .option("--on", "switch it on")
    .option("--off", "switch it off: nothing is sent")
    .prints(setChannel);
  channels
    .service("remove <id>", "remove a channel")
    .calls(({ client, done }, _options, id) => done(client.removeChannel(id), `${id} is removed.`));
  channels.service("test <id>", "send a test message").prints(testChannel);
}

interface AddOptions {
  readonly mail?: string;
  readonly slack?: string;
  readonly webhook?: string;
  readonly remindAfter?: number;
}

async function addChannel({ client, print }: Session, options: AddOptions, name: string): Promise<void> {
  const { mail, slack, webhook, remindAfter } = options;
  const targets: readonly Pick<CreateChannel, "kind" | "to" | "url">[] = [
    ...(mail === undefined ? [] : [{ kind: "mail" as const, to: addressesIn(mail) }]),
    ...(slack === undefined ? [] : [{ kind: "slack" as const, url: slack }]),
    ...(webhook === undefined ? [] : [{ kind: "webhook" as const, url: webhook }]),
  ];
  const [target] = targets;
  if (target === undefined || targets.length > 1) {
    throw new UsageError("channels add takes one of --mail, --slack and --webhook.");
  }
  print(await client.createChannel({ name, ...target, ...given({ remind_after_minutes: remindAfter }) }), channelText);
}

interface SetOptions extends Pick<AddOptions, "mail" | "remindAfter"> {
  readonly name?: string;
  readonly url?: string;
  readonly on?: boolean;
  readonly off?: boolean;
}

async function setChannel({ client, print }: Session, options: SetOptions, id: string): Promise<void> {
  const { name, mail, url, remindAfter, on, off } = options;
  if (on === true && off === true) throw new UsageError("channels set takes --on or --off.");
  const to = mail === undefined ? undefined : addressesIn(mail);
  const enabled = off === true ? false : on;
  const change = given({ name, to, url, remind_after_minutes: remindAfter, enabled });
  if (Object.keys(change).length === 0) throw new UsageError("Say what to change.");
  print(await client.changeChannel(id, change), channelText);
}

function addressesIn(text: string): string[] {
  return text.split(",").map((address) => address.trim());
}

async function testChannel({ client, print }: Session, _options: object, id: string): Promise<number> {
  const { delivered, error } = await client.testChannel(id);
  print({ delivered, error }, () => (delivered ? "The test message was delivered." : visible(error ?? "")));
  return delivered ? EXIT.ok : EXIT.failed;
}

function channelText({ id, name, kind, to, url, remind_after_minutes: minutes, enabled }: Channel): string {
  const reminder = minutes === null ? "" : `, reminds after ${minutes} min`;
  const target = kind === "mail" ? (to ?? []).join(", ") : (url ?? "its URL can't be read");
  return `${id}  ${visible(name)}: ${kind} to ${visible(target)}${reminder}${enabled ? "" : ", off"}`;
}
