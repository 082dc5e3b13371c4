/**
 * Command line: builds the images named as arguments (default: all), with progress on stderr.
 */
import { ensureImage } from "./image.js";
import { ensureHostTools } from "./install.js";
import { SUITE_NAMES, type Suite } from "./suites.js";

const tools = await ensureHostTools((line) => process.stderr.write(`apt: ${line}\n`));
if (!tools.ready) {
  process.stderr.write(`${tools.message}\n`);
  process.exit(1);
}
const wanted = process.argv.length > 2 ? (process.argv.slice(2) as Suite[]) : SUITE_NAMES;
for (const suite of wanted) {
  const image = await ensureImage(suite, (line) => process.stderr.write(`${suite}: ${line}\n`));
  process.stdout.write(
    `${suite} ${image.kernelVersion} ${image.systemdVersion} ${image.built ? "built" : "cached"} ${image.dir}\n`,
  );
}
