import { serve } from "./app.ts";

await serve(process.env);
