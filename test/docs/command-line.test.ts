import { join } from "node:path"
import { expect, it } from "vitest"
import { rootCommand } from "../../src/adapters/inbound/cli/Commands.ts"
import { listSubcommands } from "../../src/adapters/inbound/cli/input/UsageErrors.ts"
import { runInProcess } from "../support/services/commandLine.ts"
import { readDocument, root } from "./markdown.ts"

const document = "docs/command-line.md"

/** Returns every command that users can run, such as `keys list`, in the order of the help. */
const listCommands = (
  command: Parameters<typeof listSubcommands>[0] = rootCommand,
  words: ReadonlyArray<string> = []
): ReadonlyArray<string> => {
  const subcommands = listSubcommands(command)
  return subcommands.length === 0
    ? [words.join(" ")]
    : subcommands.flatMap((subcommand) => listCommands(subcommand, [...words, subcommand.name]))
}

const commands = listCommands()

const readHelp = async (command: string): Promise<string> => {
  const { code, stdout, stderr } = await runInProcess([...command.split(" "), "--help"])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  return stdout
}

/** Returns the table row of a command: its usage, its flags and its description. */
const renderRow = async (command: string): Promise<string> => {
  const help = await readHelp(command)
  const [, description, usage] = /^DESCRIPTION\n {2}(.+)\n\nUSAGE\n {2}prompt-retrieval (.+)$/m.exec(help)!
  const flags = [...help.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, flag]) => `\`${flag}\``)
  return `| \`${usage!.replace(" [flags]", "")}\` | ${flags.join(", ")} | ${description} |\n`
}

// To update the table after a change to a command: npx vitest run test/docs/command-line.test.ts -u
it("docs/command-line.md lists every command with its flags", async () => {
  const rows: Array<string> = []
  for (const command of commands) rows.push(await renderRow(command))
  const generated = readDocument(document).replace(
    /(?<=^\| Command \| Flags \| \|\n\|---\|---\|---\|\n)(\|.*\n)*/m,
    () => rows.join("")
  )
  await expect(generated).toMatchFileSnapshot(join(root, document))
})

/** Splits the first command of a line into words, as a shell does. */
const splitWords = (line: string): ReadonlyArray<string> =>
  [...line.split(/ (?:\||>>?) /)[0]!.matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? plain!
  )

it.each(commands.filter((command) => command !== "version"))(
  "the examples in the help of %s are valid command lines, and at least one runs this command",
  async (command) => {
    const [, examples] = (await readHelp(command)).split("\nEXAMPLES\n")
    const lines = [...examples!.matchAll(/^ {2}(?:[A-Z_]+=\S+ )*(prompt-retrieval .+)$/gm)].map(
      ([, line]) => line!
    )
    expect(lines).toContainEqual(expect.stringMatching(`^prompt-retrieval ${command}( |$)`))
    for (const line of lines) {
      const { code, stderr } = await runInProcess(splitWords(line).slice(1))
      expect({ line, stderr, isWrong: code === 2 }).toEqual({ line, stderr, isWrong: false })
    }
  }
)
