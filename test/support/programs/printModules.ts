const hooks = `import { registerHooks } from "node:module"
registerHooks({
  load: (url, context, next) => {
    process._rawDebug(url)
    return next(url, context)
  }
})`

/** The environment with which a Node process prints to stderr the URL of each module that it loads. */
export const printModules = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}` }
