import { execFileSync, spawn, spawnSync } from "node:child_process"
import { cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import { temporaryDirectory } from "../testDirectory.ts"
import { programPath } from "./startProgram.ts"

const root = join(import.meta.dirname, "../../..")
const certificates = "/etc/ssl/certs/ca-certificates.crt"

interface ImageConfig {
  readonly User: string
  readonly Env: ReadonlyArray<string>
  readonly Entrypoint: ReadonlyArray<string>
  readonly Cmd: ReadonlyArray<string>
  readonly Labels: Readonly<Record<string, string>>
  readonly ExposedPorts: Readonly<Record<string, unknown>>
  readonly Healthcheck: { readonly Test: ReadonlyArray<string> }
}

/** The base images of `deploy/Containerfile`. The build uses images with these contents in their place. */
const bases = {
  // The build mounts the programs of this machine at /usr.
  "docker.io/library/node:24-bookworm-slim": {
    writeFiles: (files: string): void => {
      for (const name of ["bin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(files, name))
      // buildah searches PATH for the program of RUN before it mounts /usr.
      writeFileSync(join(files, "opt/npm"), '#!/bin/sh\nexec npm "$@"\n', { mode: 0o755 })
    },
    settings: [
      "--env=PATH=/opt/node:/usr/local/bin:/usr/bin:/opt",
      `--env=NODE_EXTRA_CA_CERTS=${certificates}`
    ]
  },
  // This image contains Node and the libraries that Node loads, but no shell.
  "gcr.io/distroless/nodejs24-debian12:nonroot": {
    writeFiles: (files: string): void => {
      const libraries = execFileSync("ldd", [process.execPath], { encoding: "utf8" }).match(/\/\S+/g) ?? []
      for (const library of libraries) cpSync(realpathSync(library), join(files, library))
      cpSync(process.execPath, join(files, "nodejs/bin/node"))
    },
    settings: ["--user=65532"]
  }
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
 * Builds `deploy/Containerfile` unmodified. The base images contain Node and npm of this machine, and the build uses its
 * npm cache. Closing the scope removes the images.
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
      const files = join(home, basename(name))
      for (const directory of ["dev", "etc", "opt", "proc", "root", "tmp"])
        mkdirSync(join(files, directory), { recursive: true })
      writeFileSync(join(files, "etc/passwd"), "root:x:0:0::/root:/bin/sh\n")
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
      `--volume=${dirname(process.execPath)}:/opt/node:ro`,
      ...["/usr", certificates].map((path) => `--volume=${path}:${path}:ro`),
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
