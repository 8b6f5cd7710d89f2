#!/usr/bin/env bun
import { COMMANDS } from "./commands.ts";
import { run } from "./run.ts";

const io = {
  env: process.env,
  out: (text: string) => process.stdout.write(text),
  err: (text: string) => process.stderr.write(text),
  isTty: process.stdout.isTTY,
};

process.exitCode = await run(process.argv.slice(2), io, COMMANDS);
