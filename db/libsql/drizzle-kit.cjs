// What drizzle-kit makes the migrations from: it reads exports, and each table is one.
module.exports = require("../tables.ts").tables;
