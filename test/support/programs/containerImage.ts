import { execFileSync, spawn, spawnSync } from "node:child_process"
import { cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import { temporaryDirectory } from "../testDirectory.ts"
import { programPath } from "./programs.ts"

const root = join(import.meta.dirname, "../../..")

interface ImageConfig {
  readonly User: string
  readonly Env: ReadonlyArray<string>
  readonly Entrypoint: ReadonlyArray<string>
  readonly Cmd: ReadonlyArray<string>
  readonly Labels: Readonly<Record<string, string>>
  readonly ExposedPorts: Readonly<Record<string, unknown>>
  readonly Healthcheck: { readonly Test: ReadonlyArray<string> }
}

/** Copies a program of this machine and the libraries that it loads. */
const copyProgram = (program: string, target: string): void => {
  const copy = (from: string, to: string) => {
    mkdirSync(dirname(to), { recursive: true })
    cpSync(realpathSync(from), to)
  }
  copy(program, target)
  const base = target.slice(0, target.indexOf("/files/") + "/files".length)
  const libraries = execFileSync("ldd", [program], { encoding: "utf8" }).match(/\/\S+/g) ?? []
  for (const library of libraries) copy(library, base + library)
}

/** Writes the files of the build image: Node and npm of this machine, and the files that they need. */
const writeBuildFiles = (files: string): void => {
  copyProgram(process.execPath, join(files, "usr/local/bin/node"))
  copyProgram("/bin/sh", join(files, "bin/sh"))
  copyProgram("/usr/bin/env", join(files, "usr/bin/env"))
  const npm = join(
    dirname(realpathSync(execFileSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).trim())),
    ".."
  )
  cpSync(npm, join(files, "usr/local/lib/node_modules/npm"), { recursive: true })
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(files, "usr/local/bin/npm"))
  mkdirSync(join(files, "etc/ssl/certs"), { recursive: true })
  cpSync("/etc/ssl/certs/ca-certificates.crt", join(files, "etc/ssl/certs/ca-certificates.crt"))
  writeFileSync(join(files, "etc/passwd"), "root:x:0:0::/root:/bin/sh\n")
  for (const directory of ["root", "tmp"]) mkdirSync(join(files, directory))
}

/** Writes the files of the image that runs the program: Node without a shell. */
const writeRunFiles = (files: string): void => {
  copyProgram(process.execPath, join(files, "nodejs/bin/node"))
  mkdirSync(join(files, "etc"))
  writeFileSync(join(files, "etc/passwd"), "nonroot:x:65532:65532::/home/nonroot:/sbin/nologin\n")
  for (const directory of ["proc", "dev", "tmp"]) mkdirSync(join(files, directory))
}

/** The base images of `deploy/Containerfile`. The tests replace them with images that have these contents. */
const bases = {
  "docker.io/library/node:24-bookworm-slim": {
    writeFiles: writeBuildFiles,
    settings: [
      "--env=PATH=/usr/local/bin:/usr/bin:/bin",
      "--env=NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"
    ]
  },
  "gcr.io/distroless/nodejs24-debian12:nonroot": { writeFiles: writeRunFiles, settings: ["--user=65532"] }
} as const

/** Remounts the directory `$1` read-only, and replaces this process with the command as the user `$2`. */
const runReadOnly = `set -e
files=$1; user=$2; shift 2
mount --bind "$files" "$files"
mount -t proc proc "$files/proc"
mount --rbind /dev "$files/dev"
mount -o remount,bind,ro "$files"
exec chroot --userspec="$user" "$files" "$@"`

export type Image = Effect.Success<typeof buildImage>

/**
 * Builds `deploy/Containerfile` unmodified, from base images with Node and npm of this machine. The build uses the npm
 * cache of this machine. Closing the scope removes everything.
 */
export const buildImage = Effect.gen(function* () {
  const home = yield* temporaryDirectory("image-")
  const storage = ["--storage-driver=vfs", `--root=${join(home, "root")}`, `--runroot=${join(home, "run")}`]
  const buildah = (...args: ReadonlyArray<string>): string => {
    const { status, stdout, stderr } = spawnSync("buildah", [...storage, ...args], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 2 ** 26,
      env: { PATH: programPath, HOME: process.env.HOME }
    })
    if (status !== 0) throw new Error(`buildah ${args[0]}: ${stdout}${stderr}`)
    return stdout.trim()
  }
  return yield* Effect.sync(() => {
    for (const [name, { writeFiles, settings }] of Object.entries(bases)) {
      const files = join(home, basename(name), "files")
      mkdirSync(files, { recursive: true })
      writeFiles(files)
      const container = buildah("from", "scratch")
      buildah("copy", "--quiet", container, files, "/")
      buildah("config", ...settings, container)
      buildah("commit", "--quiet", "--rm", container, name)
    }
    const cache = execFileSync("npm", ["config", "get", "cache"], { encoding: "utf8" }).trim()
    buildah(
      "build",
      "--isolation=chroot",
      "--format=docker",
      "--pull-never",
      "--quiet",
      `--volume=${cache}:/root/.npm`,
      "--file=deploy/Containerfile",
      "--tag=prompt-retrieval",
      "."
    )
    const container = buildah("from", "--pull-never", "prompt-retrieval")
    const files = buildah("mount", container)
    const inspected = buildah("inspect", "--type=image", "prompt-retrieval")
    const { config } = JSON.parse(inspected).Docker as { readonly config: ImageConfig }
    return {
      config,
      /** The directory with the files of the image. */
      files,
      /** Runs a command as the image's user, with a read-only root file system and the network of this machine. */
      run: (command: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
        spawn("unshare", ["--mount", "sh", "-c", runReadOnly, "sh", files, config.User, ...command], {
          env: {
            ...Object.fromEntries(config.Env.map((variable) => variable.split(/=(.*)/s).slice(0, 2))),
            ...env,
            // This PATH finds `unshare`, `sh`, `mount` and `chroot` on the host. The image contains no program except
            // Node.
            PATH: programPath
          },
          stdio: ["ignore", "pipe", "pipe"]
        })
    }
  })
})
