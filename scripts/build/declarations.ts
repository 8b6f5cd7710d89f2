import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { clientTypes } from "./client-types.ts";
import { ROOT } from "./bundle.ts";

const CLIENT = join(ROOT, "src/client");

/** The files that the package exports from; all else they declare is in `types.ts` and the types of the API. */
const FILES = ["client.ts", "verify.ts"];

/** Of `transport.ts` the package has the error alone. */
const ERROR = `
/** Any failure of a call, except an abort by the caller. The message is for people. */
export declare class OutgateError extends Error implements OutgateErrorFacts {
  readonly name: "OutgateError";
  readonly code: OutgateErrorFacts["code"];
  readonly status: OutgateErrorFacts["status"];
  readonly requestId: OutgateErrorFacts["requestId"];
  readonly details: OutgateErrorFacts["details"];
  readonly detailsLeftOut: OutgateErrorFacts["detailsLeftOut"];
  readonly retryAfterMs: OutgateErrorFacts["retryAfterMs"];
  constructor(
    code: OutgateErrorCode,
    message: string,
    facts?: Partial<OutgateErrorFacts> & { readonly cause?: unknown },
  );
}
`;

/** The declarations of the npm package: they need no other package. */
export async function declarations(): Promise<string> {
  const api = await clientTypes();
  const own = readFileSync(join(CLIENT, "types.ts"), "utf8");
  const text = `${api}${own}${declared(FILES, api)}`
    .replaceAll(/^import type [^;]* from "\.\/(?:api|types)\.ts";\n/gm, "")
    .replaceAll("Api.", "")
    .replaceAll(/^\/\/.*\n/gm, "")
    .replaceAll(/^export \{\};\n/gm, "");
  if (/^import/m.test(text)) throw new Error("The client declares more than the types of the API and its own.");
  return `${text.trim()}\n${ERROR}`;
}

/** What TypeScript declares of these files, with `api` as the types of the API: those of the service need other packages. */
function declared(files: readonly string[], api: string): string {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), (path) => readFileSync(path, "utf8"));
  const parsed = ts.parseJsonConfigFileContent({ ...config, files: [] }, ts.sys, ROOT);
  const options = { ...parsed.options, noEmit: false, declaration: true, emitDeclarationOnly: true };
  const host = ts.createCompilerHost(options);
  host.readFile = (path) => (path === join(CLIENT, "api.ts") ? api : ts.sys.readFile(path));
  const paths = files.map((file) => join(CLIENT, file));
  const program = ts.createProgram(paths, options, host);
  const texts: string[] = [];
  for (const path of paths) {
    program.emit(program.getSourceFile(path), (_name, text) => void texts.push(text), undefined, true);
  }
  return texts.join("\n");
}
