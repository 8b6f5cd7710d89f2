import { expect, test } from "bun:test";
import type { TObject } from "typebox";
import { CreateAction } from "../../src/api/action-schemas.ts";
import { PutDefaults, PutHostSettings } from "../../src/api/host-settings.ts";
import { ListQuery } from "../../src/api/list-schemas.ts";
import { createProgram } from "../../src/cli/program.ts";
import { CreateRuleBody } from "../../src/rules/schemas.ts";

const program = createProgram({ env: {}, out: () => {}, err: () => {}, isTty: false });

type Command = (typeof program)["commands"][number];

/** `others`: options and arguments that stand for members of another name. */
test.each<[command: string, schema: TObject, others: Readonly<Record<string, string>>]>([
  ["send", CreateAction, { url: "<url>", body: "data", json: "data", headers: "header" }],
  ["list", ListQuery, { reason: "reason_text" }],
  ["hosts set", PutHostSettings, {}],
  ["hosts defaults", PutDefaults, {}],
  ["rules add", CreateRuleBody, { name: "<name>" }],
])("outgate %s has an option for every member of its request", (words, schema, others) => {
  const { options, registeredArguments } = words.split(" ").reduce<Command>((at, word) => {
    return at.commands.find((one) => one.name() === word) ?? at;
  }, program);
  const names = new Set([
    ...options.map((option) => option.attributeName()),
    ...registeredArguments.map((argument) => `<${argument.name()}>`),
  ]);
  expect(Object.keys(schema.properties).filter((name) => !names.has(others[name] ?? name))).toEqual([]);
});
