import { execFile } from "node:child_process"
import { promisify } from "node:util"

/** Sends the request of a command `curl -H 'name: value' URL` without curl, and returns the body of the response. */
export const runCurl = async (command: string): Promise<unknown> => {
  // The shell parses the command. A shell function replaces curl and prints the arguments.
  const script = `curl() { printf '%s\\n' "$@"; }; ${command}`
  const { stdout } = await promisify(execFile)("sh", ["-c", script])
  const [option, header = "", url = ""] = stdout.split("\n")
  const [name, value] = header.split(": ")
  if (option !== "-H" || name === undefined || value === undefined)
    throw new Error(`not understood: ${command}`)
  const response = await fetch(url, { headers: { [name]: value } })
  return response.json()
}
