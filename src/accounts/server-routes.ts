import Type from "typebox";
import { toJson } from "../api/serializer.ts";
import type { EffectiveSettings } from "../config/config.ts";
import * as t from "../api/schema-helpers.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import type { OwnMailService } from "./own-mails.ts";
import type { Caller } from "../core/roles.ts";
import type { ReadServerSize } from "./server-size.ts";

const milliseconds = (description: string, example: number) => t.quantity(`${description}, in milliseconds.`, example);

const SettingJson = t.answerObject("ServerSetting", "A setting of the server.", {
  name: t.plainText("Its name in the environment.", "RETENTION_DAYS"),
  value: t.nullable(t.plainText("What is in force; null: nothing is, or it is a secret.", "30")),
  set: t.yesNo("Whether the environment has it; otherwise it is the default.", true),
  secret: t.yesNo("Whether its value is shown nowhere.", false),
  description: t.plainText("What it is, and what it means to leave it unset.", "Days that finished actions are kept."),
});

const bytes = (description: string, example: number) => t.quantity(`${description}, in bytes.`, example);

const DatabaseJson = Type.Object(
  {
    bytes: bytes("Size of the file without its log", 48_234_496),
    free_bytes: bytes("What of it is free for the next rows", 1_048_576),
    can_shrink: t.yesNo("Whether the file gets smaller after retention. A file of version 0.1 doesn't.", true),
    deletable_bytes: bytes("About what retention would free, estimated from a sample of actions", 30_000_000),
    deletable_days: t.positive("The retention of that estimate: `retention_days`, or 30.", 30),
  },
  {
    description:
      "The database file. Null for keys of other accounts than the first, and where the database is no file.",
    examples: [
      { bytes: 48_234_496, free_bytes: 1_048_576, can_shrink: true, deletable_bytes: 30_000_000, deletable_days: 30 },
    ],
  },
);

export const ServerJson = t.answerObject(
  "Server",
  "What is in force on the server. It is changed in its environment.",
  {
    version: t.plainText("Version of the service.", "0.2.0"),
    targets: t.plainText("Where calls may go, as a sentence.", "Calls may go to public addresses only."),
    rate_limit_per_second: t.nullable(t.positive("Requests of an account in a second; null: no limit.", 100)),
    attempt_timeout_ms: milliseconds("Deadline of one attempt", 30_000),
    retry_base_ms: milliseconds("Delay after the first failure", 2_000),
    retry_cap_ms: milliseconds("Longest delay between two attempts", 3_600_000),
    approval_ttl_hours: t.nullable(t.positive("Hours that an action awaits approval; null: forever.", 72)),
    approval_links: t.choice(
      ["confirm", "one_click"],
      "Whether the links of approval mails ask for confirmation.",
      "confirm",
    ),
    approvers: Type.Array(
      Type.String({ description: "An address, a domain, or for other accounts how many there are." }),
      {
        description: "Who can be asked in addition to the people of an account; empty: no list is set.",
        examples: [["boss@example.com"]],
      },
    ),
    agent_approval: t.choice(["off", "elicit"], "Whether an MCP client can ask its user to approve.", "off"),
    sends_mail: t.yesNo("Whether a mail provider is set.", true),
    retention_days: t.nullable(t.positive("Days that finished actions are kept; null: forever.", 30)),
    database: t.nullable(DatabaseJson),
    settings: t.nullable(
      Type.Array(SettingJson, { description: "Every setting; null for keys of other accounts than the first." }),
    ),
  },
);

export const TestMailBody = t.requestObject("TestMail", "Who gets the test mail.", {
  to: t.emailSchema("Where to send it: the address of a person of this account."),
});

export const TestMailResultJson = t.answerObject("TestMailResult", "How a test mail fared.", {
  delivered: t.yesNo("Whether the mail provider took it.", true),
  error: t.nullable(t.plainText("Why not; null: it did.", "No mail was sent: no mail provider is configured.")),
});

interface ServerRouteDeps {
  /** The server's settings that this caller can see. */
  readonly settingsFor: (caller: Caller) => Promise<EffectiveSettings>;
  readonly readSize: ReadServerSize;
  readonly ownMails: OwnMailService;
  readonly version: string;
}

export function serverRoutes({ settingsFor, readSize, ownMails, version }: ServerRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/server",
      async ({ caller }) => {
        const [settings, size] = await Promise.all([settingsFor(caller), readSize(caller)]);
        const { rateLimitPerSecond, all } = settings;
        return jsonResponse(
          toJson(ServerJson, {
            ...settings,
            version,
            rateLimitPerSecond: rateLimitPerSecond === 0 ? null : rateLimitPerSecond,
            database: size && { ...size, deletableDays: size.days },
            settings: all?.map(({ isSet: set, isSecret: secret, ...setting }) => ({ ...setting, set, secret })) ?? null,
          }),
        );
      },
      operation({
        operationId: "getServer",
        permission: "manage",
        tag: "System",
        summary: "Get the settings in force on the server",
        description: "Returns the settings in force. Values of secrets are never shown.",
        notes: ["Keys of the first account see every setting, others what concerns them, without internal names."],
        answers: { 200: { description: "The settings.", schema: ServerJson } },
      }),
    )
    .post(
      "/v1/server/test-mail",
      async ({ caller, body }) => jsonResponse(await ownMails.testTo(caller, body.to)),
      operation({
        operationId: "sendTestMail",
        permission: "manage",
        tag: "System",
        summary: "Send a test mail to a person of the account",
        description: "Sends at once and waits for at most 10 seconds. At most one a second and 30 an hour.",
        body: jsonBody(TestMailBody),
        answers: { 200: { description: "How it fared.", schema: TestMailResultJson } },
      }),
    );
}
