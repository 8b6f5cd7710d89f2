// What programs import from the npm package.
export { createClient } from "./client.ts";
export { OutgateError } from "./transport.ts";
export { verify } from "./verify.ts";
