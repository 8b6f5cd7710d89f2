// What drizzle-kit makes the migrations from: it reads exports, and each table is one.
const { tables, ...others } = require("./schema.ts");

module.exports = { ...tables, ...others };
