/** An example request in one language, as the extension `x-codeSamples` of OpenAPI describes it. */
export interface CodeSample {
  readonly lang: string
  readonly label: string
  readonly source: string
}

/**
 * Makes the code samples of a GET request without optional headers or parameters. The samples read the URL of the
 * service and the key from environment variables, and print the response.
 */
export const makeCodeSamples = (path: string): ReadonlyArray<CodeSample> => [
  {
    lang: "shell",
    label: "curl",
    source: `curl "$PROMPT_RETRIEVAL_URL${path}" \\
  --header "Authorization: Bearer $PROMPT_RETRIEVAL_KEY"`
  },
  {
    lang: "typescript",
    label: "TypeScript",
    source: `const path = "${path}"
const response = await fetch(process.env.PROMPT_RETRIEVAL_URL + path, {
  headers: { authorization: \`Bearer \${process.env.PROMPT_RETRIEVAL_KEY}\` }
})
if (!response.ok) throw new Error(await response.text())
console.log(JSON.stringify(await response.json(), null, 2))`
  },
  {
    lang: "python",
    label: "Python",
    source: `import json
import os
import urllib.request

path = "${path}"
request = urllib.request.Request(
    os.environ["PROMPT_RETRIEVAL_URL"] + path,
    headers={"Authorization": "Bearer " + os.environ["PROMPT_RETRIEVAL_KEY"]},
)
with urllib.request.urlopen(request) as response:
    print(json.dumps(json.load(response), indent=2))`
  }
]
