/** `npm start`: sets the checkout up and proves that boxes work on this machine. */
await import("./setup.mjs");
const { main } = await import("../dist/cli/main.js");
await main(["selftest", ...process.argv.slice(2)]);
