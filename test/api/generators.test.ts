import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import openapiTypescript, { astToString } from "openapi-typescript";
import { IS_LONG } from "../support/long.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { shared, sharedFolder } from "../support/shared.ts";

/** A machine that has none of it downloads a generator and compiles it and what it makes. */
const GENERATOR_MS = 600_000;

const OPENAPI_PYTHON_CLIENT = "0.29.1";
const OAPI_CODEGEN = "v2.8.2";
const OPENAPI_GENERATOR = "7.18.0";

/** What each program prints: a new action, of which most is null, the same one again at its end, and an error. */
const TOLD = ["201 pending", "200 completed deduplicated", "400 invalid_url"];

const TYPESCRIPT = `
import type { components, paths } from "./api.ts";

declare const process: { env: Record<string, string> };
declare const console: { log(text: string): void };

type Create = paths["/v1/actions"]["post"];
type Body = Create["requestBody"]["content"]["application/json"];
type Action = Create["responses"][200 | 201]["content"]["application/json"];
type Failure = Create["responses"][400]["content"]["application/json"];

const { OUTGATE_URL, OUTGATE_API_KEY, TARGET_URL = "" } = process.env;

async function create(more: Partial<Body>): Promise<void> {
  const body: Body = { url: TARGET_URL, body: { order: 7, lines: [{ sku: null }] }, dedupe: "typescript", ...more };
  const headers = { authorization: "Bearer " + OUTGATE_API_KEY, "content-type": "application/json" };
  const response = await fetch(OUTGATE_URL + "/v1/actions", { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) {
    const { error } = (await response.json()) as Failure;
    const code: components["schemas"]["ErrorCode"] = error.code;
    return console.log(response.status + " " + code);
  }
  const action = (await response.json()) as Action;
  const finished: string | null = action.finished_at;
  if ((finished === null) !== (action.status === "pending")) throw new Error(action.status);
  console.log([response.status, action.status, ...(action.deduplicated ? ["deduplicated"] : [])].join(" "));
}

await create({});
await create({ sync: true });
await create({ url: "ftp://127.0.0.1/" });
// @ts-expect-error a body is an object
const wrong: Body = { url: TARGET_URL, body: 7 };
`;

const PYTHON = `
import os
from outgate_client import AuthenticatedClient
from outgate_client.api.actions import create_action
from outgate_client.models import Action, CreateAction, CreateActionBody

client = AuthenticatedClient(base_url=os.environ["OUTGATE_URL"], token=os.environ["OUTGATE_API_KEY"])

def create(url: str, sync: bool = False) -> None:
    body = CreateActionBody.from_dict({"order": 7})
    request = CreateAction(url=url, body=body, dedupe="python", sync=sync)
    response = create_action.sync_detailed(client=client, body=request)
    parsed = response.parsed
    if not isinstance(parsed, Action):
        return print(int(response.status_code), parsed.error.code)
    assert (parsed.finished_at is None) == (parsed.status == "pending")
    print(int(response.status_code), parsed.status, *(["deduplicated"] if parsed.deduplicated else []))

create(os.environ["TARGET_URL"])
create(os.environ["TARGET_URL"], sync=True)
create("ftp://127.0.0.1/")
`;

const OAPI_CODEGEN_PROGRAM = `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example.com/client/api"
)

func main() {
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("OUTGATE_API_KEY"))
		return nil
	}
	client, err := api.NewClientWithResponses(os.Getenv("OUTGATE_URL"), api.WithRequestEditorFn(withKey))
	if err != nil {
		panic(err)
	}
	create := func(url string, sync bool) {
		dedupe := "oapi-codegen"
		request := api.CreateAction{Url: url, Body: &map[string]interface{}{"order": 7}, Dedupe: &dedupe, Sync: &sync}
		response, err := client.CreateActionWithResponse(context.Background(), nil, request)
		if err != nil {
			panic(err)
		}
		switch {
		case response.JSON201 != nil:
			fmt.Println(201, response.JSON201.Status)
		case response.JSON200 != nil && bool(*response.JSON200.Deduplicated):
			fmt.Println(200, response.JSON200.Status, "deduplicated")
		default:
			fmt.Println(response.StatusCode(), response.JSON400.Error.Code)
		}
	}
	create(os.Getenv("TARGET_URL"), false)
	create(os.Getenv("TARGET_URL"), true)
	create("ftp://127.0.0.1/", false)
}
`;

const OPENAPI_GENERATOR_PROGRAM = `package main

import (
	"context"
	"fmt"
	"os"

	"example.com/client/outgate"
)

func main() {
	settings := outgate.NewConfiguration()
	settings.Servers = outgate.ServerConfigurations{{URL: os.Getenv("OUTGATE_URL")}}
	client := outgate.NewAPIClient(settings)
	withKey := context.WithValue(context.Background(), outgate.ContextAccessToken, os.Getenv("OUTGATE_API_KEY"))
	create := func(url string, sync bool) {
		request := outgate.NewCreateAction(url)
		request.SetBody(map[string]interface{}{"order": 7})
		request.SetDedupe("openapi-generator")
		request.SetSync(sync)
		action, response, err := client.ActionsAPI.CreateAction(withKey).CreateAction(*request).Execute()
		if failure, isFailure := err.(*outgate.GenericOpenAPIError); isFailure && response.StatusCode >= 400 {
			envelope := failure.Model().(outgate.ErrorEnvelope)
			fmt.Println(response.StatusCode, envelope.Error.Code)
			return
		}
		if err != nil {
			panic(err)
		}
		fmt.Print(response.StatusCode, " ", action.Status)
		if action.GetDeduplicated() {
			fmt.Print(" deduplicated")
		}
		fmt.Println()
	}
	create(os.Getenv("TARGET_URL"), false)
	create(os.Getenv("TARGET_URL"), true)
	create("ftp://127.0.0.1/", false)
}
`;

/** Where clients are generated. */
const place = sharedFolder();
const target = await shared(new Target());
const service = await shared(new Service());
const url = await service.ready();
await Bun.write(join(place, "openapi.json"), await (await fetch(`${url}/openapi.json`)).text());
const env: Record<string, string | undefined> = {
  ...process.env,
  OUTGATE_URL: url,
  OUTGATE_API_KEY: OWNER_KEY,
  TARGET_URL: target.url,
};

describe("a client generated from the API description compiles, and its calls are what they seem:", () => {
  test("by openapi-typescript", async () => {
    const folder = newFolder("typescript");
    const document = await Bun.file(join(place, "openapi.json")).text();
    await write(folder, {
      "api.ts": astToString(await openapiTypescript(document, { defaultNonNullable: false })),
      "client.ts": TYPESCRIPT,
      "tsconfig.json": JSON.stringify({
        compilerOptions: {
          target: "ESNext",
          module: "Preserve",
          lib: ["ESNext", "DOM"],
          types: [],
          strict: true,
          noEmit: true,
          allowImportingTsExtensions: true,
        },
      }),
    });
    await run([process.execPath, "check", "-p", folder], folder);
    await expectOneDelivery(() => run([process.execPath, "client.ts"], folder));
  });

  testWith(["python3"], "by openapi-python-client, which leaves no operation out", async () => {
    const folder = newFolder("python");
    await run(["python3", "-m", "venv", "tools"], folder);
    const bin = join(folder, "tools/bin");
    await run([join(bin, "pip"), "install", "--quiet", `openapi-python-client==${OPENAPI_PYTHON_CLIENT}`], folder);
    const generate = ["generate", "--fail-on-warning", "--meta", "none", "--output-path", "outgate_client"];
    // It calls ruff by name.
    const path = [bin, env["PATH"]].join(delimiter);
    await run([join(bin, "openapi-python-client"), ...generate, "--path", "../openapi.json"], folder, { PATH: path });
    await write(folder, { "client.py": PYTHON });
    await run([join(bin, "python"), "-m", "compileall", "-q", "outgate_client"], folder);
    await expectOneDelivery(() => run([join(bin, "python"), "client.py"], folder));
  });

  testWith(["go"], "by oapi-codegen", async () => {
    const folder = newFolder("oapi-codegen");
    mkdirSync(join(folder, "api"));
    await write(folder, { "main.go": OAPI_CODEGEN_PROGRAM, "go.mod": "module example.com/client\n" });
    const generator = `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@${OAPI_CODEGEN}`;
    const options = ["-generate", "types,client", "-package", "api", "-o", "api/api.go"];
    await run(["go", "run", generator, ...options, "../openapi.json"], folder);
    await run(["go", "mod", "tidy"], folder);
    await run(["go", "vet", "./..."], folder);
    await expectOneDelivery(() => run(["go", "run", "."], folder));
  });

  testWith(["go", "java", "mvn"], "by openapi-generator for Go", async () => {
    const folder = newFolder("openapi-generator");
    const artifact = `org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`;
    await run(["mvn", "-q", "-B", "dependency:copy", `-Dartifact=${artifact}`, "-DoutputDirectory=."], folder);
    const generate = ["generate", "-i", "../openapi.json", "-g", "go", "-o", "outgate"];
    const options = "--additional-properties=packageName=outgate,withGoMod=false";
    const jar = `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`;
    const said = await run(["java", "-jar", jar, ...generate, options], folder);
    // It goes on after an exception.
    expect(said).not.toContain("Exception");
    rmSync(join(folder, "outgate/test"), { recursive: true });
    await write(folder, { "main.go": OPENAPI_GENERATOR_PROGRAM, "go.mod": "module example.com/client\n" });
    await run(["go", "mod", "tidy"], folder);
    await run(["go", "build", "./..."], folder);
    await expectOneDelivery(() => run(["go", "run", "."], folder));
  });
});

/** A test of `npm run test:long` that needs these programs. */
function testWith(programs: readonly string[], name: string, body: () => Promise<void>): void {
  const missing = programs.filter((program) => Bun.which(program) === null);
  const why = missing.length > 0 ? `there is no ${missing.join(" and no ")} on this machine` : "npm run test:long does";
  if (!IS_LONG || missing.length > 0) console.log(`generators: no client was generated ${name}: ${why}`);
  test.skipIf(!IS_LONG || missing.length > 0)(name, body, GENERATOR_MS);
}

/** A create that succeeded and is reported as an error would be sent once more. */
async function expectOneDelivery(program: () => Promise<string>): Promise<void> {
  const before = target.received.length;
  expect((await program()).trim().split("\n")).toEqual(TOLD);
  expect(target.received.slice(before).map(({ body }) => JSON.parse(body))).toEqual([
    expect.objectContaining({ order: 7 }),
  ]);
}

function newFolder(name: string): string {
  const folder = join(place, name);
  mkdirSync(folder);
  return folder;
}

async function write(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await Bun.write(join(folder, name), text);
}

/** What it wrote. Throws with that when it failed. */
async function run(
  command: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = Bun.spawn([...command], { cwd, env: { ...env, ...more }, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${(out + err).slice(-4_000)}`);
  return out + err;
}
