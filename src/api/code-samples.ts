/** A request to this service that people copy as code. Its API key is in the variable `OUTGATE_API_KEY`. */
export interface SampleRequest {
  readonly method: string;
  readonly url: string;
  /** Default: true. */
  readonly needsKey?: boolean;
  /** The media type to ask for; null: the operation has only one. */
  readonly accept?: string | null;
  readonly body?: SampleBody | null;
  /** What the code prints of the response; text as it comes. Default: json. */
  readonly prints?: "json" | "text" | "status";
}

/** A `value` is written in each language's own literals, which people can edit; `json` stays as it is, with all digits. */
type SampleBody = { readonly value: unknown } | { readonly json: QuotableJson };

/** JSON that can be quoted in a shell, TypeScript or Python, and that hides nothing. */
export type QuotableJson = string & { readonly [quotable]: true };

declare const quotable: unique symbol;

/** Escapes the characters that end a quoted text in one of the languages, and those that can't be seen. They occur only inside JSON strings. */
export function quotableJson(json: string): QuotableJson {
  const escaped = json.replaceAll(UNQUOTABLE, (found) =>
    found
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
  // Safe: just made so.
  return escaped as QuotableJson;
}

const UNQUOTABLE = /['`]|\$(?=\{)|[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\n]]/gv;

/** The request in each language, which is named as after the fence of a code block. */
export function codeSamples(request: SampleRequest) {
  return [
    { label: "curl", language: "sh", text: curlSample(request) },
    { label: "TypeScript", language: "ts", text: typescriptSample(request) },
    { label: "Python", language: "python", text: pythonSample(request) },
  ];
}

export function curlSample(request: SampleRequest): string {
  const { method, url, needsKey = true, accept = null, body = null, prints = "json" } = request;
  const isImplied = method === (body === null ? "GET" : "POST");
  const parts = [
    `curl -s${prints === "text" ? "N" : ""} ${isImplied ? "" : `-X ${method} `}'${url}'`,
    // As a file (bash, zsh), because everyone can list the command lines of a machine.
    needsKey && `-H @<(echo "Authorization: Bearer $OUTGATE_API_KEY")`,
    accept !== null && `-H 'Accept: ${accept}'`,
    body !== null && "-H 'Content-Type: application/json'",
    body !== null && `-d '${"json" in body ? body.json : quotableJson(indented(body.value))}'`,
  ];
  return given(parts).join(" \\\n  ");
}

function typescriptSample(request: SampleRequest): string {
  const { method, url, needsKey = true, accept = null, body = null, prints = "json" } = request;
  const headers = given([
    needsKey && "authorization: `Bearer ${process.env.OUTGATE_API_KEY}`",
    accept !== null && `accept: "${accept}"`,
    body !== null && `"content-type": "application/json"`,
  ]);
  const options = given([
    method !== "GET" && `method: "${method}"`,
    headers.length > 0 && `headers: {\n    ${headers.join(",\n    ")},\n  }`,
    body !== null && `body: ${typescriptBody(body)}`,
  ]);
  const args = options.length === 0 ? "" : `, {\n  ${options.join(",\n  ")},\n}`;
  const print = {
    json: "console.log(await response.json());",
    text: "for await (const part of response.body ?? []) process.stdout.write(part);",
    status: "console.log(response.status);",
  };
  return `const response = await fetch("${url}"${args});\n${print[prints]}`;
}

function typescriptBody(body: SampleBody): string {
  if ("value" in body) return `JSON.stringify(${deeper(indented(body.value), "  ")})`;
  // Not `String.raw`, in which Bun escapes what is not ASCII.
  return `\`${deeper(body.json, "  ").replaceAll("\\", String.raw`\\`)}\``;
}

function pythonSample(request: SampleRequest): string {
  const { method, url, needsKey = true, accept = null, body = null, prints = "json" } = request;
  const modules = given([
    (prints === "json" || (body !== null && "value" in body)) && "json",
    needsKey && "os",
    "urllib.request",
  ]);
  const headers = given([
    needsKey && `"Authorization": "Bearer " + os.environ["OUTGATE_API_KEY"]`,
    accept !== null && `"Accept": "${accept}"`,
    body !== null && `"Content-Type": "application/json"`,
  ]);
  const args = given([
    `"${url}"`,
    method !== "GET" && `method="${method}"`,
    headers.length > 0 && `headers={\n        ${headers.join(",\n        ")},\n    }`,
    body !== null && `data=${pythonBody(body)}.encode()`,
  ]);
  const print = {
    json: "print(json.load(response))",
    text: 'for line in response:\n        print(line.decode(), end="", flush=True)',
    status: "print(response.status)",
  };
  return `import ${modules.join(", ")}

request = urllib.request.Request(
    ${args.join(",\n    ")},
)
with urllib.request.urlopen(request) as response:
    ${print[prints]}`;
}

function pythonBody(body: SampleBody): string {
  if ("value" in body) return `json.dumps(${pythonLiteral(body.value, "    ")})`;
  return `r'''${deeper(body.json, "    ")}'''`;
}

function pythonLiteral(value: unknown, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const members = Array.isArray(value)
    ? value.map((one) => pythonLiteral(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonLiteral(one, inner)}`);
  if (members.length === 0) return open + close;
  return `${open}\n${members.map((member) => `${inner}${member},\n`).join("")}${indent}${close}`;
}

export function indented(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** The lines of JSON further to the right. No string of JSON has a line break. */
function deeper(json: string, indent: string): string {
  return json.replaceAll("\n", `\n${indent}`);
}

/** The parts that this request has. */
function given(parts: readonly (string | false)[]): readonly string[] {
  return parts.filter((part) => part !== false);
}

/** The first action that everybody is shown: the service calls its own health check, which changes nothing. */
export function firstAction(baseUrl: string) {
  return { url: `${baseUrl}/health`, method: "GET" } as const;
}

/** Puts a key into the variable that every command of ours reads; the key is in no history and no list of processes. */
export const ENTER_KEY = "read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY";

/** A create by curl. */
export function createCall(baseUrl: string, request: object): string {
  const json = quotableJson(JSON.stringify(request));
  return curlSample({ method: "POST", url: `${baseUrl}/v1/actions`, body: { json } });
}

/** The first action by curl, whose answer is how it ended. */
export function firstActionCall(baseUrl: string): string {
  return createCall(baseUrl, { ...firstAction(baseUrl), sync: true });
}
